"""The page of a results folder: one page without external requests.

It has an overview, which says what was run and how to read the tables, and a section for each
block: runs that predict the same rows in the same splits. A metric's table has every run's mean,
sd, interval and probability of being best. The runs of the best means are compared by their
predictions. Drawn are methods beside one another, and error against gaps between groups. Begin with
`write_report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, groupby
from math import fsum, isfinite, isnan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.runs import Settings, every_pair, is_weighted, load_all, names_of_parts
from fairbench.core import VERSION
from fairbench.core import text as formats
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError
from fairbench.core.text import digest, file_name, natural
from fairbench.evaluation import table as long_table
from fairbench.evaluation.summary import (
    DEBIASED_MEANS,
    FITS,
    HEADLINES,
    debiased_gaps,
    headline,
    headline_of,
    summarise,
)
from fairbench.evaluation.table import DEBIASED
from fairbench.experiments.configuration import Presets
from fairbench.inference import verdicts
from fairbench.inference.comparing import frontier, objective, point_table, points
from fairbench.inference.repeats import StudentDraws, student_draws
from fairbench.inference.verdicts import ALIKE, OPEN, WORSE
from fairbench.metrics.registry import BINARY, FN, FP, declared, find
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import chart, key_of, tradeoff_chart
from fairbench.reporting.comparisons import rank_of
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.terminal import progress
from fairbench.reporting.document.writing import check_forms, check_page, write_document
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench.reporting.panels import OF_METHODS, method_styles
from fairbench.reporting.runs import levels_of
from fairbench.results.catalogue import Catalogue, add_differing_options
from fairbench.results.runs import FIGURES, LAST, Run, place_of, read_metrics

ARM = ("learner", "intervention", "method")
_SHARED = ("split", "seed")


@dataclass(frozen=True, eq=False)
class _RunBlock:
    """Runs of one data set, split, seed and protected attribute.

    Attributes
    ----------
    name : the data set, numbered if it has several blocks; files are named by it.
    title : the data set, and what distinguishes its blocks.
    metrics : the long table of values, with the column ``run``; empty until `_read`, as a page of
        many runs does not keep it.
    debiased : the same of gaps less what chance adds to them.
    tables, figures, compared, origin : what the page shows of it, once it is measured.
    """

    name: str
    title: str
    runs: Mapping[str, Run]
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    debiased: pd.DataFrame = field(default_factory=pd.DataFrame)
    tables: Sequence[_RankedRuns] = ()
    figures: Sequence[doc.Figure] = ()
    compared: doc.Section | None = None
    origin: doc.Details | None = None

    @property
    def first(self) -> Run:
        """One of the runs, to read what all have in common."""
        return next(iter(self.runs.values()))

    @cached_property
    def names(self) -> dict[str, str]:
        """Run id -> name."""
        return dict(zip(self.runs, _name_runs(list(self.runs.values())), strict=True))

    @cached_property
    def arms(self) -> Mapping[str, str]:
        """Run id -> name, for the first run of each name; others differ in evaluation alone."""
        first_of_name = {name: id_ for id_, name in reversed(self.names.items())}
        return {id_: name for id_, name in self.names.items() if first_of_name[name] == id_}

    @cached_property
    def labels(self) -> Callable[[tuple[str, ...]], list[str]]:
        """Return labels that tell runs of these ids apart, found once for the same runs."""

        def labels(ids: tuple[str, ...]) -> list[str]:
            runs, names = [self.runs[id_] for id_ in ids], [self.names[id_] for id_ in ids]
            return add_differing_options(names, runs, ("evaluator", "consistency"))

        return cache(labels)

    @property
    def dataset(self) -> str:
        """The option chosen for the data set."""
        return self.first.choices["dataset"]

    @property
    def protect(self) -> str:
        """The protected attribute, or combination, that the headline metrics compare."""
        return self.first.protect

    @property
    def repeats(self) -> int:
        """The number of splits."""
        return int(self.first.config["split"].get("repeats", 1))

    @property
    def split(self) -> str:
        """The split and its options, in words."""
        options = dict(self.first.config["split"])
        kind = options.pop("name")
        return f"{kind}({', '.join(f'{name}={value}' for name, value in options.items())})"

    def options(self, group: str) -> str:
        """Return the options of a group that were run, such as the methods."""
        return ", ".join(sorted({run.choices[group] for run in self.runs.values()}))


def _blocks(catalogue: Catalogue) -> list[_RunBlock]:
    """Return the blocks of a catalogue by data set, those of most runs first."""
    sets: dict[str, dict[str, dict[str, Run]]] = {}
    for run in catalogue.runs.values():
        data = run.environment["data"]  # and not the path of a file, of which there are several
        key = digest([run.protect, data, *(run.config[name] for name in _SHARED)])
        sets.setdefault(run.choices["dataset"], {}).setdefault(key, {})[run.id] = run
    all_blocks = []
    for dataset, runs_by_key in sorted(sets.items()):
        titles = _titles([next(iter(runs.values())) for runs in runs_by_key.values()])
        titled = list(zip(titles, runs_by_key.values(), strict=True))
        titled.sort(key=lambda pair: (-len(pair[1]), natural(pair[0])))
        for i, (title, runs) in enumerate(titled, start=1):
            name = f"{dataset}-{i}" if len(titled) > 1 else dataset
            all_blocks.append(_RunBlock(file_name(name), title, runs))
    return all_blocks


def _together(all_blocks: Sequence[_RunBlock]) -> Iterator[list[_RunBlock]]:
    """Yield blocks of one data set and attribute, as many as are read and summarised at once."""
    for _, alike in groupby(all_blocks, key=lambda block: (block.dataset, block.protect)):
        some = [*alike]
        step = max(1, _MOST_TOGETHER // max(len(block.runs) for block in some))
        yield from (some[first : first + step] for first in range(0, len(some), step))


_MOST_TOGETHER = 50  # runs


def _read(some: Sequence[_RunBlock]) -> list[_RunBlock]:
    """Return blocks with their metrics: numbers as floats, which are quick to select."""
    every_row = read_metrics([run for block in some for run in block.runs.values()])
    metrics = long_table.values_of(every_row)
    metrics = metrics.astype(dict.fromkeys(metrics.select_dtypes("Int64"), float))
    debiased = every_row[(every_row["statistic"] == DEBIASED).to_numpy(bool)]
    place = _places(some)

    def split(rows: pd.DataFrame) -> list[pd.DataFrame]:
        parts = dict(iter(rows.groupby(rows["run"].astype(str).map(place).to_numpy())))
        return [parts.get(i, rows[:0]).reset_index(drop=True) for i in range(len(some))]

    parts = zip(some, split(metrics), split(debiased), strict=True)
    return [replace(block, metrics=own, debiased=less) for block, own, less in parts]


def _places(some: Sequence[_RunBlock]) -> dict[str, int]:
    return {run: place for place, block in enumerate(some) for run in block.runs}


def _titles(firsts: Sequence[Run]) -> list[str]:
    """Name blocks of one data set, each by one of its runs, by what differs between them."""
    sets = [run.choices["dataset"] for run in firsts]
    titles = add_differing_options(sets, firsts, ("dataset", "split"))
    for name in ("seed", "protect"):
        values = [getattr(run, name) for run in firsts]
        if len(set(values)) > 1:
            titles = [f"{title}, {name}={v}" for title, v in zip(titles, values, strict=True)]
    return titles


def _name_runs(runs: Sequence[Run]) -> list[str]:
    """Name each run by its choices, and by the options of them in which namesakes differ.

    The learner is left out where all have the same.
    """
    learners = {run.choices["learner"] for run in runs}
    parts = ARM if len(learners) > 1 else ARM[1:]
    chosen = [[run.choices[part] for part in parts] for run in runs]
    names = [", ".join(name for name in of_run if name != "none") for of_run in chosen]
    return add_differing_options(names, runs, ARM)


CERTAIN = 0.95
UNRANKED = ""  # in place of a verdict
# The verdicts on a run against the best of a table, as a page words them.
STANDINGS = {
    ALIKE: "as good as the best", OPEN: "not told apart", WORSE: "worse", UNRANKED: "not ranked",
}  # fmt: skip
_SPLIT = ["repeat", "fold"]
_CLASS_GAPS = ("statistical_parity", "equal_opportunity")
# Metrics whose numbers of rows tell how splits share rows.
_SPLIT_METRICS = ("base_rate", "mean_prediction", "error_rate", "rmse", "fit_seconds")
_KEYS = ["metric", "attribute", "group", "setting"]
_CHANCE_KEYS = ("run", "variant", "metric", "attribute", "group", "outcome", "statistic")
_SHOWN = ["run", "mean", DEBIASED, "sd", "lower", "upper", "n", "repeats"]
_DRAWS = 10000  # of the posterior of expected values


@dataclass(frozen=True, eq=False)
class _RankedRuns:
    """The runs of a block ranked by one metric, best mean first.

    Attributes
    ----------
    group : the group of people that the metric is about; empty for everyone and for gaps.
    rows : one for each run: ``run, label, mean, sd, lower, upper, n, repeats, status``, ``best``
        and ``near`` (the probabilities to be the best and within the rope of it), ``standing``
        (the verdict on it against the best: alike, open or worse; empty if it is not ranked).
    rope : the difference that does not matter; NaN if the metric has no direction.
    key : a name for its anchor, which no other metric of the block has.
    """

    metric: str
    attribute: str
    group: str
    setting: str
    rows: Sequence[Mapping[str, Any]]
    rope: float
    key: str

    @property
    def direction(self) -> str:
        """Which values are good, in words."""
        metric = find(self.metric)
        return metric.direction if metric else ""

    @property
    def is_whole(self) -> bool:
        """Whether it is about everyone or all groups, and not about a single class."""
        return not self.group and "outcome=" not in self.setting

    @cached_property
    def is_ranked(self) -> bool:
        """Whether any run has a probability of being best."""
        return any(row["best"] == row["best"] for row in self.rows)

    def labels_with_standing(self, standing: str) -> list[str]:
        """Return the labels of the runs with one standing."""
        return [row["label"] for row in self.rows if row["standing"] == standing]


def _metric_tables(some: Sequence[_RunBlock]) -> Iterator[list[_RankedRuns]]:
    """Yield the headline metrics of each block: overall, gaps, groups, costs of the fits.

    Parameters
    ----------
    some : blocks of one protected attribute, which are summarised together.
    """
    metrics, protect = pd.concat([block.metrics for block in some]), some[0].protect
    chosen = metrics["metric"].isin(_metrics_to_summarise())
    chosen &= metrics["attribute"].isin(["", protect])
    metrics = metrics[chosen.to_numpy(bool)].reset_index(drop=True)
    metrics = metrics.assign(setting=long_table.setting_text(metrics))
    levels = {id_: run.level for block in some for id_, run in block.runs.items()}
    by_level = metrics.groupby(metrics["run"].map(levels).astype(float))
    of_levels = [summarise(of.reset_index(drop=True), ["run"], level=of_) for of_, of in by_level]
    summary = pd.concat(of_levels, ignore_index=True)
    is_gap = (summary["attribute"] == protect) & (summary["group"] == "")
    is_gap &= (summary["variant"] == "") & summary["outcome"].notna()
    class_gaps = summary[is_gap & summary["metric"].isin(_CLASS_GAPS)]
    summaries = pd.concat([headline(summary, protect), class_gaps])
    summaries = summaries.assign(
        setting=long_table.setting_text(summaries),
        status=list(map(long_table.status_text, summaries["status"], summaries["reason"])),
    )
    debiased = pd.concat([block.debiased for block in some])
    means = debiased.groupby([*_CHANCE_KEYS], observed=True, dropna=False)["value"].mean()
    summaries[DEBIASED] = debiased_gaps(summaries, means.reset_index(name="mean"))
    values, is_present = _values_by_split(metrics, summaries)
    rows = summaries[[*_SHOWN, "status"]].to_dict("records")
    keys = list(zip(*(summaries[name].astype(str).tolist() for name in _KEYS), strict=True))
    place = _places(some)
    rows_of_key: list[dict[tuple[str, ...], list[int]]] = [{} for _ in some]
    for index, (row, key) in enumerate(zip(rows, keys, strict=True)):
        rows_of_key[place[row["run"]]].setdefault(key, []).append(index)
    for block, of_block in zip(some, rows_of_key, strict=True):
        share, ranked = _test_share(block.metrics), []
        for key, indices in of_block.items():
            of_splits = values[indices][:, is_present[indices].any(axis=0)].T
            ranked.append(_ranked_runs(key, [rows[i] for i in indices], of_splits, block, share))
        yield ranked


@lru_cache(maxsize=1)
def _metrics_to_summarise() -> list[str]:
    """Return the metrics that tables show, and the metrics that their intervals need."""
    shown_metrics = [metric for metric in declared() if metric.shown or metric.name in _CLASS_GAPS]
    rates = [rate.name for metric in shown_metrics for rate in metric.rates]
    names = [metric.name for metric in shown_metrics]
    return [*dict.fromkeys([*names, *rates, *_SPLIT_METRICS, *FITS])]


def _values_by_split(
    metrics: pd.DataFrame, summary: pd.DataFrame
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the values behind rows of a summary, split by split.

    Returns
    -------
    (n, S) values of n rows in S splits, and which of them exist.
    """
    keys = ["run", *_KEYS]
    keys_of_both = pd.concat([summary[keys], metrics[keys]], ignore_index=True)
    texts = keys_of_both.astype({"setting": str}).groupby(keys, sort=False, observed=True)
    row = texts.ngroup().to_numpy()[len(summary) :]
    split = metrics.groupby(_SPLIT, sort=True).ngroup().to_numpy()
    # The rows of the summary come first, and are all different.
    is_summarised = row < len(summary)
    shape = len(summary), int(split.max(initial=-1)) + 1
    values = np.full(shape, np.nan)
    is_present = np.zeros(shape, bool)
    row, split = row[is_summarised], split[is_summarised]
    values[row, split] = metrics["value"].to_numpy(float)[is_summarised]
    is_present[row, split] = True
    return values, is_present


