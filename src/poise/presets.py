"""Ready-made watches. These functions are the configuration: read them, copy them, change a number."""

from __future__ import annotations

from poise import detectors
from poise.watch import Watch


def pretrain() -> Watch:
    """Pretraining and any log of unknown kind."""
    return Watch(tuple(make() for make in detectors.ALL))
