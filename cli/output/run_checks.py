"""Show the checks of a compiled model, for `verify` and for `solve --verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .amounts import shown
from .render import Column, Fact, Row, show_facts, show_lines, show_table

if TYPE_CHECKING:
    from ...io.onnxruntime.checks import Check
    from ...io.onnxruntime.verification import Verification

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


def verification_fields(verification: Verification) -> dict[str, Any]:
    return {
        verification.runtime: verification.version,
        "budget_bytes": verification.budget,
        "checks": [_check_fields(check) for check in verification.checks],
    }


def _check_fields(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "status": check.outcome.value,
        "summary": check.summary,
        "details": list(check.details),
        **check.figures,
    }


def show_verification(verification: Verification, compiled: str) -> None:
    """The verdict, and a line for each check."""
    verdict = "passed" if verification.passed else "failed"
    style = "bold green" if verification.passed else "bold red"
    show_facts(
        shown(compiled),
        [Fact("verdict", verdict, "", style), Fact("model", shown(compiled), f"{verification.runtime} {verification.version}")],
    )
    show_checks(verification)


def show_checks(verification: Verification) -> None:
    """A line for each check, then the details of those that failed."""
    rows = [Row((check.name, check.outcome.value, shown(check.summary)), _STYLES[check.outcome.value]) for check in verification.checks]
    show_table("Checks", [Column("check"), Column("outcome"), Column("result")], rows)
    details = [f"  {check.name}: {shown(detail)}" for check in verification.checks for detail in check.details]
    if details:
        show_lines("Details", details)
