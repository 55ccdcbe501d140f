"""A real browser to open pages in: Debian's chromium, headless, driven through its debugging pipe with nothing but the standard library."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

PATIENCE = 60.0
"""Seconds to wait for anything; only a browser that hangs takes so long."""


def find_browser() -> str:
    """Its path. Where it is missing the test fails in CI, and is skipped with the reason elsewhere."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        reason = "no chromium here to open the page in: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Page:
    """One tab. Everything its console complains about ends up in `complaints`, every address it asks for in `requests`."""

    def __init__(self, browser: str, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._folder = tempfile.mkdtemp(prefix="checkmate-browser-")
        self._process, self._to, self._from = _launched(browser, self._folder)
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = str(self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"features": [theme]})

    def __enter__(self) -> Page:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):
            self._call("Browser.close")
        for end in (self._to, self._from):
            os.close(end)
        deadline = time.monotonic() + 10
        while os.waitpid(self._process, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(0.02)
        shutil.rmtree(self._folder, ignore_errors=True)

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, path: Path) -> None:
        self.call("Page.navigate", {"url": path.resolve().as_uri()})
        self._wait_for("Page.loadEventFired")

    def run(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def hover(self, selector: str, x: float, y: float) -> None:
        """Move the mouse to a point of an element, in shares of its width and height."""
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.run(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        point = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", **point})

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def picture(self, height: int | None = None) -> bytes:
        """A PNG of what is visible, or of the page down to a height."""
        parameters: dict[str, Any] = {"format": "png"}
        if height is not None:
            clip = {"x": 0, "y": 0, "width": self.run("innerWidth"), "height": height, "scale": 1}
            parameters |= {"clip": clip, "captureBeyondViewport": True}
        return base64.b64decode(self.call("Page.captureScreenshot", parameters)["data"])

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._call(method, parameters, self._session)

    def _call(self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        for received in self._messages():
            if received.get("id") == self._number:
                assert "error" not in received, received["error"]
                return dict(received["result"])
        raise AssertionError("the browser went away")

    def _wait_for(self, event: str) -> None:
        if any(seen["method"] == event for seen in self._events):
            return
        for received in self._messages():
            if received.get("method") == event:
                return

    def _messages(self) -> Iterator[dict[str, Any]]:
        """What the browser says, with events noted on the way."""
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._buffer:
                line, self._buffer = self._buffer.split(b"\0", 1)
                message: dict[str, Any] = json.loads(line)
                if "method" in message:
                    self._note(message)
                yield message
            if time.monotonic() > deadline:
                raise AssertionError("the browser does not answer")
            more = os.read(self._from, 1 << 16)
            if not more:
                return
            self._buffer += more

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        parameters = event["params"]
        match event["method"]:
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.complaints.append(str(parameters["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])


def _launched(browser: str, folder: str) -> tuple[int, int, int]:
    """The process, and the ends of its pipes: it reads commands from descriptor 3 and writes answers to descriptor 4."""
    (commands, to), (back, answers) = _high_pipe(), _high_pipe()
    flags = [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
        *("--remote-debugging-pipe", f"--user-data-dir={folder}"),
    ]
    actions = [
        *((os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)),
        *((os.POSIX_SPAWN_DUP2, end, number) for end, number in ((commands, 3), (answers, 4))),
    ]
    process = os.posix_spawn(browser, [browser, *flags, "about:blank"], os.environ, file_actions=actions)
    os.close(commands)
    os.close(answers)
    return process, to, back


def _high_pipe() -> tuple[int, int]:
    """A pipe whose ends are in nobody's way: neither is 3 or 4."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


@contextmanager
def opened(path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Page]:
    """A page in a browser of its own, loaded."""
    with Page(find_browser(), width, height, dark) as page:
        page.open(path)
        yield page
