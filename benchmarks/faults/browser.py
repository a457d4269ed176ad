"""Pages in a real browser: what is seen, what is run, what is asked for.

Chromium is spoken to over two pipes, by its DevTools protocol, which needs no other package.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# What the page shows, with everything open; and what no label may have made.
_LOOK = """(() => {
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  document.querySelectorAll(".away").forEach(each => each.classList.remove("away"));
  const all = [...document.querySelectorAll("*")];
  const odd = all.filter(each => ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "FORM", "BASE"].includes(
    each.tagName) || [...each.attributes].some(a => /^on/i.test(a.name)
    || (/^(href|src|action|xlink:href)$/i.test(a.name) && !/^(#|data:|[\\w./-]*$)/.test(a.value))));
  return {hacked: typeof window.hacked !== "undefined", title: document.title,
    text: document.body.innerText, odd: odd.map(each => each.outerHTML.slice(0, 200))};
})()"""


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page.

    Attributes
    ----------
    text : what a reader sees, with everything opened.
    hacked : whether a label's script ran.
    odd : elements that run, load or lead elsewhere, as HTML; the page's own script is one.
    said : what the console had to say, dialogs that opened, and requests beside the page's own.
    """

    title: str
    text: str
    hacked: bool
    odd: list[str]
    said: list[str] = field(default_factory=list)


def browser_path() -> str | None:
    """Return where a browser is, if there is one."""
    return next((result for name in NAMES if (result := shutil.which(name))), None)


@contextlib.contextmanager
def browser(path: str) -> Iterator[Browser]:
    """Start a browser without a window, and end it."""
    asked, answered = os.pipe(), os.pipe()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    flags += ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Chromium reads what it is asked from 3, and answers on 4.
        line = f'exec "$0" "$@" 3<&{asked[0]} 4>&{answered[1]}'
        words = ["bash", "-c", line, path, *flags, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(
            words, pass_fds=(asked[0], answered[1]), stderr=subprocess.DEVNULL
        )
        os.close(asked[0])
        os.close(answered[1])
        with os.fdopen(asked[1], "wb", 0) as to, os.fdopen(answered[0], "rb") as out:
            try:
                yield Browser(to, out)
            finally:
                process.terminate()
                process.wait(20)


class Browser:
    """A browser that runs, with one page."""

    def __init__(self, to: Any, out: Any) -> None:
        """Open an empty page."""
        self._to, self._out = to, out
        self._number, self._session = 0, ""
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, page: Path, *, policy: bool = True) -> Seen:
        """Open a page, with its content security policy or without, and look at it."""
        text = page.read_text(encoding="utf-8")
        result = _POLICY.search(text)
        if not result:
            raise ValueError(f"{page} has no content security policy")
        if not policy:
            page = page.with_name(f"{page.stem}-without-policy.html")
            page.write_text(text.replace(result[0], ""), encoding="utf-8")
        self._events.clear()
        self._ask("Page.navigate", url=page.resolve().as_uri())
        self._until("Page.loadEventFired")
        answer = self._ask("Runtime.evaluate", expression=_LOOK, returnByValue=True)
        seen = answer["result"]["value"]
        return Seen(**seen, said=[s for event in self._events if (s := _said(event, page))])

    def _send(self, method: str, parameters: Mapping[str, Any]) -> int:
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        self._to.write(json.dumps(request).encode() + b"\0")
        return self._number

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = self._send(method, parameters)
        while True:
            message = self._read()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])

    def _until(self, method: str) -> None:
        while all(event["method"] != method for event in self._events):
            self._read()

    def _read(self) -> dict[str, Any]:
        parts = bytearray()
        while (sign := self._out.read(1)) != b"\0":
            if not sign:
                raise RuntimeError("the browser has ended")
            parts += sign
        message: dict[str, Any] = json.loads(parts)
        if "method" in message:
            self._events.append(message)
            if message["method"] == "Page.javascriptDialogOpening":
                self._send("Page.handleJavaScriptDialog", {"accept": True})
        return message


def _said(event: Mapping[str, Any], page: Path) -> str:
    """Return what an event says that is not to happen, nothing of others."""
    of = event["params"]
    match event["method"]:
        case "Log.entryAdded":
            return str(of["entry"]["text"])
        case "Runtime.consoleAPICalled":
            return f"console.{of['type']}"
        case "Runtime.exceptionThrown":
            return str(of["exceptionDetails"]["text"])
        case "Page.javascriptDialogOpening":
            return f"dialog: {of['message']}"
        case "Network.requestWillBeSent":
            url = of["request"]["url"]
            own = url == page.resolve().as_uri() or url.startswith("data:")
            return "" if own else f"request: {url[:100]}"
    return ""
