"""A first loss that no vocabulary explains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import Loss, Total
from poise.records import Column, Finding, Floats, Frame, Message, Severity, State, Verdict
from poise.stats.robust import median

LIMIT = 13.0  # nats; ln 2^18 = 12.5 is the uniform guess over the largest vocabularies in use
NO_ENTROPY = 60.0  # above, the loss is a squared error or a sum, whose start means nothing
FIRST = 3  # rows
JUDGED = 20  # row by which half of a high start must be gone


def _bits() -> Frame:
    nats = falling_loss(100, 1, start=10.8, end=9.5)
    return frame(steps(100), loss=nats / np.log(2), perplexity=np.exp(nats))


@dataclass(slots=True)
class _Track:
    head: Floats = field(default_factory=lambda: np.empty(0))
    first_step: int = 0
    open: bool = False
    severity: Severity = "info"
    rows: int = 0


@dataclass(slots=True)
class BadStart:
    """The first rows' loss lies above the logarithm of any vocabulary in use: worse than guessing.

    `info` at once, since some pretrained models start so and fall quickly (mT5 starts near 25 nats); a warning if half of it is
    not gone by row 20; healed when it is.

    Args:
        entropy: whether the loss is known to be a cross-entropy in nats; then no start is too high to judge.

    A logged perplexity tells the entropy in nats whatever the loss's unit (fairseq prints bits), so it is believed instead.

    Blind to: losses that are no cross-entropy in nats, a start only slightly too high. Delay: 3 rows; 20 for a warning.
    """

    entropy: bool = False
    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    said: Floats = field(default_factory=lambda: np.empty((0, 2)))  # the first perplexities: step, logarithm
    kinds: ClassVar[tuple[str, ...]] = ("bad-start",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a start at 17 nats that falls slowly",
            lambda: frame(steps(100), loss=np.linspace(17, 11, 100)),
            "bad-start",
            0,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a start at the logarithm of the vocabulary",
            lambda: frame(steps(100), loss=falling_loss(100, 1, start=10.8)),
        ),
        Example("a start at ln 50000 that is logged in bits, with its perplexity", _bits),
        Example(
            "a squared error that starts at 900", lambda: frame(steps(100), loss=falling_loss(100, 1, start=900.0))
        ),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        self._hear(frame.columns.get("perplexity"))
        for loss in self.total.judged(frame):
            track = self.tracks.setdefault(loss.name, _Track())
            if len(loss) and (track.open or track.rows < FIRST):
                found += self._judge(track, loss)
            track.rows += len(loss)
        return Verdict(tuple(found))

    def _hear(self, column: Column | None) -> None:
        if column is None or len(self.said) >= FIRST:
            return
        with np.errstate(invalid="ignore", divide="ignore"):
            pairs = np.stack([column.steps[:FIRST].astype(np.float64), np.log(column.values[:FIRST])], axis=1)
        self.said = np.concatenate([self.said, pairs])[:FIRST]

    def _explained(self, step: int) -> bool:
        """Whether the perplexities up to a step are those of a guess over some vocabulary."""
        entropies = self.said[self.said[:, 0] <= step, 1]
        return len(entropies) > 0 and bool(median(entropies) <= LIMIT)

    def _judge(self, track: _Track, loss: Loss) -> list[Finding]:
        found: list[Finding] = []
        if track.rows == 0:
            track.first_step = int(loss.steps[0])
        begin = 0
        if not track.open:
            begin = max(0, FIRST - track.rows)
            track.head = np.concatenate([track.head, loss.values[:begin]])
            if len(track.head) < FIRST or not LIMIT < median(track.head) < (np.inf if self.entropy else NO_ENTROPY):
                return found
            if self._explained(int(loss.steps[begin - 1])):
                return found
            track.open = True
            found.append(self._say(track, loss, begin - 1, "info", "open", "opened"))
        rows = track.rows + np.arange(begin, len(loss)) + 1
        halved = np.flatnonzero(loss.values[begin:] < median(track.head) / 2)
        late = np.flatnonzero(rows >= JUDGED) if track.severity == "info" else halved[:0]
        if len(late) and (not len(halved) or late[0] < halved[0]):
            found.append(self._say(track, loss, begin + int(late[0]), "warning", "open", "stays"))
        if len(halved):
            track.open = False
            found.append(
                self._say(
                    track,
                    loss,
                    begin + int(halved[0]),
                    "info" if track.severity == "info" else "warning",
                    "recovered",
                    "healed",
                )
            )
        return found

    def _say(self, track: _Track, loss: Loss, row: int, severity: Severity, state: State, text: str) -> Finding:
        track.severity = severity
        first = float(median(track.head))
        numbers = {
            "signal": loss.name,
            "step": track.first_step,
            "value": first,
            "now": float(loss.values[row]),
            "vocabulary": float(np.exp(first)),
        }
        return Finding(
            "bad-start", loss.name, track.first_step, int(loss.steps[row]), severity, Message(f"detectors.bad-start.{text}", numbers),
            state=state, chronic=True, value=first, expected=LIMIT,
        )  # fmt: skip
