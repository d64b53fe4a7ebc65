"""Pages in a real browser: headless Chromium, spoken to over a pipe in its DevTools protocol. No package needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here (Debian: apt install chromium)")

_PATIENCE = 60.0


class Browser:
    """One headless Chromium; a page at a time."""

    def __init__(self, profile: Path) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        self._write, self._read, self._buffer, self._number = ours, theirs, b"", 0
        self.events: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []

        def place() -> None:
            # Chromium reads commands from descriptor 3 and writes to 4. Copies first: a pipe may lie there already.
            one, two = os.dup(to_browser), os.dup(from_browser)
            high_one, high_two = os.dup2(one, 60), os.dup2(two, 61)
            os.dup2(high_one, 3)
            os.dup2(high_two, 4)

        self._process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=place,
            close_fds=False,
        )
        os.close(to_browser)
        os.close(from_browser)
        target = next(t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, width: int, height: int, dark: bool = False, phone: bool = False) -> None:
        """Show a file and wait until it is loaded and its scripts have run."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.scheme(dark)
        self._call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.events.clear()
        self._call("Page.navigate", url=path.resolve().as_uri())
        self._wait(lambda: any(e["method"] == "Page.loadEventFired" for e in self.events))
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")

    def scheme(self, dark: bool) -> None:
        """Let the system be set to dark or light colours."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path: Path, whole: bool = False, selector: str = "") -> Path:
        """What is visible, the whole page, or one element, as PNG."""
        options: dict[str, Any] = {"captureBeyondViewport": whole or bool(selector)}
        if whole or selector:
            script = "document.documentElement" if whole else f"document.querySelector({json.dumps(selector)})"
            box = self.evaluate(
                f"(() => {{ const r = {script}.getBoundingClientRect();"
                "return [r.x + scrollX, r.y + scrollY, r.width, r.height]; })()"
            )
            options["clip"] = dict(zip(("x", "y", "width", "height"), box, strict=True), scale=1)
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", **options)["data"]))
        return path

    def print(self, path: Path) -> Path:
        """The page as PDF."""
        path.write_bytes(base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"]))
        return path

    def complaints(self) -> list[str]:
        """Errors of scripts, and everything that the browser logged as an error, since the page was opened."""
        self.evaluate("0")
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
                found.append(str(parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(str(parameters["entry"]))
        return found

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, without data and blobs that the page made itself."""
        urls = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def close(self) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if not method.startswith("Target."):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda: next((m for m in self._answers if m["id"] == number), None))
        self._answers.remove(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, found: Any) -> Any:
        end = time.monotonic() + _PATIENCE
        while not (answer := found()):
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            block = os.read(self._read, 1 << 20) if ready else b""
            if not block:
                raise AssertionError("Chromium does not answer")
            *messages, self._buffer = (self._buffer + block).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.append(message)
                else:
                    self.events.append(message)
        return answer
