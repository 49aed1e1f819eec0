"""What is done about an incident. Default `observe`: nothing is done to a run unless its owner asks by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from poise.records import SEVERITIES, Action, Incident, Severity


class Policy(Protocol):
    """A policy turns a new or changed incident into actions; its budget and cool-down are its state."""

    def decide(self, incident: Incident, step: int) -> tuple[Action, ...]:
        """Actions to carry out before the next step."""
        ...


@dataclass(slots=True)
class Observe:
    """Does nothing."""

    def decide(self, incident: Incident, step: int) -> tuple[Action, ...]:
        return ()


@dataclass(slots=True)
class Alarm:
    """Saves an emergency checkpoint when an incident becomes serious, and pauses the run when it becomes critical.

    Each at most once per incident, and while a cool-down lasts no other incident acts: symptoms of one fault come one after
    the other.

    Args:
        save_at: the severity from which on the present state is saved. A checkpoint too many harms nobody.
        pause_at: the severity from which on the run is paused; None never pauses.
        cooldown: steps after an action of a kind during which no other incident does the same.
        budget: how often each is done in a run; it never rolls back.
    """

    save_at: Severity = "warning"
    pause_at: Severity | None = "critical"
    cooldown: int = 200
    budget: int = 5
    done: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def decide(self, incident: Incident, step: int) -> tuple[Action, ...]:
        if incident.state != "open":
            return ()
        wanted = [("save", self.save_at), ("pause", self.pause_at)]
        serious = SEVERITIES.index(incident.severity)
        names = [
            name
            for name, at in wanted
            if at is not None and serious >= SEVERITIES.index(at) and self._may(name, incident.id, step)
        ]
        for name in names:
            self.done.setdefault(name, []).append((incident.id, step))
        return tuple(
            Action(name, step, incident.id, {"kind": incident.kind, "onset": incident.onset_step}) for name in names
        )

    def _may(self, name: str, incident: int, step: int) -> bool:
        before = self.done.get(name, [])
        known = any(number == incident for number, _ in before)
        return not known and len(before) < self.budget and (not before or step - before[-1][1] >= self.cooldown)


NAMES = ("observe", "alarm")


def named(policy: str | Policy) -> Policy:
    """The policy of a name.

    Raises:
        ValueError: the name is not one of `observe`, `alarm`.
    """
    if not isinstance(policy, str):
        return policy
    if policy not in NAMES:
        raise ValueError(f"no policy is named {policy!r}; there are {', '.join(NAMES)}")
    return Alarm() if policy == "alarm" else Observe()
