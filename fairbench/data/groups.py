"""Columns of groups: their bands, who is left out or pooled, the groups and their combinations.

Numbers in bands, such as ages, come first: they are asked for where their column is named, as
``age:25,40,62``. Begin with :func:`read_groups`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError, UserError, check_choice, note, unknown_name
from fairbench.core.text import (
    count,
    is_missing_name,
    is_number,
    label_notes,
    listed,
    missing_name,
    quoted,
    said,
    shortened,
)
from fairbench.data.columns import ColumnRef, each_value, numbers, tally, times_of
from fairbench.data.dataset import check_combinable, combine, reference_first

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
        parts, why = _QUANTILES.fullmatch(spec), ""
        if parts and not 2 <= int(parts[1][:5]) <= _MOST_PARTS:
            why = f"name 2 to {_MOST_PARTS} parts, such as {name}:quantiles(4)"
        elif not parts and (np.diff([float(limit) for limit in spec.split(",")]) <= 0).any():
            why = f"the limits of bands rise, such as {name}:25,40,62"
        if why:
            raise UserError(f"{option}={shortened(cut)}: {why}")


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


def _are_quantities(values: Sequence[str]) -> bool:
    """Return whether values are numbers of something, such as years of age, rather than codes.

    They are if some are not whole, or if nearly all whole numbers of a stretch up to 120 occur;
    codes begin at 0 or 1.
    """
    labels = [value for value in values if value and value != missing_name([value])]
    if len(labels) <= _FEW_CODES or not all(map(is_number, labels)):
        return False
    quantities = np.array(labels, float)
    low, high = quantities.min(), quantities.max()
    is_stretch = low > 1 and high <= 120 and high - low < 1.5 * len(labels)
    return bool(is_stretch or (quantities % 1 != 0).any())


MOST_GROUPS = 50
MOST_CELLS = 100  # combinations of all attributes
MOST_COMPARED = 500  # groups each two of which are compared, which takes the square in memory
_MOST_ESTIMATED = 10_000  # groups of one joint estimate
CROSSED = " x "  # joins the names of columns, and their values, in groups of combinations
_POOLED = "other groups"
_RARE = 10  # groups of fewer rows than this are too small for any finding


def cross_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the combinations of the groups of one column or several, as texts."""
    leading, *following = (_named(frame[name].astype(str)) for name in names)
    return leading.str.cat(following, sep=CROSSED)


def _named(labels: pd.Series) -> pd.Series:
    """Return the labels of groups, with that of rows without any."""
    return labels.replace("", missing_name(labels.unique()))


