"""What is found in a folder tree, and what is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import event_files as ef
import pytest

from poise.readers import discover, read
from poise.readers.base import UnreadableError

TABLE = "step,loss\n" + "".join(f"{s},{9 / s}\n" for s in range(1, 30))
EVENTS = ef.version() + b"".join(ef.event(s, ef.scalar("loss", s)) for s in range(30))


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def state(rows: int) -> str:
    history = ",".join(f'{{"epoch": {s / 10}, "loss": {9 / s:.4f}, "step": {s}}}' for s in range(1, rows + 1))
    return f'{{"global_step": {rows}, "log_history": [{history}]}}'


def found(folder: Path) -> list[str]:
    return [str(candidate.path.relative_to(folder)) for candidate in discover([folder])]


def test_logs_are_found_in_order_and_the_rest_of_a_project_is_not(tmp_path: Path) -> None:
    put(tmp_path / "b" / "metrics.csv", TABLE)
    put(tmp_path / "a" / "out.txt", "".join(f"step {s}: loss {9 / s}\n" for s in range(1, 30)))
    put(tmp_path / "train.py", "loss = 1.0\nprint('step 1: loss 2.0')\n")
    put(tmp_path / "README.md", TABLE)
    put(tmp_path / "config.json", '{"hidden_size": 4, "loss": 3, "lr": 0.1}')
    put(tmp_path / "package.json", '{"version": 1}')
    put(tmp_path / "model.pt", b"PK\x03\x04" + bytes(99))
    put(tmp_path / "data.jsonl", '{"text": "hello", "id": 1}\n' * 9)
    for folder in (".hidden", "node_modules", "venv", "mine"):
        put(tmp_path / folder / "log.csv", TABLE)
    put(tmp_path / "mine" / "pyvenv.cfg", "")

    assert found(tmp_path) == ["a/out.txt", "b/metrics.csv"]
    assert [skipped.path.name for skipped in discover([tmp_path]).skipped] == ["data.jsonl"]


def test_a_file_that_the_user_names_is_always_taken(tmp_path: Path) -> None:
    path = put(tmp_path / "README.md", "nothing here\n")

    [candidate] = discover([path])
    with pytest.raises(UnreadableError, match=r"README\.md"):
        read(candidate)


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="gone does not exist"):
        discover([tmp_path / "gone"])


def test_event_files_of_a_folder_are_one_run(tmp_path: Path) -> None:
    for name in ("one/e.1", "one/e.2", "two/e.1"):
        put(tmp_path / name, EVENTS)

    assert found(tmp_path) == ["one", "two/e.1"]


def test_training_and_validation_side_by_side_are_one_run(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        put(tmp_path / "logs" / part / "e", EVENTS)

    [candidate] = discover([tmp_path])
    assert set(read(candidate)[0].columns) == {"train/loss", "validation/loss", "wall_time"}
    assert set(read(Path(candidate))[0].columns) == {"train/loss", "validation/loss", "wall_time"}


def test_of_a_trainers_checkpoints_the_longest_history_is_taken(tmp_path: Path) -> None:
    for rows in (10, 20, 30):
        put(tmp_path / f"checkpoint-{rows}" / "trainer_state.json", state(rows))

    assert found(tmp_path) == ["checkpoint-30/trainer_state.json"]


def test_checkpoints_of_different_runs_are_both_kept(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint-10" / "trainer_state.json", state(10))
    put(tmp_path / "checkpoint-20" / "trainer_state.json", state(20).replace("9.0000", "8.0000"))

    assert len(found(tmp_path)) == 2


def tracked(folder: Path, log: bytes) -> None:
    put(folder / "run-1.wandb", log)
    put(folder / "files" / "wandb-summary.json", '{"loss": 1, "_step": 9, "_runtime": 3, "_wandb": {}}')
    put(folder / "files" / "output.log", 'Traceback (most recent call last):\n  File "a"\nValueError: bad batch\n')
    put(folder / "logs" / "debug.log", "loss: 1\nloss: 2\n")


def test_of_a_tracked_run_the_binary_log_is_taken_and_its_output_adds_the_exception(tmp_path: Path) -> None:
    tracked(tmp_path / "run-1", ef.wandb_log(ef.history(s, loss=s) for s in range(9)))

    [candidate] = discover([tmp_path])
    [run] = read(candidate)
    assert (run.format, len(run.columns["loss"].values)) == ("wandb-binary", 9)
    assert [event.data["type"] for event in run.events] == ["ValueError"]


def test_without_history_in_the_binary_log_the_output_is_taken(tmp_path: Path) -> None:
    tracked(tmp_path / "run-1", ef.wandb_log([ef.sub(17, b"")]))

    assert found(tmp_path) == ["run-1/files/output.log"]


def test_links_do_not_lead_in_circles_or_to_a_log_twice(tmp_path: Path) -> None:
    log = put(tmp_path / "run" / "metrics.csv", TABLE)
    os.symlink(tmp_path, tmp_path / "run" / "up")
    os.symlink(log, tmp_path / "run" / "zz.csv")

    assert found(tmp_path) == ["run/metrics.csv"]
