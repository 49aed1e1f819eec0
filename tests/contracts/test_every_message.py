"""The catalogues: both languages say the same, and the code names no sentence that is not there."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from poise.messages import AREAS, catalogue

SOURCE = Path(__file__).parents[2] / "src" / "poise"
ID = re.compile(rf"^({'|'.join(AREAS)})\.[a-z0-9-]+(\.[a-z0-9-]+)*$")
TEXTS = [pytest.param(name, *texts, id=name) for area in AREAS for name, texts in catalogue(area).items()]
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def fields(template: str) -> set[str]:
    """The parameters that a template uses."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("area", AREAS)
def test_ids_begin_with_their_area(area: str) -> None:
    assert catalogue(area)
    assert [name for name in catalogue(area) if not ID.match(name) or name.partition(".")[0] != area] == []


@pytest.mark.parametrize(("name", "english", "chinese"), TEXTS)
def test_both_languages_use_the_same_parameters(name: str, english: str, chinese: str) -> None:
    assert fields(english) == fields(chinese), name
    assert all(field.isidentifier() for field in fields(english)), f"{name} has a parameter without a name"
    assert not CHINESE.search(english), f"the English text of {name} is Chinese"


def test_what_is_a_sentence_in_english_is_chinese_in_the_other_column() -> None:
    untranslated = [p.id for p in TEXTS if len(str(p.values[1]).split()) > 3 and not CHINESE.search(str(p.values[2]))]
    assert len([i for i in untranslated if ".advice." not in str(i) and "snippet" not in str(i)]) == 0, untranslated


def ids_in(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether it is whole, of each message id in the code; of an f-string its constant beginning."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            if start.partition(".")[0] in AREAS and start.endswith("."):
                yield node.lineno, start, False
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
            and ID.match(node.value)
        ):
            yield node.lineno, node.value, True


def unknown_ids(files: dict[str, str]) -> list[str]:
    """Every id in these files (name -> text) that no catalogue has, as a sentence."""
    known = {name for area in AREAS for name in catalogue(area)}
    return [
        f"{file}, line {line}: no catalogue has {'' if whole else 'an id that begins with '}{text}"
        for file, code in files.items()
        for line, text, whole in ids_in(ast.parse(code))
        if (text not in known if whole else not any(name.startswith(text) for name in known))
    ]


def test_every_id_in_the_code_is_in_a_catalogue() -> None:
    files = {
        str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py") if "messages" not in path.parts
    }
    assert unknown_ids(files) == []


@pytest.mark.parametrize("code", ["Message('report.no-such-thing')", "Message(f'causes.no-such-group.{name}')"])
def test_an_id_that_is_in_no_catalogue_is_found(code: str) -> None:
    assert len(unknown_ids({"odd.py": code})) == 1
