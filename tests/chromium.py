"""A headless Chromium that is driven from a test, through the DevTools protocol."""

import base64
import itertools
import json
import subprocess
import time
import urllib.request

from websockets.sync.client import connect

from test_page import QUIET

# Three dimensions without a graphics card.
DRAWS = [option for option in QUIET if option != "--disable-gpu"]
DRAWS += ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]


def soon(question, seconds=60.0):
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)
    return answer


class Chromium:
    """A browser process; `open` gives a tab."""

    def __init__(self, binary, folder, size=(1280, 800)):
        options = [*DRAWS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"]
        self.process = subprocess.Popen(
            [binary, *options, "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        file = folder / "DevToolsActivePort"
        soon(lambda: file.exists() and len(file.read_text().split()) == 2)
        self.port = int(file.read_text().split()[0])

    def open(self, url):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request) as answer:
            return Tab(json.load(answer)["webSocketDebuggerUrl"], url)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Tab:
    """A page: what it says, what it asks for, what it complains about."""

    def __init__(self, address, url):
        self._numbers, self._events = itertools.count(1), []
        self._socket = connect(address, max_size=None)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (message := json.loads(self._socket.recv(timeout=60))).get("id") != number:
            self._events.append(message)
        assert "error" not in message, message
        return message["result"]

    def value(self, expression):
        """Of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, text):
        """Click on the button with this text."""
        find = f"[...document.querySelectorAll('button')].find((each) => each.textContent.trim() === {text!r})"
        soon(lambda: self.value(f"Boolean({find})"))
        self.value(f"{find}.click()")

    def type(self, place, text):
        """Replace the text of the input that an expression gives."""
        self.value(f"{place}.focus(), {place}.select()")
        self.call("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)

    def pull(self, place, share):
        """Press the mouse on the thing that an expression gives, at its left end, and let go further right."""
        corner = "(({ x, y, width, height }) => [x, y + height / 2, width])"
        x, y, width = self.value(f"{corner}({place}.getBoundingClientRect())")
        steps = [("mousePressed", 0.02), ("mouseMoved", 0.5 * share), ("mouseMoved", share), ("mouseReleased", share)]
        for kind, where in steps:
            at = {"x": x + where * width, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def choose(self, place, text):
        """Pick an option of the dropdown that an expression gives."""
        self.value(f"{place}.click()")
        option = f"[...document.querySelectorAll('[role=option]')].find((each) => each.textContent.trim() === {text!r})"
        soon(lambda: self.value(f"Boolean({option})"))
        self.value(f"{option}.click()")

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def asked_for(self):
        """Every address that the page wanted something from."""
        self.value("0")
        events = [event["params"] for event in self._events if "params" in event]
        return [each["request"]["url"] for each in events if "request" in each] + [
            each["url"] for each in events if "url" in each and "requestId" in each
        ]

    def complaints(self):
        self.value("0")
        return [
            event["params"]
            for event in self._events
            if event["method"] == "Runtime.exceptionThrown"
            or (event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
        ]

    def close(self):
        self.call("Page.close")
        self._socket.close()