def _ranked_runs(
    key: tuple[str, ...],
    rows: Sequence[dict[str, Any]],
    values: Floats,
    block: _RunBlock,
    share: float,
) -> _RankedRuns:
    """Return one metric's rows, ranked; of runs with equal arms and values, only the first.

    Runs that differ in what else was evaluated, and not in this metric, are one row. A run that is
    undefined in a split cannot be compared there, and is not ranked.

    Parameters
    ----------
    values : (splits, rows) the metric in the splits in which any row has it.
    """
    name, attribute, group, setting = key
    marks = [(block.names[row["run"]], v.tobytes()) for row, v in zip(rows, values.T, strict=True)]
    first_rows = list({mark: i for i, mark in reversed([*enumerate(marks)])}.values())[::-1]
    labels = block.labels(tuple(rows[i]["run"] for i in first_rows))
    order = sorted(range(len(first_rows)), key=labels.__getitem__)
    unranked = {"best": np.nan, "near": np.nan, "standing": UNRANKED}
    table = [{**rows[first_rows[i]], "label": labels[i], **unranked} for i in order]
    metric, width = find(name), np.nan
    if metric and metric.direction and not group:
        values = values[:, [first_rows[i] for i in order]]
        defined = np.flatnonzero(np.isfinite(values).all(axis=0))
        if len(defined) and len(values) > 1:
            width = metric.negligible(values[:, defined])
            better = metric.larger_is_better(values[:, defined])
            draws = _draws(len(values))
            chances = verdicts.standings(better, share, rope=width, draws=draws)
            for i, best, near in zip(defined.tolist(), *chances, strict=True):
                standing = ALIKE if near >= CERTAIN else OPEN if near > 1 - CERTAIN else WORSE
                table[i].update(best=float(best), near=float(near), standing=standing)
        means = metric.larger_is_better(np.array([row["mean"] for row in table], float))
        table = [table[i] for i in np.argsort(-means, kind="stable")]
    # Its anchor says an attribute where one group is meant.
    anchor = "-".join(filter(None, (name, attribute if group else "", group, setting)))
    return _RankedRuns(name, attribute, group, setting, table, width, file_name(anchor))


