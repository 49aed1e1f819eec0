"""A loss that does not fall, where it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import Held, Loss, Total
from poise.records import Finding, Floats, Frame, Message, Severity, Verdict
from poise.stats.blocks import Course

UNTRAINED = (5.5, 12.5)  # nats: from a text's unigram entropy to the logarithm of the largest vocabularies (2^18)
ABSURD = (13.0, 1e4)  # nats: above what any vocabulary gives; beyond the upper end it is no cross-entropy
MAX_CLASSES = 10  # above, the logarithms of whole numbers lie too close to tell
FLAT = 0.03  # share of the level: less improvement than this is none
STILL = 3e-3  # noise, as a share of the level, of a network whose output does not depend on its input
ON_LN = 1e-3  # how close to the logarithm of the number of classes its loss must lie
MIN_BLOCKS = 3
LONG_ROWS, LONG_STEPS = 60, 2000  # an untrained level is normal for a while


def _flat(level: float, rows: int, noise: float, every: int = 1, seed: int = 0) -> Floats:
    return level * np.exp(noise * np.random.default_rng(seed).standard_normal(rows))


def _zero_rate() -> Frame:
    return frame(steps(80, 5), loss=_flat(1.5, 80, 0.08), learning_rate=np.zeros(80))


def _rate_ends_early() -> Frame:
    rate = np.maximum(0.0, 3e-4 * (1 - np.arange(400) / 100))
    loss = np.minimum.accumulate(falling_loss(400, 7, noise=0.0))
    loss[100:] = loss[100]
    return frame(
        steps(400), loss=loss * np.exp(0.01 * np.random.default_rng(8).standard_normal(400)), learning_rate=rate
    )


@dataclass(slots=True)
class _Track:
    course: Course = field(default_factory=Course)
    noise: float = 0.0  # of single rows, as a share of the level
    noises: list[float] = field(default_factory=list)
    zero_rows: int = 0  # rows of the loss since the learning rate is exactly zero
    zero_since: int = -1
    zero_level: float = float("nan")
    zero_course: Course = field(default_factory=Course)
    worked: bool = False  # whether the rate was ever above zero
    top_rate: float = 0.0
    score: float = float("nan")
    said: list[str] = field(default_factory=list)


@dataclass(slots=True)
class NotLearning:
    """A loss that stands still, with evidence that it should not. Flat alone is no fault: fine-tuned and converged runs are flat.

    The evidence, one of: the learning rate is exactly zero; the loss is the logarithm of a small number of classes with
    hardly any noise (the output does not depend on the input); it stands at a language model's untrained level (5.5 to 12.5
    nats) for thousands of steps; it stands above the logarithm of any vocabulary. The kind is `plateau` where the loss had fallen
    before, else `not-learning`.

    Args:
        entropy: whether the loss is known to be a cross-entropy in nats; then an absurd level needs 8 rows only.

    Blind to: a plateau at a plausible level. Delay: 16 to 24 rows; 60 rows and 2,000 steps for an untrained level.
    """

    entropy: bool = False
    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    rate: Held = field(default_factory=Held)
    score: Held = field(default_factory=Held)
    kinds: ClassVar[tuple[str, ...]] = ("not-learning", "plateau")
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a learning rate of zero", _zero_rate, "not-learning", 0, 0),
        Example("a schedule that reaches zero at a quarter of the run", _rate_ends_early, "plateau", 100, 1),
        Example("a loss that is ln 10 from the start", lambda: frame(steps(100), loss=_flat(log(10), 100, 1e-4)), "not-learning", 0, 0),
        Example(
            "a language model that stays at the entropy of single words",
            lambda: frame(steps(300, 50), loss=_flat(7.6, 300, 0.01)), "not-learning", 0, 0,
        ),
        Example("a loss far above any vocabulary that does not fall", lambda: frame(steps(80, 50), loss=_flat(150.0, 80, 0.5)), "not-learning", 0, 0),
    )  # fmt: skip
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a flat fine-tuning loss", lambda: frame(steps(300, 10), loss=_flat(1.4, 300, 0.05))),
        Example("a falling loss", lambda: frame(steps(300, 10), loss=falling_loss(300, 9))),
        Example(
            "a linear decay that ends with the run",
            lambda: frame(steps(300), loss=falling_loss(300, 9), learning_rate=np.linspace(1e-3, 0, 300)),
        ),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        rates, scores = frame.columns.get("learning_rate"), frame.columns.get("accuracy")
        for loss in self.total.judged(frame):
            track = self.tracks.setdefault(loss.name, _Track())
            rate, score = self.rate.at(loss.steps, rates), self.score.at(loss.steps, scores)
            row = 0
            while row < len(loss):  # block by block, so that each is judged once, however the stream is cut
                stop = min(len(loss), row + track.course.room())
                track.score = float(score[stop - 1])
                found += self._block(track, loss, rate, row, stop)
                row = stop
        self.rate.keep(rates)
        self.score.keep(scores)
        return Verdict(tuple(found))

    def _block(self, track: _Track, loss: Loss, rates: Floats, row: int, stop: int) -> list[Finding]:
        blocks = len(track.course.medians)
        self._count_zeros(track, loss, rates, row, stop)
        block = np.concatenate([track.course.pending, loss.values[row:stop]])
        track.course.update(loss.steps[row:stop], loss.values[row:stop])
        if len(track.course.medians) == blocks:
            return []
        track.noises = [*track.noises[-MIN_BLOCKS + 1 :], _row_noise(block)]
        track.noise = float(np.median(track.noises))
        rising = rates[stop - 1] >= track.top_rate * 0.99 and np.isfinite(rates[stop - 1]) and track.top_rate > 0
        track.top_rate = max(track.top_rate, float(np.nan_to_num(rates[row:stop]).max()))
        return [
            f
            for f in (
                self._zero(track, loss, stop),
                self._uniform(track, loss, stop),
                self._level(track, loss, stop, bool(rising)),
            )
            if f
        ]

    def _count_zeros(self, track: _Track, loss: Loss, rates: Floats, row: int, stop: int) -> None:
        zero = rates[row:stop] == 0
        if (rates[row:stop] > 0).any():
            track.worked = True
        last = np.flatnonzero(~zero)
        begin = row + (int(last[-1]) + 1 if len(last) else 0)
        if len(last):
            track.zero_rows, track.zero_since, track.zero_course = 0, -1, Course()
        if begin < stop:
            track.zero_since = int(loss.steps[begin]) if track.zero_since < 0 else track.zero_since
            track.zero_rows += stop - begin
            track.zero_course.update(loss.steps[begin:stop], loss.values[begin:stop])

    def _zero(self, track: _Track, loss: Loss, stop: int) -> Finding | None:
        """The learning rate is zero while training goes on; a rate that only prints as zero is told by a falling loss."""
        before = track.course.rows - track.zero_rows
        if track.zero_rows < max(16, 0.1 * before) or _fell(track.zero_course.medians, track.noise):
            return None
        kind = "plateau" if track.worked and before > 16 else "not-learning"
        severity: Severity = "critical" if not track.worked else "warning"
        return self._say(track, loss, stop, kind, "zero-rate", severity, track.zero_since, {"rows": track.zero_rows})

    def _uniform(self, track: _Track, loss: Loss, stop: int) -> Finding | None:
        """The loss of a network that outputs the same for every input."""
        recent = np.array(track.course.medians[-MIN_BLOCKS:])
        level = float(np.median(recent))
        classes = round(np.exp(level)) if 0.6 < level < 7 else 0
        if len(recent) < MIN_BLOCKS or classes < 2 or np.ptp(recent) > STILL * level or track.noise > STILL:
            return None
        exact = np.ptp(recent) <= 1e-4 * level and abs(level - log(classes)) <= 1e-4 * level
        if not exact and (classes > MAX_CLASSES or abs(level - log(classes)) > ON_LN * level):
            return None
        blocks = track.course.medians
        begin = next(i for i in range(len(blocks)) if all(abs(m - level) <= 2 * STILL * level for m in blocks[i:]))
        if (begin > 0 and blocks[0] < level) or len(blocks) < 2 * begin or _share(track.score) > 2 / classes:
            return None  # it came from below (told by Divergence), is passing by, or gets answers right
        kind = "plateau" if begin > 2 else "not-learning"
        return self._say(
            track,
            loss,
            stop,
            kind,
            "uniform",
            "critical",
            track.course.first_steps[begin],
            {"classes": classes, "level": level},
        )

    def _level(self, track: _Track, loss: Loss, stop: int, rising: bool) -> Finding | None:
        """An untrained or absurd level that lasts."""
        blocks, rows = track.course.medians, track.course.rows
        now = float(np.median(blocks[-max(1, len(blocks) // 4) :]))
        span = int(loss.steps[stop - 1]) - track.course.first_steps[0]
        long = rows >= LONG_ROWS and span >= LONG_STEPS and not rising
        absurd = ABSURD[0] < now < ABSURD[1] and (long or (self.entropy and rows >= 8))
        if not (absurd or (long and UNTRAINED[0] < now < UNTRAINED[1])):
            return None
        text = "absurd" if absurd else "untrained"
        if not _fell(blocks, track.noise if absurd else 0.0) and (absurd or _tells(blocks, rows, track.noise)):
            if _was_lower(blocks, now, track.noise):
                return None  # it had learnt and lost it again, which Divergence tells
            begin = 0 if absurd else next(i for i, block in enumerate(blocks) if block <= (1 + FLAT) * now)
            kind = "plateau" if begin > 2 else "not-learning"
            return self._say(
                track,
                loss,
                stop,
                kind,
                text,
                "warning",
                track.course.first_steps[begin if begin > 2 else 0],
                {"level": now},
            )
        half = blocks[len(blocks) // 2 :]
        settled = rows >= 3 * LONG_ROWS and span >= 3 * LONG_STEPS and _tells(half, rows // 2, track.noise, FLAT / 4)
        if settled and not absurd and not _fell(half, 0.0, FLAT / 4):
            return self._say(
                track,
                loss,
                stop,
                "plateau",
                text,
                "warning",
                track.course.first_steps[len(blocks) // 2],
                {"level": now},
            )
        return None

    def _say(
        self,
        track: _Track,
        loss: Loss,
        stop: int,
        kind: str,
        text: str,
        severity: Severity,
        onset: int,
        facts: dict[str, float],
    ) -> Finding | None:
        if kind in track.said:
            return None
        track.said.append(kind)
        now = float(track.course.medians[-1])
        numbers = {
            "signal": loss.name,
            "step": onset,
            "value": now,
            "start": track.course.medians[0],
            "rows": track.course.rows,
            "classes": 0,
        } | facts
        return Finding(
            kind, loss.name, onset, int(loss.steps[stop - 1]), severity, Message(f"detectors.not-learning.{text}", numbers),
            chronic=True, value=now, facts={"why": text, **facts},
        )  # fmt: skip


def _row_noise(block: Floats) -> float:
    """Noise of single rows from their successive differences, which no trend widens, as a share of the level."""
    return float(1.05 * np.median(np.abs(np.diff(block))) / max(abs(np.median(block)), 1e-300))


def _share(score: float) -> float:
    """An accuracy as a share, also where it is logged in percent."""
    return score / 100 if score > 1 else score


def _tells(blocks: list[float], rows: int, noise: float, share: float = FLAT) -> bool:
    """Whether a quarter of these rows has little enough noise to tell a change of `share`."""
    return len(blocks) >= 4 and 2.5 * noise / np.sqrt(rows / 4) < share


def _was_lower(blocks: list[float], now: float, noise: float) -> bool:
    """Whether three blocks in a row stood below the present level by more than a share of it and the noise."""
    return any(max(blocks[i : i + 3]) < now * (1 - FLAT - noise) for i in range(len(blocks) - 2))


def _fell(blocks: list[float], noise: float, share: float = FLAT) -> bool:
    """Whether the last quarter of a course lies below its first, by more than a share of the level and its noise."""
    quarter = max(1, len(blocks) // 4)
    first, last = float(np.median(blocks[:quarter])), float(np.median(blocks[-quarter:]))
    return len(blocks) >= 2 and first - last > max(share, noise / np.sqrt(2 * quarter)) * abs(first)
