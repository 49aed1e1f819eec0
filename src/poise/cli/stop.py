"""`poise stop RUN`: stop a paused run; its state was saved before the pause."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from poise.cli import USAGE
from poise.cli.arguments import Parser


def run(arguments: Sequence[str]) -> int:
    """Leave the decision in the run folder; exit code 3 if the run is not paused."""
    parser = Parser("stop", "Stop a paused run; its state was saved before the pause.")
    parser.add_argument("run", type=Path, help="the run folder that the pause message names")
    options = parser.parse(arguments)
    from poise.live.actions.pause import decide

    try:
        print(decide(options.run, "stop"))
    except ValueError as error:
        print(f"poise stop: {error}", file=sys.stderr)
        return USAGE
    return 0
