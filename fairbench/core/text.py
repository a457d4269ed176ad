"""How numbers and texts are written, so that sentences, tables and pages write them alike.

First numbers and labels in words (:func:`number`, :func:`interval`, :func:`label_notes`), then CSV
(:func:`csv_text`), then how a text is written into each form that is made here, once for every
text. Labels, names, options and notes are somebody's data. Whatever they hold is shown, and never
obeyed: by a terminal, a browser, TeX, a reader of Markdown, a word processor, or what draws
figures. Signs that cannot be seen are shown as their codes, by :func:`visible`.

Data sets word their notes on labels with it: what is added here is part of the code that every
cell's id is made of, and has all cells fitted again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from importlib import resources
from math import isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from unicodedata import category, normalize

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from markupsafe import Markup
    from numpy.typing import NDArray
    from rich.text import Text

_LARGE = 100  # from which a number has one decimal
_TINY = 5e-5  # under which a number is written with two digits in place of decimals
_ROUNDING = 1e-14  # what may be left where equal numbers are subtracted
_NONE = "-"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with every sign that does something in place of being shown as its code.

    Escape sequences of a terminal, marks that turn the direction of writing round, and line breaks
    (which stay if `lines`): a label of somebody's data may hold them, and must not be obeyed.

    Examples
    --------
    >>> print(visible("\x1b[31mred"))
    \x1b[31mred
    """
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(sign if _shown(sign) or sign in kept else repr(sign)[1:-1] for sign in text)


def shortened(text: str, most: int = 60) -> str:
    """Return a text of somebody's data that fits in a sentence, its middle left out if need be."""
    return text if len(text) <= most else f"{text[: most - 20]}...{text[-15:]}"


def quoted(value: object, most: int = 60) -> str:
    """Return a value of somebody's data in quotation marks, short enough for a sentence."""
    return repr(shortened(str(value), most))


def _shown(sign: str) -> bool:
    return sign.isprintable() or category(sign) == "Zs"  # spaces of any width


def label_notes(column: str, labels: Iterable[str]) -> Iterator[str]:
    """Yield sentences on labels that a reader could take for one another.

    They are different groups all the same, as they are for pandas: nothing is merged.

    Parameters
    ----------
    labels : the different labels of a column as they are written, empty for none.

    Examples
    --------
    >>> *label_notes("sex", ["male", "Male ", "female"]),
    ("sex: 'Male ' and 'male' look alike, and are different groups",)
    """
    alike: dict[str, list[str]] = {}
    for label in sorted(labels := set(labels)):
        alike.setdefault(_look(label), []).append(label)
    for several in alike.values():
        if len(several) > 1:
            *most, last = (_code(label) for label in several[:_MOST_ALIKE])
            more = f" (and {len(several) - _MOST_ALIKE} more)" if several[_MOST_ALIKE:] else ""
            listed = f"{', '.join(most)} and {last}{more}"
            yield f"{column}: {listed} look alike, and are different groups"
    if "" in labels and (name := missing_name(labels)) in labels:
        yield f"{column}: rows without a label are counted with those of the label '{name}'"


MISSING = "unknown"  # the group of rows without a label


def missing_name(labels: Iterable[str]) -> str:
    """Return what rows without a label are called: as their column has it, such as ``Unknown``."""
    said = {label for label in labels if label.strip().casefold() == MISSING}
    return MISSING if MISSING in said else min(said, default=MISSING)


def is_missing_name(group: str) -> bool:
    """Say whether a group, or part of a combination of groups, is that of rows without a label.

    Examples
    --------
    >>> is_missing_name("Female x Unknown"), is_missing_name("Female")
    (True, False)
    """
    return MISSING in (part.strip().casefold() for part in group.split(" x "))


_MOST_ALIKE = 4


def _look(label: str) -> str:
    """Return what is left of a label without case, blanks, invisible signs and spelling."""
    seen = "".join(sign for sign in normalize("NFKC", label) if _shown(sign) or sign.isspace())
    seen = " ".join(seen.casefold().split())
    if _DIGITS.fullmatch(seen):
        return str(Decimal(seen).normalize())
    return seen


_DIGITS = re.compile(r"[+-]?[0-9]{1,99}(\.[0-9]{0,99})?")


def _code(label: str) -> str:
    shown = ascii(label)
    return shown if len(shown) <= _LONG_LABEL else f"{shown[:20]}...{shown[-20:]}"


