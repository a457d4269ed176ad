"""Writing a document into a folder, in the forms that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from fairbench.core.door import is_file, opened
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import write_bytes, write_text
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.latex import to_latex_document
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.plain_text import to_markdown
from fairbench.reporting.document.word import to_word

# What each form is called, how its file ends, and what writes it.
FORMS: Mapping[str, tuple[str, Callable[[Document], str | bytes]]] = MappingProxyType(
    {
        "html": ("html", to_html),
        "json": ("json", to_json),
        "latex": ("tex", to_latex_document),
        "markdown": ("md", to_markdown),
        "word": ("docx", to_word),
    }
)
USUAL = ("html", "json")


def check_forms(forms: Sequence[str]) -> None:
    """Refuse a form that no document is written in.

    Raises
    ------
    UserError : an unknown form; names those there are.
    """
    for each in forms:
        if each not in FORMS:
            raise unknown_name("form", each, list(FORMS))


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


# Begins every page, of earlier versions too.
_HEAD = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
"""[:-1]


def write_document(
    document: Document, folder: Path, name: str, forms: Sequence[str] = USUAL, *, mode: int = 0o666
) -> list[str]:
    """Write ``<name>.<ending>`` for each form, and the further files; return their names.

    Parameters
    ----------
    mode : says who may read them.

    Raises
    ------
    UserError : an unknown form.
    OSError : a place that cannot be written to.
    """
    check_forms(forms)
    names = []
    for form in dict.fromkeys(forms):
        ending, write = FORMS[form]
        content, file = write(document), f"{name}.{ending}"
        if isinstance(content, bytes):
            write_bytes(folder / file, content, mode=mode)
        else:
            write_text(folder / file, content, mode=mode)
        names.append(file)
    for file, text in document.files.items():
        write_text(folder / file, text, mode=mode)
    return [*names, *document.files]
