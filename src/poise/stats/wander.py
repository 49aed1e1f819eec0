"""How far a smoothed signal wanders by itself: noise that is too slow for a window of rows to see."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poise.records import Floats
from poise.stats.robust import MAD_TO_SIGMA, median

STRIDE = 32  # rows between two looks at the smoothed signal
LOOKS = 32
FEWEST = 8


@dataclass(slots=True)
class Wander:
    """Robust scale of the change over 32 rows, from the last 32 such changes; 0 while fewer than 8 are known.

    The median change is taken out, so a steady trend is no wandering. Changes are measured at absolute rows divisible by 32.
    """

    row: int = 0
    last: float = float("nan")
    changes: Floats = field(default_factory=lambda: np.empty(0))
    scale: float = 0.0

    def update(self, smooth: Floats) -> Floats:
        """Take the next rows of the smoothed signal; return the scale known at each of them."""
        at = np.arange(-self.row % STRIDE, len(smooth), STRIDE)
        looks = np.concatenate([[self.last], smooth[at]])
        changes = np.diff(looks)
        pool = np.concatenate([self.changes, changes[np.isfinite(changes)]])
        known = len(self.changes) + np.cumsum(np.isfinite(changes))
        scales = [self.scale, *(_spread(pool[max(0, k - LOOKS) : k]) for k in known[known < LOOKS])]
        if (known >= LOOKS).any():
            windows = np.lib.stride_tricks.sliding_window_view(pool, LOOKS)[known[known >= LOOKS] - LOOKS]
            scales += (MAD_TO_SIGMA * median(np.abs(windows - median(windows)[:, None]))).tolist()
        out = np.repeat(scales, np.diff(np.concatenate([[0], at, [len(smooth)]])))
        self.row += len(smooth)
        self.changes, self.last, self.scale = pool[-LOOKS:].copy(), float(looks[-1]), float(scales[-1])
        return out


def _spread(changes: Floats) -> float:
    return float(MAD_TO_SIGMA * median(np.abs(changes - median(changes)))) if len(changes) >= FEWEST else 0.0
