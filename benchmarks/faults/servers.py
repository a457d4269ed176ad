"""Servers on bad days: one that answers HTTP badly, and MLflow's own, which can be killed."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_PAGE = b"<!DOCTYPE html><html><title>Sign in</title></html>"


@contextlib.contextmanager
def server(
    behaviour: str,
    *,
    pause: float = 0.1,
    target: str = "",
    good: int = 0,
    reached: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Serve badly, and yield the address.

    Parameters
    ----------
    behaviour : "fails" (500), "recovers" (500, then passes on), "hangs" (no answer), "drips" (a
        byte every `pause` seconds, for ever), "swells" (announces a terabyte, and drips), "page" (a
        web page), "cuts" (closes the connection) or "lags" (passes on, `pause` seconds late).
    target : the address of another server, which requests are passed on to.
    good : how many requests are passed on at once before it behaves so; with "recovers", how many
        fail before.
    reached : is called when it begins to behave so.
    """
    stopped, numbers = threading.Event(), itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            number = next(numbers)
            if number == good + 1:
                reached()
            with contextlib.suppress(OSError, http.client.HTTPException):
                if behaviour == "recovers":
                    [self.fails, self.passed_on][number > good]()
                elif number <= good:
                    self.passed_on()
                else:
                    getattr(self, behaviour)()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def started(self, status: int, length: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def fails(self) -> None:
            self.started(500, 0)

        def hangs(self) -> None:
            stopped.wait()

        def cuts(self) -> None:
            pass

        def page(self) -> None:
            self.started(200, len(_PAGE))
            self.wfile.write(_PAGE)

        def drips(self) -> None:
            self.started(200, 2000)
            while not stopped.wait(pause):
                self.wfile.write(b" ")

        def swells(self) -> None:
            self.started(200, 10**12)
            self.wfile.write(bytes(4096))
            while not stopped.wait(pause):
                self.wfile.write(b" ")

        def lags(self) -> None:
            stopped.wait(pause)
            self.passed_on()

        def passed_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(urlsplit(target).netloc)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers))
                result = connection.getresponse()
                content = result.read()
                self.send_response(result.status)
                self.send_header("Content-Type", result.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    before = set(threading.enumerate())
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{made.server_port}"
    finally:
        stopped.set()
        made.shutdown()
        made.server_close()
        for thread in set(threading.enumerate()) - before:  # of work that was given up, too
            thread.join(10)


@dataclass
class Service:
    """A real server of MLflow, which can be killed and started again."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if not self.port:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        kept = ["--backend-store-uri", f"sqlite:///{self.folder / 'server.db'}"]
        kept += ["--artifacts-destination", str(self.folder / "artifacts")]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *words, *kept], stdout=log, stderr=log,
                start_new_session=True, cwd=self.folder,
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            )  # fmt: skip
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.address}/health", timeout=5).close()
                return
            time.sleep(0.2)
        raise TimeoutError("MLflow's server did not start in two minutes")

    def kill(self) -> None:
        """Kill it and its workers, as a loss of power would."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
