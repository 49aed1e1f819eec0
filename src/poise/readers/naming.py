"""What a foreign name means: rules over words, tried from the special to the general.

Names alone decide here; `assign.py` settles contests between names of the same meaning, with the help of the values.
"""

from __future__ import annotations

from collections.abc import Iterable

from poise.readers import naming_machinery as machinery
from poise.readers import naming_outcomes as outcomes
from poise.readers.meaning import REWARD, Context, Meaning, Rule
from poise.readers.words import LOSS, Name, split_name
from poise.signals import SIGNALS

_RL = (*REWARD, "advantage", "advantages", "policy", "actor", "critic", "ppo", "grpo", "rollout", "episode", "qf")
_G = ("generator", "gen", "g")
_D = ("discriminator", "disc", "d", "critic")


def _own(name: Name, _: Context) -> Meaning | None:
    """Poise's own names, taken literally: those of several words, which nobody else uses for something different."""
    signal, _slash, member = name.text.partition("/")
    return Meaning(signal, member) if signal in _OWN_NAMES else None


_OWN_NAMES = frozenset(s.name for s in SIGNALS if "_" in s.name and s.name != "policy_loss")
RULES: tuple[Rule, ...] = (
    _own,
    machinery.position,
    outcomes.preference,
    machinery.mixture,
    machinery.constant,
    machinery.numerics,
    machinery.norm,
    machinery.rate,
    machinery.inside,
    machinery.memory,
    outcomes.adversarial,
    outcomes.reinforcement,
    outcomes.score,
    outcomes.perplexity,
    outcomes.loss,
    machinery.counts,
    machinery.speed,
    machinery.clutter,
)


def context_of(names: Iterable[str]) -> Context:
    """Tell the kind of a log by its names; pass only columns that hold something other than zero."""
    split = [split_name(name) for name in names]
    losses = [n for n in split if n.any(*LOSS, "err", "error")]
    preference = any(n.any("chosen") for n in split) and any(n.any("rejected") for n in split)
    gan = any(n.any(*_G) for n in losses) and any(n.any(*_D) for n in losses)
    gan = gan or any(n.any("generator", "discriminator", "gan") for n in losses)
    rl = any(n.any(*_RL) and not (gan and n.set & set(_RL) <= {"critic"}) for n in split)
    return Context(rl and not preference, preference, gan and not rl)


_ORDINARY = Context()


def recognise(text: str, context: Context = _ORDINARY) -> Meaning | None:
    """Return what a name means, `OTHER` for what is known and never judged, None for what is not known."""
    name = split_name(text)
    if not name.words:
        return None
    return next((meaning for rule in RULES if (meaning := rule(name, context)) is not None), None)
