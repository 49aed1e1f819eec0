"""The command line: `poise diagnose`, `follow`, `explain`, `formats`. Each command is one module, imported when it is named."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "diagnose": "say what went wrong in finished or running logs, since when, why, and what to change",
    "follow": "watch a log that is still growing and say each incident once",
    "explain": "show the quick table, or a symptom or cause with drawn examples",
    "resume": "let a run go on that Poise has paused",
    "stop": "stop a run that Poise has paused",
    "formats": "list the log formats that can be read",
}
USAGE, INTERRUPTED = 3, 130
_DEVICE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code.

    0 = no critical incident, 1 = a critical incident, 2 = some input could not be read, 3 = usage or internal error; the
    highest wins. 130 after Ctrl-C, as shells expect.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # started with stdout closed: the exit code is all that is wanted
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    _survive_odd_text()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        return _not_written(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("POISE_DEBUG"):
            raise
        print(f"poise: {internal(error)}", file=sys.stderr)
        return USAGE


def _not_written(error: OSError) -> int:
    """What to say where the output's device fails; any other such error is Poise's own."""
    if os.environ.get("POISE_DEBUG"):
        raise error
    full = error.filename is None and error.errno in _DEVICE
    text = f"the output cannot be written ({error.strerror}). Free some space or write elsewhere."
    print(f"poise: {text if full else internal(error)}", file=sys.stderr)
    _drop_output()
    return USAGE


def internal(error: BaseException) -> str:
    """One line for an error that is Poise's own fault."""
    text = " ".join(str(error).split())[:200]
    return (
        f"internal error ({type(error).__name__}: {text}). Please report it with the output of POISE_DEBUG=1 poise ..."
    )


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else USAGE
    if arguments[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"poise {version('poise')}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"poise: {_unknown(name)}", file=sys.stderr)
        return USAGE
    run = import_module(f"poise.cli.{name}").run
    code: int = run(rest)
    return code


def _help() -> str:
    lines = ["usage: poise COMMAND ...", "", "Keeps the training of large models steady.", ""]
    lines += [f"  {name:<10} {about}" for name, about in COMMANDS.items()]
    return "\n".join([*lines, "", "poise COMMAND --help tells the options of a command; poise --version the version."])


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if os.path.exists(name):
        return f"there is no command {name!r}, but a file of that name. Did you mean: poise diagnose {name}"
    nearest = get_close_matches(name, COMMANDS, 1, 0.5)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"There are {', '.join(COMMANDS)}."
    return f"there is no command {name!r}. {hint}"


def _survive_odd_text() -> None:
    """Let no character that the terminal cannot show end a report."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """The reader of our output has gone: write the rest of it nowhere, or the interpreter complains at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    finally:
        os.close(null)
