"""What a console text states of the run beside its numbers: settings, library versions, whose trainer it is."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable
from typing import Any

from poise.readers.console.clean import plain

_MOST = 2_000
_BYTES = 1 << 20
_CALL = re.compile(
    r"\b(?:Namespace|[A-Z]\w*(?:Args|Arguments|Config|Options|Params))\((.{20,20000}?)\)\s*$", re.MULTILINE
)
_PAIR = re.compile(
    r"(\w[\w.-]*)=('[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|\[[^\]\n]{0,300}\]|\([^)\n]{0,300}\)|[^,()\n]{0,300})", re.ASCII
)
_DOTTED = re.compile(r"^[^\w\n]{0,4}(\w+) \.{2,} ?(\S[^\n]{0,200}?)\s*$", re.MULTILINE | re.ASCII)
_COLON = re.compile(
    r"^[ \t|>*\"'-]{0,12}([A-Za-z_][\w./ -]{0,48}?)[\"']?(?:[ \t]*:[ \t]*(?:int|float|str"
    r"|bool))?[ \t]*[:=][ \t]+([\"']?[\w.+/-][^\s,;{}|]{0,80}?[\"']?),?[ \t]*$",
    re.MULTILINE | re.ASCII,
)
_CHOSEN = re.compile(
    r"lr|rate|batch|bs|steps?|iters?|iterations|epochs?|warmup|decay|clip|grad|precision|dtype|fp16|bf16|amp|optim\w*"
    r"|sched\w*|seed|beta\w*|eps\w*|momentum|dropout"
    r"|vocab\w*|seq\w*|context|block|layers?|heads?|dim|hidden|model|arch|loss|scale|accum\w*|smooth\w*|classes|labels"
    r"|dataset|world|gpus?|workers|temperature",
    re.IGNORECASE,
)
_LIBRARIES = (
    "torch|pytorch|transformers|accelerate|deepspeed|lightning|pytorch[_-]lightning|tensorflow|keras|jax|flax|numpy|cuda|cudnn"
    "|python|wandb|peft|trl|megatron|apex|datasets|timm|mmengine|mmcv|mmdet|detectron2|fairseq|nccl|xformers|flash[_-]attn|triton|vllm"
)
_VERSION = re.compile(
    rf"(?<![\w./-])({_LIBRARIES})(?:[\"']?\s*==?\s*[\"']?|(?:[ _-](?:runtime|compiler))*[ _-]version[\"']?\s*(?:[:=]|is"
    rf"|\.{{3,}})?\s*[\"']?v?(?=\d)|\s*[:=]?\s*v?(?=\d+\.\d+\.\d))"
    r"(\d+\.\d+[\w.+-]{0,24})(?![/\w])",
    re.IGNORECASE,
)


class Settings:
    """Gathers what is said before and between the numbers, within the first megabytes of a file."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.loose: dict[str, Any] = {}
        self.versions: dict[str, str] = {}
        self._read = 0

    def feed(self, block: bytes, before_numbers: bool) -> None:
        """Look through a block; loose `key: value` lines count only before the first numbers of training."""
        if self._read > _BYTES:
            return
        self._read += len(block)
        if before_numbers or b"amespace(" in block or b" ...." in block:
            self._settings(plain(block, False).decode("utf-8", "replace"), before_numbers)

    def _settings(self, text: str, before_numbers: bool) -> None:
        for match in _VERSION.finditer(text):
            self.versions.setdefault(match[1].lower().replace("pytorch-", "pytorch_"), match[2].rstrip(".,"))
        for call in _CALL.finditer(text):
            self._add(_PAIR.findall(call[1]))
        self._add(_DOTTED.findall(text))
        if before_numbers:
            self._add(((k.strip(), v) for k, v in _COLON.findall(text) if _CHOSEN.search(k)), self.loose)

    def _add(self, pairs: Iterable[tuple[str, str]], config: dict[str, Any] | None = None) -> None:
        config = self.config if config is None else config
        for key, value in pairs:
            if len(config) >= _MOST:
                return
            config.setdefault(key, plain_value(value))


def plain_value(text: str) -> Any:
    """A setting as number, truth value, None or text."""
    text = text.strip()
    lower = text.lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower in ("none", "null"):
        return None
    if re.fullmatch(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?", text):
        try:
            return float(text) if re.search(r"[.eE]", text) else int(text[:64])
        except ValueError:
            return text
    if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1:
        try:
            return literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text[1:-1]
    return text


_TRAINERS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("megatron", (b"consumed samples:", b"elapsed time per iteration")),
    ("torchtitan", (b"[titan]",)),
    ("coqui", (b"--> GLOBAL_STEP", b"GLOBAL_STEP: ", b" | > ")),
    ("lightning", (b"v_num=", b"LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES", b"`Trainer.fit` stopped")),
    ("keras", (b"[=====", b" - ETA: ", b"ms/step - ")),
    ("deepspeed", (b"[deepspeed]", b"DeepSpeed info", b"log_dist] [Rank 0] step=")),
    ("fairseq", (b"| train_inner |", b"nll_loss=", b", wps=", b"fairseq")),
    ("mmengine", (b"- mmengine - ", b"- mmdet - ", b"- mmseg - ")),
    ("detectron2", (b"d2.utils", b"d2.engine", b"detectron2")),
    ("yolo", (b"Ultralytics", b"box_loss   cls_loss")),
    ("hf", (b"{'loss': ", b"'train_runtime': ", b"***** Running training *****")),
    ("rl", (b"ep_rew_mean", b"time_elapsed    |")),
    ("llm.c", (b"(+nanz)", b" trl:", b" tel:")),
    ("modded-nanogpt", (b"step_avg:",)),
    ("nanogpt", (b"iter 0: loss ", b", mfu ", b": train loss ")),
)


class Trainers:
    """Counts the marks that trainers leave in their logs."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._read = 0

    def feed(self, block: bytes) -> None:
        """Look for marks, in the first megabytes only."""
        if self._read > _BYTES:
            return
        self._read += len(block)
        for name, marks in _TRAINERS:
            count = sum(mark in block for mark in marks)
            self._found[name] = max(count, self._found.get(name, 0))

    def best(self) -> str | None:
        """The trainer whose marks were found, the more special first."""
        order = [name for name, _ in _TRAINERS]
        found = [(count, -order.index(name), name) for name, count in self._found.items() if count]
        return max(found)[2] if found else None
