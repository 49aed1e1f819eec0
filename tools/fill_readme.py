"""Fill the tables of README.md that come from measurements, from the JSON files in docs/figures/.

    python tools/fill_readme.py            # rewrite the blocks
    python tools/fill_readme.py --check    # exit 1 if a block is not what the figures say

docs/figures/offline.json is the last line of `benchmarks/offline.py --json`, with "date" added.
docs/figures/real_logs.json is {"date", "faults", "right_kind", "right_onset", "onset_of", "healthy", "false_alarms",
"benign_critical", "unread"}, the totals over the collection of real logs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Figures = Mapping[str, Any]

CATCHES = (
    ("faults named with the right symptom", "{right_kind} of {faults}"),
    ("onset found where it is known", "{right_onset} of {onset_of}"),
    ("false alarms (warning or worse) on healthy runs", "{false_alarms} of {healthy}"),
    ("benign events called critical", "{benign_critical}"),
    ("logs that could not be read", "{unread}"),
)
COSTS = (
    ("CSV, CPU against merely parsing it", "{csv:.1f}x"),
    ("JSONL", "{jsonl:.1f}x"),
    ("`trainer_state.json`", "{trainer_state:.1f}x"),
    ("console text", "{console:.1f}x"),
    ("TensorBoard event files", "{tfevents:.1f}x"),
    ("peak memory against the columns alone", "{memory_ratio:.1f}x"),
    ("a 1,000-row log, whole process", "{startup_s:.2f} s"),
)


def catches(figures: Figures) -> str:
    """What it catches, on real logs."""
    total = figures["faults"] + figures["healthy"]
    return _table(f"on {total} real public logs ({figures['date']})", CATCHES, figures)


def costs(figures: Figures) -> str:
    """What it costs, on logs of a million rows."""
    return _table(f"1,000,000 rows, 4 signals ({figures['date']})", COSTS, figures)


BLOCKS: dict[str, tuple[str, Callable[[Figures], str]]] = {
    "catches": ("real_logs.json", catches),
    "costs": ("offline.json", costs),
}


def _table(title: str, rows: tuple[tuple[str, str], ...], figures: Figures) -> str:
    lines = [f"| {title} | |", "|---|---|", *(f"| {what} | {text.format_map(figures)} |" for what, text in rows)]
    return "\n".join(lines)


def filled(readme: str, folder: Path) -> str:
    """The README with each block replaced by what the figures in `folder` say."""
    for name, (file, write) in BLOCKS.items():
        path = folder / file
        text = write(json.loads(path.read_text())) if path.exists() else f"*Not measured yet: no docs/figures/{file}.*"
        start, end = f"<!-- figures:{name} -->", f"<!-- end of figures:{name} -->"
        readme, count = re.subn(
            f"{start}.*?{end}", lambda _, t=text, s=start, e=end: f"{s}\n{t}\n{e}", readme, flags=re.DOTALL
        )
        if count != 1:
            sys.exit(
                f"README.md must have one block {start} ... {end}; it has {count}. Put the two comment lines back."
            )
    return readme


def main() -> None:
    """Rewrite or check."""
    parser = argparse.ArgumentParser(description="Fill README.md from docs/figures/.")
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    path = ROOT / "README.md"
    text = filled(path.read_text(), ROOT / "docs" / "figures")
    if check and text != path.read_text():
        sys.exit("README.md is not what docs/figures/ says; run `make figures`.")
    if not check:
        path.write_text(text)


if __name__ == "__main__":
    main()
