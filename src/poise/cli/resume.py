"""`poise resume RUN`: let a paused run go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from poise.cli import USAGE
from poise.cli.arguments import Parser


def run(arguments: Sequence[str]) -> int:
    """Leave the decision in the run folder; exit code 3 if the run is not paused."""
    parser = Parser("resume", "Let a paused run go on.")
    parser.add_argument("run", type=Path, help="the run folder that the pause message names")
    options = parser.parse(arguments)
    from poise.live.actions.pause import decide

    try:
        print(decide(options.run, "resume"))
    except ValueError as error:
        print(f"poise resume: {error}", file=sys.stderr)
        return USAGE
    return 0
