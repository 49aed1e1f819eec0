"""What the host can tell of a step without asking the device: time, throughput, learning rates, memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from poise.live.found import Found

MEMORY_EVERY = 20  # steps between two looks at /proc


@dataclass(slots=True)
class HostMeter:
    """Measures one step's host signals. Cost: a few microseconds; reading /proc every 20 steps."""

    clip_at: float | None = None
    last: float = field(default_factory=time.perf_counter)
    steps: int = 0

    def measure(self, found: Found, tokens: int | None) -> dict[str, float]:
        """Signals of the step that ends now."""
        now = time.perf_counter()
        seconds, self.last = now - self.last, now
        values = {"step_seconds": seconds} if self.steps else {}  # the first stretch holds the set-up
        values |= _rates(found)
        if tokens is not None:
            values["batch_tokens"] = float(tokens)
            if self.steps:
                values["tokens_per_second"] = tokens / max(seconds, 1e-9)
        if self.steps % MEMORY_EVERY == 0 and (memory := resident_bytes()) is not None:
            values["host_memory"] = float(memory)
        self.steps += 1
        return values


def _rates(found: Found) -> dict[str, float]:
    """Learning rate of the first group, and of the others where they differ; rates kept as tensors on a device are left out."""
    rates = [g["lr"] for o in found.optimizers for g in o.param_groups]
    plain = [float(r) for r in rates if isinstance(r, int | float) or r.device.type == "cpu"]
    values = {"learning_rate": plain[0]} if plain else {}
    if len(set(plain)) > 1:
        values |= {f"learning_rate/{i}": rate for i, rate in enumerate(plain)}
    return values


def resident_bytes() -> int | None:
    """Resident memory of this process in bytes; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return None
