"""How a text is written into each form that is made here: once for each, for every text.

Labels, names, options and notes are somebody's data. Whatever they hold is shown, and never obeyed:
by a terminal, a browser, TeX, a reader of Markdown, a word processor, or what draws figures. Signs
that cannot be seen are shown as their codes, by :func:`fairbench.core.formats.visible`. CSV is
written by :func:`fairbench.core.formats.csv_text`, and JSON by `json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from fairbench.core.fingerprint import digest
from fairbench.core.formats import visible

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.text import Text


def one_line(text: str) -> str:
    """Return a text in one line, with every invisible character escaped."""
    return visible(" ".join(text.split()))


def terminal(text: str, style: str = "") -> Text:
    """Return a text for a console: neither markup nor signs that a terminal obeys."""
    from rich.text import Text

    return Text(visible(text, lines=True), style=style)


def html(text: object) -> Markup:
    """Return a text as HTML and SVG show it; what is markup of ours stays as it is."""
    from markupsafe import escape

    return _html(text) if type(text) is str else escape(text)


@lru_cache(maxsize=4096)  # tables repeat their texts
def _html(text: str) -> Markup:
    from markupsafe import escape

    return escape(visible(text, lines=True))


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # arguments of the end of the line before
})  # fmt: skip


def latex(text: str) -> str:
    """Return a text in which what LaTeX takes for commands or ligatures is escaped."""
    return visible(text).translate(_LATEX).replace("--", "-{-}").replace("''", "'{'}")


def latex_comment(text: str) -> str:
    """Return a text as a comment of one line; nothing in the text can end the comment."""
    return f"% {one_line(text)}\n"


_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", "|": "&#124;", **{sign: f"\\{sign}" for sign in "\\`*_[]~$#@"}}
)
_LINKS = re.compile(r"(?i)(://|www\.|mailto:|xmpp:)")
# Lists, quotations, lines under headings, and rules.
_BEGINS = re.compile(r"^(\d*)([-+.)](?=\s|$)|[>=]|-(?=[-\s]+$))")


def markdown(text: str) -> str:
    """Return a text that stays within a line, or a cell of a table, of Markdown."""
    escaped = visible(text.replace("\n", " ")).translate(_MARKDOWN)
    return _LINKS.sub(lambda found: re.sub("([:.])", r"\\\1", found[0]), escaped)


def markdown_paragraph(text: str) -> str:
    """Return a text that is a paragraph or an item of Markdown, and no other kind of block."""
    # Four blanks would make it code.
    return _BEGINS.sub(r"\1\\\2", markdown(text).lstrip(" "), count=1)


def markdown_strong(text: str) -> str:
    """Return a text in bold letters, which blanks at its ends would undo; nothing of none."""
    return f"**{escaped}**" if (escaped := markdown(text).strip()) else ""


def markdown_code(lines: Sequence[str]) -> str:
    """Return lines as a block of code of Markdown, which none of them ends."""
    longest = max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *map(visible, lines), fence])


def word(text: str) -> str:
    """Return a text for a word processor, its lines as lines."""
    return visible(text, lines=True)


def mathtext(text: str) -> str:
    """Return a text for matplotlib: dollars begin no formula.

    An underscore in front does not keep a name out of the legend.
    """
    cleaned = visible(text)
    return " " * cleaned.startswith("_") + cleaned.replace("$", r"\$")


def file_name(name: str) -> str:
    """Return a stored name as one part of a path, plain ones as they are.

    A stranger's record may call its data set ``/`` or ``..``: no file is written elsewhere for it.

    Examples
    --------
    >>> file_name("german"), file_name("../..").startswith("_")
    ('german', True)
    """
    signs = (sign if sign.isalnum() or sign in "-_." else "_" for sign in name.strip(".")[:100])
    plain = "".join(signs).strip(".")
    return name if plain == name and name else f"{plain or '_'}-{digest(name)[:8]}"


def told_apart(texts: Iterable[str], spell: Callable[[str], str]) -> dict[str, str]:
    """Return a spelling of each text that no other has.

    It is what `spell` returns, with a digest of the text where that would be the spelling of two
    and the text is not itself spelled so. The order of the texts changes nothing.

    Examples
    --------
    >>> told_apart(["A-", "B+"], lambda text: text.replace("+", "-"))
    {'A-': 'A-', 'B+': 'B-'}
    >>> told_apart(["A-", "A+"], lambda text: text.replace("+", "-"))["A+"][:3]
    'A--'
    """
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        alike.setdefault(spell(text), []).append(text)
    return {
        text: spelled if text == spelled or len(several) == 1 else f"{spelled}-{digest(text, 8)}"
        for spelled, several in alike.items()
        for text in several
    }
