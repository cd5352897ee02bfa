"""A real browser for tests: Chromium without a window, driven over a pipe with its DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from servers import why_elsewhere

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " "), "ArrowRight": (39, ""), "ArrowLeft": (37, ""),
    "ArrowDown": (40, ""), "ArrowUp": (38, ""), "Escape": (27, ""), "Home": (36, ""), "End": (35, ""),
}  # fmt: skip
PATIENCE = 60.0
"""Seconds for anything that is waited for."""


def why_no_browser() -> str | None:
    """Say why there is no browser to test with, or return None."""
    if elsewhere := why_elsewhere("browser", "make test-app"):
        return elsewhere
    return None if _program() else "Chromium is not installed: apt-get install chromium"


def _program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One tab. What is asked of it waits until it is so, or fails."""

    def __init__(self, write: int, read: int, downloads: Path) -> None:
        self._write, self._read, self.downloads = os.fdopen(write, "wb"), os.fdopen(read, "rb"), downloads
        self._replies: dict[int, Any] = {}
        self._arrived = threading.Condition()
        self._last, self._session = 0, ""
        self.events: list[tuple[str, Any]] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{room}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)

    def _listen(self) -> None:
        rest = b""
        while piece := self._read.read1(1 << 16):
            *messages, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, messages):
                with self._arrived:
                    if "id" in message:
                        self._replies[message["id"]] = message
                    else:
                        self.events.append((message["method"], message["params"]))
                    self._arrived.notify_all()

    def call(self, method: str, **params: Any) -> Any:
        with self._arrived:
            self._last += 1
            number = self._last
        message = {"id": number, "method": method, "params": params}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        with self._arrived:
            assert self._arrived.wait_for(lambda: number in self._replies, PATIENCE), f"no reply to {method}"
            reply = self._replies.pop(number)
        assert "error" not in reply, (method, reply["error"])
        return reply["result"]

    def close(self) -> None:
        """Give the pipes back, after the browser has ended."""
        self._listener.join(PATIENCE)
        self._read.close()
        with suppress(BrokenPipeError):
            self._write.close()

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page again, and wait for the new one: the old one is complete as well."""
        self.run("document.documentElement.dataset.old = 'old'; location.reload()")
        self.wait("document.readyState === 'complete' && !document.documentElement.dataset.old")

    def run(self, script: str) -> Any:
        reply = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait(self, condition: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if self.run(f"Boolean({condition})"):
                    return
            except AssertionError:  # between two pages
                pass
            time.sleep(0.05)
        raise AssertionError(
            f"never came true: {condition}; at {self.run('location.pathname + document.body.innerText')}"
        )

    def page(self, title: str) -> None:
        """Wait for a page by its heading."""
        said = json.dumps(title)
        self.wait(f"document.readyState === 'complete' && document.querySelector('h1')?.innerText.includes({said})")

    def press(self, key: str, times: int = 1, *, shift: bool = False) -> None:
        code, text = KEYS[key]
        name = " " if key == "Space" else key
        about = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def write(self, text: str) -> None:
        """Type into whatever has the focus, in the place of what is there."""
        self.run("document.activeElement.select?.()")
        self.call("Input.insertText", text=text)

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus: it must be reached by the keyboard."""
        for _ in range(400):
            if self.run(f"document.activeElement?.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"Tab never reaches {selector}")

    def click(self, selector: str) -> None:
        self.wait(f"document.readyState === 'complete' && document.querySelector({json.dumps(selector)})")
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'});"
            "const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def choose_file(self, selector: str, path: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def size(self, width: int, height: int = 800, *, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path, *, height: int | None = None) -> None:
        """Keep what the page looks like, as a PNG: all of it, or the first so many pixels."""
        path.parent.mkdir(parents=True, exist_ok=True)
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or 1e9), "scale": 1}
        reply = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(reply["data"]))

    def opened(self, address: str, title: str) -> None:
        """Wait for another tab with a page."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            tabs = self.call("Target.getTargets")["targetInfos"]
            if any(tab["url"] == address and title in tab["title"] for tab in tabs):
                return
            time.sleep(0.05)
        raise AssertionError(f"{address} was not opened: {tabs}")

    def downloaded(self, name: str) -> Path:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if (self.downloads / name).exists():
                return self.downloads / name
            time.sleep(0.05)
        raise AssertionError(f"{name} was not downloaded: {[p.name for p in self.downloads.iterdir()]}")

    def complaints(self) -> list[str]:
        """What the browser wrote to its console: refused by a policy, an error of a script."""
        told = [p["entry"]["text"] for name, p in self.events if name == "Log.entryAdded"]
        return told + [str(p["exceptionDetails"]) for name, p in self.events if name == "Runtime.exceptionThrown"]

    def addresses(self) -> set[str]:
        """All that was asked of anybody."""
        return {p["request"]["url"] for name, p in self.events if name == "Network.requestWillBeSent"}


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium in a folder of its own, give a tab, and end it."""
    program = _program()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="pm-chromium-", ignore_cleanup_errors=True) as folder:
        downloads = Path(folder) / "downloads"
        downloads.mkdir()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()

        def join() -> None:  # the browser reads 3 and writes 4
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3), os.dup2(b, 4)

        arguments = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile", "--disable-gpu"]
        arguments += [
            "--no-first-run",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ]
        arguments += ["--no-sandbox"] if os.getuid() == 0 else []  # as root there is none
        process = subprocess.Popen(
            [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=join,
            pass_fds=(3, 4), env=os.environ | {"HOME": folder},
        )  # fmt: skip
        os.close(theirs_in), os.close(theirs_out)
        tab = Browser(ours_out, ours_in, downloads)
        try:
            yield tab
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
            tab.close()
