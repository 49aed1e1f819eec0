import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from poise.live.actions.save import load, newest, save, verified  # noqa: E402

STATE = {"model": {"w": torch.arange(6.0).reshape(2, 3)}, "step": 7}
SAVER = """
import sys, torch
from pathlib import Path
from poise.live.actions.save import save
for step in range(10_000):
    save(Path(sys.argv[1]), step, {"model": {"w": torch.full((200_000,), float(step))}})
    print(step, flush=True)
"""


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 7, STATE)
    assert checkpoint.name == "step-000007"
    assert torch.equal(load(checkpoint)["model"]["w"], STATE["model"]["w"])
    assert verified(checkpoint) is None


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    first, second = save(tmp_path, 7, STATE), save(tmp_path, 7, STATE)
    assert first != second
    assert verified(first) is None
    assert verified(second) is None


def test_a_state_with_nan_is_saved_and_marked(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 1, {"model": {"w": torch.tensor([1.0, float("nan")])}})
    assert '"finite": false' in (checkpoint / "manifest.json").read_text()


def test_the_newest_whole_checkpoint_is_chosen_and_the_others_are_explained_and_kept(tmp_path: Path) -> None:
    good, cut, unfinished = (save(tmp_path, step, STATE) for step in (100, 200, 300))
    (cut / "state.pt").write_bytes((cut / "state.pt").read_bytes()[:100])
    (unfinished / "manifest.json").unlink()
    said: list[str] = []
    assert newest(tmp_path, said.append) == good
    assert "not finished" in said[0]
    assert "damaged" in said[1]
    assert cut.exists()
    assert unfinished.exists()
    with pytest.raises(ValueError, match="Use an older checkpoint"):
        load(cut)


@pytest.mark.parametrize("after", [0.05, 0.11, 0.23])
def test_a_kill_at_any_moment_leaves_a_whole_newest_checkpoint(tmp_path: Path, after: float) -> None:
    with subprocess.Popen([sys.executable, "-c", SAVER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = int(process.stdout.readline())
        time.sleep(after)
        process.kill()
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
    checkpoint = newest(tmp_path)
    assert checkpoint is not None
    step = int(checkpoint.name.removeprefix("step-"))
    assert step >= acknowledged
    assert load(checkpoint)["model"]["w"].eq(step).all()
