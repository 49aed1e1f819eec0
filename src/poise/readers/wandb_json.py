"""W&B's own JSON: the history (an object a line, with `_step`) and the summary (the last value of everything)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poise.readers import json_text
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.json_rows import RowTable
from poise.records import Message

HISTORY = "wandb-history"
SUMMARY = "wandb-summary"


def sniff(head: bytes, path: Path) -> float:
    """How sure that these objects come from W&B: they carry its `_step` beside `_runtime` or `_timestamp`."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return 0.0
    rows = json_text.first_objects(head)
    return 0.95 if rows and all(map(_is_ours, rows)) else 0.0


def read(path: Path) -> list[RawRun]:
    """Read a history's objects as records; a file with one object is a summary."""
    run = RawRun(str(path), HISTORY)
    faults, table = json_text.Faults(), RowTable()
    for batch in json_text.batches(path, faults, run.notes):
        table.add([_without_own(item) for item in batch])
    if table.total == 1:
        run.format = SUMMARY
        run.notes.append(Message("reading.no-history"))
    run.config, run.columns = table.config, table.finish()
    run.notes += faults.notes()
    if not run.columns:
        raise UnreadableError(f"{path} holds no W&B values. Export the run's history again.")
    return [run]


def _is_ours(row: Mapping[str, Any]) -> bool:
    return "_wandb" in row or ("_step" in row and ("_runtime" in row or "_timestamp" in row))


def _without_own(item: Any) -> Any:
    if isinstance(item, dict):
        item.pop("_wandb", None)
    return item


READER = Reader(HISTORY, sniff, read, about="wandb-history.jsonl and wandb-summary.json")
