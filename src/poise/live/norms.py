"""Gradient norms in one fused pass, shared with clipping."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_

HALVES = (torch.float16, torch.bfloat16)


@dataclass(slots=True)
class Norms:
    """Measures the gradient as the optimizer will see it.

    Args:
        parameters: all that train, in model order.
        groups: for each of them the index of its group.
        num_groups: how many groups there are.
    """

    parameters: list[torch.nn.Parameter]
    groups: list[int]
    num_groups: int
    _index: Tensor | None = None
    _present: tuple[int, ...] = ()
    _key: int = 0

    @torch.no_grad()
    def measure(self) -> tuple[Tensor, Tensor]:
        """Return the total norm as torch's own clip computes it, bit for bit, and a vector for the host.

        Returns:
            total: 0-dim, in the gradients' type, for clipping.
            vector: (1 + groups + parameters,) float32: total, per group, per tensor; NaN for a parameter without gradient.
                Half-precision gradients are measured in float32 for the vector, so that squares do not overflow.

        Cost: one read of all gradients and a few small kernels; two reads where gradients are of half precision. No sync.
        """
        present = [i for i, p in enumerate(self.parameters) if p.grad is not None and p.grad.device.type != "meta"]
        if not present:
            return torch.zeros(()), torch.full((1 + self.num_groups + len(self.parameters),), float("nan"))
        grads = [_plain(self.parameters[i].grad) for i in present]
        own, exact = _each(grads)
        device = grads[0].device
        total = torch.linalg.vector_norm(torch.stack([n.to(device) for n in own]), 2.0)
        flat = torch.stack([n.to(device, torch.float32) for n in exact])
        index = self._index_of(tuple(present), device)
        squares = torch.zeros(self.num_groups, device=device).index_add_(0, index, flat.square())
        each = torch.full((len(self.parameters),), float("nan"), device=device)
        each[self._rows] = flat
        whole = total.to(torch.float32).reshape(1) if exact is own else flat.square().sum().sqrt().reshape(1)
        return total, torch.cat([whole, squares.sqrt(), each])

    def clip(self, max_norm: float, total: Tensor) -> None:
        """Scale all gradients to a total norm of at most `max_norm`, as `torch.nn.utils.clip_grad_norm_` does, bit for bit."""
        clip_grads_with_norm_(self.parameters, max_norm, total)

    _rows: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))

    def _index_of(self, present: tuple[int, ...], device: torch.device) -> Tensor:
        """Group indices of the parameters that have a gradient, kept on the device between steps."""
        if self._index is None or self._present != present or self._index.device != device:
            self._present = present
            self._index = torch.tensor([self.groups[i] for i in present], device=device)
            self._rows = torch.tensor(present, device=device)
        return self._index


def _each(grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Norm of each gradient in its own type (as torch clips) and in float32; the same list where they agree."""
    own = _foreach_norm(grads)
    if not any(g.dtype in HALVES for g in grads):
        return own, own
    return own, [
        torch.linalg.vector_norm(g, dtype=torch.float32) if g.dtype in HALVES else n
        for g, n in zip(grads, own, strict=True)
    ]


def _foreach_norm(grads: list[Tensor]) -> list[Tensor]:
    """Per-tensor norms in the order of the list, grouped by device and type as torch's clip does."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for i, grad in enumerate(grads):
        kinds.setdefault((grad.device, grad.dtype), []).append(i)
    if len(kinds) == 1:
        return list(torch._foreach_norm(grads, 2.0))
    norms: dict[int, Tensor] = {}
    for indices in kinds.values():
        norms |= zip(indices, torch._foreach_norm([grads[i] for i in indices], 2.0), strict=True)
    return [norms[i] for i in range(len(grads))]


def _plain(grad: Tensor | None) -> Tensor:
    """The numbers of a gradient: a sparse one's values, coalesced so that repeated rows count once."""
    assert grad is not None
    return grad.coalesce().values() if grad.is_sparse else grad
