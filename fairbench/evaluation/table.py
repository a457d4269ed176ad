"""The long table of metrics: its columns, the settings of a row in words, and how it is made.

Each row has a metric, for everyone or for a group of an attribute, at a setting: a share abstained
on, a number of bins, a level. Each kind of setting has its own column, which is empty if the metric
does not depend on it. The column ``statistic`` is nearly always ``value``; further statistics of
a metric have rows of their own.

===================== =============================================================================
``value``             the metric itself
``debiased``          the metric less what chance adds to it
``pooled``            a group's rate, estimated from all groups together
``below_epsilon``     the probability that a gap is under the epsilon of the row
``pairs_that_differ`` how many pairs of groups surely differ
``worst``             the probability that no other group's rate is worse
``outside_band``      the probability that a ratio is further from 1 than the band of the row
``in_stratum``        the metric among the people of one stratum
``standardised``      the metric with everyone's mix of strata in every group
===================== =============================================================================

The last two come from an evaluation within strata, such as bands of age. Only its table has the
columns `STRATA`: the columns that make the strata, and the stratum of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Codes, Mask
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design

STATUSES = ("ok", "insufficient", "undefined", "invalid")
VALUE, DEBIASED, POOLED = "value", "debiased", "pooled"
BELOW_EPSILON, PAIRS_THAT_DIFFER = "below_epsilon", "pairs_that_differ"
WORST, OUTSIDE_BAND = "worst", "outside_band"
IN_STRATUM, STANDARDISED = "in_stratum", "standardised"
STATISTICS = (
    *(VALUE, DEBIASED, POOLED, BELOW_EPSILON, PAIRS_THAT_DIFFER, WORST, OUTSIDE_BAND),
    *(IN_STRATUM, STANDARDISED),
)
KEYS = ("repeat", "fold", "variant")
_STATUS, _STATISTIC = (pd.CategoricalDtype(list(names)) for names in (STATUSES, STATISTICS))


class Setting(NamedTuple):
    """The setting of a metric, such as a rate or a level; None where it does not apply.

    The last two are the columns that make the strata, such as ``age``, and the stratum.
    """

    rate: float | None = None  # share of rows abstained on
    feature: str | None = None
    bins: int | None = None  # bins of a diagram or a calibration error
    bin: int | None = None  # which of them, from 0
    binning: str | None = None  # bins of equal "width" or equal "mass"
    variants: int | None = None  # how many variants of a method were compared
    quantile: float | None = None  # of the individuals
    level: float | None = None  # probability of a prediction interval
    epsilon: float | None = None  # the gap that makes no practical difference
    band: float | None = None  # the distance of a ratio from 1 that does not
    constraint: str | None = None  # the metric that thresholds keep small
    relaxation: float | None = None  # how large they let it be
    outcome: str | None = None  # TN, FP, FN, TP
    k: int | None = None  # nearest neighbours
    within: str | None = None
    stratum: str | None = None


_TYPES = {
    name: {float: "float64", int: "Int64", str: "category"}[get_args(hint)[0]]
    for name, hint in get_type_hints(Setting).items()
}
# What a metric was taken at, with the type of each column; and those that only strata have.
STRATA: Mapping[str, str] = {name: _TYPES[name] for name in ("within", "stratum")}
SETTINGS: Mapping[str, str] = {name: _TYPES[name] for name in _TYPES if name not in STRATA}
COLUMNS = (
    *("metric", "statistic", "attribute", "group"),
    *("value", "lower", "upper", "n", "status", "reason"),
    *SETTINGS,
)
TEXTS = (  # columns of few different texts, which a file holds once each
    *("variant", "metric", "statistic", "attribute", "group", "status", "reason"),
    *(name for name, dtype in SETTINGS.items() if dtype == "category"),
)


def values_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a long table, or of a summary, that are metrics themselves.

    Whoever asks for a metric by its name asks here first: of a gap there may be other rows too.
    """
    return table[(table["statistic"] == VALUE).to_numpy(bool)]


