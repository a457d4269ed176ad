"""A document as PDF, printed by a browser that is on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.model import Document

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
# Only the page itself is loaded, which allows neither scripts of others nor requests: no sandbox is
# needed, and none can be had by root or in a container.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--no-pdf-header-footer",
)
_SECONDS = 120
_DATES = re.compile(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}[^)]{0,20}\)")


def browser() -> str | None:
    """Return the path of a browser that can print to PDF, if there is one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def no_browser() -> str:
    """Return a sentence on what is missing to make a PDF; empty if nothing is."""
    if browser():
        return ""
    return (
        "a PDF is printed by a browser, and none is on PATH (chromium, google-chrome or msedge): "
        "install one, or ask for formats=[html] and print the page"
    )


def to_pdf(document: Document) -> bytes:
    """Return a document as PDF, with everything unfolded.

    The same document is the same to the last byte with the same browser and fonts: the dates in
    the file are those of the document.

    Raises
    ------
    UserError : there is no browser, or it could not print.
    """
    path = browser()
    if path is None:
        raise UserError(no_browser())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_text(folder / "page.html", to_html(document.on_paper), mode=0o600)
        printed = folder / "page.pdf"
        paths = [f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={printed}"]
        line = [path, *_FLAGS, *paths, (folder / "page.html").as_uri()]
        try:
            subprocess.run(line, capture_output=True, timeout=_SECONDS, check=True)
            content = printed.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise UserError(
                f"{path} could not print the page as PDF ({type(error).__name__}): ask for "
                "formats=[html] and print it"
            ) from error
    return _DATES.sub(rb"\g<1>" + _date(document) + rb"+00'00')", content)


def _date(document: Document) -> bytes:
    """Return the date of a document as PDF writes it; always of the same length."""
    digits = re.sub(r"\D", "", document.made.when) if document.made else ""
    return f"{digits:0<14.14}".encode() if digits else b"20000101000000"
