"""A real browser, driven through its own protocol over a pipe: clicks, forms, and what it asked for."""

import base64
import json
import os
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser.

    ``requests``: addresses of all that it has asked for. ``complaints``: lines of its console, and errors.
    """

    def __init__(self, folder):
        own, theirs = os.pipe(), os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        script = f'exec 3<&{own[0]} 4>&{theirs[1]}; exec "$@"'
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "chromium", *command],
            pass_fds=(own[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(own[0])
        os.close(theirs[1])
        self._out, self._in = os.fdopen(own[1], "wb", 0), os.fdopen(theirs[0], "rb", 0)
        self._buffer, self._last, self._session = b"", 0, None
        self.requests, self.complaints, self.loaded = [], [], 0
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self._folder = folder
        # Of the browser, not of the page: no session.
        session, self._session = self._session, None
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self._session = session

    def call(self, method, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == self._last:
                assert "error" not in got, got
                return got["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            more = self._in.read(1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        got = json.loads(line)
        about = got.get("params", {})
        match got.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(about["entry"]["text"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.complaints.append(str(about))
            case "Page.loadEventFired":
                self.loaded += 1
        return got

    def until_loaded(self, before=None):
        before = self.loaded if before is None else before
        while self.loaded == before:
            self._read()

    def open(self, address):
        before = self.loaded
        self.call("Page.navigate", url=address)
        self.until_loaded(before)

    def tell(self, expression):
        """What a line of JavaScript says, in the page."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def type(self, selector, text):
        self.tell(f"document.querySelector({selector!r}).focus()")
        self.call("Input.insertText", text=text)

    def fill(self, selector, text):
        """Write into a field what stands there from now on."""
        self.tell(f"document.querySelector({selector!r}).value = ''")
        self.type(selector, text)

    def select(self, selector, value):
        """Choose from a list, or tick what a form offers."""
        self.tell(
            f"""(() => {{
              const one = document.querySelector({selector!r});
              one[one.tagName == 'SELECT' ? 'value' : 'checked'] = {json.dumps(value)};
            }})()"""
        )

    def give(self, selector, path):
        """Choose a file."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, text, loads=True):
        """Click a button or link with this text, as with a mouse."""
        self.call("Page.bringToFront")
        place = self.tell(
            f"""(() => {{
              const all = [...document.querySelectorAll('button, a, summary')];
              const one = all.find(e => e.innerText == {text!r});
              one.scrollIntoView({{block: 'center'}});
              const box = one.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        before = self.loaded
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )
        if loads:
            self.until_loaded(before)

    def enter(self):
        """Press the key, where the focus is."""
        before = self.loaded
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)
        self.until_loaded(before)

    def text(self):
        return self.tell("document.body.innerText")

    def downloaded(self, pattern):
        """A file that comes; the browser takes a moment to write it."""
        while not (found := [one for one in self._folder.glob(pattern) if one.stat().st_size]):
            time.sleep(0.05)
        return found[0].read_text(encoding="utf-8-sig")

    def is_wider_than(self, width):
        """Whether a page must be moved sideways in a window of that width."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        return self.tell("document.documentElement.scrollWidth") > width

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self):
        self._process.kill()
        self._process.wait()
        self._out.close()
        self._in.close()
