"""`poise formats`: what can be read."""

from __future__ import annotations

from collections.abc import Sequence

from poise.cli.arguments import Parser
from poise.cli.output import style_of
from poise.report.layout import wrap


def run(arguments: Sequence[str]) -> int:
    """List the formats with a sentence on each."""
    Parser("formats", "List the log formats that can be read. Content decides, not the file's name.").parse(arguments)
    from poise.readers import READERS

    width = max(len(reader.name) for reader in READERS)
    for reader in READERS:
        print("\n".join(wrap(reader.about or "", style_of().width, f"{reader.name:<{width}}  ", " " * (width + 2))))
    print("\nAll of them may be compressed with gzip, xz or bzip2, in UTF-8 or UTF-16, with LF, CRLF or CR line ends.")
    return 0
