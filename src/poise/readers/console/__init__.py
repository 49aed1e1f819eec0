"""Any console text of a training: HF dicts, Megatron, DeepSpeed, nanoGPT, bars of Lightning and Keras, tables, `key: value`.

The machinery is loaded only when a file may be console text: it is half of what reading would otherwise import.
"""

from __future__ import annotations

from pathlib import Path

from poise.readers.base import RawRun, Reader


def sniff(head: bytes, path: Path) -> float:
    """How sure one can be that these first bytes are console text of a training, see `sniffing.py`."""
    from poise.readers.console.sniffing import sniff as sniff_text

    return sniff_text(head, path)


def read(path: Path) -> list[RawRun]:
    """Read a console text as one run, see `whole.py`.

    Raises:
        UnreadableError: there are neither numbers of a training nor a failure in it.
    """
    from poise.readers.console.whole import read as read_whole

    return read_whole(path)


READER = Reader("console", sniff, read, "any console text: dicts, key-value lines, bars, tables, tracebacks")
