"""Detectors: one file per symptom. `ALL` is the list; its order breaks ties within a step."""

from poise.detectors.base import Detector, Example
from poise.detectors.divergence import Divergence
from poise.detectors.loss_spike import LossSpike
from poise.detectors.non_finite import NonFinite

ALL: tuple[type[Detector], ...] = (
    NonFinite,
    LossSpike,
    Divergence,
)

__all__ = ["ALL", "Detector", "Divergence", "Example", "LossSpike", "NonFinite"]
