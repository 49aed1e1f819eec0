from __future__ import annotations

from pathlib import Path

import pytest

from poise.readers import console
from poise.readers.normalise import normalise
from poise.records import Event

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    main()\n'
STEPS = "".join(f"step {i} | loss {4 - i / 50}\n" for i in range(50))


def events_of(folder: Path, text: str) -> list[Event]:
    path = folder / "train.log"
    path.write_text(text)
    return console.read(path)[0].events


@pytest.mark.parametrize(
    ("end", "kind", "name", "oom"),
    [
        (
            TRACE + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
            "exception",
            "OutOfMemoryError",
            True,
        ),
        (TRACE + "IndexError: index out of range in self\n", "exception", "IndexError", False),
        (TRACE + "KeyboardInterrupt\n", "exception", "KeyboardInterrupt", False),
        (
            "".join(f"[rank1]: {line}\n" for line in (TRACE + "ValueError: bad sample").split("\n")),
            "exception",
            "ValueError",
            False,
        ),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", "exception", "OutOfMemory", True),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0. Some processes may have been killed\n",
            "exception",
            "OutOfMemory",
            True,
        ),
        ("Killed\n", "signal", "SIGKILL", None),
        ("slurmstepd: error: *** JOB 18 ON node1 CANCELLED AT 2021-05-23T08:45:57 ***\n", "signal", "CANCELLED", None),
        ("Main process received SIGTERM, exiting\n", "signal", "SIGTERM", None),
        ("Segmentation fault (core dumped)\n", "signal", "SIGSEGV", None),
        (
            "[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n",
            "exception",
            "CollectiveTimeout",
            False,
        ),
        (
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n",
            "exception",
            "LossScaleExhausted",
            False,
        ),
    ],
)
def test_the_end_of_a_run_is_named_with_its_last_step(
    end: str, kind: str, name: str, oom: bool | None, tmp_path: Path
) -> None:
    event = events_of(tmp_path, STEPS + end)[-1]
    assert (event.kind, event.data.get("type", event.data.get("name")), event.step, event.data.get("oom")) == (
        kind,
        name,
        49,
        oom,
    )
    assert event.data["line"] == 51
    assert "survived" not in event.data


def test_a_traceback_that_training_outlives_is_marked(tmp_path: Path) -> None:
    (event,) = events_of(
        tmp_path, STEPS + TRACE + "ValueError: bad sample\n" + "".join(f"step {i} | loss 2.0\n" for i in range(50, 60))
    )
    assert event.data["survived"] is True
    assert event.step == 49


def test_each_overflow_is_an_event_with_its_new_scale(tmp_path: Path) -> None:
    line = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    text = STEPS[: STEPS.index("step 20")] + line.format(64, 32) + STEPS[STEPS.index("step 20") :]
    (event,) = events_of(tmp_path, text)
    assert event == Event("overflow", 19, {"loss_scale": 32.0, "line": 21, "record": 19})


def test_words_of_failure_in_a_command_or_advice_are_none(tmp_path: Path) -> None:
    assert (
        events_of(
            tmp_path,
            'grep -E "OutOfMemory|Traceback|loss" x.log\nTo avoid being killed set a lower batch size\n' + STEPS,
        )
        == []
    )


def test_a_log_of_nothing_but_a_crash_is_still_told(tmp_path: Path) -> None:
    (event,) = events_of(
        tmp_path, "Loading data\n" + TRACE + "RuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert (event.kind, event.step, event.data["type"]) == ("exception", None, "RuntimeError")


@pytest.mark.parametrize("bars", [True, False])
def test_a_crash_stands_at_the_step_of_the_axis_and_not_at_the_epoch_of_the_record(bars: bool, tmp_path: Path) -> None:
    text = ""
    for i in range(10, 310, 10):
        text += f"\r{i // 3:3d}%|###  | {i}/300 [00:10<01:30, 3.21it/s]\r" if bars else ""
        text += f"{{'loss': {4 - i / 100:.3f}, 'learning_rate': 5e-05, 'epoch': {i / 100}}}\n"
    path = tmp_path / "train.log"
    path.write_text(text + TRACE + "KeyError: 'a'\n")
    frame = normalise(console.read(path)[0]).frames[-1]
    assert [event.step for event in frame.events] == [int(frame.columns["loss"].steps[-1])]
    assert "record" not in frame.events[0].data
