"""A schedule as one HTML page, which needs no network, no server and no other file."""

from .page import render_report

__all__ = ["render_report"]
