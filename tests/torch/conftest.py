"""pytest takes every log message, and torch.compile then writes every graph of every stage to its trace log: that took most of the time."""

from __future__ import annotations

import logging

logging.getLogger("torch.__trace").disabled = True
