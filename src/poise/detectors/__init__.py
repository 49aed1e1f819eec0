"""Detectors: one file per symptom. `ALL` is the list; its order breaks ties within a step."""

from poise.detectors.base import Detector, Example
from poise.detectors.bad_start import BadStart
from poise.detectors.divergence import Divergence
from poise.detectors.loss_spike import LossSpike
from poise.detectors.non_finite import NonFinite
from poise.detectors.not_learning import NotLearning
from poise.detectors.oscillation import Oscillation

ALL: tuple[type[Detector], ...] = (
    NonFinite,
    LossSpike,
    Divergence,
    Oscillation,
    NotLearning,
    BadStart,
)

__all__ = ["ALL", "Detector", "Divergence", "Example", "LossSpike", "NonFinite"]
