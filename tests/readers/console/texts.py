"""Console texts as trainers write them, with numbers of our own."""

from __future__ import annotations

import math
from collections.abc import Callable


def loss(step: int) -> float:
    """A loss that falls, exact to four digits."""
    return round(4.0 * math.exp(-step / 50) + 1.0, 4)


def lines(count: int, write: Callable[[int], str]) -> str:
    """One line a step, from step 1."""
    return "".join(write(i) + "\n" for i in range(1, count + 1))


FORMATS: dict[str, tuple[Callable[[int], str], str, str]] = {
    "hf": (
        lambda i: f"{{'loss': {loss(i)}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {i / 100}}}",
        "loss",
        "",
    ),
    "hf texts": (lambda i: f"{{'loss': '{loss(i)}', 'grad_norm': '1.5', 'epoch': '{i / 100}'}}", "loss", ""),
    "megatron": (
        lambda i: (
            f" iteration {i:8d}/    1000 | consumed samples: {i * 8:12d} | elapsed time per iteration (ms): 12.5 |"
            f" learning rate: 1.500E-04 | lm loss: {loss(i):.6E} | loss scale: 1.0 | grad norm: 0.731 | number of nan iterations:   0 |"
        ),
        "lm loss",
        "iteration",
    ),
    "deepspeed": (
        lambda i: (
            f"[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step={i}, skipped=0, lr=[0.001, 0.001],"
            f" mom=[[0.9, 0.99], [0.9, 0.99]], loss={loss(i)}"
        ),
        "loss",
        "step",
    ),
    "nanogpt": (lambda i: f"iter {i}: loss {loss(i)}, time 12.10ms, mfu 3.22%", "loss", "iter"),
    "llm.c": (
        lambda i: (
            f"step {i:4d}/1000 | loss {loss(i):.6f} (+nanz)| norm 0.5000 (+0.12z)| lr 3.00e-04 | 99.10 ms | 29.0% bf16 MFU | 330220 tok/s"
        ),
        "loss",
        "step",
    ),
    "llm.c short": (lambda i: f"s:{i} trl:{loss(i)}", "trl", "s"),
    "modded": (
        lambda i: f"step:{i}/5100 train_loss:{loss(i)} train_time:{i * 100}ms step_avg:100.00ms",
        "train_loss",
        "step",
    ),
    "torchtitan": (
        lambda i: (
            f"[rank0]:[titan] 2025-01-01 12:00:00,000 - root - INFO - \x1b[31mstep: {i:2d}  \x1b[32mloss: {loss(i):7.4f}  grad_norm:  1.5"
            "  memory: 10.23GiB(20.10%)  tps: 1,234  mfu: 3.20%\x1b[39m"
        ),
        "loss",
        "step",
    ),
    "fairseq": (
        lambda i: (
            f"2021-01-01 00:00:00 | INFO | train_inner | epoch 001: {i:6d} / 500 loss={loss(i)}, ppl=9.1, wps=1000.2, lr=0.001, gnorm=1.2"
        ),
        "loss",
        "step",
    ),
    "fairseq json": (
        lambda i: (
            f'2021-01-01 00:00:00 | INFO | train_inner | {{"epoch": 1, "loss": "{loss(i)}", "num_updates": "{i}"}}'
        ),
        "loss",
        "num_updates",
    ),
    "swin": (
        lambda i: (
            f"[2024-01-01 10:00:00 net] (main.py 186): INFO Train: [0/3][{i}/1251]\teta 0:03:29 lr 0.003\ttime 0.01 (0.02)\tloss {loss(i)} (2.4400)"
        ),
        "loss",
        "step",
    ),
    "examples": (lambda i: f"Train Epoch: 1 [{i * 64}/60000 ({i * 64 / 600:.0f}%)]\tLoss: {loss(i)}", "Loss", ""),
    "imagenet": (
        lambda i: f"Epoch: [0][{i:5d}/5005]\tTime  0.300 ( 0.500)\tLoss {loss(i)} (6.9)\tAcc@1   0.00 (  0.10)",
        "Loss",
        "step",
    ),
    "pipes": (
        lambda i: f"| epoch   1 | {i:5d}/ 2983 batches | lr 20.00 | ms/batch 11.61 | loss {loss(i)} | ppl 12.1",
        "loss",
        "step",
    ),
    "icefall": (
        lambda i: (
            f"2022-01-01 12:00:00,123 INFO [train.py:901] (0/8) Epoch 1, batch {i}, loss[loss={loss(i)}, simple_loss=6.1, over 1200.00 frames. ],"
            " tot_loss[loss=7.3]"
        ),
        "loss",
        "batch",
    ),
    "detectron2": (
        lambda i: (
            f"[01/01 10:00:00 d2.utils.events]:  eta: 0:03:29  iter: {i}  total_loss: {loss(i)}  lr: 0.0002  max_mem: 2400M"
        ),
        "total_loss",
        "iter",
    ),
    "tensorflow": (lambda i: f"INFO:tensorflow:loss = {loss(i)}, step = {i} (12.3 sec)", "loss", "step"),
    "loguru": (
        lambda i: f"2024-05-01 12:00:00.123 | INFO     | trainer.loop:run:123 - step={i} loss={loss(i)}",
        "loss",
        "step",
    ),
    "ray": (
        lambda i: (
            f"\x1b[36m(TaskRunner pid=123, ip=10.0.0.1)\x1b[0m step:{i} - actor/pg_loss:{loss(i)} - critic/rewards/mean:0.5"
        ),
        "actor/pg_loss",
        "step",
    ),
    "reprs": (
        lambda i: f"step {i} loss tensor({loss(i)}, device='cuda:0', grad_fn=<NllLossBackward0>) acc np.float64(0.5)",
        "loss",
        "step",
    ),
    "chinese": (lambda i: f"步数：{i}，训练损失：{loss(i)}，学习率：0.001", "训练损失", "步数"),
    "ansi in keys": (
        lambda i: f"{i}/20000 \x1b[01;31m\x1b[Ktrain_loss\x1b[m\x1b[K: {loss(i)} tok/s: 80322",
        "train_loss",
        "step",
    ),
}
"""name -> how a line of step i is written, the name of the loss, the name of the step ("" where it has none of its own)."""
