"""Hyper-parameters under canonical names, beside the log's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from poise.readers.words import split_name


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    match = (
        re.fullmatch(r"\s*[-+]?[\d_,]*\.?\d+(?:[eE][-+]?\d+)?\s*", value)
        if isinstance(value, str) and len(value) < 40
        else None
    )
    if match is None:
        return None
    text = value.replace(",", "").replace("_", "")
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _positive(value: Any) -> float | int | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _text(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() and len(value) < 200 else None


def precision_of(value: Any) -> str | None:
    """`fp16`, `bf16`, `fp8` or `fp32` from what trainers write: `16-mixed`, `torch.bfloat16`, `no`."""
    text = str(value).lower()
    for found, signs in (
        ("bf16", ("bf16", "bfloat16")),
        ("fp16", ("fp16", "float16", "16-mixed", "half")),
        ("fp8", ("fp8", "float8")),
    ):
        if any(sign in text for sign in signs):
            return found
    return (
        "fp16"
        if text == "16"
        else "fp32"
        if text in ("32", "fp32", "float32", "32-true", "no", "torch.float32", "float")
        else None
    )


_Rule = tuple[str, tuple[str, ...], Callable[[Any], Any]]
_RULES: tuple[_Rule, ...] = (
    ("learning_rate", ("learning rate", "lr", "base lr", "max lr", "peak lr", "init lr", "initial lr", "lr init", "lr0"), _number),
    ("min_learning_rate", ("min lr", "lr min", "min learning rate"), _number),
    ("vocab_size", ("vocab size", "padded vocab size", "n vocab", "vocabulary size", "num embeddings"), _positive),
    ("num_classes", ("num classes", "n classes", "num labels", "nc"), _positive),
    ("max_steps", ("max steps", "total steps", "num steps", "steps", "train iters", "max iters", "num iterations", "iterations", "max iter", "num train steps", "max train steps", "num training steps", "total iterations"), _positive),
    ("warmup_steps", ("warmup steps", "num warmup steps", "warmup iters", "lr warmup iters", "warmup", "warmup iterations", "warmup updates"), _number),
    ("warmup_ratio", ("warmup ratio", "warmup frac", "warmup fraction"), _number),
    ("batch_size", ("global batch size", "train batch size", "per device train batch size", "batch size", "micro batch size", "bs", "batch"), _positive),
    ("gradient_accumulation_steps", ("gradient accumulation steps", "accumulate grad batches", "grad accum steps", "accumulation steps", "update freq"), _positive),
    ("optimizer", ("optimizer", "optim", "optimizer name", "optimizer type", "opt"), _text),
    ("max_grad_norm", ("max grad norm", "grad clip", "clip grad", "gradient clipping", "clip grad norm", "gradient clip val", "grad clip norm", "clip norm", "clip"), _number),
    ("num_epochs", ("num epochs", "num train epochs", "epochs", "max epochs", "n epochs", "max epoch"), _positive),
    ("logging_steps", ("logging steps", "log interval", "log every n steps", "log freq", "log every"), _positive),
    ("weight_decay", ("weight decay", "wd"), _number),
    ("beta2", ("adam beta2", "beta2", "adam beta 2"), _number),
    ("epsilon", ("adam epsilon", "adam eps", "epsilon", "eps"), _number),
    ("label_smoothing", ("label smoothing factor", "label smoothing"), _number),
    ("schedule", ("lr scheduler type", "lr decay style", "lr scheduler", "scheduler", "schedule", "lr schedule"), _text),
    ("precision", ("mixed precision", "precision", "dtype", "torch dtype", "amp dtype", "params dtype"), precision_of),
    ("seq_length", ("seq length", "sequence length", "block size", "max seq length", "max seq len", "context length", "seq len", "cutoff len"), _positive)
)  # fmt: skip
_WANTED = {
    spelling: (rank, canonical, parse)
    for canonical, spellings, parse in _RULES
    for rank, spelling in enumerate(spellings)
}


def canonical_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with canonical keys added; the log's own keys stay, and win where they are canonical already."""
    best: dict[str, tuple[int, Any]] = {}
    for key, value in config.items():
        for spelling in _spellings(key):
            rank, canonical, parse = _WANTED.get(spelling, (0, "", _text))
            parsed = parse(value) if canonical else None
            if parsed is not None and (canonical not in best or rank < best[canonical][0]):
                best[canonical] = (rank, parsed)
    found = {canonical: value for canonical, (_, value) in best.items()}
    if "precision" not in found and (half := _half(config)):
        found["precision"] = half
    ratio, steps = found.get("warmup_ratio"), found.get("max_steps")
    if ratio and steps and not found.get("warmup_steps"):
        found["warmup_steps"] = round(ratio * steps)
    return {**config, **found}


def _spellings(key: str) -> set[str]:
    """The whole key and its last segment, in words: `optimizer.lr` is read as `lr` too."""
    last = re.split(r"[./]", key)[-1].split("__")[-1]
    return {
        " ".join(split_name(text).words).replace("beta 2", "beta2").replace("lr 0", "lr0").replace("warm up", "warmup")
        for text in (key, last)
    }


def _half(config: Mapping[str, Any]) -> str | None:
    """Precision from switches such as `fp16: true`."""
    for key, value in config.items():
        name = re.split(r"[./]", key)[-1].lower()
        if name in ("fp16", "bf16") and str(value).lower() in ("true", "1", "yes"):
            return name
    return None
