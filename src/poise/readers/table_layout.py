"""How a table is laid out: its delimiter, its header, its decimal sign, and who writes such headers."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from poise.readers.columns import from_text
from poise.readers.json_rows import merge_config

DELIMITERS = (",", "\t", ";", "|")
SAMPLE = 24
PREAMBLE = 6
"""Lines of other text that may stand above a table."""
_SEPARATOR = re.compile(r"^[\s|:+=-]+$")
_DECIMAL_COMMA = re.compile(r"^\s*[+-]?\d+,\d+(e[+-]?\d+)?\s*$", re.IGNORECASE)
_TRAINERS: tuple[tuple[str, str | None, frozenset[str]], ...] = (
    ("openai-logger-csv", "sb3", frozenset({"time/total_timesteps"})),
    ("openai-logger-csv", "sb3", frozenset({"time/time_elapsed", "time/iterations"})),
    ("openai-logger-csv", "sb3", frozenset({"train/n_updates"})),
    ("openai-logger-csv", "baselines", frozenset({"eprewmean"})),
    ("openai-logger-csv", "baselines", frozenset({"misc/total_timesteps"})),
    ("openai-logger-csv", "baselines", frozenset({"EpRewMean"})),
    ("openai-logger-csv", "baselines", frozenset({"AverageEpRet", "Epoch"})),
    ("rllib-csv", "rllib", frozenset({"training_iteration", "timesteps_total"})),
    ("rllib-csv", "rllib", frozenset({"training_iteration", "trial_id"})),
)


@dataclass(slots=True)
class Layout:
    """What must be known of a table before its rows are read.

    Args:
        delimiter: one character, or a blank for columns parted by any white space.
        names: the columns.
        skip: lines before the first row.
        regular: share of the first rows that are as wide as the first.
        config: settings stated in comment lines above the table.
        headless: whether the names are made up.
        decimal_comma: whether 0,5 is a half.
        preamble: whether other lines stand above the table.
    """

    delimiter: str
    names: list[str]
    skip: int
    regular: float = 1.0
    config: dict[str, Any] = field(default_factory=dict)
    headless: bool = False
    decimal_comma: bool = False
    preamble: bool = False


def cells_of(line: str, delimiter: str) -> list[str]:
    """The stripped cells of one line; a line that opens and closes with `|` has none outside."""
    if delimiter == " ":
        return line.split()
    if delimiter == "|":
        line = line.strip()
        line = line.removeprefix("|")
        line = line.removesuffix("|")
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
    except (csv.Error, StopIteration):
        return [cell.strip() for cell in line.split(delimiter)]


def layout(text: str) -> Layout | None:
    """Find out the layout of a table from its first lines; None if these are no table of numbers."""
    config: dict[str, Any] = {}
    lines = text.split("\n")[: SAMPLE * 4]
    skip, forced, commented = 0, "", ""
    for line in lines:
        if line.lower().startswith("sep=") and len(line.strip()) == 5:
            forced = line.strip()[-1]
        elif line.startswith("#"):
            commented = line if not _comment_config(line, config) else commented
        elif line.strip() and not _SEPARATOR.match(line):
            break
        skip += 1
    body = [line for line in lines[skip : skip + SAMPLE] if line.strip()]
    if not body or body[0].lstrip()[:1] in ("{", "["):
        return None
    for start in range(min(PREAMBLE, len(body))):
        found = _best(body[start:], forced, "" if start else commented)
        if found and (not start or (found.delimiter != " " and not found.headless and found.regular > 0.9)):
            found.skip += lines.index(body[start])
            found.config = config
            found.preamble = start > 0
            return found
    return None


def _best(body: Sequence[str], forced: str, commented: str) -> Layout | None:
    """The layout with the delimiter that fits most rows."""
    delimiters = [forced] if forced else [*DELIMITERS, " "]
    options = [_with_delimiter(body, delimiter, commented) for delimiter in delimiters]
    return max((option for option in options if option), key=lambda option: option.regular, default=None)


def _with_delimiter(body: Sequence[str], delimiter: str, commented: str) -> Layout | None:
    cells = [cells_of(line, delimiter) for line in body if not _SEPARATOR.match(line)]
    width, share = Counter(map(len, cells)).most_common(1)[0]
    comma = delimiter in (";", "\t", "|", " ") and _has_decimal_commas(cells)
    regular = sum(len(row) == len(cells[0]) for row in cells) / len(cells)
    if _is_header(cells[0]):
        fits = _fits_header(cells[0], cells[1:], delimiter, comma)
        return Layout(delimiter, unique(cells[0]), 1, regular, decimal_comma=comma) if fits else None
    if delimiter == "|" or width < 2 or 2 * share < len(cells) or not _numeric(cells, comma, 0.7):
        return None
    if delimiter == " " and not _all_numbers(cells, width):
        return None
    stated = cells_of(commented.lstrip("# "), delimiter) if commented else []
    if len(stated) == width and _is_header(stated):
        return Layout(delimiter, unique(stated), 0, regular, decimal_comma=comma)
    return Layout(delimiter, [f"c{i}" for i in range(width)], 0, regular, headless=True, decimal_comma=comma)


def _fits_header(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, comma: bool) -> bool:
    """Whether rows look like those of a table with this header."""
    if len(header) == 1:  # one column: no delimiter confirms the table, so its rows must be beyond doubt
        return delimiter == "," and len(header[0].split()) <= 3 and _all_numbers(rows, 1)
    if delimiter == " ":
        return len(rows) > 1 and all(len(row) == len(header) for row in rows) and _numeric(rows, comma, 0.5)
    parted = sum(len(row) > 1 for row in rows)
    return not rows or (2 * parted >= len(rows) and _numeric(rows, comma, 0.25))


def _all_numbers(rows: Sequence[Sequence[str]], width: int) -> bool:
    return len(rows) > 1 and all(len(row) == width and None not in map(from_text, row) for row in rows)


def _is_header(cells: Sequence[str]) -> bool:
    """Whether cells are names: none is a number (a name may be empty), and they are short."""
    named = [cell for cell in cells if cell]
    numbers = sum(from_text(cell) is not None or bool(_DECIMAL_COMMA.match(cell)) for cell in named)
    words = sum(any(c.isalpha() for c in cell) for cell in named)
    return bool(named) and numbers <= len(named) // 4 and 2 * words > len(named) and max(map(len, named)) <= 300


def _numeric(rows: Sequence[Sequence[str]], comma: bool, share: float) -> bool:
    """Whether at least a share of the cells that are not empty are numbers."""
    filled = [cell for row in rows for cell in row if cell]
    numbers = sum(from_text(cell.replace(",", ".") if comma else cell) is not None for cell in filled)
    return bool(filled) and numbers >= share * len(filled)


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    filled = [cell for row in rows for cell in row]
    return any(map(_DECIMAL_COMMA.match, filled)) and not any(re.fullmatch(r"\s*[+-]?\d+\.\d+\s*", c) for c in filled)


def _comment_config(line: str, config: dict[str, Any]) -> bool:
    """Take the settings of a comment such as SB3's `#{"t_start": ..., "env_id": ...}`."""
    try:
        settings = orjson.loads(line.lstrip("# "))
    except ValueError:
        return False
    if isinstance(settings, dict):
        merge_config(config, settings)
    return True


