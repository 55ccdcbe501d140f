"""Checkmate: rematerialization schedules that fit a memory budget."""

__version__ = "0.1.0"
