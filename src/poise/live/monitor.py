"""The Monitor: attach it to a plain training loop, call it once per step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from poise import presets
from poise.live.found import Found, find
from poise.live.guard import Guard
from poise.live.hooks import StepHooks
from poise.live.host import HostMeter
from poise.live.journal import Journal
from poise.live.mailbox import Mailbox
from poise.live.norms import Norms
from poise.live.recorder import Recorder
from poise.live.respond import Responder
from poise.policy import Policy, named
from poise.records import Column, Event, Frame, Incident
from poise.watch import Watch

Loss = Tensor | float


@dataclass(slots=True)
class _Pending:
    """What the host measured at a step whose vector is still on its way."""

    losses: tuple[str, ...]
    has_norms: bool
    host: dict[str, float]
    events: list[Event] = field(default_factory=list)


class Monitor:
    """Records and judges a running training, without changing it.

        monitor = Monitor(model, optimizer, "runs/first")
        for batch in loader:
            loss = model(batch); loss.backward()
            monitor.clip(1.0)                    # in place of clip_grad_norm_, bit-equal; leave out if you do not clip
            optimizer.step(); optimizer.zero_grad()
            monitor.step(loss)

    Args:
        model: the module that trains. Nothing is hooked into it.
        optimizers: one or several; each gets two step hooks.
        run: folder of the run log; None records nothing and only judges.
        policy: `observe` does nothing to the run. `alarm` saves and pauses on a critical incident (see `policy.py`).
        save: called with a folder to write an emergency checkpoint into; by default model, optimizers, schedulers, scalers and random
            state are written (see `actions/save.py`).
        pause_limit_seconds: how long a paused run waits for a decision before it is stopped.
        on_incident: called with each new or changed incident.
        scheduler, scaler: found among the live objects if not given.
        watch: what judges; `presets.pretrain()` by default.
        quiet: do not print what was found.

    What a step measures is read one step later, so a normal step never waits for the device. What Poise's own parts throw
    switches that part off and never reaches the training.
    """

    def __init__(
        self, model: torch.nn.Module, optimizers: Optimizer | list[Optimizer], run: str | Path | None = None, *,
        policy: str | Policy = "observe", scheduler: Any = None, scaler: Any = None, watch: Watch | None = None,
        save: Callable[[Path], object] | None = None, pause_limit_seconds: float = 12 * 3600.0,
        on_incident: Callable[[Incident], None] | None = None, quiet: bool = False,
    ) -> None:  # fmt: skip
        given = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
        self.found: Found = find(model, given, scheduler, scaler)
        self.watch = watch or presets.pretrain()
        self.journal = Journal(Path(run)) if run is not None else None
        self.responder = Responder(
            named(policy), model, self.found, Path(run) if run is not None else None, save, pause_limit_seconds
        )
        self.guard = Guard(self._internal)
        self.norms = Norms(self.found.parameters, self.found.which, len(self.found.members))
        self.mailbox = Mailbox()
        self.host = HostMeter()
        self.updates = 0
        self.own_seconds = 0.0
        self._on_incident = on_incident
        self._vector: Tensor | None = None
        self._events: list[Event] = []
        self._pending: dict[int, _Pending] = {}
        self.recorder: Recorder | None = None
        self._hooks = StepHooks(given, self._before_update)
        if self.journal is not None:
            self.guard.run("header", lambda: self.journal.begin(model, self.found), None)  # type: ignore[union-attr]
        if not quiet:
            print(self.found.sentence())

    def clip(self, max_norm: float) -> Tensor:
        """Clip the global gradient norm, as `torch.nn.utils.clip_grad_norm_` does, and keep the norms that this computes.

        Returns:
            The total norm before clipping, 0-dim, on the gradients' device.
        """
        total, self._vector = self.norms.measure()
        self.norms.clip(max_norm, total)
        self.host.clip_at = max_norm
        return total

    def step(self, loss: Loss | Mapping[str, Loss], *, tokens: int | None = None) -> None:
        """Take note of one update. Call it after `optimizer.step()`.

        Args:
            loss: the loss, or several by name; the name `loss` is the total.
            tokens: tokens (or samples) in this step's batch, for the throughput.
        """
        begin = time.perf_counter()
        self.guard.step = self.updates
        self.guard.run("step", lambda: self._step(loss, tokens), None)
        self.updates += 1
        self.own_seconds += time.perf_counter() - begin
        self.responder.act(self._note)
        self.host.last += self.responder.spent()

    def close(self) -> None:
        """Read what is still on its way, take the hooks off, close the run log."""
        self._hooks.remove()
        self.guard.run("drain", lambda: self._read(self.updates + 1), None)
        if self.journal is not None:
            self.guard.run("journal", self.journal.close, None)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._note(Event("exception", self.updates, {"type": type(error).__name__, "text": str(error)[:2000]}))
        self.close()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents so far, most serious first."""
        return self.watch.incidents

    def _before_update(self) -> None:
        """The optimizer is about to step: measure the gradient unless the clip did."""
        if self._vector is None:
            begin = time.perf_counter()
            self._vector = self.guard.run("norms", lambda: self.norms.measure()[1], None)
            self.own_seconds += time.perf_counter() - begin

    def _step(self, loss: Loss | Mapping[str, Loss], tokens: int | None) -> None:
        losses = dict(loss) if isinstance(loss, Mapping) else {"loss": loss}
        names = tuple(name if name == "loss" or name.startswith("loss/") else f"loss/{name}" for name in losses)
        vector, has_norms = self._packed(list(losses.values()))
        self._pending[self.updates] = _Pending(names, has_norms, self.host.measure(self.found, tokens), self._events)
        self._events, self._vector = [], None
        self.mailbox.send(self.updates, vector)
        self._read(self.updates)

    def _packed(self, losses: list[Loss]) -> tuple[Tensor, bool]:
        """All of this step's numbers as one float32 vector on the device: scale, losses, norms."""
        norms = self._vector
        tensors = [v for v in losses if isinstance(v, Tensor)]
        device = norms.device if norms is not None else tensors[0].device if tensors else torch.device("cpu")
        scale = self.found.scalers[0]._scale if self.found.scalers else None
        parts = [
            v.detach().to(device, torch.float32).reshape(1)
            if isinstance(v, Tensor)
            else torch.tensor([float(v)], device=device)
            for v in losses
        ]
        parts.append(
            scale.to(device, torch.float32).reshape(1)
            if scale is not None
            else torch.full((1,), float("nan"), device=device)
        )
        return torch.cat([*parts, *([norms] if norms is not None else [])]), norms is not None

    def _read(self, before: int) -> None:
        """Judge and record the steps whose numbers have arrived."""
        for step, vector in self.mailbox.receive(before):
            pending = self._pending.pop(step)
            frame = self._frame(step, vector, pending)
            if self.journal is not None:
                self.guard.run("journal", lambda f=frame: self.journal.write(f), None)  # type: ignore[misc]
            self.guard.run("watch", lambda f=frame: self._judge(f), None)  # type: ignore[misc]

    def _frame(self, step: int, vector: NDArray[np.float32], pending: _Pending) -> Frame:
        count = len(pending.losses)
        values: dict[str, float] = dict(zip(pending.losses, vector[:count].tolist(), strict=True))
        if not np.isnan(vector[count]):
            values["loss_scale"] = float(vector[count])
        if pending.has_norms:
            values |= self._norm_columns(step, vector[count + 1 :], pending)
        values |= pending.host
        at = np.array([step])
        return Frame(
            {name: Column(at, np.array([np.float32(value)], np.float64)) for name, value in values.items()},
            tuple(pending.events),
        )

    def _norm_columns(self, step: int, vector: NDArray[np.float32], pending: _Pending) -> dict[str, float]:
        members = self.found.members
        if self.recorder is None:
            self.recorder = Recorder(
                ("grad_norm", *(f"grad_norm/{m.id}" for m in members), *(f"tensor/{n}" for n in self.found.names))
            )
        self.recorder.add(step, vector)
        if not np.isfinite(vector[0]):
            bad = [n for n, v in zip(self.found.names, vector[1 + len(members) :], strict=True) if np.isinf(v)] or [
                n for n, v in zip(self.found.names, vector[1 + len(members) :], strict=True) if np.isnan(v)
            ]
            pending.events.append(Event("non-finite-gradient", step, {"tensors": bad[-8:], "count": len(bad)}))
        return {"grad_norm": float(vector[0])} | {
            f"grad_norm/{m.id}": float(v) for m, v in zip(members, vector[1:], strict=False)
        }

    def _judge(self, frame: Frame) -> None:
        for record in self.watch.update(frame):
            if self.journal is not None:
                self.journal.record(record)
            if isinstance(record, Incident):
                self.responder.consider(record, self.updates)
                if self._on_incident is not None:
                    self._on_incident(record)

    def _internal(self, event: Event) -> None:
        self._note(event)

    def _note(self, event: Event) -> None:
        self._events.append(event)
