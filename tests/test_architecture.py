"""The house rules that code can break silently: directions of imports, purity of the core, laziness."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "io", "cli")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Absolute names of everything a module imports, wherever in the file it does."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = parts[: -node.level] if path.name != "__init__.py" else parts[: len(parts) - node.level]
                yield ".".join((*base, *([node.module] if node.module else [])))
            else:
                yield node.module or ""


@pytest.mark.parametrize(("package", "forbidden"), [("core", ("io", "cli")), ("io", ("cli",))])
def test_imports_go_one_way(package: str, forbidden: tuple[str, ...]) -> None:
    for path in modules(package):
        for name in imports(path):
            assert name.split(".")[0] not in forbidden, f"{path} imports {name}"
            assert not name.startswith("checkmate."), f"{path} imports {name}: use relative imports"


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
