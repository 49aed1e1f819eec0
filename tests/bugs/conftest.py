"""Runs the whole pipeline as a user would: `poise diagnose --json PATH`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Diagnosis = dict[str, Any]


def run_diagnose(path: Path, monkeypatch: pytest.MonkeyPatch) -> Diagnosis:
    """Return the parsed output of `poise diagnose --json`, with its exit code under `exit`."""
    from poise.cli import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        try:
            code = main(["diagnose", "--json", str(path)])
        except SystemExit as exit_:
            code = exit_.code  # type: ignore[assignment]
    out.seek(0)
    result: Diagnosis = json.loads(out.read())
    result["exit"] = code or 0
    return result


@pytest.fixture
def diagnose(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Diagnosis]:
    """A function from a log to its one run, with `exit` and `errors` added."""

    def run(path: Path) -> Diagnosis:
        result = run_diagnose(path, monkeypatch)
        assert result["errors"] == [] and len(result["runs"]) == 1, result
        return {**result["runs"][0], "exit": result["exit"]}

    return run
