"""The emergency checkpoint: the present state, however odd, written so that a kill leaves either all of it or none."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

STATE = "state.pt"
MANIFEST = "manifest.json"


def save(folder: Path, step: int, state: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> Path:
    """Write a checkpoint and read it back.

    The files go to a temporary folder, are flushed, read back against their SHA-256, and the folder is renamed: what has the final
    name is complete.

    Args:
        folder: where checkpoints live; this one becomes `folder/step-000840`.
        state: what `torch.save` can write and `torch.load(weights_only=True)` can read.
        facts: what the manifest says beside it.

    Returns:
        The checkpoint's folder.

    Raises:
        OSError: the disk refuses; nothing with the final name exists then.
    """
    final = _free(folder / f"step-{step:06d}")
    temporary = folder / f".{final.name}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        with open(temporary / STATE, "wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
        manifest = {
            "step": step,
            "files": {STATE: digest(temporary / STATE)},
            "finite": all_finite(state),
            **(facts or {}),
        }
        _write(temporary / MANIFEST, json.dumps(manifest, indent=1, default=str))
        torch.load(temporary / STATE, weights_only=True, map_location="cpu")
        os.replace(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return final


def verified(checkpoint: Path) -> str | None:
    """Why a checkpoint must not be used; None if it is whole."""
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text())
        for name, expected in manifest["files"].items():
            if digest(checkpoint / name) != expected:
                return f"{checkpoint / name} is damaged: its SHA-256 differs from the manifest's"
    except FileNotFoundError as error:
        return f"{error.filename} is missing: the checkpoint was not finished"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{checkpoint / MANIFEST} cannot be read ({error})"
    return None


def newest(folder: Path, tell: Callable[[str], None] = lambda _: None) -> Path | None:
    """The newest whole checkpoint; damaged and unfinished ones are passed over with a sentence each, and left where they are."""
    for checkpoint in sorted(folder.glob("step-*"), reverse=True):
        reason = verified(checkpoint)
        if reason is None:
            return checkpoint
        tell(reason)
    return None


def load(checkpoint: Path) -> dict[str, Any]:
    """The state of a checkpoint.

    Raises:
        ValueError: it is not whole.
    """
    reason = verified(checkpoint)
    if reason is not None:
        raise ValueError(f"{reason}. Use an older checkpoint of {checkpoint.parent}.")
    state: dict[str, Any] = torch.load(checkpoint / STATE, weights_only=True, map_location="cpu")
    return state


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def all_finite(state: Any) -> bool:
    """Whether every tensor in a state is finite. A state with NaN weights is saved all the same, and marked."""
    if isinstance(state, torch.Tensor):
        return not state.is_floating_point() or bool(torch.isfinite(state).all())
    if isinstance(state, Mapping):
        return all(all_finite(v) for v in state.values())
    return all(all_finite(v) for v in state) if isinstance(state, list | tuple) else True


def _free(path: Path) -> Path:
    """The path, or one beside it if it is taken: nothing is overwritten."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free


def _write(path: Path, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
