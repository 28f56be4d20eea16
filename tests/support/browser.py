"""A headless Chromium: one page opened by a command, or driven through the DevTools protocol."""

import itertools
import json
import shutil
import subprocess
import urllib.request

from websockets.sync.client import connect

from support.waiting import DEADLINE, wait_until

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


def open_page(browser, file, folder, *options):
    """Open a page with a browser command; the output includes its console."""
    return subprocess.run(
        [browser, *QUIET, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", *options, file.as_uri()],
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip


# WebGL without a graphics card.
DRAWS = [option for option in QUIET if option != "--disable-gpu"]
DRAWS += ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]


class Chromium:
    """A browser process; `open` gives a tab."""

    def __init__(self, binary, folder):
        options = [*DRAWS, f"--user-data-dir={folder}", "--window-size=640,480"]
        self.process = subprocess.Popen(
            [binary, *options, "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        file = folder / "DevToolsActivePort"
        wait_until(lambda: file.exists() and len(file.read_text().split()) == 2)
        self.port = int(file.read_text().split()[0])

    def open(self, url):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request) as answer:
            return Tab(json.load(answer)["webSocketDebuggerUrl"], url)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()


class Tab:
    """A page: its values, requests and console errors."""

    def __init__(self, address, url):
        self._numbers, self._events = itertools.count(1), []
        self._socket = connect(address, max_size=None)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (message := json.loads(self._socket.recv(timeout=DEADLINE))).get("id") != number:
            self._events.append(message)
        assert "error" not in message, message
        return message["result"]

    def value(self, expression):
        """Of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def asked_for(self):
        """Every URL that the page requested."""
        events = [event["params"] for event in self.events() if "params" in event]
        sockets = [each["url"] for each in events if "url" in each and "requestId" in each]
        return [each["request"]["url"] for each in events if "request" in each] + sockets

    def complaints(self):
        thrown = [event for event in self.events() if event["method"] == "Runtime.exceptionThrown"]
        logged = [event["params"]["entry"] for event in self.events() if event["method"] == "Log.entryAdded"]
        return thrown + [entry for entry in logged if entry["level"] == "error"]

    def events(self):
        self.value("0")  # reads those that have come since the last call
        return self._events
