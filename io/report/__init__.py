"""A schedule as one HTML page that needs nothing else: no network, no server, no other file."""

from .page import render_report

__all__ = ["render_report"]
