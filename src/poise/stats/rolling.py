"""Rolling medians over a stream that arrives in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poise.records import Floats
from poise.stats.robust import median


@dataclass(slots=True)
class RollingMedian:
    """Median of the last `window` finite values at each row; of fewer at the beginning.

    Blind to: what a minority of the window does. Delay: half the window.
    """

    window: int = 9
    tail: Floats = field(default_factory=lambda: np.empty(0))

    def update(self, values: Floats) -> Floats:
        """Take the next finite values; return the median that ends at each of them."""
        known = len(self.tail)
        joined = np.concatenate([self.tail, values])
        self.tail = joined[max(0, len(joined) - self.window + 1) :].copy()
        out = np.empty(len(values))
        first = max(0, self.window - 1 - known)  # rows of `values` that see fewer than `window`
        for row in range(min(first, len(values))):
            out[row] = median(joined[: known + row + 1])
        if len(values) > first:
            start = known + first - self.window + 1
            out[first:] = median(np.lib.stride_tricks.sliding_window_view(joined[start:], self.window))
        return out