def _test_share(metrics: pd.DataFrame) -> float:
    """Return the mean share of tested rows among those a split trains on or tests."""
    everyone = (metrics["attribute"] == "").to_numpy(bool)
    n = metrics["n"].to_numpy(float)
    tested, trained = (
        n[everyone & metrics["metric"].isin(names).to_numpy(bool)]
        for names in (["error_rate", "rmse"], ["fit_seconds"])
    )
    if not (len(tested) and len(trained)):
        return float("nan")
    return float(tested.mean() / (tested.mean() + trained.mean()))


@lru_cache(maxsize=8)
def _draws(splits: int) -> StudentDraws:
    """Return the draws for ranking runs, the same for all metrics with this number of splits."""
    return student_draws(splits, _DRAWS, rng(0, "standings"))


# Pairwise comparisons of the runs of a block that have the best means.

MOST = 8  # runs in the table of pairs: more would be hard to read
DRAWS = 1000  # of the posterior, for each pair
# The gap that runs are first looked at by, or where it is undefined the one that needs no labels.
_ERROR = HEADLINES[BINARY]["error"]
GAPS = (HEADLINES[BINARY]["gap"], "statistical_parity")
_FEWEST = 2
_TRADED = "traded"  # the style of an open pair of which each is surely better in one
# The sign of a verdict in a square, and what it says.
_SIGNS = {
    verdicts.BETTER: ("≫", "outperforms"),
    WORSE: ("≪", "is outperformed"),
    ALIKE: ("≈", "practically equivalent"),
    _TRADED: ("⇄", "each better in one"),
    OPEN: ("", "undecided"),
}
_HINTS = {ALIKE: "equivalent", OPEN: "undecided"}  # in place of the verdict


