"""The two hooks that Poise puts on an optimizer. They hold the monitor weakly and vanish from copies."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer


class _Hook:
    """Calls a bound method as long as its owner lives; a copy of the optimizer gets one that does nothing."""

    def __init__(self, work: Callable[[], None] | None) -> None:
        self._work = weakref.WeakMethod(work) if work is not None else None

    def __call__(self, *_: Any) -> None:
        if self._work is not None and (work := self._work()) is not None:
            work()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook(None)

    def __reduce__(self) -> tuple[type[_Hook], tuple[None]]:
        return _Hook, (None,)


class StepHooks:
    """Calls `before` just before each step of any of the optimizers.

    Args:
        before: a bound method without arguments.
    """

    def __init__(self, optimizers: list[Optimizer], before: Callable[[], None]) -> None:
        self._handles = [optimizer.register_step_pre_hook(_Hook(before)) for optimizer in optimizers]

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
