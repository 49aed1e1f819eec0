"""Detectors: one file per symptom. `ALL` is the list; its order breaks ties within a step."""

from poise.detectors.base import Detector, Example
from poise.detectors.non_finite import NonFinite

ALL: tuple[type[Detector], ...] = (NonFinite,)

__all__ = ["ALL", "Detector", "Example", "NonFinite"]
