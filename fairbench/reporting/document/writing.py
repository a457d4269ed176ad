"""Writing a document into a folder, in the requested forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import write_bytes, write_text
from fairbench.core.safe_open import is_file, opened
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.latex import to_latex_document
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.pdf import no_browser, to_pdf
from fairbench.reporting.document.plain_text import to_markdown
from fairbench.reporting.document.word import to_word


@dataclass(frozen=True)
class Form:
    """A form that documents are written in.

    Attributes
    ----------
    ending : the ending of its files.
    write : makes the content of a file.
    suffix : the end of its files' names, before the ending.
    missing : returns a sentence on what this machine lacks to write it; empty if nothing.
    """

    ending: str
    write: Callable[[Document], str | bytes]
    suffix: str = ""
    missing: Callable[[], str] = str


# The name of every form.
FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "html": Form("html", to_html),
        "json": Form("json", to_json),
        "latex": Form("tex", to_latex_document),
        "markdown": Form("md", to_markdown),
        "pdf": Form("pdf", to_pdf, missing=no_browser),
        "summary": Form("pdf", lambda document: to_pdf(document.summary_alone), "-summary"),
        "word": Form("docx", to_word),
    }
)
_WITHOUT_BROWSER = MappingProxyType(
    {"summary": Form("html", lambda document: to_html(document.summary_alone), "-summary")}
)
USUAL = ("html", "json")


def form_of(name: str) -> Form:
    """Return how a form is written on this machine: without a browser, a summary is HTML."""
    return _WITHOUT_BROWSER.get(name, FORMS[name]) if no_browser() else FORMS[name]


def check_forms(forms: Sequence[str]) -> None:
    """Refuse a form that no document is written in, or that this machine cannot write.

    Raises
    ------
    UserError : an unknown form, which names those there are; or what is missing for one.
    """
    for form in forms:
        if form not in FORMS:
            raise unknown_name("form", form, list(FORMS))
        if missing := FORMS[form].missing():
            raise UserError(f"formats=[{form}]: {missing}")


def check_page(path: Path) -> None:
    """Refuse to write a page over a file that is none.

    Raises
    ------
    UserError : somebody else's file is there.
    """
    if is_file(path):
        with open(opened(path), "rb") as file:
            if file.read(len(_HEAD)) != _HEAD:
                raise UserError(f"{path} is no page of fairbench's: move it away, or rename it")


# The first line of every page, also of pages by earlier versions.
_HEAD = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
"""[:-1]


def write_document(
    document: Document, folder: Path, name: str, forms: Sequence[str] = USUAL, *, mode: int = 0o666
) -> list[str]:
    """Write ``<name>.<ending>`` for every form, and the further files; return their names.

    Parameters
    ----------
    mode : the permissions of the files.

    Raises
    ------
    UserError : an unknown form.
    OSError : a place that cannot be written to.
    """
    check_forms(forms)
    names = []
    for form in dict.fromkeys(forms):
        how = form_of(form)
        content = how.write(document)
        file = f"{name}{how.suffix}.{how.ending}"
        if isinstance(content, bytes):
            write_bytes(folder / file, content, mode=mode)
        else:
            write_text(folder / file, content, mode=mode)
        names.append(file)
    for file, text in document.files.items():
        write_text(folder / file, text, mode=mode)
    return [*names, *document.files]
