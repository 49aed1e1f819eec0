"""Train a small byte-level GPT twice, once well and once with a fault, and write an ordinary CSV log of each run.

The text is Python's own standard library, so nothing is downloaded. Both runs have the same seed and the same batches; in
the second one the learning rate is multiplied by 30 from step 600 on, as a wrong unit in a resumed configuration would do.
Nothing in the logs is edited afterwards: what `poise diagnose` reads is what happened.

    python examples/demo_training.py --out demo     # about a minute on two cores; writes demo/healthy.csv, demo/broken.csv
"""

from __future__ import annotations

import argparse
import csv
import math
import sysconfig
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WIDTH, LAYERS, HEADS = 64, 96, 3, 4
BATCH = 12
PEAK, WARMUP = 2e-3, 60
FAULT_FACTOR = 30.0
EVAL_EVERY = 50


def standard_library() -> torch.Tensor:
    """The bytes of the standard library's top-level .py files, in order of name."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm on a residual stream."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x_BLD: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x_BLD.shape
        q, k, v = self.qkv(self.norm1(x_BLD)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x_BLD.shape)
        x_BLD = x_BLD + self.out(mixed)
        return x_BLD + self.feed(self.norm2(x_BLD))


class GPT(nn.Module):
    """Bytes in, logits of the next byte out."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def loss(self, text_BL: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats of each next byte."""
        x_BLD = self.bytes(text_BL[:, :-1]) + self.places.weight
        logits_BLV = self.head(self.norm(self.blocks(x_BLD)))
        return F.cross_entropy(logits_BLV.flatten(0, 1), text_BL[:, 1:].flatten())


def windows(text: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Random stretches of CONTEXT + 1 bytes."""
    starts = torch.randint(len(text) - CONTEXT - 1, (count,), generator=generator)
    return text[starts[:, None] + torch.arange(CONTEXT + 1)]


def learning_rate(step: int, steps: int, fault_step: int | None) -> float:
    """Linear warmup, then a cosine to a tenth of the peak; 30 times as much from the fault on."""
    share = max(0.0, (step - WARMUP) / (steps - WARMUP))
    rate = PEAK * min(1.0, (step + 1) / WARMUP) * (0.55 + 0.45 * math.cos(math.pi * share))
    return rate * FAULT_FACTOR if fault_step is not None and step >= fault_step else rate


def train(path: Path, steps: int, fault_step: int | None = None) -> Path:
    """Train one model from scratch and write a row of `path` at every step."""
    torch.set_num_threads(1)  # the two runs share two cores, and one thread is reproducible
    torch.manual_seed(0)
    text = standard_library()
    held_out, seen = text[: len(text) // 20], text[len(text) // 20 :]
    batches = torch.Generator().manual_seed(1)
    checks = windows(held_out, 64, torch.Generator().manual_seed(2))
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.95), weight_decay=0.1)
    began = time.monotonic()
    with path.open("w", newline="") as file:
        log = csv.writer(file)
        log.writerow(["step", "loss", "grad_norm", "lr", "val_loss"])
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, fault_step)
            loss = model.loss(windows(seen, BATCH, batches))
            optimizer.zero_grad()
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            checked = f"{evaluate(model, checks):.5f}" if step % EVAL_EVERY == EVAL_EVERY - 1 else ""
            log.writerow(
                [
                    step,
                    f"{loss.item():.5f}",
                    f"{grad_norm.item():.5f}",
                    f"{optimizer.param_groups[0]['lr']:.4g}",
                    checked,
                ]
            )
            if step % 200 == 0:
                print(
                    f"{path.stem}: step {step}/{steps}, loss {loss.item():.3f}, {time.monotonic() - began:.0f} s",
                    flush=True,
                )
    return path


@torch.no_grad()
def evaluate(model: GPT, checks: torch.Tensor) -> float:
    """Loss on text that training never sees."""
    return model.loss(checks).item()


def main() -> None:
    """Train both runs at once, one core each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the two logs")
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        healthy = pool.submit(train, args.out / "healthy.csv", args.steps)
        broken = pool.submit(train, args.out / "broken.csv", args.steps, args.steps // 2)
        print(f"wrote {healthy.result()} and {broken.result()}")


if __name__ == "__main__":
    main()
