"""Where output goes wrong, and paths that are easily mistyped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TABLE = "step,loss\n" + "".join(f"{s},{9 / s}\n" for s in range(1, 60))
POISE = [sys.executable, "-c", "from poise.cli import main; raise SystemExit(main())", "diagnose"]


def poise(*arguments: str, shell_tail: str = "") -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$@" {shell_tail}', "sh", *POISE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_page_never_overwrites_a_log_that_is_read(tmp_path: Path) -> None:
    log = tmp_path / "run.csv"
    log.write_text(TABLE)
    (tmp_path / "link.html").symlink_to(log)
    for page in (log, tmp_path / "link.html"):
        done = poise(str(log), "--html", str(page))
        assert (done.returncode, log.read_text()) == (3, TABLE)
        assert "would overwrite" in done.stderr


def test_an_empty_path_is_a_usage_error_and_not_the_working_folder() -> None:
    done = poise("")
    assert done.returncode == 3
    assert "a path is empty" in done.stderr


def test_a_link_to_itself_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(TABLE)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.log").symlink_to("loop.log")
    done = poise(str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "run.csv" in done.stdout


def test_a_closed_stdout_still_gives_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(TABLE)
    done = poise(str(tmp_path / "run.csv"), "--json", shell_tail=">&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(TABLE)
    done = poise(str(tmp_path / "run.csv"), shell_tail=">/dev/full")
    assert done.returncode == 3
    assert done.stderr.startswith("poise: the output cannot be written")
    assert done.stderr.count("\n") == 1
