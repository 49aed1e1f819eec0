"""Bring a few numbers from the device to the host without waiting for them: what a step measures is read one step late."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

DEPTH = 8  # copies under way before the oldest is waited for; on a healthy run one or two


@dataclass(slots=True)
class Letter:
    """One step's vector on its way."""

    step: int
    host: Tensor
    done: Any  # an event, or None where the copy is complete


@dataclass(slots=True)
class Mailbox:
    """Copies vectors to pinned memory and hands out those that have arrived, in order.

    Never waits on a normal step. Only when 8 copies are under way, which needs a host that runs 8 steps ahead of its device, is the
    oldest waited for.
    """

    under_way: deque[Letter] = field(default_factory=deque)
    spare: list[Tensor] = field(default_factory=list)

    def send(self, step: int, vector: Tensor) -> None:
        """Start the copy of a step's vector (float32, on any device)."""
        if vector.device.type == "cpu":
            self.under_way.append(Letter(step, vector.detach(), None))
            return
        host = self._buffer(vector)
        host.copy_(vector.detach(), non_blocking=True)
        self.under_way.append(Letter(step, host, _event(vector.device)))

    def receive(self, before: int) -> list[tuple[int, NDArray[np.float32]]]:
        """What has arrived of the steps before this one."""
        arrived = []
        while self.under_way and self.under_way[0].step < before:
            letter = self.under_way[0]
            if letter.done is not None and not letter.done.query():
                if len(self.under_way) < DEPTH:
                    break
                letter.done.synchronize()
            self.under_way.popleft()
            arrived.append((letter.step, np.array(letter.host.numpy(), copy=True)))
            if letter.done is not None:
                self.spare.append(letter.host)
        return arrived

    def _buffer(self, vector: Tensor) -> Tensor:
        for i, host in enumerate(self.spare):
            if host.shape == vector.shape:
                return self.spare.pop(i)
        self.spare.clear()
        return torch.empty(vector.shape, dtype=vector.dtype, pin_memory=True)


def _event(device: torch.device) -> Any:
    event = torch.Event(device=device)
    event.record()
    return event