def setting_codes(metrics: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
    """Return which of the different settings each row has, and these settings.

    Returns
    -------
    (n,) codes 0, 1 ... in the order of their first rows, and a data frame of one row per code with
    the columns of `SETTINGS` and `STRATA` that `metrics` has.
    """
    names = [name for name in Setting._fields if name in metrics]
    code, first = numbered([metrics[name].array for name in names], len(metrics))
    return code, metrics[names].iloc[first].reset_index(drop=True)


def numbered(columns: Iterable[Any], length: int) -> tuple[Codes, Codes]:
    """Return a number (n,) for each row of columns (n,), and the first row of each number.

    Rows with the same values have the same number; numbers are in the order of their first rows.
    """
    number = np.zeros(length, np.intp)
    for column in columns:
        codes = column.codes if isinstance(column, pd.Categorical) else pd.factorize(column)[0]
        code = codes.astype(np.intp) + 1  # 0 of what is missing
        if (most := code.max(initial=0)) > 0:
            number = pd.factorize(number * (most + 1) + code)[0]
    return number, np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))


def setting_text(metrics: pd.DataFrame) -> pd.Series:
    """Return each row's setting as a person reads it, such as ``rate=0.1 feature=age``.

    A categorical column, with the index of `metrics`; empty where a row has no setting.
    """
    code, settings = setting_codes(metrics)
    texts = [
        setting_words({name: value for name, value in row.items() if not pd.isna(value)})
        for row in settings.to_dict("records")
    ]
    return pd.Series(pd.Categorical.from_codes(code, texts), metrics.index, name="setting")


def setting_words(settings: Mapping[str, Any]) -> str:
    """Return the settings that a row has, as text for a person."""
    texts = (f"{v:g}" if isinstance(v, float) else str(v) for v in settings.values())
    return " ".join(map("=".join, zip(settings, texts, strict=True)))


def without_classes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return a long table without the rows of single classes in a task of several classes."""
    of_class = metrics["outcome"].notna().to_numpy(bool)
    if not of_class.any():
        return metrics
    individual = metrics["metric"].astype(str).str.startswith("individual_fairness")
    return metrics[~of_class | individual]


def status_text(status: str, reason: str) -> str:
    """Return a status with its reason, such as ``undefined: no positives``.

    The reason of a value with the status ok, which is why it has no interval, is left out.
    """
    return f"{status}: {reason}" if reason and status != "ok" else status


COSTS = ("fit_seconds", "predict_seconds")  # metrics that differ each time they are computed
CHOSEN_RATE = "abstention_chosen_rate"
# Why statistics have no interval, and values of some metrics; of others, none is known to hold.
_WITHOUT_INTERVAL: Mapping[str, str] = {
    **dict.fromkeys((BELOW_EPSILON, WORST, OUTSIDE_BAND), "it is a probability itself"),
    PAIRS_THAT_DIFFER: "it counts what is sure",
    DEBIASED: "see that of the gap itself",
    **dict.fromkeys(COSTS, "it was measured"),
    CHOSEN_RATE: "it was chosen",
}


def without_interval(metric: str, statistic: str = VALUE) -> str:
    """Return why a row has no interval."""
    about = metric if statistic == VALUE else statistic
    return f"no interval: {_WITHOUT_INTERVAL.get(about, 'none is known to hold')}"


def records(metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries, each with the settings that it has."""
    settings = Setting._fields
    return [
        {name: value for name, value in row.items() if name not in settings or not pd.isna(value)}
        for row in metrics.to_dict("records")
    ]


# The long table every evaluation returns, assembled from blocks of arrays.
#
# An evaluation takes S splits at once. A block has values of M metrics in every split and in the
# G groups of an attribute, (M, S, G); the table is made of all blocks when they are there.

NAN = float("nan")
Texts = NDArray[np.object_]


NO_SETTING = Setting()
_CODES = {kind: code for code, kind in enumerate(STATUSES)}


