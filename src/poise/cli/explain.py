"""`poise explain`: the quick table, or the page of a symptom or cause."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from poise.cli import USAGE
from poise.cli.arguments import LANGUAGES, Parser


def run(arguments: Sequence[str]) -> int:
    """Print the page; an unknown name gets the nearest ones and exit code 3."""
    parser = Parser(
        "explain", "Show the quick table (symptom, causes, treatment), or one symptom or cause with drawn examples."
    )
    parser.add_argument("name", nargs="?", help="a symptom (divergence) or a cause (bad-data-burst)")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language (default: en)")
    options = parser.parse(arguments)
    from poise.explain import UnknownNameError, explain

    try:
        print(explain(options.name, options.lang))
    except UnknownNameError as error:
        print(f"poise explain: {error}", file=sys.stderr)
        return USAGE
    return 0
