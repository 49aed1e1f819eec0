"""Which files of a folder tree are worth opening, and which of those are logs rather than data or settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from poise.readers import json_text, source, table_layout
from poise.readers.columns import number
from poise.readers.naming import recognise

_SUFFIXES = """
.py .pyi .pyc .ipynb .c .cc .cpp .cu .cuh .h .hpp .rs .go .java .js .mjs .ts .tsx .jsx .css .scss .html
.htm .xml .svg .sh .bash .bat .ps1 .mk .cmake .proto .rst .tex .bib .yaml .yml .toml .cfg .ini .conf
.lock .env .png .jpg .jpeg .gif .webp .bmp .ico .tif .tiff .pdf .ps .eps .mp3 .mp4 .wav .flac .ogg .avi
.mov .webm .pt .pth .bin .ckpt .safetensors .onnx .pb .tflite .h5 .hdf5 .keras .gguf .ggml .msgpack .npy
.npz .pkl .pickle .joblib .mat .parquet .arrow .feather .zip .tar .tgz .7z .rar .zst .whl .so .o .a .dll
.exe .dylib .db .sqlite .sqlite3 .lmdb .mdb .idx .ttf .woff .woff2 .map .model .vocab .spm .diff .patch
.pid .orig .rej .swp
"""
_NO_LOGS = frozenset(_SUFFIXES.split())
_NO_LOG_NAMES = re.compile(
    r"(?:readme|license|licence|changelog|changes|contributing|authors|notice|makefile|dockerfile|requirements|constraints|cmakelists|manifest|merges|vocab"
    r"|classes|labels|special_tokens_map|added_tokens|tokenizer|tokenizer_config|package|package-lock|tsconfig|composer|setup|config|adapter_config"
    r"|generation_config|preprocessor_config|hparams|args|training_args|ds_config|deepspeed_config|run_config|opt|params|metadata|wandb-metadata"
    r"|debug|debug-internal|debug-core|[a-z_]+-debug|all_results|train_results|eval_results|test_results|.*\.index)(?:[-_.]\w{0,12})?",
    re.IGNORECASE,
)
_PACKED = (".gz", ".xz", ".bz2")
_LOGS = re.compile(r"(?:\.(?:log|out|err|jsonl|ndjson|csv|tsv|wandb)(?:\.\w{1,4})?$)|tfevents", re.IGNORECASE)
_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages", "venv", "virtualenv"})
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
_SURE = 0.95
_RECORDS = 0.6  # how sure the console reader is of a text with records of a training
_NOT_JUDGED = ("", "other", "epoch", "time", "batch_size", "batch_tokens", "tokens")


def is_worth_opening(path: Path) -> bool:
    """Whether a name does not already say that this is something else: code, settings, weights, pictures."""
    name = path.name
    for packed in _PACKED:
        name = name.removesuffix(packed)
    if name.startswith("."):
        return False
    bare = Path(name)
    suffix = bare.suffix.lower()
    if suffix == ".log" and not bare.stem.startswith("debug"):
        return True
    return suffix not in _NO_LOGS and not _NO_LOG_NAMES.fullmatch(bare.stem)


def looks_like_log(path: Path) -> bool:
    """Whether a name promises a log, so that not being able to read it is worth telling."""
    return _LOGS.search(path.name) is not None


def is_worth_entering(folder: Path) -> bool:
    """Whether runs may lie in a folder: hidden ones, environments and installed packages hold none."""
    if folder.name.startswith(".") or folder.name in _FOLDERS:
        return False
    return not any((folder / mark).exists() for mark in _ENVIRONMENT)


def is_log(reader: str, sure: float, head: bytes) -> bool:
    """Whether content found in a tree is the course of a training: several records of a signal."""
    if sure >= _SURE:
        return True
    if reader == "console":
        return sure >= _RECORDS
    if reader == "csv":
        return _is_table_of_signals(head)
    return _are_records_of_signals(head)


def _is_table_of_signals(head: bytes) -> bool:
    layout = table_layout.layout(source.decode(head))
    if layout is None or layout.headless or head.count(b"\n") + head.count(b"\r") < 2:
        return False
    return _tells(layout.names)


def _are_records_of_signals(head: bytes) -> bool:
    """Several objects with a signal in each, or one object with a list of numbers for a signal."""
    rows = json_text.first_objects(head)
    telling = [row for row in rows if _tells(_numeric(row))]
    if len(telling) > 1:
        return True
    lists = [key for row in rows for key, value in row.items() if isinstance(value, list) and len(value) > 2]
    return len(rows) == 1 and _tells(lists)


def _numeric(row: Mapping[str, Any]) -> Iterable[str]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from (f"{key}/{inner}" for inner in _numeric(value))
        elif not isinstance(value, bool) and number(value) is not None:
            yield key


def _tells(names: Iterable[str]) -> bool:
    """Whether one of these names is that of a signal which is judged."""
    return any((meaning := recognise(name)) is not None and meaning.signal not in _NOT_JUDGED for name in names)
