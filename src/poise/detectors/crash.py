"""A run that ended with an exception, or was stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Event, Finding, Frame, Ints, Message, Severity, Verdict

SURVIVED_ROWS = 3  # rows at later steps after which an exception is known to have been survived
STOPPED = ("KeyboardInterrupt", "SystemExit", "SIGINT")  # by the user
MAX_TEXT = 200


def _ended(kind: str, **data: object) -> Frame:
    stream = frame(steps(60), loss=falling_loss(60, 1))
    return Frame(stream.columns, (Event(kind, None, data),))


def _survived() -> Frame:
    stream = frame(steps(60), loss=falling_loss(60, 1))
    return Frame(stream.columns, (Event("exception", 30, {"type": "ValueError", "text": "bad sample, skipped"}),))


@dataclass(slots=True)
class Crash:
    """An exception is critical, unless the user stopped the run or training went on after it (then `info`, recovered).

    A signal (pre-emption, a scheduler's time limit) is a warning, an interrupt from the keyboard `info`. Several ranks' tracebacks
    of one step are one finding. An exception without a step belongs to the last step seen.

    Blind to: a run that was killed without a word (`run-end` tells nothing then). Delay: none.
    """

    branch: int = 0
    last_step: int = 0
    open_step: int = -1
    rows_after: int = 0
    said: list[int] = field(default_factory=list)
    opened: dict[str, str] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("crash",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a traceback at the end",
            lambda: _ended("exception", type="RuntimeError", text="CUDA error"),
            "crash",
            59,
            0,
        ),
        Example("a pre-emption", lambda: _ended("signal", name="SIGTERM"), "crash", 59, 0),
        Example("an exception that training survived, as `info`", _survived, "crash", 30, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (Example("a run that ends", lambda: _ended("run-end", complete=True)),)

    def update(self, frame: Frame) -> Verdict:
        if frame.branch != self.branch:
            self.branch, self.last_step, self.open_step, self.said = frame.branch, 0, -1, []
        ends = [int(c.steps[-1]) for c in frame.columns.values() if len(c)]
        if not frame.events and self.open_step < 0:
            self.last_step = max([self.last_step, *ends])
            return Verdict()
        at = np.unique(np.concatenate([np.empty(0, np.int64), *(c.steps for c in frame.columns.values())]))
        found: list[Finding] = []
        for event in sorted(frame.events, key=lambda e: np.inf if e.step is None else e.step):
            if event.kind not in ("exception", "signal"):
                continue
            step = event.step if event.step is not None else int(at[-1]) if len(at) else self.last_step
            found += self._healed(at[at < step])
            if step not in self.said:
                self.said.append(step)
                self.open_step, self.rows_after = step, 0
                found.append(self._say(event, step))
        found += self._healed(at)
        self.last_step = max(self.last_step, int(at[-1]) if len(at) else 0)
        return Verdict(tuple(found))

    def _healed(self, at: Ints) -> list[Finding]:
        """Rows that come after an exception say that it was survived."""
        if self.open_step < 0:
            return []
        later = at[at > max(self.open_step, self.last_step)]
        needed = SURVIVED_ROWS - self.rows_after
        if len(later) < needed:
            self.rows_after += len(later)
            self.last_step = max(self.last_step, int(later[-1]) if len(later) else 0)
            return []
        numbers = {"step": self.open_step, **self.opened}
        finding = Finding(
            "crash", "run", self.open_step, int(later[needed - 1]), "info", Message("detectors.crash.survived", numbers), state="recovered",
            facts=dict(self.opened),
        )  # fmt: skip
        self.open_step, self.last_step = -1, int(later[-1])
        return [finding]

    def _say(self, event: Event, step: int) -> Finding:
        name = str(event.data.get("type") or event.data.get("name") or event.kind)
        text = str(event.data.get("text") or "").strip()[-MAX_TEXT:]
        oom = bool(event.data.get("oom"))
        self.opened = {"what": name, "text": text}
        message = (
            "oom" if oom else "stopped" if name in STOPPED else "opened" if event.kind == "exception" else "signal"
        )
        facts = {"what": name, "text": text, "oom": oom}
        return Finding(
            "crash",
            "run",
            step,
            step,
            _severity(event, name),
            Message(f"detectors.crash.{message}", {"step": step, **self.opened}),
            facts=facts,
        )


def _severity(event: Event, name: str) -> Severity:
    if event.data.get("survived") or name in STOPPED:
        return "info"
    return "critical" if event.kind == "exception" else "warning"
