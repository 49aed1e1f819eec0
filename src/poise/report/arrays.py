"""Numbers inside a page: base64 of little-endian arrays, each array once. NaN and Inf stay what they are."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field

import numpy as np

from poise.records import Floats, Ints

_SAFE_LARGE, _SAFE_SMALL = 3e38, 1.2e-38  # what float32 holds without turning it into Inf or 0


@dataclass(slots=True)
class Arrays:
    """The arrays of a run; equal ones are stored once, series refer to them by number."""

    texts: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def add_steps(self, steps: Ints) -> int:
        """Store step numbers: `r:first:stride:count` where regular, else offsets from the first."""
        gaps = np.diff(steps)
        if len(steps) > 1 and gaps[0] >= 0 and bool(np.all(gaps == gaps[0])):
            return self._add(f"r:{int(steps[0])}:{int(gaps[0])}:{len(steps)}")
        offsets = steps - steps[0] if len(steps) else steps
        if len(steps) and int(offsets.max()) < 1 << 32:
            return self._add(f"o:{int(steps[0])}:{_packed(offsets, '<u4')}")
        return self._add(f"d:{_packed(steps, '<f8')}")

    def add_values(self, values: Floats) -> int:
        """Store values as float32, as float64 where float32 would lose them."""
        size = np.abs(values[np.isfinite(values) & (values != 0)])
        narrow = not len(size) or (size.max() < _SAFE_LARGE and size.min() > _SAFE_SMALL)
        return self._add(f"f:{_packed(values, '<f4')}" if narrow else f"d:{_packed(values, '<f8')}")

    def _add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.texts)
            self.texts.append(text)
        return self.known[text]


def _packed(values: Ints | Floats, kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()
