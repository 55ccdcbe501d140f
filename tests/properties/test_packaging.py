"""What is installed is what is on the disk."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import resources

from places import ROOT

import checkmate


def test_every_package_on_the_disk_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {"checkmate"}
    for top in ("cli", "configs", "core", "io", "sample_graphs"):
        for init in (ROOT / top).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            found.add(".".join(("checkmate", *(parts[2:] if parts[:2] == ("cli", "_root") else parts))))
    assert listed == found


def test_the_module_and_the_command_say_the_same_version() -> None:
    printed = subprocess.run([sys.executable, "-m", "checkmate", "--version"], capture_output=True, text=True, check=True).stdout
    assert checkmate.__version__ in printed


def test_the_changelog_knows_this_version() -> None:
    assert re.search(rf"^## \[{re.escape(checkmate.__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_data_files_are_installed() -> None:
    assert (resources.files("checkmate.configs") / "devices.yaml").is_file()
    assert (resources.files("checkmate.io.schemas") / "graph.schema.json").is_file()
    for sample in ("chain", "vgg", "resnet", "unet", "transformer"):
        for suffix in ("json", "onnx"):
            assert (resources.files("checkmate.sample_graphs") / f"{sample}.{suffix}").is_file(), sample
