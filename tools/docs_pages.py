"""Pages of the documentation that are made from the code, so that they cannot go stale: symptoms, causes, formats."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from poise.causes import CAUSES, NAMES
from poise.detectors import ALL
from poise.explain import explain, quick_table
from poise.messages import render
from poise.readers import READERS
from poise.records import Message
from poise.signals import KINDS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs when it has listed docs/: adds the generated pages."""
    for name, text in (("symptoms.md", symptoms()), ("causes.md", causes()), ("formats.md", formats())):
        files.append(File.generated(config, name, content=text))
    return files


def symptoms() -> str:
    """The quick table, then each symptom: seen by a detector, or named for the parts to come."""
    seen = {kind for detector in ALL for kind in detector.kinds}
    parts = [
        "# Symptoms",
        "What can be *seen*. The same pages in a terminal: `poise explain NAME`.",
        fenced(quick_table()),
    ]
    for kind in (k for k in KINDS if k in seen):
        parts += [f"## {kind}", sentence("kind", kind), fenced(explain(kind))]
    parts += [
        "## Named, not yet seen",
        "These need signals that no log carries, or a detector that is not written yet.",
    ]
    return "\n\n".join([*parts, listed("kind", (k for k in KINDS if k not in seen))])


def causes() -> str:
    """Each cause that a log alone can support, then the others."""
    functions = {cause.__name__.replace("_", "-"): cause for cause in CAUSES}
    parts = [
        "# Causes",
        "What can be *wrong*. A cause is named with its evidence and a score that compares only within one incident.",
    ]
    for name in (n for n in NAMES if n in functions):
        parts += [f"## {name}", sentence("cause", name), inspect.getdoc(functions[name]) or ""]
    parts += [
        "## Named, not yet supported",
        "No log alone can speak for these; they wait for live signals or data checks.",
    ]
    return "\n\n".join([*parts, listed("cause", (n for n in NAMES if n not in functions))])


def formats() -> str:
    """What the readers say of themselves."""
    rows = "\n".join(f"| `{reader.name}` | {reader.about} |" for reader in READERS)
    return f"""# Formats

Recognised by content, not by name; `poise formats` prints this list. Each may be compressed (gzip, xz, bzip2), in UTF-8
or UTF-16, with LF, CRLF or CR line ends, with ANSI colours, torn at the end.

| format | what is read |
|---|---|
{rows}

Which of the log's names became which signal is shown in every report. A name that cannot be guessed is given by hand:
`poise diagnose run.csv --map loss=train/ce`.
"""


def listed(group: str, names: Iterable[str]) -> str:
    """Names with their sentence, as a list."""
    return "\n".join(f"- **{name}**: {sentence(group, name)}" for name in names)


def sentence(group: str, name: str) -> str:
    """What a symptom or cause is, in a sentence."""
    return render(Message(f"explain.{group}.{name}"))


def fenced(text: str) -> str:
    """Text as it looks in a terminal."""
    return f"```text\n{text}\n```"
