"""PyTorch programs as hostile files, where PyTorch is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from fuzzing import WITH_SOLVING, Kind, Reader
from mutations import damaged_program


def torch_readers() -> dict[str, Reader]:
    """Programs of PyTorch, where it is installed."""
    if find_spec("torch") is None:
        return {}

    @cache
    def good() -> tuple[bytes, ...]:
        from torch_files import resnet_file, tiny_file

        return tiny_file(), resnet_file()

    class Programs(Kind):
        """Made when they are first used: importing torch takes seconds."""

        def __init__(self) -> None:
            super().__init__(lambda draw: damaged_program(draw.choice(good()), draw), ())

        def __getattribute__(self, name: str) -> object:
            return good() if name == "good" else super().__getattribute__(name)

    return {
        "torch": Reader(Programs(), ("inspect", "FILE", "--json"), "model.pt2"),
        "torch-compile": Reader(
            Programs(), ("solve", "FILE", "--strategy", "chen-sqrt", "--budget", "200%", "-q"), "program.pt2", WITH_SOLVING
        ),
    }
