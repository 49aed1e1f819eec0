"""Imports point down the layers of the design. Each violation is said as a sentence; nothing is imported to find out."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("records", "signals", "stats", "messages"),
    ("detectors", "causes", "incidents", "policy", "advice"),
    ("watch", "diagnose", "presets"),
    ("runlog", "readers", "notify", "trackers", "report", "explain", "offline"),
    ("live", "remedies", "text", "data", "preflight", "curvature", "compare", "advisor"),
    ("zoo", "dashboard", "cli"),
)
"""From the bottom to the top. A module imports from its own layer or from those above it in this list."""

KINDS = (
    "detectors",
    "causes",
    "readers",
    "notify",
    "trackers",
    "live.actions",
    "live.meters",
    "zoo.patients",
    "zoo.controls",
)
"""Folders with one file per registered thing. Those files are replaceable: no sibling leans on them."""

TORCH = ("live", "remedies", "text.model", "zoo.patients", "preflight", "curvature")
EVERYWHERE = {"numpy", "orjson", "poise"}


def module_of(path: Path, source: Path = SOURCE) -> str:
    """`poise.detectors.base` for its path."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, is_known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, wherever it stands; `from a import b` is `a.b` where that is a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}" if f"{base}.{alias.name}" in is_known else base


def at_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported: all but function bodies and `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from at_import_time(node)


def layer(module: str) -> int | None:
    """Which layer `poise.detectors.base` lies in; None for the package itself."""
    part = module.split(".")[1:2]
    return next((i for i, names in enumerate(LAYERS) if part and part[0] in names), None)


def folder_of_kinds(module: str) -> str | None:
    """The folder of kinds that a module lies in: `poise.causes` for `poise.causes.memory`."""
    return next((f"poise.{k}" for k in KINDS if module.startswith(f"poise.{k}.")), None)


def violations(files: dict[str, str]) -> list[str]:
    """Every import among these modules (name -> text) that breaks the design, as a sentence."""
    trees = {module: ast.parse(text) for module, text in files.items()}
    registered = {
        name
        for folder in KINDS
        if (package := trees.get(f"poise.{folder}"))
        for _, name in imports(package, set(files))
        if folder_of_kinds(name) and not name.endswith(".base")
    }
    found = []
    for module, tree in sorted(trees.items()):
        if module != "poise" and layer(module) is None:
            found.append(
                f"{module} has no layer; add it to LAYERS in tests/test_layers.py, at the lowest place that its imports allow."
            )
        for line, name in imports(tree, set(files)):
            found.extend(f"{module}, line {line}, {why}" for why in objections(module, name, registered))
        if not in_torch_land(module):
            heavy = {n for node in at_import_time(tree) for _, n in imports_of(node, set(files))}
            found.extend(
                f"{module} imports {name} as soon as it is imported; only numpy and orjson may be, so import it in the function that needs it."
                for name in sorted(heavy)
                if (top := name.partition(".")[0]) and top not in EVERYWHERE and top not in sys.stdlib_module_names
            )
    return found


def imports_of(node: ast.AST, known: set[str]) -> Iterator[tuple[int, str]]:
    """The imports that one statement makes."""
    return imports(ast.Module([node], []), known) if isinstance(node, ast.Import | ast.ImportFrom) else iter(())


def in_torch_land(module: str) -> bool:
    """Whether a module may import torch."""
    return any(module == f"poise.{t}" or module.startswith(f"poise.{t}.") for t in TORCH)


def objections(module: str, name: str, registered: set[str]) -> Iterator[str]:
    """What is wrong with `module` importing `name`, if anything."""
    if name.startswith("."):
        yield f"imports {name} relatively; write the full name, so that the layers can be read."
    if name.partition(".")[0] == "torch" and not in_torch_land(module):
        yield f"imports torch, which only {', '.join(TORCH)} may: the offline part must work without it."
    own, other = layer(module), layer(name)
    if name.startswith("poise.") and own is not None and other is not None and other > own:
        yield f"imports {name}, which lies above it ({LAYERS[other][0]} ... are built on {LAYERS[own][0]} ...). Move the shared part down."
    folder = folder_of_kinds(module)
    if folder and name in registered and folder_of_kinds(name) == folder and name != module:
        yield f"imports its sibling {name}; each kind must stand alone. Move what both need into a file that registers nothing."


def test_imports_point_down_the_layers() -> None:
    files = {module_of(path): path.read_text() for path in SOURCE.rglob("*.py")}
    found = violations(files)
    assert len(files) > 40
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"poise.records": "import poise.cli"}, "poise.records, line 1, imports poise.cli, which lies above it"),
        (
            {"poise.watch": "def f():\n    from poise import report", "poise.report": ""},
            "poise.watch, line 2, imports poise.report",
        ),
        ({"poise.watch": "def f():\n    import torch"}, "poise.watch, line 2, imports torch, which only live"),
        (
            {"poise.report.page": "from pandas import DataFrame"},
            "poise.report.page imports pandas as soon as it is imported",
        ),
        ({"poise.odds": ""}, "poise.odds has no layer"),
        ({"poise.watch": "from . import records"}, "imports . relatively"),
        (
            {
                "poise.causes": "from poise.causes.a import a",
                "poise.causes.a": "",
                "poise.causes.b": "from poise.causes.a import a",
            },
            "poise.causes.b, line 1, imports its sibling poise.causes.a; each kind must stand alone",
        ),
    ],
)
def test_a_wrong_import_is_said_as_a_sentence(files: dict[str, str], sentence: str) -> None:
    [found] = violations(files)
    assert sentence in found


@pytest.mark.parametrize(
    "files",
    [
        {"poise.cli": "from poise.records import Frame"},
        {"poise.report.page": "def f():\n    import rich"},
        {"poise.live.meters": "import torch"},
        {
            "poise.causes": "from poise.causes.a import a",
            "poise.causes.a": "from poise.causes.clues import x",
            "poise.causes.clues": "",
        },
    ],
)
def test_a_right_import_is_let_through(files: dict[str, str]) -> None:
    assert violations(files) == []


HEAVY = "{'torch', 'pandas', 'scipy', 'pyarrow', 'matplotlib', 'rich'}"


def heavy_modules_after(code: str) -> str:
    """Run code in a fresh interpreter and return which heavy packages it loaded."""
    script = f"{code}\nimport sys\nsys.stderr.write(repr(sorted({HEAVY} & set(sys.modules))))"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    ).stderr


def test_importing_poise_loads_nothing_heavy() -> None:
    assert heavy_modules_after("import poise, poise.presets, poise.readers, poise.detectors, poise.causes") == "[]"


def test_diagnosing_a_small_log_loads_no_torch_pandas_or_scipy(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss,grad_norm\n" + "".join(f"{i},{4 - i / 100},{1 + i % 3 / 10}\n" for i in range(200)))
    loaded = heavy_modules_after(f"from poise.cli import main\nmain(['diagnose', {str(log)!r}])")
    assert not {"torch", "pandas", "scipy"} & set(ast.literal_eval(loaded))
