"""Hold a training at a step boundary until someone decides. Process and memory stay as they are."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Decision = Literal["resume", "stop"]
PAUSED = "paused.json"
DECISION = "decision"


class StoppedError(SystemExit):
    """The run was stopped while it was paused. A SystemExit with code 3, so that a plain script ends quietly."""

    def __init__(self, reason: str) -> None:
        super().__init__(3)
        self.reason = reason


@dataclass(slots=True)
class Pause:
    """Waits for `poise resume RUN` or `poise stop RUN`, which leave a file in the run folder.

    Args:
        folder: the run folder.
        limit_seconds: after this long nobody will come: the run is stopped. Its state was saved before the pause.
        poll_seconds: how often to look.
    """

    folder: Path
    limit_seconds: float = 12 * 3600.0
    poll_seconds: float = 0.5

    def wait(self, step: int, why: str, tell: Callable[[str], None] = print) -> Decision:
        """Say that the run is paused, and wait. Nothing runs meanwhile, so training goes on bit for bit as without the pause."""
        begin = time.monotonic()
        (self.folder / DECISION).unlink(missing_ok=True)
        facts = {
            "step": step,
            "why": why,
            "pid": os.getpid(),
            "since": time.time(),
            "limit_seconds": self.limit_seconds,
        }
        (self.folder / PAUSED).write_text(json.dumps(facts))
        tell(
            f"Poise paused this run after step {step}: {why}. Decide with: poise resume {self.folder}, or: poise stop {self.folder}"
        )
        try:
            while time.monotonic() - begin < self.limit_seconds:
                decision = _decided(self.folder)
                if decision is not None:
                    return decision
                time.sleep(self.poll_seconds)
        finally:
            (self.folder / PAUSED).unlink(missing_ok=True)
        tell(f"Poise stops this run: nobody decided within {self.limit_seconds:.0f} seconds.")
        return "stop"


def decide(folder: Path, decision: Decision) -> str:
    """Tell a paused run to go on or to stop; returns a sentence about it.

    Raises:
        ValueError: the run is not paused.
    """
    try:
        facts = json.loads((folder / PAUSED).read_text())
    except FileNotFoundError:
        raise ValueError(
            f"{folder} is not paused: it has no {PAUSED}. Name the folder that the pause message names."
        ) from None
    temporary = folder / f".{DECISION}.{os.getpid()}"
    temporary.write_text(decision)
    os.replace(temporary, folder / DECISION)
    return f"{folder}, paused after step {facts['step']} ({facts['why']}): told to {decision}."


def _decided(folder: Path) -> Decision | None:
    path = folder / DECISION
    try:
        said = path.read_text().strip()
    except OSError:
        return None
    path.unlink(missing_ok=True)
    return "stop" if said == "stop" else "resume" if said == "resume" else None
