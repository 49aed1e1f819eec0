"""What a foreign name can mean, and in what kind of log it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poise.readers.words import Name


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name most likely means.

    Args:
        signal: a name of `signals.SIGNALS`.
        member: part, data set, layer; empty for the whole.
        rank: lower is the better name for this signal.
        spare: member to become where a better name takes the signal; where empty it becomes `other`.
        smooth: an average over time, judged only where there is no raw series.
        fallback: judged only where nothing else fills the signal.
        scope: `step` or `epoch` where the name tells.
        convert: `sqrt`, `negate`, `log`, `start` (count from the first value) or empty.
        factor: to the signal's unit.
    """

    signal: str
    member: str = ""
    rank: int = 0
    spare: str = ""
    smooth: bool = False
    fallback: bool = False
    scope: str = ""
    convert: str = ""
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Context:
    """What kind of log the names come from.

    Args:
        rl: rewards, advantages or policies are logged, so the loss has no level.
        preference: chosen and rejected answers are compared: the loss is a real one (ln 2 at the start).
        gan: a generator and a discriminator play against each other.
    """

    rl: bool = False
    preference: bool = False
    gan: bool = False


OTHER = Meaning("other")
REWARD = ("reward", "rewards", "rew", "return", "returns", "episodic")
Rule = Callable[[Name, Context], Meaning | None]