@dataclass(frozen=True, eq=False)
class Statuses:
    """Whether values can be relied on, and why they cannot: two arrays of one shape.

    Attributes
    ----------
    kind : indices in `STATUSES`.
    reason : texts, empty where a value needs none.
    """

    kind: NDArray[np.int8]
    reason: Texts

    @classmethod
    def ok(cls, shape: tuple[int, ...] = (1, 1, 1), kind: str = "ok", reason: str = "") -> Statuses:
        """Return statuses of values that can all be relied on, or all have another status."""
        return cls(np.full(shape, _CODES[kind], np.int8), np.full(shape, reason, object))

    @classmethod
    def stacked(cls, several: Sequence[Statuses]) -> Statuses:
        """Return statuses of one shape along a new first axis."""
        return cls(*map(np.stack, zip(*several, strict=True)))

    @classmethod
    def where(cls, condition: Mask, one: Statuses, other: Statuses) -> Statuses:
        """Return one's statuses where a condition holds, the other's elsewhere."""
        return cls(*(np.where(condition, a, b) for a, b in zip(one, other, strict=True)))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield both arrays."""
        yield self.kind
        yield self.reason

    def __getitem__(self, index: Any) -> Statuses:
        """Return the statuses at an index, as NumPy indexes arrays."""
        return Statuses(self.kind[index], self.reason[index])

    def apply(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Statuses:
        """Return the statuses that a function makes of each array, such as another shape."""
        return Statuses(*map(function, self))

    def copy(self, shape: tuple[int, ...]) -> Statuses:
        """Return new arrays of a shape that these broadcast to, or have as many values as."""
        return self.apply(lambda array: _shaped(array, shape).copy())

    @property
    def is_ok(self) -> Mask:
        """Where nothing is wrong."""
        return np.asarray(self.kind == _CODES["ok"])

    @property
    def has_value(self) -> Mask:
        """Where there is a value, whatever it rests on."""
        return np.asarray(self.kind <= _CODES["insufficient"])

    def flag(self, where: Mask, kind: str, why: str | Callable[..., str]) -> None:
        """Change the statuses where a mask is true, in place.

        Parameters
        ----------
        why : the reason; or a function that returns it for one status, from its index on each axis.
        """
        flagged = np.nonzero(np.broadcast_to(where, self.kind.shape))
        self.kind[flagged] = _CODES[kind]
        if isinstance(why, str):
            self.reason[flagged] = why
        else:
            indices = zip(*(axis.tolist() for axis in flagged), strict=True)
            self.reason[flagged] = _texts([why(*index) for index in indices])

    def flag_few(self, size: NDArray[np.int64], minimum: int, names: Sequence[str]) -> None:
        """Flag values of groups (..., G) that rest on fewer rows, if nothing else is wrong."""
        n = np.broadcast_to(size, self.kind.shape)
        few = self.is_ok & (n < minimum)
        self.flag(few, "insufficient", lambda *at: f"n={n[at]}{in_group(names[at[-1]])}")

    def of_pairs(self, size: NDArray[np.int64] | None = None) -> Statuses:
        """Return the statuses (..., G - 1) of comparisons of every other group with the first.

        It is that of the worse of both. If they are alike, it is that of fewer of the rows
        (..., G), or that of the other group where no sizes are given.
        """
        reference, others = self[..., :1], self[..., 1:]
        is_worse = np.asarray(others.kind > reference.kind)
        is_alike = others.kind == reference.kind
        is_worse |= is_alike if size is None else is_alike & (size[..., 1:] < size[..., :1])
        return Statuses.where(is_worse, others, reference)

    def of_gaps(self, among: Mask, size: NDArray[np.int64] | None = None) -> Statuses:
        """Return the statuses (...) of gaps among some groups (..., G): that of the worst of these.

        Of several as bad it is that of the fewest of the rows (..., G), or the first without sizes.
        """
        kind = np.where(among, self.kind, -1)
        is_worst = kind == kind.max(axis=-1, keepdims=True)
        rows = np.where(is_worst, 0 if size is None else size, np.iinfo(np.int64).max)
        worst = rows.argmin(axis=-1)[..., None]
        return self.apply(lambda array: np.take_along_axis(array, worst, -1)[..., 0])


def without(names: Sequence[str], left_out: Mask, why: Callable[..., str]) -> Callable[..., str]:
    """Return the function of an index (...) that names the groups (..., G) left out of a gap.

    Parameters
    ----------
    why : returns the reason for one group, from its index on each axis.
    """

    def reason(*at: int) -> str:
        groups = np.flatnonzero(left_out[at]).tolist()
        listed = ", ".join(f"'{names[g]}'" for g in groups)
        return f"without {listed}: {why(*at, groups[0])}"

    return reason


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array in a shape that it has as many values as, or broadcasts to."""
    full = array.size == prod(shape)
    return array.reshape(shape) if full else np.broadcast_to(array, shape)


def _texts(texts: Sequence[str]) -> Texts:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


