"""Where output goes: data to stdout in the terminal's width and colours, progress to stderr."""

from __future__ import annotations

import os
import shutil
import sys

from poise.report.layout import Style

WIDEST = 120  # longer lines are hard to read
NARROWEST = 24


def style_of() -> Style:
    """How stdout may be written to: its width, whether it shows colours and braille."""
    columns = shutil.get_terminal_size((100, 24)).columns
    tty = sys.stdout.isatty()
    coloured = tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(coloured, max(NARROWEST, min(columns, WIDEST)), _shows("⠿│→"))


def _shows(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Progress:
    """A line on stderr that says how far a long job is; silent where stderr is no terminal."""

    def __init__(self, total: int) -> None:
        """Count towards `total`."""
        self.total, self.done = total, 0
        self.shown = sys.stderr.isatty() and total > 1

    def advance(self, name: str) -> None:
        """One more is done."""
        self.done += 1
        if not self.shown:
            return
        width = shutil.get_terminal_size((80, 24)).columns
        filled = 20 * self.done // max(self.total, 1)
        line = f"[{'#' * filled}{'.' * (20 - filled)}] {self.done}/{self.total} {name}"
        print(f"\r\x1b[K{line[: width - 1]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away, so that other output does not mix with it."""
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
