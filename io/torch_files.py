"""PyTorch programs in files, and what to say if torch is not installed. Importing this needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UnavailableError
from .formats.content import Content

if TYPE_CHECKING:
    from .torch.files.program_graph import TorchProgram
    from .torch.files.program_training import ProgramTraining


def require_torch() -> None:
    """Raise an error that says what to install if torch is missing or too old."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise UnavailableError("PyTorch is not installed; pip install 'checkmate-remat[torch]'") from None
    from .torch import internals  # noqa: F401


def read_torch_program(
    content: Content, dims: Mapping[str, int], batch_size: int | None, training: ProgramTraining | None = None
) -> TorchProgram:
    """Read a `.pt2` file. Nothing in it is unpickled or run."""
    from .torch.files.archive import open_archive

    archive = open_archive(content)
    require_torch()
    from .torch.files.program_graph import read_program

    stem = Path(content.where).stem if content.where not in ("stdin", "bytes") else "model"
    return read_program(archive, dims, batch_size, training, stem)