def _epsilons(gap: str) -> tuple[float, ...]:
    """Return the differences of the error and of a gap that make no difference in practice."""
    return tuple(objective(name).metric.epsilon for name in (_ERROR, gap))


def _contenders(block: _RunBlock) -> tuple[dict[str, tuple[float, float]], str, int] | None:
    """Return the runs of a block to compare by their error and a gap between groups.

    Returns
    -------
    Run -> its mean error and mean gap over splits, of at most `MOST` runs: those that fewest
    outperform by them come first, of these the more accurate. The gap: the first of `GAPS` that is
    defined. How many runs could be compared. None if fewer than two can be.
    """
    errors = _means(block, _ERROR, "")
    if len(errors) < _FEWEST:
        return None
    for gap in filter(None, (headline_of(block.runs.values()), *GAPS)):
        gaps = _means(block, gap, block.protect)
        if errors.keys() <= gaps.keys():
            break
    else:
        return None
    means = [(id_, (error, gaps[id_])) for id_, error in errors.items()]
    values = np.array([of_run for _, of_run in means])
    ranks = verdicts.ranking(verdicts.outperforms(-values, np.array(_epsilons(gap))).astype(float))
    order = np.lexsort((values[:, 0], ranks))[:MOST]
    return dict(means[i] for i in order), gap, len(errors)


def _means(block: _RunBlock, metric: str, attribute: str) -> dict[str, float]:
    """Return a metric's mean for every arm that has it in all splits."""
    rows = block.metrics
    is_of_it = (rows["metric"] == metric) & (rows["attribute"] == attribute) & (rows["group"] == "")
    by_run = rows[is_of_it].groupby("run", sort=False, observed=True)["value"]
    means = {id_: fsum(values) / len(values) for id_, values in by_run if id_ in block.arms}
    return {id_: mean for id_, mean in means.items() if mean == mean}


def _compare_block(block: _RunBlock) -> tuple[doc.Section | None, Sequence[str]]:
    """Return the section that compares a block's best runs, and why some could not be read.

    The probabilities are those of ``fairbench compare``, computed by the same function.
    """
    best = _contenders(block)
    if best is None:
        return None, []
    means, gap, available = best
    settings = Settings((_ERROR, gap), _epsilons(gap), draws=DRAWS)
    runs, left_out = load_all([block.runs[id_] for id_ in means], settings)
    if len(runs) < _FEWEST:
        return None, left_out
    try:
        pairs = every_pair(runs, settings)
    except UserError as error:
        return None, [*left_out, str(error)]
    rows = [(run.id, block.arms[run.id], *means[run.id]) for run in runs]
    return _pairs_section(pairs, rows, gap, available), left_out


# Of a run: its id, its name, its mean error and its mean gap.
_Compared: TypeAlias = tuple[str, str, float, float]


def _pairs_section(
    pairs: verdicts.Pairs, runs: Sequence[_Compared], gap: str, available: int
) -> doc.Section:
    """Return the ranking with ties, how it is read, and the probability of every pair."""
    share = f"{100 * CERTAIN:.0f} %"
    about: dict[str, Any] = {"gap": metric_label(gap), "rope": _epsilons(gap)[1], "share": share}
    about["selection"] = ""
    if len(runs) < available:
        about["selection"] = sentence_of("runs", "selection", shown=len(runs), available=available)
    words = {"ids": ",".join(id_ for id_, *_ in runs), "error": _ERROR, "gap": gap}
    command = sentence_of("runs", "compare", **words, ropes=_epsilons(gap), draws=DRAWS)
    typed = [doc.Paragraph((doc.Code(command),))]
    told_marks = [doc.Mark(" ".join(told).strip(), f"pair {kind}") for kind, told in _SIGNS.items()]
    blocks: list[doc.Block] = [
        doc.Paragraph(sentence_of("runs", "pairs", **about)),
        doc.Paragraph(sentence_of("runs", "squares"), "note"),
        _pairs_table(pairs, runs, gap),
        doc.Paragraph((f"With a probability of at least {share}:", *told_marks), "note key"),
        doc.Paragraph(sentence_of("runs", "posterior", draws=DRAWS), "note"),
        doc.Details("the command that prints these numbers", typed, style="from"),
    ]
    return doc.Section("Which one is better?", blocks)


def _pairs_table(pairs: verdicts.Pairs, runs: Sequence[_Compared], gap: str) -> doc.Table:
    """Return the table of runs by rank, with a square for each pair."""
    ranks = verdicts.ranking(pairs.outperforms, CERTAIN)
    order = verdicts.in_order(ranks, pairs.outperforms).tolist()
    of_pairs = pairs.verdicts(CERTAIN)
    columns = [
        doc.Column("rank", right=True),
        doc.Column("", "count", heads=True),
        doc.Column("run"),
        doc.Column(metric_label(_ERROR), "number"),
        doc.Column(metric_label(gap), "number"),
        *(doc.Column(str(place), "percent") for place in range(1, len(order) + 1)),
    ]
    rows = []
    for place, i in enumerate(order, start=1):
        id_, name, *means = runs[i]
        squares = (_pair_cell(pairs, i, j, str(of_pairs[i, j])) for j in order)
        named = doc.TableCell(name, link=f"#run-{id_}")
        rows.append([rank_of(ranks, i), place, named, *means, *squares])
    return doc.Table(columns, rows, style="pairs")


