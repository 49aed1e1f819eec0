"""What a training consists of, found once at attach: parameters and their groups, schedulers, scalers."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from poise.live.groups import Member, clean, fold


@dataclass(slots=True)
class Found:
    """A training's parts.

    Args:
        names: of the trainable parameters, in model order, without wrappers' prefixes; tied ones once.
        members: the groups they fold into; `which` gives each parameter's.
        optimizers: all that were given.
        schedulers, scalers: those that hold one of the optimizers, or were given.
        loose: trainable parameters that no optimizer holds.
    """

    names: list[str]
    parameters: list[torch.nn.Parameter]
    members: list[Member]
    which: list[int]
    optimizers: list[Optimizer]
    schedulers: list[Any]
    scalers: list[Any]
    loose: list[str]

    def sentence(self) -> str:
        """One line for the user to check."""
        size = sum(p.numel() for p in self.parameters)
        parts = [f"{size:,} trainable parameters in {len(self.names)} tensors and {len(self.members)} groups"]
        parts.append(" + ".join(type(o).__name__ for o in self.optimizers))
        parts.append(
            "scheduler " + ", ".join(type(s).__name__ for s in self.schedulers) if self.schedulers else "no scheduler"
        )
        parts += ["scaler " + type(s).__name__ for s in self.scalers]
        text = "Poise watches " + ", ".join(parts)
        return text + (
            f"; no optimizer holds {', '.join(self.loose[:4])}{' ...' if len(self.loose) > 4 else ''}"
            if self.loose
            else ""
        )


def find(model: torch.nn.Module, optimizers: list[Optimizer], scheduler: Any = None, scaler: Any = None) -> Found:
    """Look at the model and, once, at the objects alive: an optimizer holds no reference to its scheduler or scaler."""
    named = [(clean(n), p) for n, p in model.named_parameters() if p.requires_grad]
    held = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
    schedulers = (
        [scheduler]
        if scheduler is not None
        else [o for o in _alive(LRScheduler) if any(o.optimizer is mine for mine in optimizers)]
    )
    scalers = [scaler] if scaler is not None else _alive_scalers(optimizers)
    names = [n for n, _ in named]
    members, which = fold(names)
    loose = [n for n, p in named if id(p) not in held]
    return Found(names, [p for _, p in named], members, which, optimizers, schedulers, scalers, loose)


def _alive(kind: type) -> list[Any]:
    """Objects of a kind that are alive now; one scan of all objects, about 50 ms per million."""
    return [o for o in gc.get_objects() if issubclass(type(o), kind)]


def _alive_scalers(optimizers: list[Optimizer]) -> list[Any]:
    """Gradient scalers: they know their optimizers only after the first step, so a lone one is taken as ours."""
    if "torch.amp.grad_scaler" not in sys.modules:
        return []
    scalers = [s for s in _alive(torch.amp.GradScaler) if s.is_enabled()]
    ids = {id(o) for o in optimizers}
    ours = [s for s in scalers if ids & set(s._per_optimizer_states)]
    return ours or scalers[:1]
