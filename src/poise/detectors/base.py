"""The detector contract. A detector is a dataclass: constructor arguments are its configuration, other fields its state.

It has one verb, `update(frame)`, and its result must not depend on how the stream is cut into frames, so it is causal: what
it says at a row follows from that row and those before it. State is made of numbers, strings, lists, dicts, arrays and
dataclasses of these, so that `stats.state` can carry it through JSON.

A detector's file documents itself: the class docstring says what is seen, how, `Blind to:` and `Delay:`, with references;
`fires_on` and `quiet_on` are drawn by `poise explain`, and run as tests for every detector in `detectors.ALL`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from poise.records import Frame, Verdict


@dataclass(frozen=True, slots=True)
class Example:
    """A small stream that a detector must fire on, or must stay quiet on.

    Args:
        title: a phrase that completes "fires on ..." or "is quiet on ...".
        make: builds the stream, deterministically.
        kind: the finding's kind; any other kind of this detector is an error. None for quiet examples.
        onset: the right onset step, within `tolerance`.
    """

    title: str
    make: Callable[[], Frame]
    kind: str | None = None
    onset: int | None = None
    tolerance: int = 3


class Detector(Protocol):
    """What the Watch expects of each detector."""

    kinds: ClassVar[tuple[str, ...]]
    fires_on: ClassVar[tuple[Example, ...]]
    quiet_on: ClassVar[tuple[Example, ...]]

    def update(self, frame: Frame) -> Verdict:
        """Judge the next stretch of the stream."""
        ...
