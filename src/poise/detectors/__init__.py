"""Detectors: one file per symptom. `ALL` is the list; its order breaks ties within a step."""

from poise.detectors.bad_start import BadStart
from poise.detectors.base import Detector, Example
from poise.detectors.crash import Crash
from poise.detectors.divergence import Divergence
from poise.detectors.gradient_norm import GradientExplosion, GradientVanishing
from poise.detectors.level_shift import LevelShift
from poise.detectors.loss_scale import LossScaleCollapse
from poise.detectors.loss_spike import LossSpike
from poise.detectors.non_finite import NonFinite
from poise.detectors.not_learning import NotLearning
from poise.detectors.oscillation import Oscillation
from poise.detectors.overfitting import Overfitting
from poise.detectors.policy_collapse import PolicyCollapse
from poise.detectors.resume_jump import ResumeJump
from poise.detectors.suspicious_loss import SuspiciousLoss
from poise.detectors.update_norm import UpdateNormSpike

ALL: tuple[type[Detector], ...] = (
    NonFinite,
    LossSpike,
    Divergence,
    Oscillation,
    NotLearning,
    BadStart,
    GradientExplosion,
    GradientVanishing,
    LossScaleCollapse,
    UpdateNormSpike,
    LevelShift,
    Overfitting,
    SuspiciousLoss,
    PolicyCollapse,
    ResumeJump,
    Crash,
)

__all__ = ["ALL", "Detector", "Divergence", "Example", "LossSpike", "NonFinite"]
