# SPDX-License-Identifier: GPL-2.0
"""Chromium without a window, operated over the pipe of its DevTools protocol: JSON between NULs, on file
descriptors 3 (to it) and 4 (from it)."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time

WIDTH, HEIGHT = 1500, 900
# Limit in seconds for any reaction of the page.
PATIENCE = 120


class Failure(Exception):
    """The page does not do what it should."""


class Browser:
    def __init__(self, chromium):
        self.profile = tempfile.TemporaryDirectory(prefix="rtrace-page-")
        (browser_in, self.to), (self.answers, browser_out) = os.pipe(), os.pipe()
        command = [
            chromium, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--no-first-run",
            "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage",
            "--hide-scrollbars=false", f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={self.profile.name}",
            "about:blank",
        ]
        # Descriptors that are certainly not 3 and 4, which the shell then makes of them.
        high = [os.dup2(fd, fd + 100) for fd in (browser_in, browser_out)]
        line = f'exec 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", line, "bash", *command], pass_fds=high,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (browser_in, browser_out, *high):
            os.close(fd)
        self.buffer, self.number, self.session, self.problems, self.url = b"", 0, None, [], "file:"
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(info["targetId"] for info in targets if info["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def call(self, method, **params):
        """Calls a method of the protocol; its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def message(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, until - time.monotonic()))[0]:
                raise Failure("the browser does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise Failure("the browser has ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        """Keeps what a page must not do: errors, and requests of anything but itself."""
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith((self.url, "data:", "blob:", "about:")):
            self.problems.append(f"it asks for {params['request']['url']}")

    def evaluate(self, script):
        """The value of an expression in the page; of a promise, what it resolves to."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, script):
        """Until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.evaluate(script):
            if time.monotonic() > until:
                raise Failure(f"never true: {script}; {self.problems}")
            time.sleep(0.05)

    def settle(self):
        """Until what was asked for is painted."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def open(self, path):
        """Opens a file, or an address. The page may ask for what is below it, and for nothing else."""
        self.url = path if path.startswith("http:") else f"file://{os.path.abspath(path)}"
        self.call("Page.navigate", url=self.url)
        self.wait("document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'")
        self.settle()

    def key(self, key, text=None, modifiers=0):
        """Presses a key: its name, and the text that it gives."""
        text = key if text is None and len(key) == 1 else text
        pressed = {"key": key, "modifiers": modifiers, **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown", **pressed)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)
        self.settle()

    def mouse(self, kind, x, y, **params):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1)
        self.settle()

    def drag(self, start, end, modifiers=0):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        for part in range(1, 6):
            x, y = (a + (b - a) * part / 5 for a, b in zip(start, end))
            self.mouse("mouseMoved", x, y, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=modifiers)
        self.settle()

    def screenshot(self, path):
        self.settle()
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