_LONG_LABEL = 50


def fixed(value: float, decimals: int = 3, sign: str = "") -> str:
    """Return a number with its decimals, or two digits of one that all would write as 0.

    Examples
    --------
    >>> fixed(0.00314), fixed(0.0000314), fixed(0.0)
    ('0.003', '3.1e-05', '0.000')
    """
    if _ROUNDING < abs(value) < _TINY:
        return f"{value:{sign}.2g}"
    return f"{value:{sign}.{decimals}f}"


def number(value: float, decimals: int = 3) -> str:
    """Return a number, a dash for one that is undefined."""
    if isnan(value):
        return _NONE
    return fixed(value, decimals if abs(value) < _LARGE else 1)


def signed(value: float, decimals: int = 3) -> str:
    """Return a number with its sign."""
    return _NONE if isnan(value) else fixed(value, decimals, "+")


def interval(lower: float, upper: float, decimals: int = 3) -> str:
    """Return the ends of an interval, nothing of one that is undefined."""
    if isnan(lower):
        return ""
    if _ROUNDING < max(abs(lower), abs(upper)) < 0.5 * 10.0**-decimals:
        return f"{lower:.2g} to {upper:.2g}"
    # An end near 0 is written as 0 beside one that is not.
    ends = (0.0 * end if abs(end) < _TINY else end for end in (lower, upper))
    return " to ".join(number(end, decimals) for end in ends)


def with_interval(value: float, lower: float, upper: float, decimals: int = 3) -> str:
    """Return a number, and its interval in brackets if it has one."""
    ends = interval(lower, upper, decimals)
    return number(value, decimals) + (f" ({ends})" if ends else "")


def probability(value: float) -> str:
    """Return a probability, never as 0 or 1: it was simulated."""
    if isnan(value):
        return _NONE
    if value < 0.01:
        return "<0.01"
    return ">0.99" if value > 0.99 else f"{value:.2f}"


def two_digits(value: float) -> str:
    """Return a count to two digits, which is as sure as a simulation of it is."""
    return count(float(f"{value:.2g}"))


def percent(value: float) -> str:
    """Return a probability in percent; what is only near is not written as 0 or 100."""
    if isnan(value):
        return _NONE
    if 0 < value < 0.01:
        return "<1"
    return ">99" if 0.99 < value < 1 else f"{100 * value:.0f}"


def count(value: float) -> str:
    """Return a whole number with separators."""
    return _NONE if isnan(value) else f"{value:,.0f}"


# Signs of full width, too: some spreadsheets take them for their plain forms. So do some for blanks
# before a formula.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_CODE = re.compile(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")  # of a sign, or a backslash


def listed(names: Sequence[str], most: int = 0) -> str:
    """Return names as a sentence lists them; after so many, how many more there are."""
    names = list(dict.fromkeys(names))
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {count(len(names) - most)} more"
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as ``1 trial`` or ``2 trials``."""
    return f"{count(number)} {noun}{'s' if number != 1 else ''}"


def some_of(names: Sequence[str]) -> str:
    """Return names joined by "and"; of many the first three, and how many more there are."""
    more = [f"{count(len(names) - 3)} more"] if len(names) > 3 else []
    return " and ".join([*names[:3], *more])


def natural(name: str) -> list[tuple[Decimal, str]]:
    """Return a key that sorts names by the numbers in them, which may have any number of digits."""
    return [(Decimal(part if part.isdecimal() else 0), part) for part in re.split(r"(\d+)", name)]


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV that a spreadsheet shows as it is, without its index.

    A text that a spreadsheet would compute, such as ``=A1+1``, has an apostrophe before it, which
    spreadsheets take for "this is text". Signs that cannot be seen are written as their codes, and
    the backslashes of a text that holds such codes twice. :func:`read_csv` undoes both.
    """
    missing = table.isna().to_numpy().T
    columns = [
        _written(column, gone) for (_, column), gone in zip(table.items(), missing, strict=True)
    ]
    rows = [[_guarded(str(name)) for name in table], *zip(*columns, strict=True)]
    written = _csv_of(rows, csv.QUOTE_MINIMAL)
    # A carriage return would end a row unless all texts are in quotation marks.
    return _csv_of(rows, csv.QUOTE_NONNUMERIC) if "\r" in written else written