@dataclass(frozen=True, eq=False)
class Block:
    """Values of M metrics in some splits and in the G groups of an attribute, (M, S, G) each.

    Attributes
    ----------
    metrics, statistics, settings : (M,) the keys of the values.
    attribute : the attribute whose groups have the values; empty for values of everyone.
    groups : (G,) the names of these groups.
    splits : (S,) the numbers of the splits in which the values were computed.
    limits : the values, with the limits of their intervals.
    is_row : which of the values are rows of the table; None if all are.
    """

    metrics: tuple[str, ...]
    statistics: tuple[str, ...]
    settings: tuple[Setting, ...]
    attribute: str
    groups: tuple[str, ...]
    splits: NDArray[np.intp]
    limits: Limits
    n: NDArray[np.int64]
    status: Statuses
    is_row: Mask | None = None

    def subset(self, indices: Sequence[int]) -> Block:
        """Return the block of some of its metrics, by position."""
        kept = list(indices)
        return replace(
            self,
            metrics=tuple(self.metrics[m] for m in kept),
            statistics=tuple(self.statistics[m] for m in kept),
            settings=tuple(self.settings[m] for m in kept),
            limits=self.limits.apply(lambda array: array[kept]),
            n=self.n[kept],
            status=self.status[kept],
            is_row=None if self.is_row is None else self.is_row[kept],
        )


