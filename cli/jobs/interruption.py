"""First Ctrl-C: stop soon and keep the best schedule. Second Ctrl-C: exit now.

Solvers spend long times in native code, where Python runs no signal handlers. But the interpreter writes the number of each signal to a
socket as soon as it arrives, and a thread that reads this socket can act at once.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from ...core.errors import InterruptedWorkError
from ..console import Console
from ..exit_codes import ExitCode
from ..failures import report


class Interruption:
    """While open, Ctrl-C only sets a flag. Does nothing in a thread that is not the main thread, because signals do not arrive there."""

    def __init__(self, console: Console, on_request: Callable[[], None]) -> None:
        self.requested = False
        self.consequence = "nothing was written"
        """What a second Ctrl-C at this point leads to."""
        self._console = console
        self._on_request = on_request

    def __enter__(self) -> Interruption:
        self._armed = threading.current_thread() is threading.main_thread()
        if self._armed:
            self._mailbox, self._sender = socket.socketpair()
            self._sender.setblocking(False)
            self._previous_handler = signal.signal(signal.SIGINT, lambda number, frame: None)
            self._previous_wakeup = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
            self._listener = threading.Thread(target=self._listen, name="ctrl-c", daemon=True)
            self._listener.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._armed:
            signal.set_wakeup_fd(self._previous_wakeup)
            signal.signal(signal.SIGINT, self._previous_handler)
            self._sender.close()
            self._listener.join()
            self._mailbox.close()

    def _listen(self) -> None:
        while arrived := self._mailbox.recv(64):
            for number in arrived:
                if number != signal.SIGINT:
                    continue
                if self.requested:
                    self._stop_now()
                self.requested = True
                self._on_request()

    def _stop_now(self) -> None:
        """No clean-up: the main thread may not react for minutes."""
        with suppress(Exception):
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h\n")
            report(InterruptedWorkError(f"interrupted; {self.consequence}"), self._console, [])
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(ExitCode.INTERRUPTED)
