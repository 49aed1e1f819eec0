"""Arguments that several commands share, and usage errors as one clear sentence with the nearest right word."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn

from poise.cli import USAGE
from poise.offline import PRESETS
from poise.signals import SIGNALS

LANGUAGES = ("en", "zh")


class UsageError(SystemExit):
    """The command line makes no sense; its message has been printed."""

    def __init__(self) -> None:
        super().__init__(USAGE)


class Parser(argparse.ArgumentParser):
    """An argument parser that ends with exit code 3 and suggests the nearest option."""

    def __init__(self, command: str, about: str) -> None:
        super().__init__(prog=f"poise {command}", description=about, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print one sentence and end."""
        print(f"{self.prog}: {message[:1].lower()}{message[1:].rstrip('.')}. See {self.prog} --help.", file=sys.stderr)
        raise UsageError

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse, and suggest the nearest option for one that does not exist."""
        known, unknown = self.parse_known_args(arguments)
        if unknown:
            options = [o for action in self._actions for o in action.option_strings]
            wrong = next((u for u in unknown if u.startswith("-")), unknown[0])
            nearest = difflib.get_close_matches(wrong.partition("=")[0], options, 1, 0.5)
            self.error(f"there is no option {wrong}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
        return known


def add_reading(parser: Parser) -> None:
    """Options on how a log is read and judged."""
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="SIGNAL=NAME",
        help="say which of the log's names a signal is, for example loss=train/ce; may be given several times",
    )
    parser.add_argument("--preset", choices=PRESETS, help="which rules judge the run (default: what fits the log)")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the report (default: en)")


def mapping_of(parser: Parser, pairs: Sequence[str]) -> dict[str, str]:
    """`["loss=train/ce"]` as a dict; ends with a usage error where a pair is malformed or its signal unknown."""
    mapping: dict[str, str] = {}
    for pair in pairs:
        signal, equals, name = pair.partition("=")
        if not equals or not name or not signal:
            parser.error(f"--map wants SIGNAL=NAME, for example loss=train/ce, not {pair!r}")
        known = [s.name for s in SIGNALS if s.name != "other"] + ["step"]
        if signal.partition("/")[0] not in known:
            nearest = difflib.get_close_matches(signal, known, 1, 0.5)
            swapped = name if name in known else None
            hint = (
                f"did you mean {swapped}={signal}?"
                if swapped
                else f"did you mean {nearest[0]}?"
                if nearest
                else "for example loss, eval_loss, grad_norm, learning_rate, step"
            )
            parser.error(f"--map knows no signal {signal!r}; {hint}")
        mapping[signal] = name
    return mapping
