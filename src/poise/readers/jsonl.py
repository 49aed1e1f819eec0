"""JSON logs: an object in each line, an array of objects, objects one behind the other, or one object of lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poise.readers import json_text
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.json_rows import RowTable, merge_config
from poise.records import Message

NAME = "jsonl"
_NAMING = ("metric", "metric_name", "name", "key", "tag")
_COURSE = re.compile(r"(^|[^a-z])(step|iter(ation)?|epoch|loss|reward|acc(uracy)?)s?($|[^a-z])", re.IGNORECASE)


def sniff(head: bytes, path: Path) -> float:
    """How sure that these are objects of numbers that follow a run's course."""
    start = head.lstrip()[:2]
    if start[:1] != b"{" and not json_text.is_array(head.lstrip()):
        return 0.45 if _behind_text(head) else 0.0
    rows = json_text.first_objects(head)
    if not rows:
        return 0.3 if start != b"[[" else 0.1
    if _kind(rows)[0] != NAME:
        return 0.8
    values = [item for row in rows for item in row.values()]
    values += [item[0] for item in values if isinstance(item, list) and item]
    inner = [item for item in values if isinstance(item, dict)]
    return 0.7 if any(_COURSE.search(key) for row in [*rows, *inner] for key in row) else 0.2


def _behind_text(head: bytes) -> bool:
    """Whether objects stand at the ends of many lines, behind a time or a level."""
    lines = [line.rstrip() for line in head.split(b"\n")[:-1] if line.strip()]
    found = sum(b'{"' in line and line.endswith(b"}") for line in lines)
    return found > 1 and 3 * found >= len(lines)


def read(path: Path) -> list[RawRun]:
    """Read each object as a record; nested objects become columns `outer/inner`."""
    run = RawRun(str(path), NAME)
    faults, table = json_text.Faults(), RowTable()
    first: list[Any] = []
    for batch in json_text.batches(path, faults, run.notes):
        if not first:
            first = [item for item in batch[:8] if isinstance(item, dict)]
        table.add(_wide(batch))
    if table.total == 1 and first:
        table = _document(first[0])
    run.format, run.trainer = _kind(first)
    run.config, run.columns = table.config, table.finish()
    run.notes += faults.notes()
    if table.bad:
        run.notes.append(Message("reading.no-objects", {"count": table.bad}))
    if not run.columns:
        raise UnreadableError(
            f"{path} holds no JSON objects with numbers in them{_where(faults)}. Is it a training log?"
        )
    return [run]


def _wide(items: list[Any]) -> list[Any]:
    """Rows that state one metric each, `{"name": "loss", "value": 0.5}`, with that name as their key."""
    first = items[0] if items and isinstance(items[0], dict) else {}
    naming = next((key for key in _NAMING if isinstance(first.get(key), str)), None)
    if naming is None or "value" not in first:
        return items
    return [
        {**{k: v for k, v in row.items() if k not in (naming, "value")}, row[naming]: row["value"]}
        if isinstance(row, dict) and "value" in row and isinstance(row.get(naming), str)
        else row
        for row in items
    ]


def _where(faults: json_text.Faults) -> str:
    if faults.count:
        return f" (the first line that is no JSON is line {faults.first})" if faults.first else ""
    return f" (it breaks off in {faults.torn})" if faults.torn else ""


def _document(value: dict[str, Any]) -> RowTable:
    """A file that is one object: of lists (`{"loss": [...]}`), of records, with records in it, or itself a record."""
    table = RowTable()
    inner = {key: item for key, item in value.items() if isinstance(item, list) and len(item) > 1}
    records = {key: item for key, item in inner.items() if all(isinstance(row, dict) for row in item)}
    if records:
        longest = max(records, key=lambda key: len(records[key]))
        table.add(records[longest])
        merge_config(table.config, {key: item for key, item in value.items() if key != longest})
    elif value and all(isinstance(item, dict) for item in value.values()) and all(key.isdigit() for key in value):
        table.add([{"index": int(key), **item} for key, item in value.items()])
    elif series := _series(value, "", 0):
        table.add_columns(series)
        merge_config(table.config, {key: item for key, item in value.items() if not isinstance(item, dict)})
    else:
        table.add([{}, value])  # an empty record before it, so that it is not taken for settings
    return table


def _series(value: Mapping[str, Any], prefix: str, depth: int) -> dict[str, list[Any]]:
    """The lists of plain values in an object of objects, by path."""
    found: dict[str, list[Any]] = {}
    for key, item in value.items():
        if isinstance(item, list) and len(item) > 1 and not isinstance(item[0], (list, dict)):
            found[prefix + key] = item
        elif isinstance(item, dict) and depth < 4:
            found.update(_series(item, f"{prefix}{key}/", depth + 1))
    return found


def _kind(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Format and trainer, by the keys that only one trainer writes together."""
    keys = {key for row in rows for key in row}
    if {"current_steps", "total_steps"} <= keys and keys & {"percentage", "remaining_time", "elapsed_time"}:
        return "llamafactory-jsonl", "llama-factory"
    if "iteration" in keys and {"eta_seconds", "data_time"} & keys:
        return "detectron2-jsonl", "detectron2"
    if {"learning_rate", "epoch", "step"} <= keys and {"grad_norm", "loss", "eval_runtime"} & keys:
        return NAME, "hf"
    if {"data_time", "iter"} <= keys:
        return NAME, "mmengine"
    return NAME, None


READER = Reader(NAME, sniff, read, about="JSONL and JSON of any trainer, LLaMA-Factory and detectron2 among them")
