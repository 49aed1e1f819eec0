"""Carries out what a policy decides, at the step boundary after the decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from poise.live.actions.pause import Pause, StoppedError
from poise.live.actions.save import save as save_checkpoint
from poise.live.found import Found
from poise.policy import Policy
from poise.records import Action, Event, Incident


class Responder:
    """Asks the policy about incidents and does what it says between two steps.

    An action that fails does not end the run: the failure is an event, and the run goes on without it, or, if it was to be
    paused, paused. Only a decision to stop raises.
    """

    def __init__(
        self,
        policy: Policy,
        model: torch.nn.Module,
        found: Found,
        run: Path | None,
        save: Callable[[Path], object] | None,
        limit: float,
    ) -> None:
        self.policy, self.model, self.found, self.run = policy, model, found, run
        self._save, self._limit = save, limit
        self._due: list[Action] = []
        self._spent = 0.0

    def consider(self, incident: Incident, step: int) -> None:
        """Ask the policy about a new or changed incident."""
        self._due += self.policy.decide(incident, step)

    def act(self, note: Callable[[Event], None]) -> None:
        """Do what is due. Each action is an event of kind `action` with what came of it.

        Raises:
            StoppedError: the run was told to stop.
        """
        due, self._due = self._due, []
        for action in due:
            begin = time.perf_counter()
            try:
                result = self._save_now(action) if action.name == "save" else self._pause(action)
            except OSError as error:
                result = f"failed: {error}"
            self._spent += time.perf_counter() - begin
            note(Event("action", action.step, {"name": action.name, "incident": action.incident, "result": result}))
            if result == "stop":
                raise StoppedError(f"stopped after step {action.step}")

    def spent(self) -> float:
        """Seconds that actions took since last asked: no part of the step time."""
        spent, self._spent = self._spent, 0.0
        return spent

    def state(self) -> dict[str, Any]:
        """What the default emergency checkpoint holds."""
        return {
            "model": self.model.state_dict(),
            "optimizers": [o.state_dict() for o in self.found.optimizers],
            "schedulers": [s.state_dict() for s in self.found.schedulers],
            "scalers": [s.state_dict() for s in self.found.scalers],
            "rng": {
                "torch": torch.get_rng_state(),
                "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            },
        }

    def _save_now(self, action: Action) -> str:
        folder = (self.run or Path()) / "emergency"
        if self._save is not None:
            own = folder / f"step-{action.step:06d}"
            own.mkdir(parents=True, exist_ok=True)
            self._save(own)
            return str(own)
        return str(save_checkpoint(folder, action.step, self.state(), dict(action.params)))

    def _pause(self, action: Action) -> str:
        folder = self.run or Path()
        folder.mkdir(parents=True, exist_ok=True)
        return Pause(folder, self._limit).wait(
            action.step, f"{action.params['kind']} since step {action.params['onset']}"
        )
