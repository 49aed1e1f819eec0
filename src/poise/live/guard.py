"""The one place where what Poise's own parts throw is caught."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from poise.records import Event

T = TypeVar("T")


@dataclass(slots=True)
class Guard:
    """Runs a part; a part that throws is switched off for good, and told once as an event of kind `internal`.

    Args:
        report: takes the event; it must not throw.
        off: the parts that are switched off, with the reason.
    """

    report: Callable[[Event], None]
    step: int = 0
    off: dict[str, str] = field(default_factory=dict)

    def run(self, part: str, work: Callable[[], T], otherwise: T) -> T:
        """Return what the part returns; `otherwise` while it is off or when it throws now."""
        if part in self.off:
            return otherwise
        try:
            return work()
        except Exception as error:  # the only broad catch: a monitor must never be what ends a run
            self.off[part] = f"{type(error).__name__}: {error}"
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rpartition('poise')[2].lstrip('/')}:{place.lineno}"
            self.report(Event("internal", self.step, {"part": part, "error": self.off[part], "where": where}))
            return otherwise
