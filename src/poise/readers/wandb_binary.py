"""The binary log of Weights & Biases (`run-ID.wandb`), which is there even if the run was never synchronised.

Field numbers are those of W&B's public `wandb_internal.proto`. Logs of runs that were killed end anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poise.readers import json_text, leveldb_log, protobuf
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.console.failures import Failures, event_data
from poise.readers.json_rows import RowTable, merge_config
from poise.readers.protobuf import BYTES, VARINT, MalformedError, fields, signed, varint
from poise.readers.tfrecord import Damage
from poise.records import Event

NAME = "wandb-binary"
_BATCH = 2048
_PENDING = 1 << 16
_HISTORY, _OUTPUT, _CONFIG, _TELEMETRY, _OUTPUT_RAW, _RUN, _EXIT = 2, 4, 5, 11, 13, 17, 18
_VERSIONS = {4: "python", 5: "wandb", 6: "transformers", 11: "wandb-core"}


def sniff(head: bytes, path: Path) -> float:
    """How sure that this is W&B's binary log."""
    return 1.0 if head.startswith(leveldb_log.MAGIC) else 0.0


def read(path: Path) -> list[RawRun]:
    """Read history, configuration, versions, the end of the run, and exceptions in its output."""
    log, damage = _Log(RawRun(str(path), NAME)), Damage()
    for payload in leveldb_log.payloads(path, damage, log.run.notes):
        try:
            log.take(payload)
        except MalformedError:
            damage.at(0)
    run = log.finish()
    run.notes += damage.notes()
    if not run.columns:
        raise UnreadableError(_nothing(path, damage))
    return [run]


def _nothing(path: Path, damage: Damage) -> str:
    broken = bool(damage.notes())
    what = "was cut off or damaged before its first history" if broken else "holds no history: nothing was logged"
    return f"{path} {what}. Diagnose the run's output.log or an export of its history instead."


@dataclass(slots=True)
class _Log:
    """One run while its records come in."""

    run: RawRun
    table: RowTable = field(default_factory=RowTable)
    rows: list[dict[str, Any]] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)
    pending: bytes = b""  # printed, up to the last line end so far
    lines: int = 0  # printed so far
    marks: tuple[int, int] = (0, 0)  # lines printed before each of the last two history records

    def take(self, data: bytes) -> None:
        """Take one Record message."""
        for number, wire, at, stop in fields(data):
            if wire == BYTES and (what := _RECORDS.get(number)) is not None:
                what(self, data, at, stop)

    def history(self, data: bytes, start: int, end: int) -> None:
        row: dict[str, Any] = {}
        step: int | None = None
        for number, wire, at, stop in fields(data, start, end):
            if number == 1 and wire == BYTES:
                key, value = _item(data, at, stop)
                if key and not (isinstance(value, dict) and "_type" in value):
                    row[key] = value
            elif number == 2 and wire == BYTES:
                step = _integer(data, at, stop, 1)
        row.pop("_wandb", None)
        if row and step is not None:
            row.setdefault("_step", float(step))
        self._print(b"\n")
        self.marks = (self.marks[1], self.lines)
        self.rows.append(row)
        if len(self.rows) >= _BATCH:
            self.table.add(self.rows)
            self.rows = []

    def config(self, data: bytes, start: int, end: int) -> None:
        for number, wire, at, stop in fields(data, start, end):
            if number == 1 and wire == BYTES:
                key, value = _item(data, at, stop)
                if key and not key.startswith("_wandb"):
                    merge_config(self.run.config, {key.replace("/", "."): value})

    def about(self, data: bytes, start: int, end: int) -> None:
        """The run record: configuration and telemetry at its start."""
        for number, wire, at, stop in fields(data, start, end):
            if number == 4 and wire == BYTES:
                self.config(data, at, stop)
            elif number == 19 and wire == BYTES:
                self.telemetry(data, at, stop)

    def telemetry(self, data: bytes, start: int, end: int) -> None:
        for number, wire, at, stop in fields(data, start, end):
            if number in _VERSIONS and wire == BYTES:
                self.run.versions[_VERSIONS[number]] = protobuf.text(data, at, stop)

    def printed(self, data: bytes, start: int, end: int) -> None:
        for number, wire, at, stop in fields(data, start, end):
            if number == 3 and wire == BYTES:
                self.pending += data[at:stop].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if len(self.pending) > _PENDING or b"\n" in self.pending[-4:]:
            self._print()

    def _print(self, end: bytes = b"") -> None:
        """Look for failures in what was printed since the last history record."""
        if self.pending:
            block = self.pending + end
            self.failures.feed(block, self.lines + 1, block)
            self.lines += block.count(b"\n")
            self.pending = b""

    def ended(self, data: bytes, start: int, end: int) -> None:
        code = _integer(data, start, end, 1)
        self.run.events.append(Event("run-end", None, {"complete": code == 0, "exit_code": code}))

    def finish(self) -> RawRun:
        self.table.add(self.rows)
        self.run.columns = self.table.finish()
        self.run.trainer = _trainer(self.run.columns, self.run.config)
        self._print(b"\n")
        self.failures.finish()
        for failure in self.failures.found:
            if failure.kind != "overflow" and failure.line > self.marks[0]:  # one row may be written at the exit
                self.run.events.append(Event(failure.kind, None, event_data(failure, False)))
        return self.run


_RECORDS: Mapping[int, Callable[[_Log, bytes, int, int], None]] = {
    _HISTORY: _Log.history,
    _OUTPUT: _Log.printed,
    _OUTPUT_RAW: _Log.printed,
    _CONFIG: _Log.config,
    _TELEMETRY: _Log.telemetry,
    _RUN: _Log.about,
    _EXIT: _Log.ended,
}


def _item(data: bytes, start: int, end: int) -> tuple[str, Any]:
    """Key and value of an item; a nested key's parts are joined by slashes."""
    keys: list[str] = []
    value: Any = None
    for number, wire, at, stop in fields(data, start, end):
        if wire != BYTES:
            continue
        if number in (1, 2) and at < stop:
            keys.append(protobuf.text(data, at, stop))
        elif number == 16:
            value = _plain(data[at:stop])
    return "/".join(keys), value


def _plain(text: bytes) -> Any:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return json_text.loads(text)
    except ValueError:
        return None


def _integer(data: bytes, start: int, end: int, wanted: int) -> int:
    """An integer field of a message; 0 where absent, as the format has it."""
    found = 0
    for number, wire, at, stop in fields(data, start, end):
        if number == wanted and wire == VARINT:
            found = signed(varint(data, at, stop)[0])
    return found


def _trainer(columns: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    if "per_device_train_batch_size" in config and ("train/loss" in columns or "train/global_step" in columns):
        return "hf"
    return "lightning" if "trainer/global_step" in columns else None


READER = Reader(NAME, sniff, read, about="the binary log of a W&B run, run-ID.wandb")
