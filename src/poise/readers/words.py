"""A log's name for a number, cut into words, so that `trainLoss`, `train/loss` and `Train Loss` are one and the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Split = Literal["train", "eval", ""]


def wordset(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


TRAIN = wordset("train training tr trn")
EVAL = wordset("val valid validation validating dev eval evaluation test testing tst te heldout predict prediction")
TEST = wordset("test testing tst te predict prediction")
LOSS = wordset("loss losses objective")
ENTROPIES = wordset("ce nll xent bpb bpc bpd crossentropy")
SMOOTH = wordset("avg average averaged ema mean running smooth smoothed smoothened median")
BOUNDS = wordset("min max std stddev var variance best lowest")
PLAIN = wordset(
    "total all overall lm log logs metric metrics scalar scalars current cur last raw main final step iter iteration batch epoch local"
    " global value per"
)

_PIECES = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+(?:\.\d+)?|%")
_ODD_CASE = re.compile(r"mAP|FLOPs|FLOPS|mIoU|IoU|GiB|MiB|KiB")
_RUN_NAME = re.compile(r"^.+ - (?=[^\s-])")
_CHINESE = {
    "训练": " train ", "验证": " val ", "测试": " test ", "评估": " eval ", "平均": " avg ", "损失": " loss ", "学习率": " lr ",
    "准确率": " acc ", "精度": " acc ", "梯度范数": " grad norm ", "困惑度": " ppl ", "步数": " step ", "迭代": " iter ", "轮次": " epoch ",
    "奖励": " reward ", "总": " total ", "显存": " gpu mem ", "熵": " entropy "
}  # fmt: skip
_GLUED = {
    "trl": ("train", "loss"), "tel": ("eval", "loss"), "gnorm": ("grad", "norm"), "gradnorm": ("grad", "norm"), "dloss": ("d", "loss"),
    "gloss": ("g", "loss"), "ppl": ("ppl",), "learningrate": ("lr",), "lossscale": ("loss", "scale"), "crossentropy": ("crossentropy",),
    "timesteps": ("timesteps",), "approxkl": ("approx", "kl"), "clipfrac": ("clip", "frac"), "globalstep": ("global", "step"),
    "toks": ("tokens",), "tok": ("tokens",), "token": ("tokens",)
}  # fmt: skip
_GLUED_SPLIT = re.compile(
    r"(train|training|val|valid|validation|eval|test|avg|total|mean|dev|gen|disc)(loss|acc|accuracy|ppl|perplexity|err)"
)


@dataclass(frozen=True)
class Name:
    """A name with its words (lower case) and where in the text each stands."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @cached_property
    def set(self) -> frozenset[str]:
        """The words without their order."""
        return frozenset(self.words)

    def any(self, *words: str) -> bool:
        """Whether one of the words occurs."""
        return not self.set.isdisjoint(words)

    def has(self, *words: str) -> bool:
        """Whether all of the words occur."""
        return self.set.issuperset(words)

    @cached_property
    def split(self) -> Split:
        """Whether it speaks of training or of validation; validation wins, as in `train/eval_loss`."""
        if not self.set.isdisjoint(EVAL):
            return "eval"
        return "train" if not self.set.isdisjoint(TRAIN) else ""

    @cached_property
    def scope(self) -> str:
        """`step` or `epoch` where the name says over which stretch the value was taken."""
        if self.any("epoch"):
            return "epoch"
        return "step" if self.any("step", "iter", "batch", "iteration") else ""

    @cached_property
    def smooth(self) -> bool:
        """Whether the name says that it is an average over time."""
        return not self.set.isdisjoint(SMOOTH)

    def member(self, drop: frozenset[str]) -> str:
        """What follows the segments that name the signal, untouched (`grad_norm/layers.3`), else what words remain."""
        segments = self.text.split("/")
        leading = 0
        while leading < len(segments) and set(split_name(segments[leading]).words) <= drop | TRAIN:
            leading += 1
        if set(split_name("/".join(segments[:leading])).words) <= TRAIN:
            return self.rest(drop, TRAIN, PLAIN, SMOOTH)
        return re.sub(r"[^\w./-]+", "_", "/".join(segments[leading:])).strip("_./-")

    def rest(self, *drop: frozenset[str]) -> str:
        """What remains of the text without some words, as a member id: `train/box_loss` gives `box`."""
        dropped = frozenset().union(*drop)
        kept = [i for i, word in enumerate(self.words) if word not in dropped]
        parts: list[str] = []
        for before, i in zip([None, *kept], kept, strict=False):
            start, stop = self.spans[i]
            if before is not None and before == i - 1 and self.spans[before][1] <= start:
                parts.append(self.text[self.spans[before][1] : start])
            elif parts and (before is None or self.spans[before] != self.spans[i]):
                parts.append("_")
            if before is None or self.spans[before] != self.spans[i]:
                parts.append(self.text[start:stop])
        return re.sub(r"[^\w./-]+", "_", "".join(parts)).strip("_./-")


def split_name(text: str) -> Name:
    """Cut a log's name into words; a run's name before ` - ` (W&B exports) is left out."""
    text = _RUN_NAME.sub("", text)
    for chinese, english in _CHINESE.items():
        text = text.replace(chinese, english) if chinese in text else text
    text = _ODD_CASE.sub(lambda m: m.group().lower(), text)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _PIECES.finditer(text):
        for word in _unglued(match.group().lower()):
            words.append(word)
            spans.append(match.span())
    return Name(text, tuple(words), tuple(spans))


def _unglued(word: str) -> tuple[str, ...]:
    if word in _GLUED:
        return _GLUED[word]
    match = _GLUED_SPLIT.fullmatch(word)
    return (match[1], match[2]) if match else (word,)
