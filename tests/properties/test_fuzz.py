"""A sample of benchmarks/fuzz.py: damaged files of every kind, and the worst ones by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from cli_runs import run, write_chain
from fuzzing import fuzz
from hostile_files import readers
from places import ROOT

from checkmate.core.errors import InputError
from checkmate.io.formats.strict_yaml import parse_yaml

CASES = 300
SEED = 1


@pytest.mark.slow
@pytest.mark.parametrize("reader", readers())
def test_damaged_files_never_do_worse_than_a_complaint(reader: str) -> None:
    tally = fuzz(reader, CASES, SEED)
    assert [
        (f"python benchmarks/fuzz.py --reader {reader} --case {failure.case} --seed {SEED}", failure.what) for failure in tally.failures
    ] == []
    assert tally.read > CASES // 50, "hardly anything gets past the parser: the damage is too crude"
    assert tally.refused > CASES // 20 or not readers()[reader].refuses


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (bomb(30), "line 6: not valid YAML: too large after expanding aliases"),
        (bomb(30).replace("[", "{<<: [").replace("]", "]}"), "too large after expanding aliases"),
        ("a: &a [*a]", "line 1: not valid YAML: an alias refers to a value that contains it"),
        ("- " * 100_000, "nested too deeply"),
        ("a: " + "1:" * 100_000 + "1", "is too long"),
        ('jobs: [{graph: g.json, output: "a\\ud800/"}]', "line 1: not valid YAML: half of a character (a lone surrogate)"),
        ("a: " + "7" * 5000, "a number of 5000 characters is too long"),
        ("a: " + "x" * 300_000, "more than 250000 bytes of YAML"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: !!timestamp soon", "not valid YAML"),
        ("a: !!int ''", "not valid YAML"),
        ("a: !!bool maybe", "not valid YAML"),
        ("a: 1\na: 2", "the key 'a' occurs twice"),
        ("? [a]\n: b", "a key must be a plain word"),
    ],
)
def test_yaml_that_would_do_harm(tmp_path: Path, text: str, words: str) -> None:
    write_chain(tmp_path)
    (tmp_path / "bad.yaml").write_text(text)
    for arguments in (
        ("batch", "bad.yaml"),
        ("inspect", "chain.json", "--config", "bad.yaml"),
        ("inspect", "chain.json", "--device", "bad.yaml"),
    ):
        ran = run(tmp_path, *arguments)
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert words in ran.err
        assert len(ran.err) < 1000


def test_aliases_that_help_are_welcome() -> None:
    assert parse_yaml(b"a: &common {x: 1}\nb: {<<: *common, y: 2}\nc: *common", "good.yaml") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": {"x": 1},
    }
    with pytest.raises(InputError):
        parse_yaml(b"a: *nobody", "bad.yaml")


FORBIDDEN = {"eval", "exec", "compile", "__import__", "pickle", "unpickle", "safe_load", "full_load", "unsafe_load", "allow_pickle"}
"""`safe_load` too: it takes a key twice and bombs of aliases; `io/formats/strict_yaml.py` is the one way in."""


@pytest.mark.parametrize("package", ["core", "io", "cli"])
def test_nothing_read_is_ever_run(package: str) -> None:
    """By name, wherever it is called: no unpickling, no eval, no YAML but by the strict loader, no shell; our own methods aside."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
            owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
            assert name not in FORBIDDEN or owner in ("re", "self", "torch"), f"{path}:{node.lineno} calls {name}"
            assert (owner, name) not in {("yaml", "load"), ("os", "system"), ("os", "popen")}, f"{path}:{node.lineno}"
            for keyword in node.keywords:
                risky = keyword.arg in ("shell", "allow_pickle") and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                )
                assert not risky, f"{path}:{node.lineno}: {keyword.arg}"
            if (owner, name) == ("np", "load"):
                assert any(keyword.arg == "allow_pickle" for keyword in node.keywords), f"{path}:{node.lineno}: say allow_pickle=False"
