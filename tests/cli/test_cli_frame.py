"""The frame of the command line: help, versions, errors, exit codes, variables, config files, and how fast it starts."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_runs import Ran, files_in, run, write_chain

from checkmate import __version__
from checkmate.cli.exit_codes import ExitCode, meaning_of
from checkmate.cli.main import main
from checkmate.cli.registry import COMMANDS, all_commands
from checkmate.core import errors


def one_error_line(ran: Ran) -> str:
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    return ran.err


def test_help_and_version_import_nothing_heavy() -> None:
    program = (
        "import sys; from checkmate.cli.main import main; assert main(['--help']) == 0; assert main(['solve', '--help']) == 0; "
        "assert main(['--version']) == 0; heavy = {'onnx', 'pyomo', 'numpy', 'scipy', 'rich', 'yaml', 'highspy'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_m_checkmate_is_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "checkmate", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"checkmate {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(tmp_path: Path, command: str) -> None:
    for flag in ("-h", "--help"):
        ran = run(tmp_path, command, flag)
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: checkmate {command} ")
        assert "Examples:" in ran.out


def test_help_of_the_group_names_every_command(tmp_path: Path) -> None:
    out = run(tmp_path, "-h").out
    assert all(f"\n  {command} " in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["slove"], ["'slove'", "did you mean 'solve'?", "checkmate --help"]),
        (["frobnicate"], ["'frobnicate'", "commands are solve, inspect"]),
        ([], ["missing command", "solve"]),
        (["solve"], ["missing GRAPH", "checkmate solve --help"]),
        (["solve", "chain.json"], ["missing --budget", "8GB"]),
        (["solve", "chain.json", "--bugdet", "8"], ["--bugdet", "did you mean --budget?"]),
        (["solve", "chain.json", "--budget", "8XB"], ["--budget", "'8XB'", "8GiB"]),
        (["solve", "chain.json", "--budget", "-3"], ["--budget"]),
        (["solve", "chain.json", "--budget", "0%"], ["--budget", "above 0"]),
        (["solve", "chain.json", "--budget", "8", "--strategy", "optiml"], ["'optiml'", "did you mean 'optimal'?"]),
        (["solve", "chain.json", "--budget", "8", "--solver", "cplex"], ["'cplex'", "highs"]),
        (["solve", "chain.json", "--budget", "8", "--formulation", "livness"], ["'liveness'?"]),
        (["solve", "chain.json", "--budget", "8", "--time-limit", "soon"], ["--time-limit", "'soon'", "5m"]),
        (["solve", "chain.json", "--budget", "8", "--gap", "5"], ["--gap", "did you mean 5%?"]),
        (["solve", "chain.json", "--budget", "8", "--threads", "0"], ["--threads", "from 1"]),
        (["solve", "chain.json", "--budget", "8", "--seed", "x"], ["--seed", "'x'"]),
        (["solve", "chain.json", "--budget", "8", "--dim", "batch"], ["--dim", "batch=32"]),
        (["solve", "chain.json", "--budget", "8", "--costs", "rooflin"], ["'rooflin'", "did you mean 'roofline'?"]),
        (["solve", "chain.json", "--budget", "8", "--costs", "unit", "--device", "a100"], ["--device", "roofline"]),
        (["solve", "chain.json", "--budget", "8", "--device", "a1000"], ["'a1000'", "a100"]),
        (["solve", "chain.json", "--budget", "8", "--pin", "opp3"], ["--pin", "did you mean 'op3'?"]),
        (["solve", "chain.json", "--budget", "8", "--dim", "n=2", "--dim", "n=3"], ["twice", "'n'"]),
        (["solve", "nowhere.json", "--budget", "8"], ["nowhere.json"]),
        (["compare", "chain.json", "--budgets", "80%,,70%"], ["--budgets", "empty entry"]),
        (["completion", "tcsh"], ["'tcsh'", "bash"]),
        (["inspect", "chain.json", "more"], ["more"]),
    ],
)
def test_a_bad_command_line_is_one_line_with_exit_2(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, *arguments)
    assert ran.code == 2
    assert ran.out == ""
    line = one_error_line(ran)
    assert [word for word in words if word not in line] == []
    assert files_in(tmp_path) == {"chain.json"}


def test_a_file_in_place_of_a_command_suggests_solve(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert "checkmate solve chain.json --budget" in one_error_line(run(tmp_path, "chain.json"))


def test_under_json_an_error_is_an_object_too(tmp_path: Path) -> None:
    for arguments in (["solve", "x.json", "--budget", "8XB", "--json"], ["solve", "--json"], ["inspect", "x.json", "--json"]):
        ran = run(tmp_path, *arguments)
        assert ran.code == 2
        assert ran.json["status"] == "error"
        assert ran.json["exit_code"] == 2
        assert one_error_line(ran) == f"error: {ran.json['error']}\n"


def test_every_error_of_the_core_has_an_exit_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CheckmateError)]
    codes = {kind.__name__: meaning_of(kind("x"))[0] for kind in kinds if kind is not errors.CheckmateError}
    assert codes == {
        "InputError": 2,
        "InfeasibleError": 3,
        "LimitError": 4,
        "UnavailableError": 5,
        "VerificationError": 6,
        "InterruptedWorkError": 130,
    }


def test_a_bug_is_one_line_and_the_traceback_is_for_those_who_ask(tmp_path: Path) -> None:
    write_chain(tmp_path)
    with patch("checkmate.cli.options.shared.price", side_effect=KeyError("missing")):
        quiet = run(tmp_path, "inspect", "chain.json")
        loud = run(tmp_path, "inspect", "chain.json", CHECKMATE_DEBUG="1")
    assert quiet.code == loud.code == ExitCode.BUG
    assert "this is a bug in checkmate: KeyError: 'missing'" in one_error_line(quiet)
    assert "Traceback" in loud.err


def test_too_little_memory_is_no_bug(tmp_path: Path) -> None:
    write_chain(tmp_path)
    with patch("checkmate.cli.options.shared.price", side_effect=MemoryError):
        ran = run(tmp_path, "inspect", "chain.json")
    assert ran.code == ExitCode.LIMIT
    assert "memory" in one_error_line(ran)


def test_a_name_that_would_move_the_cursor_is_told_in_one_printable_line(tmp_path: Path) -> None:
    line = one_error_line(run(tmp_path, "inspect", "a\x1b[2Jb\nc.json"))
    assert line.rstrip("\n").isprintable()


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=1000)
    command = f"{sys.executable} -m checkmate inspect chain.json --costs-table | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.BROKEN_PIPE, "")


class FullDisk(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("layers", [2, 400])
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, layers: int) -> None:
    """Noticed at the last flush, or in the middle of much output."""
    graph = write_chain(tmp_path, layers)
    err = io.StringIO()
    with redirect_stdout(io.TextIOWrapper(FullDisk(), "utf-8")), redirect_stderr(err):  # type: ignore[arg-type]
        assert main(["inspect", str(graph), "--costs-table"]) == 2
    assert err.getvalue() == f"error: cannot write to stdout: {os.strerror(errno.ENOSPC)}\n"


def budget_seen(ran: Ran) -> int:
    assert ran.code == 0, ran.err
    return int(ran.json["budget_bytes"])


def test_the_flag_wins_over_the_variable_the_variable_over_the_file(tmp_path: Path) -> None:
    write_chain(tmp_path)
    (tmp_path / "c.yaml").write_text("budget: 13\nstrategy: last-node\n")
    command = ("solve", "chain.json", "--json", "--config", "c.yaml")
    assert budget_seen(run(tmp_path, *command, "--budget", "11", CHECKMATE_BUDGET="12")) == 11
    assert budget_seen(run(tmp_path, *command, CHECKMATE_BUDGET="12")) == 12
    assert budget_seen(run(tmp_path, *command)) == 13
    assert run(tmp_path, *command).json["strategy"] == "last-node"


def test_a_section_wins_over_the_top_of_the_file_and_concerns_its_command_only(tmp_path: Path) -> None:
    write_chain(tmp_path)
    (tmp_path / "c.yaml").write_text(
        "strategy: keep-all\nbudget: 30\njson: true\nsolve:\n  budget: 50%\n  strategy: last-node\ncompare: {budgets: [1, 2]}\n"
    )
    ran = run(tmp_path, "solve", "chain.json", CHECKMATE_CONFIG="c.yaml")
    assert (ran.json["strategy"], ran.json["budget"]) == ("last-node", "50%")


def test_yaml_values_of_every_kind_arrive(tmp_path: Path) -> None:
    write_chain(tmp_path)
    (tmp_path / "c.yaml").write_text(
        "json: yes\nstrategies: [keep-all, last-node]\ncompare:\n  budgets: [90%, 12]\n  time_limit: 5\n  seed: 3\n  pin: op16\n"
    )
    ran = run(tmp_path, "compare", "chain.json", "--config", "c.yaml")
    assert [(row["budget"], row["strategy"]) for row in ran.json["rows"]] == [
        *(("90%", "keep-all"), ("90%", "last-node")),
        *(("12", "keep-all"), ("12", "last-node")),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("bugdet: 8\n", ["'bugdet'", "did you mean 'budget'?"]),
        ("solve:\n  stratgy: auto\n", ["'stratgy'", "section 'solve'", "did you mean 'strategy'?"]),
        ("verify:\n  gap: 1\n", ["'gap'", "section 'verify'"]),
        ("budget: 8QB\n", ["--budget", "'8QB'", "(from c.yaml)"]),
        ("budget:\n", ["'budget'", "no value"]),
        ("budget: [1, 2]\n", ["'budget'", "one value"]),
        ("budget: true\n", ["'budget'", "true"]),
        ("json: 3\n", ["'json'", "true or false"]),
        ("- budget\n", ["a list"]),
        ("solve: 3\n", ["section 'solve'", "3"]),
        ("budget: [\n", ["line", "YAML"]),
        ("a: 2020-13-45\n", ["YAML"]),
        ("\x00", ["YAML"]),
        ("config: other.yaml\n", ["'config'"]),
    ],
)
def test_a_bad_config_file_is_one_line(tmp_path: Path, content: str, words: list[str]) -> None:
    write_chain(tmp_path)
    (tmp_path / "c.yaml").write_text(content)
    ran = run(tmp_path, "solve", "chain.json", "--config", "c.yaml")
    assert ran.code == 2
    line = one_error_line(ran)
    assert "c.yaml" in line
    assert [word for word in words if word not in line] == []


def test_a_config_file_that_is_not_there(tmp_path: Path) -> None:
    ran = run(tmp_path, "inspect", "chain.json", "--config", "none.yaml")
    assert ran.code == 2
    assert "none.yaml" in one_error_line(ran)


def test_a_misspelt_variable_is_an_error_a_foreign_one_is_not(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "inspect", "chain.json", CHECKMATE_TIME_LIMT="5")
    assert ran.code == 2
    assert "did you mean CHECKMATE_TIME_LIMIT?" in one_error_line(ran)
    assert run(tmp_path, "inspect", "chain.json", CHECKMATE_TIME_LIMIT="5").code == 0
    assert run(tmp_path, "inspect", "chain.json", CHECKMATE_HOSTNAME_XYZ="5").code == 0


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", CHECKMATE_BUDGET="8QB")
    assert "(from the variable CHECKMATE_BUDGET)" in one_error_line(ran)


def test_every_option_has_a_variable_of_its_own_name() -> None:
    for command in all_commands().values():
        for option in command.own_options:
            assert option.variable == "CHECKMATE_" + option.long_name.upper().replace("-", "_")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_the_command(tmp_path: Path, shell: str) -> None:
    ran = run(tmp_path, "completion", shell)
    assert ran.code == 0
    assert "_CHECKMATE_COMPLETE" in ran.out


def test_a_shell_gets_commands_options_and_names(tmp_path: Path) -> None:
    def complete(line: str) -> set[str]:
        words = line.split(" ")
        ran = run(tmp_path, _CHECKMATE_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
        return {found.partition(",")[2] for found in ran.out.splitlines()}

    assert complete("checkmate so") == {"solve"}
    assert "--time-limit" in complete("checkmate solve --ti")
    assert complete("checkmate solve --strategy linearized-g") == {"linearized-greedy"}
    assert complete("checkmate compare g.json --strategies keep-all,opt") == {"keep-all,optimal"}


def test_quiet_prints_nothing_and_json_is_one_line_of_truth(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "inspect", "chain.json", "-q") == Ran(0, "", "")
    assert json.loads(run(tmp_path, "inspect", "chain.json", "-q", "--json").out)["status"] == "ok"