def unique(cells: Sequence[str]) -> list[str]:
    """Column names: an empty one is called after its place, a repeated one is numbered."""
    names: list[str] = []
    for i, cell in enumerate(cells):
        name = cell or f"c{i}"
        names.append(name if name not in names else f"{name}.{i}")
    return names


def writer(names: Sequence[str]) -> tuple[str, str | None]:
    """Format and trainer of a table with these columns."""
    known = set(names)
    if any(name.endswith(("__MIN", "__MAX")) for name in names):
        return "wandb-csv-export", None
    if len(names) > 1 and all(" - " in name for name in names[1:]) and " - " not in names[0]:
        return "wandb-csv-export", None
    for format_, trainer, needs in _TRAINERS:
        if needs <= known:
            return format_, trainer
    if any(name.startswith("metrics/") for name in names) and any(name.startswith("train/") for name in names):
        return "yolo-csv", "ultralytics"
    if {"epoch", "step"} <= known and any(name.endswith(("_step", "_epoch")) for name in names):
        return "lightning-csv", "lightning"
    if _is_keras(known):
        return "keras-csv", "keras"
    return "csv", None


def _is_keras(known: set[str]) -> bool:
    """Keras writes each metric once bare and once as `val_`, at each epoch."""
    held_out = {name for name in known if name.startswith("val_")}
    rest = known - held_out - {"epoch", "lr", "learning_rate"}
    return bool(held_out) and "loss" in rest and {name[4:] for name in held_out} == rest
