"""Messages in words, and names out of logs made fit for a terminal or a page: no control characters, no broken Unicode."""

from __future__ import annotations

from typing import Any

from poise.messages import render
from poise.records import Hypothesis, Message

_UNSEEN = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}
_UNSEEN |= {9: " "} | {
    code: f"\\u{code:04x}" for code in (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x206A), 0xFEFF)
}


def clean(text: str) -> str:
    """The text without characters that steer a terminal or turn the writing direction; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").translate(_UNSEEN)


def say(message: Message, language: str = "en") -> str:
    """The message in words. One whose parameters do not fit its template is shown raw: a report is never lost to one sentence."""
    try:
        return clean(render(message, language))
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        params = ", ".join(f"{name}={value}" for name, value in message.params.items())
        return clean(f"{message.id} ({params})")


def phrase(group: str, name: str, language: str = "en", **params: Any) -> str:
    """A text of the report's own catalogue."""
    return say(Message(f"report.{group}.{name}", params), language)


def what_happened(kind: str, language: str = "en") -> str:
    """A symptom as a half-sentence; a kind without one is named."""
    text = phrase("kind", kind, language)
    return kind.replace("-", " ") if text.startswith("report.kind.") else text


def about_cause(cause: str, language: str = "en") -> str:
    """One sentence on what a cause is, empty if there is none."""
    text = say(Message(f"explain.cause.{cause}"), language)
    return "" if text.startswith("explain.cause.") else text


def advice_parts(advice: Message, language: str = "en") -> tuple[str, str]:
    """An advice as sentence and code; the code is empty where there is none."""
    code = advice.params.get("code")
    if not isinstance(code, str) or not code:
        return say(advice, language), ""
    return say(Message(advice.id, {**advice.params, "code": ""}), language), clean(code.removeprefix(":").strip())


def rivals(causes: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """The leading causes that this log cannot tell apart: scores within a tenth of the best, or within 15 % of it."""
    if not causes:
        return ()
    best = causes[0].score
    return tuple(c for c in causes if c.score >= best - max(0.05, 0.15 * best))
