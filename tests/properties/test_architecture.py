"""The house rules that code can break silently: directions of imports, purity of the core, laziness."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

PACKAGES = ("core", "io", "cli")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path, *, for_typing: bool = True) -> Iterator[str]:
    """Absolute names of everything a module imports, wherever in the file it does."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    tree = ast.parse(path.read_text())
    left_out = set() if for_typing else {id(node) for node in typing_only(tree)}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = parts[: -node.level] if path.name != "__init__.py" else parts[: len(parts) - node.level]
                yield ".".join((*base, *([node.module] if node.module else [])))
            else:
                yield node.module or ""


CORE_LAYERS = (
    *("errors", "events", "spelling", "lookup", "params", "jit", "model", "schedule", "result", "settings", "history", "strategy"),
    *("labels", "baselines", "milp", "solvers", "rounding", "search", "engine", "studies"),
)
"""In this order: a layer imports from those before it, never from those after it."""
IO_LAYERS = (
    *(
        "io.child_process",
        "io.formats",
        "io.onnx.proto",
        "io.onnx.read",
        "io.onnx.compile",
        "io.onnx.build",
        "io.onnx.gradients",
        "io.onnx.differentiate",
    ),
    *("io.onnxruntime", "io.torch", "io.torch_files", "io.load", "io.report"),
)
CLI_LAYERS = (
    "cli.exit_codes",
    "cli.registry",
    "cli.log",
    "cli.console",
    "cli.options",
    "cli.next_step",
    "cli.failures",
    "cli.output",
    "cli.jobs",
    "cli.commands",
    "cli.main",
)
PLAIN_TYPES = ("core.errors", "core.events", "core.result", "core.settings", "core.spelling", "core.model", "core.studies")
"""What commands may name besides the API: types of what it gives, and how to write amounts."""
NAMED_AFTER_COMMANDS = frozenset(path.stem for path in (ROOT / "cli" / "commands").glob("*.py"))


