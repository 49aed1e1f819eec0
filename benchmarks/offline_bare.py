"""What merely parsing a log costs: `offline.py` runs these as processes of their own. Usage: offline_bare.py FORMAT FILE."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator


def csv(path: str) -> int:
    """Parse a table with pyarrow."""
    from pyarrow import csv

    return int(csv.read_csv(path).num_rows)


def jsonl(path: str) -> int:
    """Decode line by line with orjson."""
    import orjson

    with open(path, "rb") as file:
        return sum(1 for line in file if orjson.loads(line))


def trainer_state(path: str) -> int:
    """Decode the whole document with orjson."""
    import orjson

    with open(path, "rb") as file:
        return len(orjson.loads(file.read())["log_history"])


def console(path: str) -> int:
    """Find every line with one compiled expression."""
    number = r"([-+.\deE]+)"
    line = re.compile(
        rf"step:(\d+) loss:{number} grad_norm: {number} lr: {number} tokens/s: {number}",
    )
    with open(path) as file:
        return sum(1 for match in line.finditer(file.read()) if match.groups())


def tfevents(path: str) -> int:
    """Walk records and their protocol buffers."""
    with open(path, "rb") as file:
        data = file.read()
    at = count = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        count += sum(_numbers(data, at + 12, at + 12 + length))
        at += length + 16
    return count


def _numbers(data: bytes, at: int, end: int) -> Iterator[int]:
    """One for each simple value in a message; goes into the summary and its values."""
    stack = [(at, end)]
    while stack:
        at, end = stack.pop()
        while at < end:
            key = data[at]
            at += 1
            if key & 7 == 0:
                while data[at] > 127:
                    at += 1
                at += 1
            elif key & 7 == 1:
                at += 8
            elif key & 7 == 5:
                struct.unpack_from("<f", data, at)
                yield 1
                at += 4
            else:
                length = shift = 0
                while True:
                    byte = data[at]
                    at += 1
                    length |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
                if key == 0x2A or (key == 0x0A and data[at] == 0x0A):
                    stack.append((at, at + length))
                at += length


if __name__ == "__main__":
    print(globals()[sys.argv[1]](sys.argv[2]))
