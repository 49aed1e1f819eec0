"""The flight recorder: the last steps at full rate, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

STEPS = 500


@dataclass(slots=True)
class Recorder:
    """A ring of the last 500 steps' vectors, as they came from the device.

    Args:
        names: what each place of a vector is.
        steps: how many steps to keep. Memory: steps x len(names) x 4 bytes.
    """

    names: tuple[str, ...]
    steps: int = STEPS
    at: NDArray[np.int64] = field(init=False)
    ring: NDArray[np.float32] = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.at = np.zeros(self.steps, np.int64)
        self.ring = np.full((self.steps, len(self.names)), np.nan, np.float32)

    def add(self, step: int, vector: NDArray[np.float32]) -> None:
        """Keep one step."""
        place = self.count % self.steps
        self.at[place], self.ring[place] = step, vector
        self.count += 1

    def last(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The steps kept, oldest first, and their vectors (n, names)."""
        kept = min(self.count, self.steps)
        order = (np.arange(kept) + self.count - kept) % self.steps
        return self.at[order], self.ring[order]