def _pair_cell(pairs: verdicts.Pairs, i: int, j: int, verdict: str) -> doc.TableCell:
    """Return the cell of a pair of runs, with its verdict and probabilities."""
    if i == j:
        return doc.TableCell(None, style="pair same")
    better = float(pairs.outperforms[i, j])
    kind = _TRADED if verdict == OPEN and pairs.traded[i, j] >= CERTAIN else verdict
    odds = {"better": better, "worse": pairs.outperforms[j, i]}
    odds |= {"equivalent": pairs.equivalent[i, j], "traded": pairs.traded[i, j]}
    hint = sentence_of("runs", "pair", kind=_HINTS.get(kind, kind), **odds)
    shade = better if kind == OPEN else None
    sign = f"{_SIGNS[kind][0]} "
    return doc.TableCell(better, before=sign, style=f"pair {kind}", shade=shade, hint=hint)


# Drawings.

MOST_DRAWN = 9  # methods in a figure: as many as there are different markers
POINTS = 16  # runs in a trade-off: as many as fit into its key and its panel
_RATES = ("false_positive_rate", "true_positive_rate")
_DRAWN = [
    *("metric", "attribute", "group", "method", "value"),
    *("rate", "feature", "bins", "bin", "quantile", "level"),
]
# The titles of figures of several methods.
_FIGURES = {
    "spread": "Residuals against predicted uncertainty",
    "abstention": "Abstaining on the most uncertain",
    "consistency": "How far each individual's uncertainty moves across variants",
    "parity": "Uncertainty-aware parity",
}


def _figures_of(block: _RunBlock) -> Iterator[doc.Figure]:
    """Yield the figures of a block that compare uncertainty methods, and its trade-off.

    Compared are the methods without intervention, with one learner; the trade-off has all.
    """
    metrics = long_table.without_classes(block.metrics)
    if drawings := _tradeoff(block, metrics):
        note = sentence_of("runs", "tradeoff", points=POINTS)
        yield _figure(f"Error against fairness, {block.dataset} by {block.protect}", note, drawings)
    plain = _plain(block)
    undrawn = len(plain) - MOST_DRAWN
    note = f"{undrawn} further methods are in the tables alone" if undrawn > 0 else ""
    chosen = metrics["run"].isin(plain[:MOST_DRAWN]) & metrics["value"].notna()
    metrics = metrics[chosen.to_numpy(bool)]
    metrics = metrics.assign(method=metrics["run"].map(block.names))[_DRAWN]
    metrics = metrics.astype(dict.fromkeys(("metric", "attribute", "group", "method"), str))
    styles = method_styles(metrics["method"])
    for kind, title in _FIGURES.items():
        panels = [panel for _, panel in OF_METHODS[kind](metrics, styles)]
        if panels:
            yield _figure(title, note, chart(panels, key=key_of(panels)))


def _figure(title: str, note: str, drawings: Sequence[str]) -> doc.Figure:
    """Return drawings for a document, with their caption."""
    return doc.Figure(title, drawings, caption=f"{title}: {note}" if note else title)


def _plain(block: _RunBlock) -> list[str]:
    """Return the ids of plain runs with the most frequent learner, one for each label."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    chosen = [run for run in runs if run.choices["learner"] == most]
    run_of_label = dict(zip(_name_runs(chosen), chosen, strict=True))
    return [run.id for run in run_of_label.values()]


def _tradeoff(block: _RunBlock, metrics: pd.DataFrame) -> list[str]:
    """Return the chart of ``fairbench tradeoff`` for a block's runs: at most those of least error.

    Parameters
    ----------
    metrics : the block's.
    """
    if len(block.arms) < _FEWEST:
        return []
    arms = metrics[metrics["run"].isin(block.arms)]
    counts = dict(_confusion_counts(arms, block.protect))
    counts = {id_: of for id_, of in counts.items() if not is_weighted(block.runs[id_])}
    if len(counts) < _FEWEST:
        return []
    errors = {id_: float(of[..., [FP, FN]].sum() / of.sum()) for id_, of in counts.items()}
    ids = sorted(errors, key=errors.__getitem__)[:POINTS]
    share = _test_share(block.metrics)
    shares = [share if _differ(counts[id_]) else np.nan for id_ in ids]
    several = zip(ids, shares, strict=True)
    run_points = [points(counts[id_], block.dataset, test_share=of) for id_, of in several]
    table = point_table(ids, names_of_parts([block.runs[id_] for id_ in ids]), run_points)
    table = table[table["gap"].notna()]
    return tradeoff_chart(table, *_frontier(block, metrics)) if len(table) else []


def _frontier(block: _RunBlock, metrics: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the curve of thresholds per group, and the name of the run it was made from."""
    plain = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
    if rows.empty:
        return rows, ""
    curve = frontier([rows[rows["run"] == run.id] for run in plain], block.protect)
    if curve.empty:
        return curve, ""
    base = plain[curve["base"].iloc[0]].choices
    return curve, f"{base['learner']}, {base['method']}".replace("_", " ")


