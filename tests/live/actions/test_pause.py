import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from poise.cli import main  # noqa: E402
from poise.live.actions.pause import Pause, StoppedError  # noqa: E402
from poise.live.actions.save import load, newest  # noqa: E402
from poise.live.monitor import Monitor  # noqa: E402


def answer(folder: Path, command: str) -> threading.Thread:
    """Run `poise resume` or `poise stop` as soon as the run is paused."""

    def work() -> None:
        deadline = time.monotonic() + 20
        while not (folder / "paused.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert main([command, str(folder)]) == 0

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def train(folder: Path | None, policy: str) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    monitor = Monitor(net, optimizer, folder, policy=policy, pause_limit_seconds=20, quiet=True) if folder else None
    generator = torch.Generator().manual_seed(1)
    for step in range(80):
        optimizer.param_groups[0]["lr"] = 12.0 if 50 <= step < 60 else 0.05
        x = torch.randn(32, 8, generator=generator)
        loss = (net(x) - x.flip(1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if monitor is not None:
            monitor.step(loss)
    if monitor is not None:
        monitor.close()
    return net


def test_a_paused_run_that_resumes_ends_in_the_same_bits(tmp_path: Path) -> None:
    bare = train(None, "observe")
    thread = answer(tmp_path / "run", "resume")
    paused = train(tmp_path / "run", "alarm")
    thread.join()
    assert all(torch.equal(a, b) for a, b in zip(bare.state_dict().values(), paused.state_dict().values(), strict=True))


def test_the_emergency_checkpoint_is_from_within_a_few_steps_of_the_fault(tmp_path: Path) -> None:
    thread = answer(tmp_path / "run", "stop")
    with pytest.raises(StoppedError):
        train(tmp_path / "run", "alarm")
    thread.join()
    checkpoint = newest(tmp_path / "run" / "emergency")
    assert checkpoint is not None
    assert 50 <= int(checkpoint.name.removeprefix("step-")) <= 60
    assert load(checkpoint)["model"].keys() == {"weight", "bias"}


def test_nobody_deciding_stops_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    assert Pause(tmp_path, limit_seconds=0.1, poll_seconds=0.02).wait(5, "a test", said.append) == "stop"
    assert "nobody decided" in said[-1]
    assert not (tmp_path / "paused.json").exists()


def test_deciding_about_a_run_that_is_not_paused_is_a_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["resume", str(tmp_path)]) == 3
    assert "is not paused" in capsys.readouterr().err
