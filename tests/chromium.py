"""Drives a headless Chromium over the pipe of its DevTools protocol: no port, no driver, no package."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shell import PATIENCE


class Chromium:
    """One browser with one page, which notes what the page asks for and complains of."""

    def __init__(self, profile: Path) -> None:
        found = shutil.which("chromium")
        assert found, "no chromium on the PATH: install the package chromium of Debian"
        reads, self._commands = os.pipe()
        self._answers, writes = os.pipe()
        # The browser reads commands from its file 3 and answers on its file 4.
        script = 'reads=$1 writes=$2; shift 2; eval "exec \\"\\$@\\" 3<&$reads 4>&$writes"'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", script, "bash", str(reads), str(writes), found),
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        pages = self.call("Target.getTargets")["targetInfos"]
        (page, *_) = [each["targetId"] for each in pages if each["type"] == "page"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._commands)
        os.close(self._answers)
        self._process.terminate()
        self._process.wait(PATIENCE)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
        raise AssertionError

    def open(self, file: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Load a file, at a width and in a colour scheme."""
        self.requests.clear()
        self.complaints.clear()
        self.show(width=width, scheme=scheme)
        self.call("Page.navigate", url=file.as_uri())
        for answer in self._messages():
            if answer.get("method") == "Page.loadEventFired":
                return

    def show(self, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Return what is loaded another width or colour scheme."""
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **sizes)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="", features=features)

    def run(self, script: str) -> Any:
        """Return the value of a script in the page, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """Return a PNG of what is seen, or of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def printed(self) -> bytes:
        """Return a PDF of the page."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _messages(self) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self._rest:
                ready, _, _ = select.select([self._answers], [], [], max(0, end - time.monotonic()))
                assert ready, "chromium does not answer"
                more = os.read(self._answers, 1 << 20)
                assert more, "chromium ended"
                self._rest += more
            line, self._rest = self._rest.split(b"\0", 1)
            message = json.loads(line)
            self._note(message)
            yield message

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params))


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    browser = Chromium(profile)
    try:
        yield browser
    finally:
        browser.close()
