"""Hugging Face `trainer_state.json`, under any name, and a bare list as its `log_history` is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from poise.readers import json_text, source
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.json_rows import RowTable

NAME = "hf-trainer-state"
_HISTORY = re.compile(rb'"log_history"\s*:\s*\[')
_LARGEST_HEAD = 1 << 25
_TRAINER_ONLY = {"learning_rate", "grad_norm", "eval_runtime", "train_runtime", "total_flos"}


def sniff(head: bytes, path: Path) -> float:
    """How sure that these are a trainer's state or its history."""
    start = head.lstrip()[:1]
    if start == b"{" and _HISTORY.search(head):
        return 1.0
    if start != b"[":
        return 0.0
    rows = json_text.first_objects(head, 4)
    likely = [row for row in rows if {"step", "epoch"} <= row.keys() and _TRAINER_ONLY & row.keys()]
    return 0.9 if rows and len(likely) == len(rows) else 0.0


def read(path: Path) -> list[RawRun]:
    """Read the rows of `log_history` as records and the fields beside it as configuration."""
    run = RawRun(str(path), NAME, trainer="hf")
    faults, table = json_text.Faults(), RowTable(nested=False)
    tail: list[Any] = []
    pieces = source.utf8(path, json_text.PIECE, run.notes)
    before, opening, rest = _to_history(path, pieces)
    for batch in json_text.array_items(chain([rest], pieces), opening, tail, faults):
        table.add(batch)
    for last in tail:
        table.add(last if isinstance(last, list) else last.pop("log_history"))
        run.config.update(_settings(last))
    run.config = {**_settings(before), **run.config}
    run.columns = table.finish()
    run.notes += faults.notes()
    if not run.columns:
        raise UnreadableError(_nothing(path, faults))
    return [run]


def _nothing(path: Path, faults: json_text.Faults) -> str:
    if faults.torn:
        return f"{path} is broken at {faults.torn} of its log_history. Fetch it again, or take an older checkpoint's state."
    return f"{path} has no rows with numbers in log_history. Set logging_steps so that the trainer logs."


def _to_history(path: Path, pieces: Iterator[bytes]) -> tuple[Any, bytes, bytes]:
    """Go to the first row; returns the fields before it, what opens the array, and the bytes behind that."""
    buffer = b""
    for piece in pieces:
        buffer += piece
        if buffer.lstrip().startswith(b"["):
            return {}, b"[", buffer.lstrip()[1:]
        found = _HISTORY.search(buffer)
        if found:
            return _fields(buffer[: found.start()]), b'{"log_history":[', buffer[found.end() :]
        if len(buffer) > _LARGEST_HEAD:
            break
    raise UnreadableError(f'{path} has no "log_history" list. Is it a trainer_state.json, and is it whole?')


def _fields(before: bytes) -> Any:
    try:
        return json_text.loads(before.rstrip().rstrip(b",") + b"}")
    except ValueError:
        return {}


def _settings(fields: Any) -> dict[str, Any]:
    """The plain values among a state's fields, and those of the trial of a search."""
    if not isinstance(fields, dict):
        return {}
    trial = fields.get("trial_params")
    every = {**(trial if isinstance(trial, dict) else {}), **fields}
    return {k: v for k, v in every.items() if isinstance(v, (bool, int, float, str))}


READER = Reader(NAME, sniff, read, about="trainer_state.json of Hugging Face Trainer, TRL and what builds on them")
