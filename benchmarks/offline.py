"""What a diagnosis costs beside merely parsing the log: whole processes, imports included, as ratios of CPU time.

    python benchmarks/offline.py [--quick] [--json]

A log of 1,000,000 rows with 4 signals (100,000 with --quick) is diagnosed with `poise diagnose --json` and parsed by the
bare parser of its format, in turn, three times; the ratio is that of the median CPU times (user + system). For CSV, whose
bare parser is compiled, the denominator is at least 0.6 s, so that a ratio of 3 means 1.8 s. `memory_ratio` is the worst
(peak - 60 MB) / (16 bytes per point). `startup_s` is the CPU time for a log of 1,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import offline_logs

HERE = Path(__file__).parent
BASE_BYTES = 60e6
LEAST_CSV_SECONDS = 0.6
HEAVY = ("torch", "pandas", "scipy.stats")
TREE_LOGS = 1000
CLI = "import sys; from poise.cli import main; sys.exit(main())"
SPY = CLI.replace(
    "sys.exit(main())", f"code = main(); print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process used.

    Args:
        cpu, wall: seconds; cpu with all its children.
        peak: bytes of memory, of the largest process.
    """

    cpu: float
    wall: float
    peak: float


def run(*command: str) -> Cost:
    """Run Python with some arguments, to its end, without its output."""
    began = time.perf_counter()
    with open(os.devnull, "wb") as nowhere, tempfile.TemporaryFile() as errors:
        files = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
        child = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ, file_actions=files)
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {code}:\n{said}")
    if "[" in said and "sys.modules" in command[1] and "[]" not in said:
        raise SystemExit(f"a diagnosis imports {said.strip()}, which no log needs")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss * 1024.0)


def diagnose(*paths: Path) -> Cost:
    """The cost of `poise diagnose --json`."""
    return run("-c", CLI, "diagnose", "--json", *map(str, paths))


def compare(form: str, path: Path, repeats: int) -> tuple[float, float, float]:
    """CPU seconds of Poise and of the bare parser, and Poise's peak memory in bytes; medians of interleaved runs."""
    ours, bare = [], []
    for _ in range(repeats):
        ours.append(diagnose(path))
        bare.append(run(str(HERE / "offline_bare.py"), form, str(path)))
    cpu = statistics.median(cost.cpu for cost in ours)
    return cpu, statistics.median(cost.cpu for cost in bare), statistics.median(cost.peak for cost in ours)


def measure(folder: Path, rows: int, repeats: int) -> tuple[dict[str, float], list[str]]:
    """The figures of the last line, and lines for people."""
    figures: dict[str, float] = {}
    lines, memory = [], []
    for form in offline_logs.FORMATS:
        path = offline_logs.write(folder, form, rows)
        cpu, bare, peak = compare(form, path, repeats)
        least = max(bare, LEAST_CSV_SECONDS) if form == "csv" else bare
        figures[form] = round(cpu / least, 3)
        memory.append((peak - BASE_BYTES) / (16.0 * rows * len(offline_logs.SIGNALS)))
        few = diagnose(offline_logs.write(folder, form, rows // 10)).cpu
        lines.append(
            f"{form:14} {cpu:6.2f} s  bare {bare:6.2f} s  ratio {figures[form]:6.2f}  peak {peak / 1e6:5.0f} MB"
            f"  x10 rows = x{cpu / few:.1f} CPU"
        )
        path.unlink()
    figures["memory_ratio"] = round(max(memory), 3)
    small = offline_logs.write(folder, "jsonl", 1000)
    run("-c", SPY, "diagnose", "--json", str(small))
    figures["startup_s"] = round(statistics.median(diagnose(small).cpu for _ in range(2 * repeats - 1)), 3)
    return figures, lines


def tree(folder: Path) -> str:
    """A tree of small logs: how many cores it keeps busy."""
    for i in range(TREE_LOGS):
        place = folder / "tree" / f"run{i:04}"
        place.mkdir(parents=True)
        offline_logs.write(place, "jsonl", 200, seed=i)
    cost = diagnose(folder / "tree")
    share = cost.cpu / cost.wall
    return (
        f"{TREE_LOGS} logs of 200 rows: {cost.wall:.1f} s, {cost.cpu:.1f} s CPU, {share:.2f} of {os.cpu_count()} cores"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once, and no tree")
    parser.add_argument("--json", action="store_true", help="nothing but one line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures, lines = measure(Path(name), 100_000 if options.quick else 1_000_000, 1 if options.quick else 3)
        lines += [] if options.quick or options.json else [tree(Path(name))]
    if not options.json:
        print("\n".join(lines))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
