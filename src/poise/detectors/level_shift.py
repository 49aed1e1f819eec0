"""A signal that has a new level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import calm_norm, falling_loss, frame, steps
from poise.records import Finding, Frame, Message, Verdict


def _shifted(factor: float) -> Frame:
    norm = calm_norm(900, 6)
    norm[400:] *= factor
    return frame(steps(900), grad_norm=norm)


@dataclass(slots=True)
class LevelShift:
    """128 values in a row lay outside the calm past and had a level of their own, which is the baseline from then on.

    Always `info`: a change of regime (other data, a new schedule, an upgrade of a library that counts differently) is worth
    knowing, and what is harmful in it has a detector of its own. The onset is the first row outside.

    Blind to: a falling loss; slow changes, which the baseline follows. Delay: 128 rows.
    """

    branch: int = 0
    onsets: dict[str, int] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("level-shift",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a norm that is six times smaller from one row to the next", lambda: _shifted(1 / 6), "level-shift", 400, 3
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a steady norm", lambda: _shifted(1.0)),
        Example(
            "a loss that drops at once",
            lambda: frame(steps(900), loss=falling_loss(900, 1) * np.where(np.arange(900) < 400, 1.0, 0.5)),
        ),
    )

    def update(self, frame: Frame) -> Verdict:
        if frame.branch != self.branch:
            self.branch, self.onsets = frame.branch, {}
        found: list[Finding] = []
        for name, calm in frame.calm.items():
            step, begin = frame.columns[name].steps, 0
            for row, former, new in calm.shifts:
                first = self._first_outside(name, calm.accepted[begin : row + 1], begin, step)
                found.append(self._say(name, first, int(step[row]), former, new))
                self.onsets.pop(name, None)
                begin = row + 1
            first = self._first_outside(name, calm.accepted[begin:], begin, step)
            self.onsets.pop(name, None)
            if first >= 0:
                self.onsets[name] = first
        return Verdict(tuple(found))

    def _first_outside(self, name: str, accepted: np.ndarray, begin: int, step: np.ndarray) -> int:
        """The step at which the present run of rows outside began, -1 if the last row is inside."""
        inside = np.flatnonzero(accepted)
        if len(inside):
            after = begin + int(inside[-1]) + 1
            return int(step[after]) if after < begin + len(accepted) else -1
        return self.onsets.get(name, int(step[begin]) if len(accepted) else -1)

    def _say(self, name: str, onset: int, step: int, former: float, new: float) -> Finding:
        numbers = {"signal": name, "step": onset, "former": former, "value": new}
        return Finding(
            "level-shift", name, onset, step, "info", Message("detectors.level-shift.opened", numbers), state="ended", chronic=True,
            value=new, expected=former, facts={"ratio": new / former if former else 0.0},
        )  # fmt: skip
