"""What went wrong in so many words: tracebacks, lack of memory, signals, overflows of the loss scale."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from poise.readers.console.clean import plain

MARKS = re.compile(
    rb"Traceback \(most recent call last\)|[Oo]ut ?[Oo]f ?[Mm]emory|MemoryError|bad_alloc|oom[-_ ]?kill|OOM[ -]?[Kk]ill"
    rb"|\bKilled\b|killed by|DUE TO|SIG(?:TERM|KILL|SEGV|ABRT|BUS|FPE|INT)\b"
    rb"|[Ss]egmentation fault|core dumped|CANCELLED|NCCL (?:WARN|[Ee]rror)|ncclSystemError|[Ww]atchdog caught collective|collective operation timeout"
    rb"|scale already at minimum|[Mm]inimum loss scale reached|Aborted|CUDA error|device-side assert|\bexitcode\s*:|[Bb]us error"
    rb"|loss scal\w*[^\n]{0,60}(?:reducing|setting)|reducing loss scale|exited with exit code"
    rb"|(?m:^(?:\[rank\d*\]: ?)?[A-Za-z_][\w.]*(?:Error|Exception|Interrupt): )"
)  # fmt: skip
_QUOTED = re.compile(rb"\w\|\w[^\n]*\w\|\w|^\s*(?:grep|tail|cat|sed|awk)\s")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Failure|Aborted|NotFound"
    r"|OutOfMemory\w*))(?::\s*(?P<say>.*))?$"
)
_OVERFLOW = re.compile(r"(?:reducing(?: loss scale)? to|setting loss scale to:?)\s*([\d.]+(?:[eE][-+]?\d+)?)")
_MINIMUM = re.compile(r"scale already at minimum|[Mm]inimum loss scale reached")
_MEMORY = re.compile(
    r"out ?of ?memory|MemoryError|bad_alloc|oom[-_ ]?kill|OOM|Cannot allocate memory|DUE TO MEMORY", re.IGNORECASE
)
_KILLED_FOR_MEMORY = re.compile(r"oom[-_ ]?kill|Out of memory: Kill|DUE TO MEMORY|OUT_OF_MEMORY", re.IGNORECASE)
_CANCELLED = re.compile(r"CANCELLED|DUE TO (?:TIME|PREEMPTION|NODE)")
_SIGNAL = re.compile(r"\bSIG[A-Z]{3,4}\b|[Ss]egmentation fault|[Bb]us error|\bKilled\b|\bAborted\b")
_NAMED = {"segmentation fault": "SIGSEGV", "bus error": "SIGBUS", "killed": "SIGKILL", "aborted": "SIGABRT"}
_NCCL = re.compile(r"[Ww]atchdog caught collective|collective operation timeout|ncclSystemError|NCCL (?:WARN|[Ee]rror)")
_CUDA = re.compile(r"CUDA error: ?([^\n]{0,80})|device-side assert")
_PREFIX = re.compile(r"^(?:\[[^\]\n]{1,60}\]:?\s?|\([^)\n]{1,60}\)\s?|\d{1,4}: )+")
_KEPT_LINES = 20
_LONGEST_TRACE = 400
_MOST_EVENTS = 4_000
_WIDTH = 400


@dataclass(slots=True)
class Failure:
    """One failure: what it is called, its last lines, and where it stands in the file."""

    kind: str
    line: int
    type: str
    text: str
    oom: bool = False
    scale: float = float("nan")


@dataclass(slots=True)
class Failures:
    """Collects failures while blocks of lines pass by; a traceback may run over the end of a block."""

    found: list[Failure] = field(default_factory=list)
    _trace: dict[str, list[str]] = field(default_factory=dict)
    _start: dict[str, int] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def feed(self, block: bytes, line: int, shapes: bytes) -> None:
        """Look through a block whose first line has number `line`.

        Args:
            shapes: of its lines without numbers, each once; they tell cheaply whether there is anything to be found.
        """
        if not self._trace and MARKS.search(shapes) is None:
            return
        for i, raw in enumerate(plain(block, False).split(b"\n"), start=line):
            if self._trace or (MARKS.search(raw) and not _QUOTED.search(raw)):
                self._line(raw[: _WIDTH * 4].decode("utf-8", "replace").rstrip(), i)

    def finish(self) -> None:
        """End tracebacks that the file breaks off in."""
        for label in list(self._trace):
            self._close(label, "")

    def _line(self, text: str, i: int) -> None:
        prefix = _PREFIX.match(text)
        label = prefix.group() if prefix else ""
        said = text[len(label) :]
        if _TRACEBACK in said:
            self._close(label, "")
            self._trace[label] = [said[said.index(_TRACEBACK) :]]
            self._start[label] = i
        elif label in self._trace:
            self._inside(label, said, i)
        elif self._trace and "" in self._trace and not label:
            self._inside("", said, i)
        else:
            self._alone(said, i)

    def _inside(self, label: str, said: str, i: int) -> None:
        trace = self._trace[label]
        error = _ERROR.match(said)
        trace.append(said[:_WIDTH])
        if error or (
            said
            and not said[0].isspace()
            and re.match(r"[A-Za-z_][\w.]{2,80}(?::|$)", said)
            and len(trace) > 1
            and trace[-2][:1].isspace()
        ):
            self._close(label, said)
        elif len(trace) > _LONGEST_TRACE:
            self._close(label, "")

    def _close(self, label: str, last: str) -> None:
        trace = self._trace.pop(label, None)
        if trace is None:
            return
        start = self._start.pop(label)
        name = (_ERROR.match(last) or re.match(r"(?P<type>[\w.]+)", last)) if last else None
        kind = name["type"].rpartition(".")[2] if name else "Traceback"
        kind = "LossScaleExhausted" if _MINIMUM.search(last) else kind
        text = "\n".join(trace[-_KEPT_LINES:])
        self._add(Failure("exception", start, kind, text, _MEMORY.search(last) is not None))

    def _alone(self, said: str, i: int) -> None:
        overflow = _OVERFLOW.search(said)
        if overflow:
            self._add(Failure("overflow", i, "overflow", said[:_WIDTH], scale=float(overflow[1])))
        elif _MINIMUM.search(said):
            self._add(Failure("exception", i, "LossScaleExhausted", said[:_WIDTH]))
        elif (error := _ERROR.match(said)) and error["say"]:
            self._add(
                Failure(
                    "exception", i, error["type"].rpartition(".")[2], said[:_WIDTH], _MEMORY.search(said) is not None
                )
            )
        elif _KILLED_FOR_MEMORY.search(said) or (_MEMORY.search(said) and _harsh(said)):
            self._add(Failure("exception", i, "OutOfMemory", said[:_WIDTH], True))
        elif _NCCL.search(said):
            self._add(
                Failure(
                    "exception",
                    i,
                    "CollectiveTimeout" if "imeout" in said or "atchdog" in said else "NCCLError",
                    said[:_WIDTH],
                )
            )
        elif _CUDA.search(said):
            self._add(Failure("exception", i, "CUDAError", said[:_WIDTH], _MEMORY.search(said) is not None))
        elif _CANCELLED.search(said):
            self._add(Failure("signal", i, "CANCELLED", said[:_WIDTH]))
        elif (match := _SIGNAL.search(said)) and _harsh(said):
            self._add(Failure("signal", i, _NAMED.get(match.group().lower(), match.group()), said[:_WIDTH]))

    def _add(self, failure: Failure) -> None:
        last = self.found[-1] if self.found else None
        if failure.kind == "overflow":
            new = last is None or (last.kind, last.scale) != ("overflow", failure.scale) or failure.line > last.line + 8
            if new and len(self.found) < _MOST_EVENTS:
                self.found.append(failure)
            return
        key = (failure.kind, failure.type)
        near = last is not None and key in self._seen and failure.line <= last.line + 2 * _LONGEST_TRACE
        self._seen.add(key)
        if not near and len(self.found) < _MOST_EVENTS:
            self.found.append(failure)


def _harsh(said: str) -> bool:
    """Whether a word of dying stands in a message of the system and not in a sentence about it."""
    return re.search(
        r"kill|slurm|oom|srun|torchrun|signal|received|dumped|terminat|\d|^\s*\w+\s*$|error|CUDA|exit",
        said,
        re.IGNORECASE,
    ) is not None and not re.search(r"\b(?:if|avoid|may|might|could|try|set|prevent|when)\b", said)


def event_data(failure: Failure, survived: bool) -> dict[str, Any]:
    """What the event says of a failure."""
    if failure.kind == "overflow":
        return {"loss_scale": failure.scale, "line": failure.line}
    if failure.kind == "signal":
        data: dict[str, Any] = {"name": failure.type, "text": failure.text, "line": failure.line}
    else:
        data = {"type": failure.type, "text": failure.text, "oom": failure.oom, "line": failure.line}
    return {**data, "survived": True} if survived else data