def with_fewer_groups(
    frame: pd.DataFrame, groups: Sequence[str], left_out: Sequence[str], rare: int
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without the rows of some groups, with small ones pooled, and notes on it.

    Each attribute is pooled by itself. One rare group alone stays as it is: it would only lose its
    name.

    Parameters
    ----------
    groups : the attributes.
    left_out : the groups to leave out, each as ``race=Other``.
    rare : groups of fewer rows are pooled; none where it is 0.
    """
    keep = np.ones(len(frame), bool)
    notes, changed = [], {}
    for asked in left_out:
        name, equals, label = asked.partition("=")
        if not equals:
            raise UserError(f"leave_out={asked}: name column and group, such as race=Other")
        check_choice("column of leave_out", name, groups)
        labels = _named(frame[name])
        check_choice(f"group of '{name}' in leave_out", label, labels.unique())
        rows = (labels == label).to_numpy()
        keep &= ~rows
        notes.append(f"{name}: the {rows.sum()} rows of {quoted(label)} are left out, as asked")
    frame = frame if keep.all() else frame[keep].reset_index(drop=True)
    for name in groups if rare else ():
        labels = _named(frame[name])
        sizes = labels.value_counts()
        small = sorted(sizes.index[sizes < rare].astype(str))
        if len(small) > 1:
            changed[name] = labels.where(~labels.isin(small), _POOLED)
            names = listed([*map(quoted, small)], 5)
            notes.append(f"{name}: {names} have fewer than {rare} rows, and are '{_POOLED}' here")
        elif small:
            alone = f"rare={rare} changes nothing, as {quoted(small[0])} alone is smaller"
            notes.append(f"{name}: {alone}; leave_out= leaves it out")
    return frame.assign(**changed), notes


def groups_of(
    text: pd.Series, column: ColumnRef, most: int = MOST_GROUPS, *, option: str = "group"
) -> pd.Series:
    """Return a column of groups: the largest first, bands in their order, blanks as ``unknown``.

    Parameters
    ----------
    most : the largest number of groups that is allowed.
    option : the option by which the column is named, for messages.

    Raises
    ------
    UserError : one group, which leaves nothing to compare, or too many to be groups.
    """
    codes, values = each_value(_named(text), str)
    names = in_order(set(values))
    banded = f"{option}={column.name}:quantiles(4)"
    hint = ""
    if _are_quantities(names):
        most, ways = MOST_GROUPS, f"{option}={column.name}:25,40,62 or {banded.partition('=')[2]}"
        hint = f": make bands of them, such as {ways}"
    if not 2 <= len(names) <= most:
        only = f" ({quoted(names[0])})" if len(names) == 1 else ""
        has = f"holds {len(names)} different values{only}; a {option} column has 2 to {most}{hint}"
        raise column.question(has, banded) if hint else column.fault(has)
    group_codes = pd.Index(names).get_indexer(values)[codes]
    # Who states no group is nobody's reference.
    stated = [not is_missing_name(name) for name in names]
    largest = names[int((tally(group_codes, times_of(text)) * stated).argmax())]
    return reference_first(pd.Series(pd.Categorical.from_codes(group_codes, names)), largest)


def references_of(
    groups: Mapping[str, pd.Series], asked: Sequence[str], crossed: Iterable[str] = ()
) -> dict[str, str]:
    """Return attribute -> the group that others are to be compared with.

    Parameters
    ----------
    groups : attribute -> categorical labels.
    asked : ``LABEL``, or ``COLUMN:LABEL``.
    crossed : combinations of attributes, which have one where each of these attributes has.

    Raises
    ------
    UserError : no such group, one that two attributes have, or two groups of one attribute.
    """
    pairs = [(name, str(label)) for name in groups for label in groups[name].cat.categories]
    references: dict[str, str] = {}
    for text in asked:
        fitting = [pair for pair in pairs if text in (pair[1], ":".join(pair))]
        if not fitting:
            raise unknown_name("reference group", text, {label for _, label in pairs})
        if len(fitting) > 1:
            ways = " or ".join(f"reference={':'.join(pair)}" for pair in fitting)
            raise UserError(f"two columns have a group '{text}': write {ways}")
        attribute, label = fitting[0]
        if references.setdefault(attribute, label) != label:
            raise UserError(f"reference= names two groups of {attribute}: name one")
    for name in crossed:
        if references.keys() >= {*(parts := name.split(CROSSED))}:
            references[name] = CROSSED.join(references[part] for part in parts)
    return references


def codes_of(groups: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Return the codes (n,) of categorical labels, and the names of the groups that have rows."""
    codes = groups.cat.codes.to_numpy(np.intp)
    sizes = np.bincount(codes + 1, minlength=len(groups.cat.categories) + 1)[1:]  # -1 is no group
    if not sizes.all():
        return codes_of(groups.cat.remove_unused_categories())
    return codes, list(map(str, groups.cat.categories))


def group_columns(
    sensitive: pd.DataFrame, privileged: Mapping[str, str], intersections: int
) -> dict[str, pd.Series]:
    """Return every attribute, and every combination of up to `intersections`, as group labels."""
    single = {name: reference_first(sensitive[name], privileged[name]) for name in sensitive}
    return {
        CROSSED.join(names): combine([single[name] for name in names])
        for size in range(1, max(1, intersections) + 1)
        for names in combinations(single, size)
    }


def check_few_groups(sensitive: pd.DataFrame, intersections: int, source: str) -> None:
    """Refuse an attribute, or a combination, of more groups than can be compared two by two.

    Parameters
    ----------
    sensitive : (n, a) labels of groups.
    intersections : how many attributes are combined.
    source : where the attributes are from, for the error.
    """
    # Of a categorical, the labels that it can have are counted, which is quick and no fewer.
    sizes = {
        name: len(column.cat.categories) if hasattr(column, "cat") else column.nunique()
        for name, column in sensitive.items()
    }
    for size in range(1, max(1, intersections) + 1):
        for names in map(list, combinations(sensitive, size)):
            if prod(sizes[name] for name in names) <= MOST_COMPARED:
                continue
            if (groups := len(sensitive[names].drop_duplicates())) > MOST_COMPARED:
                advice = said("data", "name_coarser" if size > 1 else "make_bands")
                about = {"attribute": CROSSED.join(map(str, names)), "groups": count(groups)}
                about |= {"most": count(MOST_COMPARED), "advice": advice}
                raise UserError(said("data", "too_many_groups", source=source, **about))


def read_groups(
    frame: pd.DataFrame,
    file: str,
    names: Sequence[str],
    asked: Sequence[str] = (),
    *,
    many: bool = False,
) -> tuple[dict[str, pd.Series], pd.Series]:
    """Return the groups of each attribute and each two, and the combinations of all attributes.

    Parameters
    ----------
    names : the attributes.
    asked : their references, as in :func:`references_of`.
    many : whether there may be thousands of combinations; then these alone are returned.

    Raises
    ------
    UserError : no groups, one group, too many to be groups or to be combined, or names that
        combinations could not be told apart by.
    """
    if not names:
        raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
    most, most_cells = MOST_GROUPS, MOST_CELLS
    if many:
        most = most_cells = max(MOST_GROUPS, min(_MOST_ESTIMATED, len(frame) // 2))
    singles = {name: groups_of(frame[name], ColumnRef(file, name), most) for name in names}
    check_combinable(pd.DataFrame(singles), file)
    references = {name: str(labels.cat.categories[0]) for name, labels in singles.items()}
    references |= references_of(singles, asked)
    groups = group_columns(pd.DataFrame(singles), references, 1 if many else 2)
    cells = combine([groups[name] for name in names])
    if len(cells.cat.categories) > most_cells:
        about = {"attribute": CROSSED.join(names), "cells": len(cells.cat.categories)}
        about |= {"rows": len(frame), "most": most_cells}
        raise UserError(said("data", "too_many_cells", file=file, **about))
    return {} if many else groups, cells


def notes_on_groups(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return sentences on groups; those on labels that look alike are also printed, as notes.

    Two spellings of one group are a fault of the file, and would leave the page without findings.
    """
    alike = [text for name in names for text in label_notes(name, frame[name].unique())]
    for sentence in alike:
        note(sentence)
    sizes = [text for name in names for text in _notes_on_sizes(name, frame[name])]
    return [*frame.attrs.get("notes", ()), *alike, *sizes]


def _notes_on_sizes(name: str, column: pd.Series) -> Iterator[str]:
    """Yield sentences on rows without a group, on groups of a handful, and on numbers as groups."""
    labels = _named(column)
    sizes = labels.value_counts()
    if (times := times_of(column)) is not None:
        sizes = pd.Series(times, column.index).groupby(labels.to_numpy()).sum()
    rows = int(sizes.sum())
    if missing := int(sizes[list(map(is_missing_name, sizes.index.astype(str)))].sum()):
        most = "; most are so, and little is known of the groups" if 2 * missing > rows else ""
        about = {"missing": count(missing), "rows": count(rows), "most": most}
        yield said("data", "no_group", name=name, shown=missing_name(sizes.index), **about)
    rare = sizes.index[sizes < _RARE]
    if _are_quantities([str(value) for value in sizes.index]):
        count_text = f"{name}: {len(sizes)} different numbers are a group each"
        yield f"{count_text}; {name}:25,40,62 or {name}:quantiles(4) makes bands of them"
    elif len(rare) and len(sizes) <= MOST_GROUPS:
        subject = f"{quoted(str(rare[0]))} has"
        advice = "leave_out= leaves it out"
        if len(rare) > 1:  # one alone is not pooled
            subject = f"{len(rare)} groups, such as {quoted(str(rare[0]))}, have"
            advice = "rare=30 pools such groups, and leave_out= leaves them out"
        yield said("data", "few_rows", name=name, subject=subject, fewest=_RARE, advice=advice)
