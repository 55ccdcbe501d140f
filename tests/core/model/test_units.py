"""Sizes and budgets as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkmate.core.errors import InputError
from checkmate.core.model.units import format_bytes, parse_budget, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8 GB", 8 * 10**9),
        ("8gb", 8 * 10**9),
        ("8G", 8 * 10**9),
        ("8GiB", 8 * 2**30),
        ("1.5MiB", 3 * 2**19),
        ("8e9", 8 * 10**9),
        ("1.330e10", 13_300_000_000),
        ("123", 123),
        ("123B", 123),
        ("1_000", 1000),
        ("0.1GB", 10**8),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_budget(text).resolve(10**6) == size


@pytest.mark.parametrize("text", ["", "GB", "8XB", "-1", "-8GB", "nan", "inf", "1e999", "8GBs", "0x10", "1e30", "٣GB", "9" * 5000])
def test_what_is_no_size_is_one_clear_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["0", "0GB", "0%", "-5%", "nan%", "%", "inf%", "abc%"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(InputError):
        parse_budget(text)


@pytest.mark.parametrize(("text", "bytes_"), [("80%", 800), ("0.05%", 0), ("120%", 1200), ("33.3%", 333)])
def test_a_share_is_of_the_keep_everything_peak(text: str, bytes_: int) -> None:
    assert parse_budget(text).resolve(1000) == bytes_


@given(st.integers(1, 10**4))
def test_whole_percentages_never_round_below_themselves(percent: int) -> None:
    """80% of a peak divisible by 100 is exact: float error must not take a byte off."""
    assert parse_budget(f"{percent}%").resolve(10**12) == percent * 10**10


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (13153337344, "13.15 GB"), (1000, "1 kB"), (999_999, "1 MB"), (5 * 10**15, "5000 TB")]
)
def test_formatting(size: int, text: str) -> None:
    assert format_bytes(size) == text
