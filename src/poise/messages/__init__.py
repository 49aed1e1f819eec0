"""Sentences for people, English and Chinese side by side: one catalogue file per area, id -> both texts.

Texts are `str.format` templates over the message's parameters; numbers are formatted by the template
(`{value:.4g}`). `--json` is always English.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from poise.records import Message

AREAS = ("detectors", "causes", "reading", "report", "explain")
Text = tuple[str, str]  # English, Chinese


@cache
def catalogue(area: str) -> Mapping[str, Text]:
    """The texts of one area. Ids begin with the area: `detectors.loss-spike.opened`."""
    texts: Mapping[str, Text] = import_module(f"poise.messages.{area}").TEXTS
    return texts


def render(message: Message, language: str = "en") -> str:
    """Say a message in a language (`en` or `zh`)."""
    area = message.id.partition(".")[0]
    english, chinese = catalogue(area)[message.id]
    return (chinese if language == "zh" else english).format(**message.params)