def _confusion_counts(metrics: pd.DataFrame, protect: str) -> Iterator[tuple[str, Floats]]:
    """Yield each run and its counts (R, K, G, 4) of R repeats, K folds and the groups of `protect`.

    A run without predictions in some split, or of a regression, is left out.

    Parameters
    ----------
    metrics : the long table of several runs, with the column ``run``.
    """
    rows = metrics[metrics["metric"].isin(_RATES) & (metrics["attribute"] == protect)]
    rows = rows[rows["group"] != ""]
    if rows.empty:
        return
    # How many of the rows were predicted 0 and 1; a group may have none.
    n = np.nan_to_num(rows["n"].to_numpy(float))
    ones = np.where(n == 0, 0, np.rint(rows["value"].to_numpy(float) * n))
    (run, ids), (group, groups) = (pd.factorize(rows[name]) for name in ("run", "group"))
    rate = pd.Index(_RATES).get_indexer(rows["metric"].astype(str))
    splits, split = np.unique(rows[["repeat", "fold"]].to_numpy(), axis=0, return_inverse=True)
    counts = np.zeros((len(ids), len(splits), len(groups), len(_RATES), 2))
    counts[run, split.ravel(), group, rate] = np.column_stack([n - ones, ones])
    has_split = np.zeros(counts.shape[:2], bool)
    has_split[run, split.ravel()] = True
    for id_, cells, is_of_run in zip(ids, counts, has_split, strict=True):
        if not np.isnan(cells[is_of_run]).any():
            repeats = len(np.unique(splits[is_of_run, 0]))
            yield str(id_), cells[is_of_run].reshape(repeats, -1, len(groups), 2 * len(_RATES))


def _differ(counts: Floats) -> bool:
    """Return whether the repeats (R, 1, G, 4) of a run test other people, and no folds of all."""
    labels = counts.reshape(*counts.shape[:-1], 2, 2).sum(axis=-1)
    return counts.shape[1] == 1 and bool((labels != labels[0]).any())


# The page.

_GLANCE = (
    "error_rate", "roc_auc", "nll", "log_loss", "expected_calibration_error", "rmse", "r2",
    "equalized_odds", "statistical_parity", "classwise_calibration_error",
    "equal_opportunity_class_mean", "statistical_parity_class_mean",
)  # fmt: skip


def _origin_of(runs: Sequence[Run], presets: Presets) -> doc.Details:
    """Return the origin of a block: runs, data, versions, and the commands for them."""
    sums, versions = (
        _merge([run.environment[name] for run in runs]) for name in ("data_sha256", "versions")
    )
    data = ", ".join(value[:12] for value in sums.values()) or "simulated"
    commits = ", ".join(sorted({_commit(run.environment) for run in runs}))
    links: list[doc.Inline] = []
    for run in runs:
        links += [doc.Link(run.id, f"#run-{run.id}", code=True), " "]
    files: list[doc.Inline] = []
    for file, sha in sums.items():
        files += [f"{file} ", doc.Code(sha), "; "]
    changed = " (+: with files changed since)" if "+" in commits else ""
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return doc.Details(
        f"{formats.counted(len(runs), 'run')}; data {data}; commit {commits}",
        [
            doc.Paragraph(("runs (hashes of their configurations): ", *links)),
            doc.Paragraph(("data, sha256: ", *(files or ["simulated from the seed"]))),
            doc.Paragraph(f"versions: {packages}; commit {commits}{changed}"),
            doc.Paragraph("To compute it again:"),
            *(doc.Paragraph((doc.Code(command),)) for command in presets.commands_of(runs)),
        ],
        style="from",
    )


def _commit(environment: Mapping[str, Any], missing: str = "unknown") -> str:
    """Return the commit of this project that a run was made with, with + if files were changed."""
    commit = str(environment.get("git_commit", missing))[:12]
    return commit + "+" * bool(environment.get("git_dirty"))


