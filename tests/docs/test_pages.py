"""The documentation: it builds without a warning, what it shows is true, and the README's figures are those measured."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from poise.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md")) + sorted(ROOT.glob("*.md"))
BUILD = "from mkdocs.__main__ import cli; cli()"


def test_the_site_builds_without_a_warning_and_has_every_symptom_and_format(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss-spike" in (site / "symptoms" / "index.html").read_text()
    assert "learning-rate-too-high" in (site / "causes" / "index.html").read_text()
    assert "trainer" in (site / "formats" / "index.html").read_text()


def test_the_site_asks_no_other_host_for_fonts() -> None:
    assert re.search(r"^\s+font: false$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_python_printing_is_what_python_prints(page: Path) -> None:
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE, encoding="utf-8"
    )
    assert failed == 0


def test_some_pages_have_examples_that_run() -> None:
    shown = sum(len(doctest.DocTestParser().get_examples(page.read_text())) for page in PAGES)
    assert shown > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_commands_and_files_that_exist(page: Path) -> None:
    text = page.read_text()
    commands = set(re.findall(r"(?:^\$ |`)poise ([a-z]+)", text, re.MULTILINE))
    targets = set(re.findall(r"(?:^\$ |`)make ([a-z-]+)", text, re.MULTILINE))
    made = {"symptoms.md", "causes.md", "formats.md"}
    links = {link for link in re.findall(r"\]\(([^)#:]+)\)", text) if link not in made}
    assert commands <= set(COMMANDS)
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_lists_files_that_exist() -> None:
    tree = re.search(r"```\nsrc/poise/\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert tree
    inside = re.findall(r"^  (\S+)", tree[1], re.MULTILINE)
    beside = re.findall(r"^(\w\S+)", tree[1], re.MULTILINE)
    assert [name for name in inside if not (ROOT / "src" / "poise" / name).exists()] == []
    assert [name for name in beside if not (ROOT / name).exists()] == []


def test_the_readme_says_what_the_figures_say() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "fill_readme.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_figures_that_change_change_the_readme(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from fill_readme import filled
    finally:
        sys.path.pop(0)
    (tmp_path / "real_logs.json").write_text(
        json.dumps(
            {"date": "2000-01-01", "faults": 9, "right_kind": 8, "right_onset": 7, "onset_of": 8, "healthy": 6}
            | {"false_alarms": 1, "benign_critical": 0, "unread": 0}
        )
    )
    text = filled((ROOT / "README.md").read_text(), tmp_path)
    assert "| faults named with the right symptom | 8 of 9 |" in text
    assert "no docs/figures/offline.json" in text
