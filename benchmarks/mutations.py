"""Are the tests strict? Flips one operator at a time in a copy of the package, and runs the tests nearest to it.

    python benchmarks/mutations.py [--count 20] [--all] [--seed 0] [--jobs 1] [module ...]

A mutant is killed if a test fails. Prints the survivors with their lines, and the share of killed ones for each module. The copy is made in
a temporary folder, so that the checkout is not touched.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent
MODEL = ("tests/core/schedule", "tests/io/onnx/test_in_place.py")
ANCHORS, WRITER = "tests/io/onnx/test_anchors.py", "tests/io/onnx/test_onnx_writer.py"
STORED = "tests/io/onnx/test_barrier_tensors.py"
NEAREST: Mapping[str, Sequence[str]] = {
    "core/schedule/simulate.py": MODEL,
    "core/schedule/verify.py": MODEL,
    "io/onnx/read/in_place.py": ("tests/io/onnx/test_in_place.py", "tests/core/schedule/test_runtime_model.py"),
    "io/onnx/read/workspace.py": ("tests/io/onnx/test_onnx_workspace.py",),
    "io/onnx/read/barrier_tensors.py": (STORED, ANCHORS),
    "io/onnx/compile/barriers.py": (ANCHORS, STORED),
    "io/onnx/compile/anchors.py": ("tests/io/onnx/test_plain_memory.py", ANCHORS),
    "io/onnx/compile/unread.py": ("tests/io/onnx/test_unread.py", WRITER, ANCHORS),
    "io/onnx/compile/writer.py": (WRITER, ANCHORS),
    "core/model/transforms/group.py": ("tests/core/model/test_groups_by_hand.py", "tests/core/model/test_grouping.py"),
}
"""Modules, and the tests that should notice a change in them."""

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one operator flipped."""

    module: str
    line: int
    change: str
    text: str


def mutants(module: str) -> list[Mutant]:
    """All of a module, in the order of their lines."""
    text = (ROOT / module).read_text()
    tree = ast.parse(text)
    lines = text.splitlines()
    found: list[Mutant] = []
    for node, change, restore in _flips(tree):
        found.append(Mutant(module, node.lineno, f"{change}: {lines[node.lineno - 1].strip()}", ast.unparse(tree)))
        restore()
    return sorted(found, key=lambda mutant: mutant.line)


def _flips(tree: ast.AST) -> Iterator[tuple[ast.expr, str, Callable[[], object]]]:
    """Flip one operator, yield, and flip it back when told to."""
    typing_only = {id(inner) for node in ast.walk(tree) for inner in _annotations(node)}
    for node in list(ast.walk(tree)):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                other = _COMPARISONS[type(operator)]()
                node.ops[place] = other
                yield node, f"{type(operator).__name__} -> {type(other).__name__}", _set_item(node.ops, place, operator)
        elif isinstance(node, ast.BoolOp):
            was = node.op
            node.op = ast.Or() if isinstance(was, ast.And) else ast.And()
            yield node, f"{type(was).__name__} -> {type(node.op).__name__}", _set(node, "op", was)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
            sign = node.op
            node.op = _ARITHMETIC[type(sign)]()
            yield node, f"{type(sign).__name__} -> {type(node.op).__name__}", _set(node, "op", sign)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            kept = node.op
            node.op = ast.UAdd()
            inner = node.operand
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [inner], [])
            ast.fix_missing_locations(node)
            yield node, "not -> yes", _both(_set(node, "op", kept), _set(node, "operand", inner))


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    stated = [getattr(node, name, None) for name in ("annotation", "returns")]
    for annotation in stated:
        if isinstance(annotation, ast.AST):
            yield from ast.walk(annotation)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(inner, (ast.JoinedStr, ast.Constant)) and isinstance(getattr(inner, "value", ""), str) for inner in ast.walk(node)
    )


def _set(node: ast.AST, name: str, was: object) -> Callable[[], object]:
    return lambda: setattr(node, name, was)


def _set_item(items: list[ast.cmpop], place: int, was: ast.cmpop) -> Callable[[], object]:
    return lambda: items.__setitem__(place, was)


def _both(*steps: Callable[[], object]) -> Callable[[], object]:
    return lambda: [step() for step in steps]


def copy_of_checkout(folder: Path) -> Path:
    """The files that git knows, with their symbolic links."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        source = ROOT / name
        if not (source.exists() or source.is_symlink()):
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    return folder


def passes(folder: Path, tests: Sequence[str], limit: float) -> bool:
    """Whether the nearest tests pass with the package in this folder."""
    existing = [test for test in tests if (folder / test).exists()]
    variables = os.environ | {"PYTHONPATH": str(folder / "tests" / "typetree"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", *existing]
    try:
        ran = subprocess.run(
            [*command, "--import-mode=importlib"], cwd=folder, env=variables, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(NEAREST))
    parser.add_argument("--count", type=int, default=20, help="mutants of each module, drawn at random")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    killed_of_all, count_of_all = 0, 0
    with tempfile.TemporaryDirectory(prefix="checkmate-mutants-") as place:
        folders: Queue[Path] = Queue()
        for number in range(options.jobs):
            folders.put(copy_of_checkout(Path(place) / str(number)))
        for module in options.modules:
            every = mutants(module)
            drawn = (
                every
                if options.all
                else sorted(random.Random(options.seed).sample(every, min(options.count, len(every))), key=lambda mutant: mutant.line)
            )
            begun = time.monotonic()
            folder = folders.queue[0]
            if not passes(folder, NEAREST[module], 600):
                print(f"{module}: its tests fail without any mutation")
                return 1
            limit = 3 * (time.monotonic() - begun) + 20

            def is_killed(mutant: Mutant, limit: float = limit) -> bool:
                folder = folders.get()
                target = folder / mutant.module
                original = target.read_text()
                try:
                    target.write_text(mutant.text)
                    return not passes(folder, NEAREST[mutant.module], limit)
                finally:
                    target.write_text(original)
                    folders.put(folder)

            with ThreadPoolExecutor(options.jobs) as pool:
                killed = list(pool.map(is_killed, drawn))
            killed_of_all, count_of_all = killed_of_all + sum(killed), count_of_all + len(killed)
            print(f"{module}: {sum(killed)} of {len(killed)} killed ({len(every)} mutants in all)", flush=True)
            for mutant, dead in zip(drawn, killed, strict=True):
                if not dead:
                    print(f"    survives, line {mutant.line}: {mutant.change}", flush=True)
    print(f"{killed_of_all} of {count_of_all} killed: {killed_of_all / max(count_of_all, 1):.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
