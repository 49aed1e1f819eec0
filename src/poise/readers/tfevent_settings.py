"""Settings that an event file carries beside its numbers: JSON texts (`args`) and the hparams plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from poise.readers import json_text, protobuf
from poise.readers.json_rows import merge_config
from poise.readers.protobuf import BYTES, EIGHT_BYTES, VARINT, MalformedError, fields

_LARGEST = 1 << 20


@dataclass(slots=True)
class Settings:
    """Collects settings into `config`, and who wrote them if they tell."""

    config: dict[str, Any]
    trainer: str | None = None

    def take(self, tag: str, data: bytes, start: int, end: int) -> None:
        """Look at one value that is no number; what is not understood is left."""
        try:
            if tag.startswith("_hparams_"):
                self.config.update(_hparams(data, start, end))
            elif tag.endswith("text_summary") and end - start < _LARGEST:
                self._text(tag, data, start, end)
        except MalformedError:
            return

    def _text(self, tag: str, data: bytes, start: int, end: int) -> None:
        for a, b in _inside(data, start, end, 8, 8):  # tensor.string_val
            try:
                value = json_text.loads(data[a:b])
            except ValueError:
                continue
            if isinstance(value, dict):
                prefix = "" if tag.startswith("args") else tag.split("/")[0] + "."
                merge_config(self.config, value, prefix)
                if {"per_device_train_batch_size", "output_dir"} <= value.keys():
                    self.trainer = "hf"


def _inside(data: bytes, start: int, end: int, *path: int) -> Iterator[tuple[int, int]]:
    """The spans of the fields that a path of field numbers leads to."""
    for number, wire, a, b in fields(data, start, end):
        if number == path[0] and wire == BYTES:
            if len(path) == 1:
                yield a, b
            else:
                yield from _inside(data, a, b, *path[1:])


def _hparams(data: bytes, start: int, end: int) -> dict[str, Any]:
    """The session's hyper-parameters: metadata.plugin_data.content.session_start_info.hparams, a map."""
    found: dict[str, Any] = {}
    for a, b in _inside(data, start, end, 9, 1, 2, 3, 1):
        name, value = "", None
        for number, wire, at, stop in fields(data, a, b):
            if number == 1 and wire == BYTES:
                name = protobuf.text(data, at, stop)
            elif number == 2 and wire == BYTES:
                value = _plain(data, at, stop)
        if name and value is not None:
            found[name.replace("/", ".")] = value
    return found


def _plain(data: bytes, start: int, end: int) -> bool | float | str | None:
    """A number, text or truth value of the JSON-like well-known type."""
    for number, wire, at, stop in fields(data, start, end):
        if number == 2 and wire == EIGHT_BYTES:
            return float(memoryview(data[at:stop]).cast("d")[0])
        if number == 3 and wire == BYTES:
            return protobuf.text(data, at, stop)
        if number == 4 and wire == VARINT:
            return data[at] != 0
    return None