def _merge(tables: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the values of each name, several where they differ."""
    return {
        name: ", ".join(dict.fromkeys(str(table[name]) for table in tables if name in table))
        for name in dict.fromkeys(chain.from_iterable(tables))
    }


def _block_section(block: _RunBlock) -> doc.Section:
    """Return the section of a block."""
    text: list[doc.Inline] = [
        f"{formats.counted(len(block.runs), 'run')} of {block.dataset}, ",
        doc.Code(block.split),
        f", seed {block.first.config['seed']}, {block.options('learner')}, protected: "
        f"{block.protect}",
    ]
    blocks: list[doc.Block] = [doc.Paragraph(tuple(text)), *filter(None, [block.origin])]
    if block.figures:
        blocks.append(doc.Section("Figures", block.figures))
    blocks += _at_a_glance(block)
    if block.compared is not None:
        blocks.append(block.compared)
    alone = [table for table in block.tables if not table.group]
    details = [_metric(block, table, is_open=not i) for i, table in enumerate(alone)]
    details += _groups(block)
    blocks += [doc.Section("Metric by metric", details), _runs(block)]
    return doc.Section(block.title, blocks, name=block.name)


def _at_a_glance(block: _RunBlock) -> Iterator[doc.Block]:
    """Yield the metrics that most readers look at first."""
    whole = [table for table in block.tables if table.is_whole]
    ranked = {ranking.metric: ranking for ranking in whole if ranking.metric in _GLANCE}
    tables = [ranked[name] for name in _GLANCE if name in ranked and ranked[name].is_ranked]
    if not tables:
        return
    columns = [doc.Column(metric_label(table.metric), "spread") for table in tables]
    caption = sentence_of("runs", "glance", certain=CERTAIN)
    table = _side_by_side(tables, columns, _standing_cell, caption)
    yield doc.Section("At a glance", [table])


def _standing_cell(row: Mapping[str, Any]) -> doc.TableCell:
    after = "*" if row["standing"] == OPEN else ""
    values = (row["mean"], row["sd"])
    return doc.TableCell(values, after=after, strong=row["standing"] == ALIKE)


def _metric_table_of(block: _RunBlock, table: _RankedRuns) -> doc.Table:
    """Return a metric's rows as a table, with bars and statuses."""
    above_chance = any(isfinite(row[DEBIASED]) for row in table.rows)
    without = [] if above_chance else [DEBIASED]
    without += [] if table.is_ranked else ["best", "near", "standing"]
    chance = DEBIASED_MEANS if above_chance else ""
    values: dict[str, Any] = {"chance": chance, "sure": levels_of(block.runs.values())}
    return named_table("runs", "metric", _with_bars(table.rows), without=without, **values)


def _with_bars(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows with the interval, or one sd either way, on the scale of the table."""
    ends = np.array([_bar_ends(row) for row in rows], float).reshape(-1, 3)
    finite = ends[np.isfinite(ends)]
    start = finite.min(initial=np.inf)
    width = finite.max(initial=-np.inf) - start
    places = np.nan_to_num(np.round(100 * (ends - start) / width, 1)) if width > 0 else ends
    for row, triple in zip(rows, places.tolist(), strict=True):
        bar = doc.Bar(tuple(triple), kind="dot") if width > 0 else None
        words = STANDINGS[row["standing"]]
        standing = doc.TableCell(words, mark=words.replace(" ", "-"))
        yield {**row, "bar": bar, "status": _status(row), "standing": standing}


def _status(row: Mapping[str, Any]) -> str:
    return "" if row["status"] == "ok" else str(row["status"])


def _bar_ends(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the interval of a row around its mean; one sd either way if it has no interval."""
    mean = row["mean"]
    sd = 0.0 if isnan(row["sd"]) else row["sd"]
    lower = mean - sd if isnan(row["lower"]) else row["lower"]
    return lower, mean, mean + sd if isnan(row["upper"]) else row["upper"]


def _metric(block: _RunBlock, table: _RankedRuns, *, is_open: bool) -> doc.Details:
    """Return the folded table of a metric."""
    summary = _by_attribute(table) + (f", {table.setting}" if table.setting else "")
    remark = table.direction
    if table.is_ranked:
        best = "; ".join(table.labels_with_standing(ALIKE)) or "none for certain"
        remark += f"; as good as the best: {best}"
    rope = [doc.Paragraph(f"rope {formats.number(table.rope, 4)}", "note")]
    return doc.Details(
        summary,
        [_metric_table_of(block, table), *(rope if table.is_ranked else [])],
        remark=remark,
        name=f"{block.name}-{table.key}",
        style="metric",
        is_open=is_open,
    )


def _by_attribute(table: _RankedRuns) -> str:
    """Return the label of a table's metric, and between whose groups it is."""
    return metric_label(table.metric) + (f" by {table.attribute}" if table.attribute else "")


def _groups(block: _RunBlock) -> Iterator[doc.Details]:
    """Yield a metric of every group of people side by side."""
    group_tables = [table for table in block.tables if table.group]
    for metric in dict.fromkeys(table.metric for table in group_tables):
        tables = [table for table in group_tables if table.metric == metric]
        columns = [doc.Column(table.group, "spread", decimals=4) for table in tables]
        sure = levels_of(block.runs.values())
        caption = f"mean (sd over repeats or folds), and the {sure} interval of the mean"
        table = _side_by_side(tables, columns, _group_cell, caption)
        title, attribute = f"{metric_label(metric)} of each group", tables[0].attribute
        yield doc.Details(title, [table], attribute, style="metric")


def _group_cell(row: Mapping[str, Any]) -> doc.TableCell:
    """Return the cell of a group: mean and sd, with the interval below."""
    less = f"{DEBIASED} {formats.number(row[DEBIASED], 4)}" if isfinite(row[DEBIASED]) else ""
    remarks = [formats.interval(row["lower"], row["upper"], 4), less, _status(row)]
    return doc.TableCell((row["mean"], row["sd"]), note="; ".join(filter(None, remarks)))


def _side_by_side(
    tables: Sequence[_RankedRuns],
    columns: Sequence[doc.Column],
    cell: Callable[[Mapping[str, Any]], doc.TableCell],
    caption: str,
) -> doc.Table:
    """Return a row for each label, with a column for each of the tables that may have it."""
    row_of = [{row["label"]: row for row in table.rows} for table in tables]
    labels = dict.fromkeys(label for rows in row_of for label in rows)
    cells = [
        [label, *(cell(rows[label]) if label in rows else None for rows in row_of)]
        for label in labels
    ]
    return doc.Table([doc.Column("method"), *columns], cells, caption=caption, sortable=True)


def _runs(block: _RunBlock) -> doc.Section:
    """Return the section that lists the runs of a block: commit, processor and files of each."""
    rows = []
    for run in block.runs.values():
        tables = place_of(run.path, "summary.csv").name
        files = {"configuration": LAST, "all metrics": tables, "figures": f"{FIGURES}/"}
        links = [doc.Link(text, f"../runs/{run.id}/{name}") for text, name in files.items()]
        id_ = doc.TableCell((doc.Code(run.id),), name=f"run-{run.id}")
        commit, cpu = doc.Code(_commit(run.environment, "")), run.environment.get("cpu", "")
        spaced = tuple(piece for link in links for piece in (link, " "))
        rows.append([id_, block.names[run.id], (commit,), cpu, spaced])
    columns = [doc.Column(title) for title in ("run", "method", "commit", "processor", "files")]
    return doc.Section("Runs", [doc.Table(columns, rows, sortable=True)])


def _runs_summary(blocks: Sequence[_RunBlock], left_out: Sequence[str]) -> doc.ExecutiveSummary:
    """Return the summary of a page of runs: which is best, how sure that is, what to do next."""
    protected = list(dict.fromkeys(block.protect for block in blocks))
    values = {
        "attributes": formats.listed(protected, _MOST_NAMED),
        "count": len(set(left_out)),
        "certain": CERTAIN,
    }
    compared = any(block.compared is not None for block in blocks)
    parts: tuple[Mapping[str, object], ...] = (
        {"certain": True},
        {"protected": True, "not_compared": left_out, "not_run": True},
        {"read": compared, "next": True},
    )
    sure, unseen, todo = (sentences_of("runs", part, **values) for part in parts)
    return doc.ExecutiveSummary(list(_result_sentences(blocks)), sure, unseen, todo)


_MOST_TOLD, _MOST_NAMED = 6, 3


def _result_sentences(blocks: Sequence[_RunBlock]) -> Iterator[str]:
    """Yield the findings in the first blocks, and how many blocks have more."""
    findings = [(block, sentences) for block in blocks if (sentences := list(_winners(block)))]
    for block, sentences in findings[:_MOST_TOLD]:
        yield f"{block.title}: {' '.join(sentences)}"
    if len(findings) > _MOST_TOLD:
        yield sentence_of("runs", "more", count=len(findings) - _MOST_TOLD)
    if not findings:
        yield sentence_of("runs", "alone")


def _winners(block: _RunBlock) -> Iterator[str]:
    """Yield the sentences on the best run by the error, and by the gap between groups."""
    ranked = [table for table in block.tables if table.is_ranked and not table.setting]
    tables = {table.metric: table for table in ranked}
    for part in ("error", "gap"):
        first = headline_of(block.runs.values()) if part == "gap" else ""
        names = (first, *(of_task[part] for of_task in HEADLINES.values()))
        name = next((name for name in names if name in tables), "")
        if name and len(tables[name].rows) > 1:
            yield _winner(tables[name])


def _winner(table: _RankedRuns) -> str:
    """Return the sentence on the run of the best mean, and on those that may be as good."""
    best = table.rows[0]["label"]
    clauses = []
    told = {ALIKE: "as good for practical purposes", OPEN: "not told apart from it"}
    for standing, text in told.items():
        if names := [name for name in table.labels_with_standing(standing) if name != best]:
            are = "is" if len(names) == 1 else "are"
            clauses.append(f"{formats.listed(names, _MOST_NAMED)} {are} {text}")
    ending = ", and ".join(clauses) or "every other run is worse"
    mean = formats.number(float(table.rows[0]["mean"]))
    return f"{best} has the best mean in {_by_attribute(table)} ({mean}); {ending}."


def _runs_table(blocks: Sequence[_RunBlock]) -> doc.Table:
    """Return the table of what was run, with a row for each block."""
    columns = [doc.Column("data set"), doc.Column("runs", "count"), doc.Column("repeats", "count")]
    columns += [doc.Column(f"{group}s") for group in ARM]
    rows = []
    for block in blocks:
        title = doc.TableCell(block.title, link=f"#{block.name}")
        counts = len(block.runs), block.repeats
        rows.append([title, *counts, *map(block.options, ARM)])
    return doc.Table(columns, rows, sortable=True)


def _how_to_read(blocks: Sequence[_RunBlock]) -> doc.Items:
    """Return explanations of the page's numbers."""
    marks: list[doc.Inline] = []
    for verdict, where in ((ALIKE, "good"), (WORSE, "bad"), (OPEN, "between")):
        mark = doc.Mark(STANDINGS[verdict], STANDINGS[verdict].replace(" ", "-"))
        marks += [mark, sentence_of("runs", where, certain=CERTAIN, not_certain=1 - CERTAIN)]
    sure = levels_of(run for block in blocks for run in block.runs.values())
    said = [sentence_of("runs", name, sure=sure) for name in ("intervals", "probabilities")]
    return doc.Items([*said, tuple(marks)])


def write_report(
    results: Path, *, experiment: str = "", forms: Sequence[str] = ("html",)
) -> tuple[Path, int, list[str]]:
    """Write ``report/index.html`` of all finished runs, or of an experiment's.

    Returns
    -------
    The path of the page, the number of its runs, and why some could not be compared with others.

    Parameters
    ----------
    results : the folder of runs.
    forms : the forms that the page is written in; see :data:`FORMS`.

    Raises
    ------
    UserError : an unknown experiment, nothing finished, or somebody else's page in its place.
    """
    check_forms(forms)
    presets = Presets()
    collection = Catalogue(results)
    if experiment:
        collection = collection.only(presets.runs_of_all(experiment, collection.runs))
    if not collection.runs:
        condition = f"of experiment={experiment} " if experiment else ""
        raise UserError(f"{results} has no finished run {condition}to report on")
    folder = results / "report" / experiment.replace("/", "-")
    check_page(folder / "index.html")
    blocks = []
    left_out: list[str] = []
    for some in progress([*_together(_blocks(collection))], "data sets and splits"):
        read = _read(some)
        for block, whole, tables in zip(some, read, _metric_tables(read), strict=True):
            compared, unread = _compare_block(whole)
            left_out += unread
            figures = list(_figures_of(whole))
            origin = _origin_of(tuple(block.runs.values()), presets)
            # The page keeps the block without its metrics.
            ready = replace(block, tables=tables, figures=figures, compared=compared, origin=origin)
            blocks.append(ready)
    document = _page_document(blocks, experiment, _runs_summary(blocks, left_out))
    names = write_document(document, folder, "index", forms)
    return folder / names[0], len(collection.runs), left_out


def _page_document(
    blocks: Sequence[_RunBlock], experiment: str, summary: doc.ExecutiveSummary
) -> doc.Document:
    """Return the page: a summary, an overview, then a section for each block."""
    command = f"fairbench report{f' experiment={experiment}' if experiment else ''}"
    runs = sum(len(block.runs) for block in blocks)
    text: list[doc.Inline] = [f"{runs} finished runs. Written by ", doc.Code(command)]
    text.append(f" with fairbench {VERSION}")
    reading = doc.Section("How to read the tables", [_how_to_read(blocks)], name="reading")
    overview = [doc.Section("What was run", [_runs_table(blocks)]), reading]
    sections = [doc.Section("Overview", overview, name="overview")]
    sections += [_block_section(block) for block in blocks]
    lead = [doc.Paragraph(tuple(text), "note")]
    title = experiment or "All finished runs"
    return doc.Document(title, sections, lead=lead, tabs=True, summary=summary)
