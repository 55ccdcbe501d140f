"""`checkmate compare`: every strategy is a row, whatever becomes of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from unittest.mock import patch

from cli_runs import Ran, chain_document, files_in, run, write_chain

from checkmate.cli.commands.compare import COLUMNS
from checkmate.core.engine.strategies import STRATEGIES
from checkmate.core.errors import UnavailableError, VerificationError


def test_all_strategies_at_all_budgets_in_order(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    found = run(tmp_path, "compare", "chain.json", "--budgets", "100%,4,2", "--json").json
    assert [(row["budget"], row["strategy"]) for row in found["rows"]] == [
        (budget, name) for budget in ("100%", "4", "2") for name in STRATEGIES
    ]
    rows = {(row["budget"], row["strategy"]): row for row in found["rows"]}
    assert rows["100%", "keep-all"]["status"] == "optimal"
    assert (rows["4", "keep-all"]["fits"], rows["4", "keep-all"]["gap"]) == (False, None)
    assert (
        rows["4", "auto"]["cost"]
        == rows["4", "optimal"]["cost"]
        <= min(row["cost"] for row in found["rows"] if row["budget"] == "4" and row["fits"])
    )
    assert all(rows["2", name]["status"] == "infeasible" and "3 B" in rows["2", name]["note"] for name in STRATEGIES)
    assert (found["ideal_cost"], found["smallest_budget_bytes"], found["keep_all_peak_bytes"]) == (9, 3, 6)


def test_the_table_tells_fitting_from_not_fitting_and_why_not(tmp_path: Path) -> None:
    document = chain_document(4)
    document["operations"][3]["inputs"].append("op1")
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "compare", "g.json", "--budgets", "5,2", "--strategies", "keep-all,griewank,last-node")
    assert ran.code == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}
    assert " no " in lines["keep-all"]
    assert "not a chain" in lines["griewank"]
    assert " yes " in lines["last-node"]
    assert "no schedule fits" in ran.out
    assert ran.err == ""


def rows_of(ran: Ran) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ran.out)))


def test_csv_goes_to_stdout_or_to_a_file(tmp_path: Path) -> None:
    write_chain(tmp_path)
    command = ("compare", "chain.json", "--strategies", "keep-all,last-node", "--budgets", "50%")
    rows = rows_of(run(tmp_path, *command, "--csv"))
    assert [(row["strategy"], row["fits"], row["peak_bytes"]) for row in rows] == [("keep-all", "false", "10"), ("last-node", "true", "3")]
    assert list(rows[0]) == list(COLUMNS)
    ran = run(tmp_path, *command, "--csv", "table.csv", "--json")
    assert ran.json["outputs"] == ["table.csv"]
    written = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [row["cost"] for row in written] == [row["cost"] for row in rows]
    assert "wrote table.csv" in run(tmp_path, *command, "--csv", "table.csv").out


def test_json_and_csv_cannot_share_stdout(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "compare", "chain.json", "--budgets", "5", "--json", "--csv").code == 2


def test_a_graph_is_not_mistaken_for_the_csv_file(tmp_path: Path) -> None:
    before = write_chain(tmp_path).read_bytes()
    assert run(tmp_path, "compare", "--budgets", "5", "--csv", "chain.json").code == 2
    assert run(tmp_path, "compare", "chain.json", "--budgets", "5", "--csv", "chain.json").code == 2
    assert (tmp_path / "chain.json").read_bytes() == before


def test_a_strategy_that_fails_is_a_row_and_only_a_broken_promise_is_an_error(tmp_path: Path) -> None:
    write_chain(tmp_path)
    command = ("compare", "chain.json", "--budgets", "50%", "--strategies", "keep-all,last-node", "--json")
    for failure, code, status in (
        (UnavailableError("no licence"), 0, "error"),
        (VerificationError("wrong peak"), 6, "error"),
        (ZeroDivisionError("oops"), 1, "bug"),
    ):
        with patch("checkmate.cli.commands.compare.run_strategy", side_effect=failure):
            ran = run(tmp_path, *command)
        assert ran.code == code
        assert [(row["status"], str(failure) in row["note"]) for row in ran.json["rows"]] == [(status, True)] * 2
    assert files_in(tmp_path) == {"chain.json"}
