"""A server on bad days: one that answers HTTP badly."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PAGE = b"<!DOCTYPE html><html><title>Sign in</title></html>"


@contextlib.contextmanager
def server(behaviour: str, *, pause: float = 0.1) -> Iterator[str]:
    """Serve badly, and yield the address.

    Parameters
    ----------
    behaviour : "fails" (500), "hangs" (no answer), "drips" (a byte every `pause` seconds, for
        ever), "swells" (announces a terabyte, and drips), "page" (a web page) or "cuts" (closes
        the connection).
    """
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            with contextlib.suppress(OSError):
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

        def drips(self, length: int = 2000, begin: bytes = b"") -> None:
            self.started(200, length)
            self.wfile.write(begin)
            while not stopped.wait(pause):
                self.wfile.write(b" ")

        def swells(self) -> None:
            self.drips(10**12, bytes(4096))

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
