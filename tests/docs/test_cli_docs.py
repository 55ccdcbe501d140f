"""docs/cli.md says everything there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from cli_runs import run, write_chain
from places import DOCS

from checkmate.cli.exit_codes import ExitCode
from checkmate.cli.registry import COMMANDS, all_commands
from checkmate.core.engine.strategies import STRATEGIES

TEXT = (DOCS / "cli.md").read_text(encoding="utf-8")


def test_every_command_strategy_and_exit_code_is_there() -> None:
    assert [command for command in COMMANDS if f"`checkmate {command} " not in TEXT] == []
    assert [strategy for strategy in STRATEGIES if f"`{strategy}`" not in TEXT] == []
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)} == {int(code) for code in ExitCode}


def test_every_option_is_there_and_exists() -> None:
    options = {option.long_name for command in all_commands().values() for option in command.own_options}
    written = set(re.findall(r"--([a-z][a-z-]+)", TEXT))
    assert options - written == set()
    assert written - options == set()


def test_the_config_file_shown_is_accepted(tmp_path: Path) -> None:
    shown = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert yaml.safe_load(shown.group(1))["solve"] == {"budget": "14GB", "dim": {"batch": 32}}
    (tmp_path / "c.yaml").write_text(shown.group(1))
    write_chain(tmp_path)
    ran = run(tmp_path, "compare", "chain.json", "--config", "c.yaml", "--strategies", "keep-all", "--json")
    assert [row["budget"] for row in ran.json["rows"]] == ["90%", "80%", "70%"]


def test_every_key_of_solve_is_there(tmp_path: Path) -> None:
    write_chain(tmp_path)
    keys = run(tmp_path, "solve", "chain.json", "--budget", "100%", "--json").json.keys()
    assert [key for key in keys - {"format", "version"} if f"`{key}`" not in TEXT] == []
