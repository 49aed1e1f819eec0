"""Which column becomes which signal: contests between names of one meaning, with the values as a witness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from poise.readers.base import UnreadableError
from poise.readers.meaning import OTHER, Context, Meaning
from poise.readers.naming import context_of, recognise
from poise.records import Floats
from poise.signals import SIGNALS

_PARTS_STAND_ALONE = frozenset(
    {
        "loss",
        "eval_loss",
        "accuracy",
        "eval_accuracy",
        "reward",
        "reward_std",
        "grad_norm",
        "grad_norm_clipped",
        "perplexity",
        "eval_perplexity",
        "param_norm",
        "update_norm",
    }
)
_WITH_PARTS = _PARTS_STAND_ALONE | {
    "policy_loss",
    "value_loss",
    "generator_loss",
    "discriminator_loss",
    "aux_loss",
    "learning_rate",
    "attention_entropy",
    "attention_logit_max",
    "activation_max",
    "update_ratio",
}
_SOURCES = {"perplexity": "loss", "eval_perplexity": "eval_loss"}


@dataclass(frozen=True, slots=True)
class Assigned:
    """The decision for one column.

    Args:
        column: its name in the frame.
        known: False where the name says nothing to us.
    """

    column: str
    meaning: Meaning
    known: bool = True


def assign(values: Mapping[str, Floats], mapping: Mapping[str, str]) -> dict[str, Assigned]:
    """Decide for every column of a log.

    Args:
        values: the log's name -> its values, none of them empty.
        mapping: signal -> the log's name, as the user demands.

    Raises:
        UnreadableError: a signal or a name of the mapping does not exist.
    """
    context = context_of(name for name, v in values.items() if np.any(v != 0))
    demanded = _demands(values, mapping)
    meanings = {name: demanded.get(name) or _meaning(name, v, context) for name, v in values.items()}
    _demote_beside(meanings, set(mapping))
    taken: dict[str, str] = {}
    for name in sorted(values, key=lambda n: _key(meanings, values, n)):
        meaning = meanings[name] or OTHER
        wanted = [_column(meaning, meaning.member), _column(meaning, meaning.spare) if meaning.spare else ""]
        column = next((c for c in wanted if c and c not in taken and c != "other"), "")
        taken[column or _free(f"other/{name}", taken)] = name
    _promote_single_parts(taken)
    return {
        name: Assigned(column, meanings[name] or OTHER, meanings[name] is not None) for column, name in taken.items()
    }


def _demands(values: Mapping[str, Floats], mapping: Mapping[str, str]) -> dict[str, Meaning]:
    known = [s.name for s in SIGNALS]
    found = {}
    for column, text in mapping.items():
        signal, _, member = column.partition("/")
        if signal not in known and signal != "step":
            raise UnreadableError(f"--map: there is no signal {signal!r}; the nearest are {_nearest(signal, known)}.")
        name = text if text in values else next((n for n in values if n.strip().lower() == text.strip().lower()), None)
        if name is None:
            raise UnreadableError(
                f"--map {column}={text}: the log has no {text!r}; the nearest are {_nearest(text, list(values))}."
            )
        if signal != "step":
            found[name] = Meaning(signal, member, rank=-1)
    return found


def _nearest(word: str, among: list[str]) -> str:
    from difflib import get_close_matches  # only for an error

    lower = {name.lower(): name for name in among}
    close = [lower[c] for c in get_close_matches(word.lower(), lower, n=3, cutoff=0.4)]
    close += [n for n in among if n not in close and (word.lower() in n.lower() or n.lower() in word.lower())]
    return ", ".join((close or among)[:5]) or "none, as it has no numbers"


def _meaning(name: str, values: Floats, context: Context) -> Meaning | None:
    """The meaning of a name, unless the values speak against it."""
    meaning = recognise(name, context)
    if meaning is None or meaning.signal == "other":
        return meaning
    finite = values[np.isfinite(values)]
    top = float(np.max(finite)) if len(finite) else 0.0
    match meaning.signal:
        case "loss" | "eval_loss" | "policy_loss" if len(values) > 8 and np.all(np.diff(values) == 1.0):
            return OTHER  # a counter
        case "learning_rate" if top >= 50.0:
            return OTHER
        case "accuracy" | "eval_accuracy" if not len(finite) or top > 100.0 or np.min(finite) < -1.0:
            return OTHER
        case "accuracy" | "eval_accuracy" if top > 1.0:
            return replace(meaning, factor=0.01)
        case "entropy" if meaning.convert:
            return replace(meaning, convert="negate" if top <= 0.0 and np.any(finite < 0.0) else "")
        case "time" if meaning.convert == "clock":
            cumulative = len(finite) < 2 or bool(np.mean(np.diff(finite) >= 0.0) > 0.9)
            return (
                replace(meaning, convert="") if cumulative else Meaning("step_seconds", factor=meaning.factor, rank=3)
            )
        case "memory_allocated" | "memory_reserved" | "host_memory" if not meaning.factor:
            return replace(meaning, factor=1.0 if top > 1e6 else 1e6) if top > 128.0 else OTHER
        case "loss_scale" if meaning.fallback and not np.all(np.log2(finite[finite > 0]) % 1.0 == 0.0):
            return None
    return meaning


def _demote_beside(meanings: dict[str, Meaning | None], mapped: set[str]) -> None:
    """Step back with fallbacks where their signal is filled; let a lone perplexity speak for the loss."""
    filled = {m.signal for m in meanings.values() if m and not m.fallback} | mapped
    for name, meaning in meanings.items():
        if meaning is None:
            continue
        if meaning.fallback and (
            meaning.signal in filled or (meaning.signal == "grad_norm" and not filled & {"loss", "eval_loss"})
        ):
            meanings[name] = OTHER
    filled = {m.signal for m in meanings.values() if m} | mapped
    for name, meaning in meanings.items():
        loss = _SOURCES.get(meaning.signal) if meaning else None
        if meaning and loss and loss not in filled and not filled & {"policy_loss"}:
            meanings[name] = replace(meaning, signal=loss, convert="log")


def _key(meanings: Mapping[str, Meaning | None], values: Mapping[str, Floats], name: str) -> tuple[float, ...]:
    """Sort key of a contest: demanded, with enough points, raw, of the right scope, the better name, the longer series."""
    meaning = meanings[name] or OTHER
    rivals = (
        len(values[n]) for n, m in meanings.items() if m and (m.signal, m.member) == (meaning.signal, meaning.member)
    )
    plenty = 3 * len(values[name]) >= max(rivals, default=0)
    prefers_epochs = meaning.signal.startswith("eval_")
    scope = {"epoch": 0, "": 1, "step": 2} if prefers_epochs else {"step": 0, "": 1, "epoch": 2}
    return (meaning.rank >= 0, not plenty, meaning.smooth, scope[meaning.scope], meaning.rank, -len(values[name]))


def _column(meaning: Meaning, member: str) -> str:
    if meaning.signal == "other":
        return ""
    if not member:
        return meaning.signal
    return f"{meaning.signal}/{member}" if meaning.signal in _WITH_PARTS or meaning.rank < 0 else meaning.signal


def _free(column: str, taken: Mapping[str, str]) -> str:
    while column in taken:
        column += "'"
    return column


def _promote_single_parts(taken: dict[str, str]) -> None:
    """A signal with one part and no whole is whole; of learning rates the first speaks for all."""
    for signal in _WITH_PARTS:
        parts = [c for c in taken if c.startswith(signal + "/")]
        if signal in taken or not parts:
            continue
        if len(parts) == 1 or signal not in _PARTS_STAND_ALONE:
            taken[signal] = taken.pop(parts[0])
