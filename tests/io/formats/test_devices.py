"""The device table and devices of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkmate.core.errors import InputError
from checkmate.core.model.costs import Device
from checkmate.io.formats.devices import default_device, device_names, get_device


def test_every_device_of_the_table_is_sound_and_the_default_is_one() -> None:
    assert default_device() in device_names()
    assert get_device() == get_device(default_device())
    for name in device_names():
        device = get_device(name)
        assert device.name == name
        assert 1e10 < device.bytes_per_second < device.flops_per_second
        assert 0 < device.launch_seconds < 1e-4


def test_known_figures() -> None:
    assert get_device("v100") == Device("v100", 15.7e12, 900e9, 5e-6)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        get_device("a10")
    assert str(caught.value).startswith("no device 'a10'; choose from cpu-laptop, ")
    assert str(caught.value).endswith("did you mean 'a100'?")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("flops_per_second: 1e12\nbytes_per_second: 5\n")
    assert get_device(str(path)) == Device("mine", 1e12, 5.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an object {...}, found null"),
        ("[1]", "expected an object {...}, found a list"),
        ("flops_per_second: 1", "the key 'bytes_per_second' is missing"),
        ("flops_per_second: 0\nbytes_per_second: 1", "flops_per_second: must be above 0 and below 1e30"),
        ("flops_per_second: .nan\nbytes_per_second: 1", "flops_per_second: must be above 0 and below 1e30"),
        ("flops_per_second: fast\nbytes_per_second: 1", "flops_per_second: expected a number, found the text 'fast'"),
        ("flop_per_second: 1\nbytes_per_second: 1", "unknown key 'flop_per_second'; did you mean 'flops_per_second'?"),
        ("3: 1", "unknown key '3'"),
        ("a: [", "line 1: not valid YAML: "),
        ("[" * 5000, "nested too deeply"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_hostile_files_get_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        get_device(str(path))
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_said_to_be_missing() -> None:
    with pytest.raises(InputError, match=r"^none\.yaml: cannot be read: no such file"):
        get_device("none.yaml")