def typing_only(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Imports for type checkers only, which bind nobody."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.ImportFrom))


def layer_of(name: str, layers: tuple[str, ...]) -> int | None:
    """The number of the layer a module is in."""
    return next((number for number, layer in enumerate(layers) if name == layer or name.startswith(f"{layer}.")), None)


@pytest.mark.parametrize(("package", "forbidden"), [("core", ("io", "cli", "api")), ("io", ("cli", "api"))])
def test_imports_go_one_way(package: str, forbidden: tuple[str, ...]) -> None:
    for path in modules(package):
        for name in imports(path):
            assert name.split(".")[0] not in forbidden, f"{path} imports {name}"
            assert not name.startswith("checkmate."), f"{path} imports {name}: use relative imports"


@pytest.mark.parametrize(
    ("package", "layers"), [("core", tuple(f"core.{layer}" for layer in CORE_LAYERS)), ("io", IO_LAYERS), ("cli", CLI_LAYERS)]
)
def test_layers_are_in_order(package: str, layers: tuple[str, ...]) -> None:
    """Every module is in a layer, and imports only from its own and from those before it."""
    for path in modules(package):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module in ("core", "io", "io.onnx", "io.schemas", "cli") or module.startswith("cli._root"):
            continue
        own = layer_of(module, layers)
        assert own is not None, f"{path} is in none of the layers"
        for name in imports(path, for_typing=False):
            other = layer_of(name, layers)
            assert other is None or other <= own, f"{path} imports {name}, which is in a later layer"


def test_the_api_stands_on_io_and_core_only() -> None:
    for path in sorted((ROOT / "cli" / "_root" / "api").glob("*.py")):
        text = path.read_text()
        assert "from ..cli" not in text, path
        assert "import click" not in text, path


def test_commands_stand_on_the_api() -> None:
    """A command prices, solves, verifies and writes by the public API: no format, no strategy, no simulator."""
    for path in sorted((ROOT / "cli" / "commands").glob("*.py")):
        formats = ("io.formats",) if path.stem in ("batch", "cache", "convert", "compare", "sweep") else ()
        for name in imports(path, for_typing=False):
            if name.startswith(("core.", "io.")):
                assert name.startswith((*PLAIN_TYPES, *NAMES_ONLY, *formats)), f"{path} imports {name}"


NAMES_ONLY = (
    *("core.engine.strategies", "core.baselines", "core.solvers", "io.onnx.compile.anchor_modes", "io.onnxruntime.providers"),
    *("io.onnx.gradients", "io.onnx.differentiate.training_options", "io.onnxruntime.counts"),
)
"""Registries, whose names options list."""


def test_folders_stay_small() -> None:
    for package in (*PACKAGES, "tests"):
        for folder in (ROOT / package, *(ROOT / package).rglob("*")):
            if folder.is_dir() and not {"__pycache__", "typetree"} & set(folder.parts):
                entries = [entry for entry in folder.iterdir() if entry.name not in ("__pycache__", "__init__.py")]
                assert len(entries) <= 22, f"{folder} has {len(entries)} entries"


def test_no_file_name_stands_for_two_things() -> None:
    """But for a command and the file that does its work, which are one thing."""
    seen: dict[str, Path] = {}
    for package in PACKAGES:
        for path in modules(package):
            if path.stem in ("__init__", "__main__") or path.stem in NAMED_AFTER_COMMANDS:
                continue
            if "_root" in path.parts:
                continue
            assert path.name not in seen, f"{path} and {seen[path.name]}"
            seen[path.name] = path


def test_the_core_knows_no_format_and_no_terminal() -> None:
    for path in modules("core"):
        for name in imports(path):
            assert name.split(".")[0] not in ("click", "rich", "onnx", "onnxruntime", "yaml", "matplotlib", "pickle"), f"{path}: {name}"


def test_only_the_command_line_prints_or_exits() -> None:
    for package in ("core", "io"):
        for path in modules(package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id not in ("print", "exit", "quit", "input"), f"{path}:{node.lineno}"


def test_the_core_opens_no_file() -> None:
    """But for CBC, which has no other interface than files."""
    for path in modules("core"):
        if path.name in ("cbc.py", "mps.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
                assert name not in ("open", "read_text", "read_bytes", "write_text", "write_bytes"), f"{path}:{node.lineno}"


def test_nothing_is_ever_unpickled() -> None:
    for package in PACKAGES:
        for path in modules(package):
            assert not {"pickle", "marshal", "shelve", "dill"} & {name.split(".")[0] for name in imports(path)}, path


def test_files_stay_small() -> None:
    for package in (*PACKAGES, "tests", "benchmarks", "sample_graphs"):
        for path in modules(package):
            assert len(path.read_text().splitlines()) <= 450, path


def test_help_imports_nothing_heavy() -> None:
    """What keeps `checkmate --help` under 0.3 s."""
    code = (
        "import sys\n"
        "from checkmate.cli.main import main\n"
        "assert main(['--help']) == 0\n"
        "print([m for m in ('onnx', 'pyomo', 'numpy', 'scipy', 'rich', 'yaml', 'highspy') if m in sys.modules])\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


HEAVY_FOR_SOLVING = ("pyomo", "numba", "scipy", "torch")


@pytest.mark.parametrize(
    ("budget", "strategy"), [("100%", "auto"), ("90%", "auto"), ("90%", "chen-sqrt")], ids=["fits at once", "one program", "baseline"]
)
def test_nothing_heavy_is_imported_where_the_answer_needs_none(tmp_path: Path, budget: str, strategy: str) -> None:
    """Kernels load when a search begins, Pyomo when a model is built with it."""
    arguments = ["solve", str(ROOT / "sample_graphs" / "chain.json"), "--budget", budget, "--strategy", strategy, "-q"]
    code = (
        f"import sys\nfrom checkmate.cli.main import main\nassert main({arguments!r}) == 0\n"
        f"print([m for m in {HEAVY_FOR_SOLVING!r} if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"