@dataclass(frozen=True)
class MetricTable:
    """The blocks of an evaluation.

    Attributes
    ----------
    level : the probability of the intervals.
    frequentist : whether every interval holds for few rows and rare labels too, or there is none
        and the status says why; otherwise intervals are the papers': normal ones of means, and
        no others.
    splits : (S,) the numbers of the splits that are evaluated, 0 by default.
    minimum : the number of rows under which a value is flagged, if nothing else is wrong with it.
    blocks : what was added, in that order.
    """

    level: float = 0.95
    frequentist: bool = True
    splits: tuple[int, ...] = (0,)
    minimum: int = 0
    blocks: list[Block] = field(default_factory=list)

    def without_rows(self) -> MetricTable:
        """Return an empty table of the same kind."""
        return replace(self, blocks=[])

    def add(
        self,
        metrics: str | Sequence[str],
        value: ArrayLike,
        n: ArrayLike,
        attribute: str = "",
        groups: Sequence[str] = ("",),
        *,
        statistic: str | Sequence[str] = VALUE,
        setting: Setting | Sequence[Setting] = NO_SETTING,
        interval: tuple[ArrayLike, ArrayLike] = (NAN, NAN),
        status: Statuses | None = None,
        bounded: bool = False,
        lacking: str = "",
        needed: str | Callable[..., str] | None = None,
        is_row: Mask | None = None,
        fewest: ArrayLike | None = None,
    ) -> None:
        """Append values (M, S, G); one that is NaN must say why.

        Parameters
        ----------
        metrics, statistic, setting : one, or one of each of M.
        value : the values; arrays here and below may have any shape that broadcasts to (M, S, G),
            or that has as many values in that order.
        n : how many rows each value rests on.
        attribute : the attribute whose groups the values are about; empty of everyone.
        groups : the names of these groups; one that is empty of what is not about a group.
        interval : the lower and the upper limits.
        status : whether each value can be relied on; all by default.
        bounded : whether the interval holds where there is no value, too: over a rate of 0 there
            is no ratio, but one that it exceeds.
        lacking : why a value with the status ok has no interval; by default, the metric's own
            reason.
        needed : why a value that has no interval is insufficient, or a function that returns the
            reason for the value at an index; the papers' evaluation has no such intervals. None
            of values that do without one.
        is_row : which of the values are rows of the table; all by default.
        fewest : the rows of the smallest group that a value compares, where `n` counts all rows.
        """
        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        if not names:
            return
        statistics = (statistic,) * len(names) if isinstance(statistic, str) else tuple(statistic)
        settings = (setting,) * len(names) if isinstance(setting, Setting) else tuple(setting)
        shape = len(names), len(self.splits), len(groups)
        values, lower, upper = (
            _shaped(np.asarray(array, np.float64), shape) for array in (value, *interval)
        )
        n_rows = _shaped(np.asarray(n, np.int64), shape)
        statuses = (status or Statuses.ok()).copy(shape)
        if needed is not None and self.frequentist:
            plain = statuses.is_ok & (statuses.reason == "")
            statuses.flag(np.isnan(lower) & plain, "insufficient", needed)
        elif needed is not None:
            lower = upper = np.full(shape, NAN)
        missing = np.isnan(values)
        if missing.any():
            if not bounded:
                lower, upper = (np.where(missing, NAN, limit) for limit in (lower, upper))
            statuses.flag(missing & statuses.is_ok, "undefined", "the value is not a number")
        if self.frequentist:
            least = n_rows if fewest is None else _shaped(np.asarray(fewest), shape)
            whose = "" if fewest is None else " in the smallest group"
            of_values = np.array([name in (VALUE, DEBIASED) for name in statistics])[:, None, None]
            few = of_values & (least < self.minimum) & statuses.is_ok & (statuses.reason == "")
            statuses.flag(few, "insufficient", lambda *index: f"n={least[index]:g}{whose}")
            # The width of an interval of a mean comes from how much the rows vary. If they do not,
            # a width of 0 would claim that the mean is known exactly: there is none, and a reason.
            if (width_zero := lower == upper).any():
                unexplained = width_zero & statuses.is_ok & (statuses.reason == "")
                statuses.reason[unexplained] = "no interval: its width would be 0"
                lower, upper = (np.where(width_zero, NAN, limit) for limit in (lower, upper))
            unexplained = np.isnan(lower) & statuses.is_ok & (statuses.reason == "")
            if unexplained.any():
                why = [lacking or without_interval(*about)
                       for about in zip(names, statistics, strict=True)]  # fmt: skip
                statuses.reason[unexplained] = _texts(why)[np.nonzero(unexplained)[0]]
        rows = None if is_row is None else _shaped(is_row, shape)
        about = names, statistics, settings, attribute, tuple(groups), np.array(self.splits)
        self.blocks.append(Block(*about, Limits(values, lower, upper), n_rows, statuses, rows))

    def blocks_of(self, is_wanted: Callable[[str], bool]) -> list[Block]:
        """Return the blocks, reduced to the metrics whose names are wanted."""
        wanted = []
        for block in self.blocks:
            indices = [m for m, name in enumerate(block.metrics) if is_wanted(name)]
            if indices:
                wanted.append(block.subset(indices))
        return wanted

    def without_values(self, reason: str) -> MetricTable:
        """Return the table with all values replaced by NaN, undefined for the given reason."""
        blocks = []
        for block in self.blocks:
            nothing = np.full(block.n.shape, NAN)
            status = Statuses.ok(block.n.shape, "undefined", reason)
            blocks.append(replace(block, limits=Limits(nothing, nothing, nothing), status=status))
        return replace(self, blocks=blocks)

    def add_unweighted(self, blocks: Iterable[Block], design: Design | None) -> None:
        """Append blocks of metrics that cannot take weights or clusters into account, and say so.

        Without weights, values would describe the sample and not the population. Without clusters,
        intervals would be too short, and probabilities about ratios too certain.
        """
        for block in blocks:
            self.blocks.append(_unweighted_block(block, design) if design else block)

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame with the columns `COLUMNS`, and `STRATA` if any."""
        columns = {name: _plain(name, array) for name, array in _columns(self.blocks)[0].items()}
        strata = [name for name in STRATA if name in columns]
        return pd.DataFrame(columns, columns=[*COLUMNS, *strata])


def _unweighted_block(block: Block, design: Design) -> Block:
    """Return a block without what holds for unweighted, independent rows alone.

    Of weighted rows these are the values, of clustered ones the intervals.
    """
    value, lower, upper = block.limits
    status = block.status.copy(value.shape)
    if design.weighted:
        has_value = status.has_value
        value = np.where(has_value, NAN, value)
        status.flag(has_value, "undefined", "it takes no weights")
    else:
        # The probability that a ratio is outside a band comes from the ratio's interval.
        is_outside_band = np.array([name == OUTSIDE_BAND for name in block.statistics])
        rests_on_interval = ~(np.isnan(lower) & np.isnan(upper)) | is_outside_band[:, None, None]
        why = "its interval would take clustered rows for independent"
        status.flag(rests_on_interval & status.is_ok, "insufficient", why)
    no_limits = np.full(value.shape, NAN)
    return replace(block, limits=Limits(value, no_limits, no_limits.copy()), status=status)


RunSplit: TypeAlias = "tuple[int, int, int, str]"  # a run, a repeat, a fold and a variant
_PLAIN = ("variant", "metric", "attribute", "group", "reason")  # texts, categories while computing


def concatenate(tables: Iterable[MetricTable], splits: Sequence[RunSplit]) -> pd.DataFrame:
    """Return the rows of evaluations as one data frame, split by split in the order given.

    It has the column ``run``, and categories for texts; :func:`by_run` has a run's own rows.

    Parameters
    ----------
    splits : the run, the repeat, the fold and the variant of every split, in the order of its
        number.
    """
    columns, split = _columns([block for table in tables for block in table.blocks])
    *numbers, variant = (np.array(key)[split] for key in zip(*splits, strict=True))
    keys = dict(zip(("run", "repeat", "fold"), numbers, strict=True))
    return pd.DataFrame({**keys, "variant": _categories(variant), **columns}, copy=False)


def by_run(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows of each run of a table of several, as if it had been evaluated alone."""
    runs = table["run"].to_numpy()
    stops = np.searchsorted(runs, np.arange(runs[-1] + 2)).tolist()
    columns = {name: _plain(name, table[name].array) for name in table.columns[1:]}
    plain = pd.DataFrame(columns, copy=False)
    parts = [plain.iloc[one:next_].reset_index(drop=True) for one, next_ in pairwise(stops)]
    for name, whole in columns.items():
        if len(parts) > 1 and name in SETTINGS and isinstance(whole, pd.Categorical):
            for part in parts:  # the categories of its own rows
                array = part[name].array
                if not np.bincount(array.codes + 1, minlength=len(array.categories) + 1)[1:].all():
                    part[name] = array.remove_unused_categories()
    return parts


