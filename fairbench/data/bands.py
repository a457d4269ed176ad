"""Numbers in bands, such as ages: asked for where their column is named, as ``age:25,40,62``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError, UserError
from fairbench.core.formats import MISSING, is_number, shortened
from fairbench.data.tabular import numbers

_NUMBER = r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)\s*"
_MOST_PARTS = 1000
_FEW_CODES = 12  # this many distinct numbers or fewer may be codes of groups
_QUANTILES = re.compile(r"quantiles\((\d+)\)")
_BANDED = re.compile(rf".+:(?:{_QUANTILES.pattern}|{_NUMBER}(?:,{_NUMBER})*)", re.DOTALL)
_BAND = re.compile(r"under (?P<top>\S+)|(?P<low>\S+) (?:to under \S+|and over)")


def bands_apart(named: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of groups, and the bands of those that have some, as ``age:25,40,62``.

    Parameters
    ----------
    named : the items of ``group=``, as a list of a command line or of Python has them: bands may
        be one item or one a number.

    Examples
    --------
    >>> bands_apart(["sex", "age:25", "40", "62"])
    (('sex', 'age'), ('age:25,40,62',))
    """
    joined: list[str] = []
    for item in named:
        if joined and re.fullmatch(_NUMBER, item) and _BANDED.fullmatch(joined[-1]):
            joined[-1] += f",{item}"
        else:
            joined.append(item)
    cuts = tuple(item for item in joined if _BANDED.fullmatch(item))
    return tuple(item.rpartition(":")[0] if item in cuts else item for item in joined), cuts


def check_bands(cuts: Iterable[str], option: str = "group") -> None:
    """Refuse bands that are none: limits that do not rise, or fewer than two parts.

    Parameters
    ----------
    option : the one that they were given by.
    """
    for cut in cuts:
        name, _, spec = cut.rpartition(":")
        if not _BANDED.fullmatch(cut):  # only a stored state may hold such
            raise UserError(
                f"{option}={shortened(cut)}: bands are a column and limits, such as age:25,40,62"
            )
        parts = _QUANTILES.fullmatch(spec)
        if parts and not 2 <= int(parts[1][:5]) <= _MOST_PARTS:
            raise UserError(
                f"{option}={shortened(cut)}: name 2 to {_MOST_PARTS} parts, such as "
                f"{name}:quantiles(4)"
            )
        if not parts and (np.diff([float(limit) for limit in spec.split(",")]) <= 0).any():
            raise UserError(
                f"{option}={shortened(cut)}: the limits of bands rise, such as {name}:25,40,62"
            )


def with_bands(frame: pd.DataFrame, cuts: Iterable[str], file: str) -> pd.DataFrame:
    """Return a table with the numbers of some columns as the bands that they lie in.

    Parameters
    ----------
    cuts : texts such as ``age:25,40,62``; a limit belongs to the band above it.

    Raises
    ------
    UserError : a value that is no number; names the row.
    """
    changed = {}
    for cut in cuts:
        name, _, spec = cut.rpartition(":")
        if cut in frame:
            raise UserError(
                f"{file}: '{cut}' is a column, and also means bands of '{name}': rename one"
            )
        text = frame[name].astype(str).str.strip().where(frame[name].notna(), "")
        try:
            values = numbers(frame.assign(**{name: text}), name, file, missing="")
        except DataError as error:
            raise UserError(f"{error}, which bands such as {cut} are of") from error
        limits = _limits(values.dropna(), spec)
        bands = pd.cut(values, [-np.inf, *limits, np.inf], right=False, labels=_names(limits))
        changed[name] = bands.astype(object).fillna("").astype(str)
    return frame.assign(**changed)


def _limits(values: pd.Series, spec: str) -> list[float]:
    parts = _QUANTILES.fullmatch(spec)
    if not parts:
        return [float(limit) for limit in spec.split(",")]
    shares = np.arange(1, int(parts[1])) / int(parts[1])
    limits = np.quantile(values, shares, method="inverted_cdf") if len(values) else shares[:0]
    return [float(limit) for limit in np.unique(limits) if limit > values.min()]


def _names(limits: Sequence[float]) -> list[str]:
    """Return the names of bands."""
    if not limits:
        return ["everyone"]
    texts = [f"{limit:.10g}" for limit in limits]
    if len({*texts}) < len(texts):
        texts = [repr(limit) for limit in limits]
    between = [f"{low} to under {high}" for low, high in zip(texts, texts[1:], strict=False)]
    return [f"under {texts[0]}", *between, f"{texts[-1]} and over"]


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of groups as a reader looks for them: bands from the lowest, others by name."""
    return sorted(names, key=lambda name: (*_begin(name), name))


def _begin(name: str) -> tuple[float, bool]:
    """Return a key that sorts bands by their lower limit; names of no band come last."""
    band = _BAND.fullmatch(name)
    limit = (band["top"] or band["low"]) if band else ""
    return (float(limit), not band["top"]) if band and is_number(limit) else (np.inf, True)


def are_quantities(values: Sequence[str]) -> bool:
    """Return whether values are numbers of something, such as years of age, rather than codes.

    They are if some are not whole, or if nearly all whole numbers of a stretch up to 120 occur;
    codes begin at 0 or 1.
    """
    labels = [value for value in values if value and value != MISSING]
    if len(labels) <= _FEW_CODES or not all(map(is_number, labels)):
        return False
    quantities = np.array(labels, float)
    low, high = quantities.min(), quantities.max()
    is_stretch = low > 1 and high <= 120 and high - low < 1.5 * len(labels)
    return bool(is_stretch or (quantities % 1 != 0).any())
