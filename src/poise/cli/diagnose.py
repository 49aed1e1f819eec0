"""`poise diagnose PATH...`: what went wrong in these logs, since when, why, and what to change."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from poise.cli.arguments import Parser, add_reading, mapping_of
from poise.cli.output import Progress, style_of
from poise.cli.work import Outcome, Wanted, outcomes
from poise.report.layout import wrap
from poise.report.wording import clean, phrase

MANY = 12  # more runs than this get one line each


def run(arguments: Sequence[str]) -> int:
    """Diagnose, write, and return the exit code of the worst."""
    parser = _parser()
    options = parser.parse(arguments)
    mapping = mapping_of(parser, options.map)
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs wants a number of processes, 1 or more, not {options.jobs}")
    if "" in options.paths:
        parser.error("a path is empty; a variable in the command line may be unset")
    paths, missing = _found(options.paths)
    if options.html and any(_same(path, Path(options.html)) for path in paths):
        parser.error(f"--html {options.html} would overwrite a log that is to be read; give the page another name")
    many = len(paths) > MANY
    wanted = Wanted(
        mapping,
        options.preset,
        options.lang,
        style_of(),
        many or (options.quiet and len(paths) > 1),
        options.quiet,
        options.json,
        bool(options.html),
    )
    results = _watched(paths, outcomes(paths, wanted, options.jobs))
    write = _write_json if options.json else _write_text
    done = write([*missing], results, wanted)
    code = max((outcome.code for outcome in done), default=2)
    return max(code, _write_page(options, done, wanted)) if options.html else code


def _parser() -> Parser:
    parser = Parser(
        "diagnose",
        "Say what went wrong in training logs: files of any format that `poise formats` lists, or folders with runs in them.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a log, a checkpoint folder, or a folder tree with runs in it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a report")
    parser.add_argument("--html", metavar="FILE", help="also write one self-contained page with plots of every signal")
    add_reading(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="processes for many files (default: one a core)")
    parser.add_argument("--quiet", action="store_true", help="only the verdict of each run")
    return parser


def _found(names: Sequence[str]) -> tuple[list[Path], list[Outcome]]:
    """The logs under the named paths, and an outcome for each path that has none."""
    from poise.readers import discover
    from poise.readers.base import UnreadableError

    paths: list[Path] = []
    missing: list[Outcome] = []
    for name in names:
        try:
            found = [Path(p) for p in discover([Path(name)])]
        except UnreadableError as error:
            missing.append(Outcome(name, (), str(error), 2))
            continue
        if not found:
            missing.append(
                Outcome(name, (), f"{name} holds no training log that can be recognised. Name the log file itself.", 2)
            )
        paths += found
    return list(dict.fromkeys(paths)), missing


def _same(log: Path, page: Path) -> bool:
    return log.exists() and page.exists() and log.samefile(page)


def _watched(paths: Sequence[Path], results: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes, with a line of progress on stderr meanwhile."""
    progress = Progress(len(paths))
    try:
        for outcome in results:
            progress.clear()
            yield outcome
            progress.advance(outcome.path)
    finally:
        progress.clear()


def _write_json(missing: list[Outcome], results: Iterable[Outcome], wanted: Wanted) -> list[Outcome]:
    from poise.report.as_json import document

    done = [*missing, *results]
    runs: list[dict[str, Any]] = [told.json for outcome in done for told in outcome.runs if told.json is not None]
    print(document(runs, [{"path": o.path, "error": o.error} for o in done if o.error]))
    return done


def _write_text(missing: list[Outcome], results: Iterable[Outcome], wanted: Wanted) -> list[Outcome]:
    done: list[Outcome] = []
    between = "\n" if wanted.line else "\n\n"
    for outcome in (*missing, *results):
        texts = [told.text for told in outcome.runs]
        if outcome.error:
            texts.append(_error(outcome, wanted))
        if texts:
            print((between if done and not wanted.line else "") + between.join(texts), flush=True)
        done.append(outcome)
    if len(done) > 1:
        print("\n" + _overview(done, wanted))
    return done


def _error(outcome: Outcome, wanted: Wanted) -> str:
    text = clean(outcome.error)
    lines = wrap(
        text if outcome.path in text else f"{outcome.path}: {text}",
        wanted.style.width,
        "✖ " if wanted.style.braille else "!! ",
        "  ",
    )
    return "\n".join(wanted.style.paint(line, "red") for line in lines)


def _overview(done: Sequence[Outcome], wanted: Wanted) -> str:
    levels = Counter(told.level for outcome in done for told in outcome.runs)
    counts = {
        "runs": levels.total(), "critical": levels["critical"], "warning": levels["warning"], "calm": levels["calm"] + levels["info"],
        "unjudged": levels["unjudged"], "errors": sum(1 for o in done if o.error),
    }  # fmt: skip
    lines = wrap(phrase("say", "overview", wanted.language, **counts), wanted.style.width)
    if wanted.line and not wanted.quiet:
        lines.append(phrase("say", "details", wanted.language))
    return "\n".join(lines)


def _write_page(options: Namespace, done: Sequence[Outcome], wanted: Wanted) -> int:
    from poise.report.html import page

    runs = [told.page for outcome in done for told in outcome.runs if told.page is not None]
    text = page(runs, [{"path": o.path, "error": o.error} for o in done if o.error], wanted.language)
    try:
        Path(options.html).write_text(text, encoding="utf-8")
    except OSError as error:
        print(
            f"poise diagnose: the page cannot be written to {options.html} ({error.strerror}). Give --html another path.",
            file=sys.stderr,
        )
        return 3
    print(phrase("say", "page-made", wanted.language, path=options.html), file=sys.stderr)
    return 0
