"""The monitor on plain loops: it sees, it records, and it changes nothing."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from poise.live.monitor import Monitor  # noqa: E402
from poise.runlog.reader import RunReader  # noqa: E402


class Net(nn.Module):
    """Two residual blocks over a byte embedding: enough to fail for real."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 32)
        self.layers = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(2)]
        )
        self.head = nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        for layer in self.layers:
            h = h + layer(h)
        return self.head(h)


def batches(steps: int) -> list[Tensor]:
    """Sequences in which each token follows from the one before, with noise: something to learn."""
    generator = torch.Generator().manual_seed(1)
    start = torch.randint(0, 64, (steps, 16, 1), generator=generator)
    clean = (start + torch.arange(17)) % 64
    noise = torch.randint(0, 64, clean.shape, generator=generator)
    return list(torch.where(torch.rand(clean.shape, generator=generator) < 0.1, noise, clean))


def train(
    steps: int, attach: Callable[[nn.Module, torch.optim.Optimizer], Monitor] | None, rate: Callable[[int], float] = lambda _: 1e-3,
    spoil: Callable[[int, Tensor], Tensor] = lambda _, x: x,
) -> tuple[nn.Module, torch.optim.Optimizer, Monitor | None]:  # fmt: skip
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), rate(0))
    monitor = attach(net, optimizer) if attach else None
    for step, batch in enumerate(batches(steps)):
        optimizer.param_groups[0]["lr"] = rate(step)
        loss = spoil(step, nn.functional.cross_entropy(net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()))
        loss.backward()
        if monitor is not None:
            monitor.clip(1.0)
        else:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if monitor is not None:
            monitor.step(loss, tokens=256)
    if monitor is not None:
        monitor.close()
    return net, optimizer, monitor


def recording(folder: Path) -> Callable[[nn.Module, torch.optim.Optimizer], Monitor]:
    return lambda net, optimizer: Monitor(net, optimizer, folder, quiet=True)


def test_a_thousand_steps_end_in_the_same_bits(tmp_path: Path) -> None:
    bare, bare_optimizer, _ = train(1000, None)
    watched, optimizer, monitor = train(1000, recording(tmp_path / "run"))
    assert monitor is not None
    assert monitor.guard.off == {}
    assert all(
        torch.equal(a, b) for a, b in zip(bare.state_dict().values(), watched.state_dict().values(), strict=True)
    )
    for a, b in zip(bare_optimizer.state.values(), optimizer.state.values(), strict=True):
        assert all(torch.equal(a[key], b[key]) for key in a)


def test_random_numbers_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    net = Net()
    monitor = Monitor(net, torch.optim.SGD(net.parameters(), 0.1), tmp_path / "run", quiet=True)
    torch.manual_seed(5)
    monitor.step(torch.tensor(1.0))
    monitor.close()
    assert torch.equal(torch.rand(3), expected)


def test_every_step_is_in_the_run_log_with_its_signals(tmp_path: Path) -> None:
    train(50, recording(tmp_path / "run"))
    reader = RunReader(tmp_path / "run")
    loss = reader.read("loss")
    assert loss.steps.tolist() == list(range(50))
    assert loss.values[-1] < loss.values[0]
    members = [n for n in reader.names() if n.startswith("grad_norm/")]
    squares = sum(reader.read(name).values ** 2 for name in members)
    np.testing.assert_allclose(np.sqrt(squares), reader.read("grad_norm").values, rtol=1e-5)
    assert reader.header()["parameters"] == sum(p.numel() for p in Net().parameters())


def test_a_learning_rate_raised_a_hundredfold_is_an_incident_within_a_few_steps(tmp_path: Path) -> None:
    _, _, monitor = train(400, recording(tmp_path / "run"), rate=lambda step: 0.3 if step >= 250 else 3e-3)
    assert monitor is not None
    first = next(i for i in monitor.incidents if i.severity != "info")
    assert 250 <= first.onset_step <= 252
    assert first.detected_step <= 255
    records = [e["record"] for e in RunReader(tmp_path / "run").events()]
    assert {"finding", "incident"} <= set(records)


def test_a_clean_run_has_no_alarm(tmp_path: Path) -> None:
    _, _, monitor = train(400, recording(tmp_path / "run"))
    assert monitor is not None
    assert [i for i in monitor.incidents if i.severity != "info"] == []


def test_the_tensors_whose_gradient_is_not_finite_are_named(tmp_path: Path) -> None:
    def attach(net: nn.Module, optimizer: torch.optim.Optimizer) -> Monitor:
        net.layers[1][1].weight.register_hook(lambda g: g * float("inf"))  # type: ignore[index]
        return Monitor(net, optimizer, tmp_path / "run", quiet=True)

    train(3, attach)
    event = next(e for e in RunReader(tmp_path / "run").events() if e.get("kind") == "non-finite-gradient")
    assert dict(event["data"])["tensors"] == ["layers.1.1.weight"]


def test_clipping_is_torchs_own_bit_for_bit() -> None:
    torch.manual_seed(0)
    net = Net()
    net(batches(1)[0]).square().sum().backward()
    twin = copy.deepcopy(net)
    for mine, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        theirs.grad = None if mine.grad is None else mine.grad.clone()
    monitor = Monitor(net, torch.optim.SGD(net.parameters(), 0.1), quiet=True)
    total = monitor.clip(0.5)
    expected = nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
    assert torch.equal(total, expected)
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(net.parameters(), twin.parameters(), strict=True))  # type: ignore[arg-type]


def test_a_part_that_throws_is_switched_off_and_told_once(tmp_path: Path) -> None:
    def attach(net: nn.Module, optimizer: torch.optim.Optimizer) -> Monitor:
        monitor = Monitor(net, optimizer, tmp_path / "run", quiet=True)
        monitor.watch.detectors = (object(),)  # type: ignore[assignment]
        return monitor

    _, _, monitor = train(20, attach)
    assert monitor is not None
    assert list(monitor.guard.off) == ["watch"]
    told = [e for e in RunReader(tmp_path / "run").events() if e.get("kind") == "internal"]
    assert len(told) == 1
    assert RunReader(tmp_path / "run").read("loss").steps.tolist() == list(range(20))


def test_the_model_pickles_and_copies_and_a_copied_optimizer_is_not_watched() -> None:
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    monitor = Monitor(net, optimizer, quiet=True)
    assert pickle.loads(pickle.dumps(net)).state_dict().keys() == net.state_dict().keys()
    twin = copy.deepcopy(optimizer)
    for parameter in twin.param_groups[0]["params"]:
        parameter.grad = torch.ones_like(parameter)
    twin.step()
    assert monitor._vector is None


def test_several_losses_have_their_own_columns(tmp_path: Path) -> None:
    net = Net()
    with Monitor(net, torch.optim.SGD(net.parameters(), 0.1), tmp_path / "run", quiet=True) as monitor:
        for _ in range(3):
            monitor.step({"loss": torch.tensor(2.0), "text": torch.tensor(1.5), "image": 0.5})
    reader = RunReader(tmp_path / "run")
    assert {"loss", "loss/text", "loss/image"} <= set(reader.names())
    assert reader.read("loss/image").values.tolist() == [0.5, 0.5, 0.5]
