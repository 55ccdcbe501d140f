"""PyTorch programs: what is needed to use them."""

from __future__ import annotations

from ..core.errors import UnavailableError


def require_torch() -> None:
    """Raise an error that says what to install if torch is missing or too old."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise UnavailableError("PyTorch is not installed; pip install 'checkmate-remat[torch]'") from None
    from ..io.torch import internals  # noqa: F401