def _written(column: pd.Series, missing: NDArray[np.bool_]) -> list[Any]:
    """Return the values of a column as CSV has them, with nothing for what is missing."""
    if missing.all():
        return [""] * len(column)
    values: list[Any] = column.tolist()
    if column.dtype.kind not in "biuf":
        texts = {value: _guarded(value) for value in {*values} if isinstance(value, str)}
        values = [texts.get(value, value) for value in values]
    if missing.any():
        values = ["" if gone else value for value, gone in zip(values, missing, strict=True)]
    return values


def _csv_of(rows: Sequence[Sequence[Any]], quoting: Literal[0, 2]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n", quoting=quoting).writerows(rows)
    return file.getvalue()


def read_csv(file: Path | IO[bytes], texts: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table that :func:`csv_text` wrote.

    Parameters
    ----------
    texts : columns that are texts whatever they look like, such as a label ``01`` or ``NA``.
    """
    import pandas as pd

    content = file.read_bytes() if isinstance(file, Path) else file.read()
    names = next(csv.reader(io.StringIO(content.decode(), newline="")), [])
    # Not by converters: from pandas 3.1 on, what they return is looked through for missing values.
    table = pd.read_csv(
        io.BytesIO(content),
        dtype=dict.fromkeys(texts, str),
        keep_default_na=False,
        float_precision="round_trip",  # the very numbers that were written
        na_values={name: _MISSING_VALUES for name in names if name not in texts},
    )
    # Looking through every text takes longer than reading them did.
    return _renamed(table, _unguarded) if b"'" in content or b"\\" in content else table


_MISSING_VALUES = ["", "nan", "NaN", "NA", "N/A", "n/a", "null", "NULL", "None", "<NA>"]


def _renamed(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return a table with its texts, and the names of its columns, changed."""
    texts = {name: {text: change(text) for text in _strings(table[name])} for name in table}
    changed = {
        name: table[name].map(new)
        for name, new in texts.items()
        if any(text != written for text, written in new.items())
    }
    return table.assign(**changed).rename(columns=change)


def _strings(column: pd.Series) -> list[str]:
    """Return the different texts of a column."""
    if column.dtype.kind in "biufcmM":
        return []
    return [each for each in column.unique() if isinstance(each, str)]


def _guarded(text: str) -> str:
    if not text.isprintable() or ("\\" in text and _CODE.search(text)):
        text = "".join(
            sign if sign in "\t\r\n" or _shown(sign) else repr(sign)[1:-1]
            for sign in text.replace("\\", "\\\\")
        )
    return f"'{text}" if _FORMULA.match(text) and not is_number(text) else text


def _unguarded(text: str) -> str:
    text = text[1:] if text[:1] == "'" and _FORMULA.match(text) else text
    return _CODE.sub(lambda c: c[1] if c[1] == "\\" else chr(int(c[1][1:], 16)), text)


def is_number(text: str) -> bool:
    """Say whether a text is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def digest(content: Any, length: int = 20) -> str:
    """Return the hash of a JSON-like value; equal values in any key order hash alike."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@cache
def declared_in(package: str, file: str = "sentences.toml") -> dict[str, Any]:
    """Return what a TOML file of a package declares: the templates of its sentences, by name.

    Parameters
    ----------
    package : the name of a package of fairbench, such as ``cli``, or of an extension.
    """
    own = Path(__file__).parents[1] / package
    path = (own if own.is_dir() else resources.files(package)) / file
    return tomllib.loads(path.read_text(encoding="utf-8"))


def said(package: str, name: str, /, **values: object) -> str:
    """Return a sentence of a package's ``sentences.toml``, with its values."""
    sentence: str = declared_in(package)[name]
    return sentence.format(**values)


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
    escaped = visible(text).translate(_LATEX)
    for sign in "-',":
        escaped = escaped.replace(2 * sign, f"{sign}{{{sign}}}")
    return escaped


_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", "|": "&#124;", **{sign: f"\\{sign}" for sign in "\\`*_[]~$#@"}}
)
_LINKS = re.compile(r"(?i)(://|www\.|mailto:|xmpp:)")


def markdown(text: str) -> str:
    """Return a text that stays within a line, or a cell of a table, of Markdown."""
    escaped = visible(text.replace("\n", " ")).translate(_MARKDOWN)
    return _LINKS.sub(lambda found: re.sub("([:.])", r"\\\1", found[0]), escaped)


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
