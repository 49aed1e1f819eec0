"""Every file of examples/ runs as a user would run it."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"demo_training.py": ["--steps", "12"]}
"""Arguments that make a long example short."""


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", path, *SHORT.get(path.name, [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_demo_trains_two_runs_that_are_equal_up_to_the_fault(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, EXAMPLES / "demo_training.py", "--out", tmp_path, "--steps", "120"],
        check=True,
        capture_output=True,
    )

    healthy, broken = (
        list(csv.DictReader((tmp_path / name).read_text().splitlines())) for name in ("healthy.csv", "broken.csv")
    )
    assert len(healthy) == len(broken) == 120
    assert healthy[:60] == broken[:60]
    assert float(broken[60]["lr"]) == pytest.approx(30 * float(healthy[60]["lr"]), rel=1e-3)
    assert healthy[61]["loss"] != broken[61]["loss"]
    assert float(healthy[-1]["loss"]) < 3 < float(healthy[0]["loss"])
    assert math.isfinite(float(healthy[-1]["grad_norm"]))
