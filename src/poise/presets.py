"""Ready-made watches. These functions are the configuration: read them, copy them, change a number.

Each takes what is known of the run, so that a loss that must be a cross-entropy in nats is judged as one.
"""

from __future__ import annotations

from poise import detectors
from poise.detectors.bad_start import BadStart
from poise.detectors.base import Detector
from poise.detectors.divergence import Divergence
from poise.detectors.field_rules import FIELD
from poise.detectors.loss_spike import LossSpike
from poise.detectors.non_finite import NonFinite
from poise.detectors.not_learning import NotLearning
from poise.records import RunInfo
from poise.watch import Watch

LANGUAGE_TRAINERS = (
    "hf", "trl", "llamafactory", "megatron", "deepspeed", "nanogpt", "llm.c", "modded-nanogpt", "torchtitan", "fairseq",
)  # fmt: skip
"""Trainers whose loss is almost always a language model's."""


def pretrain(info: RunInfo | None = None) -> Watch:
    """Pretraining, and any log of unknown kind: every detector with its defaults."""
    entropy = _is_entropy(info)
    known: dict[type[Detector], Detector] = {
        NotLearning: NotLearning(entropy=entropy),
        BadStart: BadStart(entropy=entropy),
    }
    return Watch(tuple(known.get(make) or make() for make in detectors.ALL))


def finetune(info: RunInfo | None = None) -> Watch:
    """Fine-tuning: a few hundred steps of small batches on a loss that is low from the start.

    Spikes need 8 sigma instead of 6, and a lasting rise 15 % instead of 8 %: the noise of small batches has heavy tails.
    """
    watch = pretrain(info)
    looser: dict[type, Detector] = {LossSpike: LossSpike(z=8.0), Divergence: Divergence(share=0.15)}
    watch.detectors = tuple(looser.get(type(d), d) for d in watch.detectors)
    return watch


def rl(info: RunInfo | None = None) -> Watch:
    """Reinforcement and preference training: the same detectors. What has no level there (`policy_loss`) has no detector."""
    return pretrain(info)


def field_rules(info: RunInfo | None = None) -> Watch:
    """The field's rules of thumb as stated, and nothing else. See `detectors/field_rules.py` for the readings taken."""
    return Watch((NonFinite(), *(make() for make in FIELD)))


def _is_entropy(info: RunInfo | None) -> bool:
    """Whether the loss is known to be a cross-entropy in nats."""
    return info is not None and (info.trainer in LANGUAGE_TRAINERS or "perplexity" in info.names)