def _categories(texts: ArrayLike, codes: Codes | None = None) -> pd.Categorical:
    """Return texts, or those that `codes` are the positions of, as categories."""
    code, different = pd.factorize(np.asarray(texts, object))
    return pd.Categorical.from_codes(code if codes is None else code[codes], different)


def _plain(name: str, array: Any) -> Any:
    """Return a column of texts without categories, or another column as it is."""
    is_text = name in _PLAIN and isinstance(array, pd.Categorical)
    return array.categories.array.take(array.codes) if is_text else array


def _columns(blocks: Sequence[Block]) -> tuple[dict[str, Any], NDArray[np.intp]]:
    """Return the columns of all rows, by split and then as they were added, and their splits."""
    subjects: dict[tuple[str, str, str, Setting], int] = {}
    groups: dict[str, int] = {}
    parts = []
    if not blocks:
        nothing = MetricTable()
        nothing.add("", 0.0, 0, is_row=np.zeros(1, bool))
        blocks = nothing.blocks
    for block in blocks:
        shape = block.n.shape
        described = zip(block.metrics, block.statistics, block.settings, strict=True)
        subject = [
            subjects.setdefault((metric, statistic, block.attribute, setting), len(subjects))
            for metric, statistic, setting in described
        ]
        group = [groups.setdefault(name, len(groups)) for name in block.groups]
        arrays = (
            np.array(subject, np.intp)[:, None, None],
            np.array(group, np.intp),
            block.splits[:, None],
            True if block.is_row is None else block.is_row,
        )
        parts.append([np.broadcast_to(array, shape).ravel() for array in arrays])
    of_subject, of_group, split, is_row = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(split, kind="stable")
    order = order[is_row[order]]

    def column(values: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([array.ravel() for array in values])[order]

    row_subject = of_subject[order]
    metric, statistic, attribute, settings = zip(*subjects, strict=True)
    statistics = np.array([STATISTICS.index(name) for name in statistic], np.int8)
    status = column(block.status.kind for block in blocks)
    limits = {name: [getattr(block.limits, name) for block in blocks] for name in Limits._fields}
    columns = {
        "metric": _categories(metric, row_subject),
        "statistic": pd.Categorical.from_codes(statistics[row_subject], dtype=_STATISTIC),
        "attribute": _categories(attribute, row_subject),
        "group": _categories(list(groups), of_group[order]),
        **{name: column(ends) for name, ends in limits.items()},
        "n": column(block.n for block in blocks),
        "status": pd.Categorical.from_codes(status, dtype=_STATUS),
        "reason": _categories(column(block.status.reason for block in blocks)),
        **_settings(settings, row_subject),
    }
    return columns, split[order]


def _settings(settings: Sequence[Setting], row_setting: NDArray[np.intp]) -> dict[str, Any]:
    """Return the columns of settings; `row_setting` (n,) is the index of each row's setting."""
    values = {name: [setting[i] for setting in settings] for i, name in enumerate(_TYPES)}
    used = {name: column for name, column in values.items() if set(column) != {None}}
    none = np.ones(len(row_setting), np.int64)
    empty = {  # the columns of settings that no row has
        "category": pd.Categorical.from_codes(-none, pd.Index([], dtype="str")),
        "Int64": pd.arrays.IntegerArray(none, none > 0),
        "float64": NAN * none,
    }
    return {
        name: pd.array(used[name], dtype).take(row_setting) if name in used else empty[dtype]
        for name, dtype in _TYPES.items()
        if name in SETTINGS or name in used
    }


def in_group(name: str) -> str:
    """Return ``in group 'a'`` with a space before it, nothing of everyone."""
    return f" in group '{name}'" if name else ""
