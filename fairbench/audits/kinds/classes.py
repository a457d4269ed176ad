"""The audit of three classes and more: class by class and group by group."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.class_table import read_costs, read_multiclass
from fairbench.audits.findings import (
    GAP,
    LARGE,
    LEVEL,
    LOWEST,
    NOT_MEASURED,
    OPEN,
    ErrorBudget,
    Finding,
    compare_groups,
    lowest_of,
)
from fairbench.audits.gaps import FEWEST_LABELS, TOO_FEW
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.sentences import listed
from fairbench.audits.table import notes_on_groups, read_groups
from fairbench.core.formats import count, interval, number
from fairbench.core.seeds import rng
from fairbench.data.columns import Place
from fairbench.evaluation.columns import records
from fairbench.inference import confusion_matrix, reliability
from fairbench.inference.beta import Beta, uniform
from fairbench.inference.confusion_matrix import MulticlassScores, confusion_posterior
from fairbench.inference.gaps import GroupLimits, leads
from fairbench.inference.posterior import FREQUENTIST, central_interval
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting.charts import BLUE, GREY, Panel, Series, chart
from fairbench.reporting.document.model import Bar, Column, Figure, Gallery, Section, Table

Floats = NDArray[np.float64]

DRAWS = 4000
FEWEST_COMPARED = 10  # labels of a group that is compared with others
CLASSES = "predicted class"
ACCURACY = "accuracy"
_MOST = 12  # rows of a table on a terminal
_MOST_NAMED = 5
_MISTAKES = 10
Rows: TypeAlias = Sequence[Mapping[str, Any]]
# Of every estimate, beside its interval: how probably it is the worst of all, if it has a
# posterior, and the interval of its rank, 1 being the worst; NaN of everyone together.
_ESTIMATE = ("value", "lower", "upper", "extreme", "worst_rank", "best_rank")


def audit_classes(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of three classes and more."""
    scores = read_multiclass(options, frame)
    places = {name: Place(options.path.name, name) for name in options.columns}
    labels = read_groups(frame, places, options)[0] if options.group else {}
    costs = read_costs(options.cost, scores.classes) if options.cost else None
    findings = findings_of(scores, labels, options)
    parts_of = partial(_parts, scores, options, rng(options.seed, "posterior"))
    (everyone,) = parts_of(pd.Series(pd.Categorical(["everyone"] * len(scores))))
    classes = parts_of(_predicted(scores), costs=costs)
    groups = {attribute: parts_of(column) for attribute, column in labels.items()}
    bins, mistakes = _bins(scores, options.strength), _mistakes(scores)
    return Audit(
        options,
        len(scores),
        len(scores.labelled),
        findings,
        list(_basis(scores, everyone["accuracy"])),
        [
            Section("Calibration", [_diagram(bins, everyone)]),
            *(Section(f"By {name}", [_table(name, parts)]) for name, parts in groups.items()),
            Section(f"By {CLASSES}, the least accurate first", [_table("class", classes)]),
            *[Section("Most frequent mistakes", [_mistake_table(mistakes)])] * bool(mistakes),
        ],
        {
            "class_names": list(scores.classes),
            "everyone": everyone,
            "classes": classes,
            "groups": groups,
            "mistakes": mistakes,
            "reliability": bins.to_dict("list"),
        },
        warning=""
        if everyone["labels"]
        else "There are no labels: everything here is what was assumed before any was seen.",
        notes=[*notes_on_groups(frame, options), *_notes(scores, options, classes, groups)],
        unseen=["Of groups only the accuracy was compared, not which classes they are given."],
        todo=["Label more rows for what stays open and matters most."]
        * any(finding.verdict == OPEN for finding in findings),
        figures=list(_figures({"": [everyone], **groups, CLASSES: classes})),
    )


def findings_of(
    scores: MulticlassScores, groups: Mapping[str, pd.Series], options: Options
) -> list[Finding]:
    """Return what labels say of the accuracies of groups, and of predicted classes.

    Parameters
    ----------
    groups : attribute, or combination of two -> (n,) categorical labels.
    """
    risk = ErrorBudget(len(groups) + 1).risk
    findings = []
    for attribute, labels in groups.items():
        findings += _compared(scores, options, attribute, labels, risk)
    by_class = _compared(scores, options, CLASSES, _predicted(scores), risk)
    return [*findings, *(finding for finding in by_class if finding.about == LOWEST)]


def _compared(
    scores: MulticlassScores, options: Options, attribute: str, groups: pd.Series, risk: float
) -> list[Finding]:
    """Return what labels alone say of the accuracies of groups, and of more than two the lowest."""
    counts = _counts(scores, groups)
    enough = counts[counts["labels"] >= FEWEST_COMPARED]
    names = enough.index.astype(str).tolist()
    bound, labels = options.epsilon, int(enough["labels"].sum())
    gap = Finding(GAP, attribute, ACCURACY, NOT_MEASURED, bound=bound, n=labels, needs=TOO_FEW)
    if len(names) < 2:
        return [gap, replace(gap, about=LOWEST)]

    def at(level: float) -> GroupLimits:
        return GroupLimits.of(enough["right"], enough["labels"], level=level)

    few = counts["labels"].between(1, FEWEST_LABELS - 1).any()
    may_be_small = len(scores.labelled) == len(scores) or not few
    answer, findings = compare_groups(at, names, gap, risk, may_be_small=may_be_small)
    if len(names) == 2:
        return findings
    candidates, rates = lowest_of(names, answer), at(LEVEL).single
    verdict, ends = OPEN, (np.nan,) * 3
    if len(candidates) == 1:
        verdict, ends = LARGE, rates.at(int(rates.value.argmin()))
    lowest = (LOWEST, attribute, ACCURACY, verdict, tuple(candidates))
    return [*findings, Finding(*lowest, *ends, bound=bound, n=labels)]


def _predicted(scores: MulticlassScores) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(scores.prediction, scores.classes))


def _counts(scores: MulticlassScores, groups: pd.Series) -> pd.DataFrame:
    """Return the rows, labels and right predictions of the groups that have rows."""
    by_group = pd.Series(scores.correct).groupby(groups.array, observed=True)
    return by_group.agg(rows="size", labels="count", right="sum")


def _parts(
    scores: MulticlassScores,
    options: Options,
    generator: np.random.Generator,
    groups: pd.Series,
    *,
    costs: Floats | None = None,
) -> list[dict[str, Any]]:
    """Return accuracy, calibration error and cost of the groups that have rows.

    The accuracy is that of the labels alone, unless scores are its prior; other quantities are
    means of their posterior.

    Parameters
    ----------
    costs : (C, C), where groups are the predicted classes and mistakes have costs.
    """
    names, code = groups.cat.categories, groups.cat.codes.to_numpy(np.int64)
    n, strength, informed = len(names), options.strength, options.prior == "scores"
    counts = _counts(scores, groups)
    kept = names.get_indexer(counts.index)
    diagram = reliability.reliability_diagram(
        scores.confidence, scores.correct, code, n_groups=n, strength=strength
    )
    error = diagram.calibration_error_draws(DRAWS, generator)[:, kept]
    calibration = _of_draws(diagram.expected_calibration_error()[kept], error)
    cost: Sequence[Mapping[str, Any] | None] = [None] * len(kept)
    if costs is not None:
        shares = confusion_matrix.uninformative_prior(n, strength=strength)
        if informed:
            shares = confusion_matrix.score_prior(scores, strength=strength)
        mistakes = confusion_posterior(scores, shares)
        draws = confusion_matrix.cost_draws(mistakes, costs, DRAWS, generator)[:, kept]
        cost = _of_draws(confusion_matrix.expected_cost(mistakes, costs)[0][kept], draws)
    limits = rate_limits(counts["right"], counts["labels"])
    if informed or options.interval != FREQUENTIST:
        prior = uniform(n, strength)
        if informed:
            prior = reliability.score_prior(scores.confidence, code, n, strength=strength)
        posterior = reliability.accuracy_posterior(scores.correct, code, prior)
        draws = posterior.draws(DRAWS, generator)[:, kept]
        limits = Limits(posterior.mean[kept], *central_interval(draws))
    # Ranks are of the labels alone.
    above = leads(GroupLimits.of(counts["right"], counts["labels"])) > 0
    worst, best = 1 + above.sum(axis=1), len(kept) - above.sum(axis=0)
    accuracy = _estimates(limits, worst_rank=worst, best_rank=best)
    parts = counts.drop(columns="right").rename_axis("name").reset_index()
    return records(parts.assign(accuracy=accuracy, calibration=calibration, cost=cost))


def _of_draws(mean: Floats, draws: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups by draws (T, G), of which the largest is the worst."""
    order = reliability.ranks(draws, largest=True)
    ranked = {"extreme": order.first, "worst_rank": order.lower, "best_rank": order.upper}
    return _estimates(Limits(mean, *central_interval(draws)), **ranked)


def _estimates(limits: Limits, **order: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups, with what is known of their order if there are several."""
    columns = limits._asdict() | (order if len(limits.value) > 1 else {})
    return records(pd.DataFrame(columns, columns=list(_ESTIMATE), dtype=float))


def _mistakes(scores: MulticlassScores) -> list[dict[str, Any]]:
    """Return the most frequent mistakes, with their shares of those predicted so."""
    n, classes = len(scores.classes), np.array(scores.classes, object)
    counts = confusion_posterior(scores, np.zeros((n, n))).alpha
    wrong = counts * (1 - np.eye(n))
    cells = np.argsort(-wrong, axis=None, kind="stable")[:_MISTAKES]
    predicted, true = np.divmod(cells[wrong.flat[cells] > 0], n)
    number_wrong, total = wrong[predicted, true], counts.sum(axis=1)[predicted]
    ends = Beta(1 + number_wrong, 1 + total - number_wrong).interval()
    share = Limits(number_wrong / total, *ends)
    mistakes = pd.DataFrame({"target": classes[true], "prediction": classes[predicted]})
    return records(mistakes.assign(count=number_wrong.astype(int), share=_estimates(share)))


def _bins(scores: MulticlassScores, strength: float) -> pd.DataFrame:
    """Return the bins of the reliability diagram of all rows."""
    diagram = reliability.reliability_diagram(scores.confidence, scores.correct, strength=strength)
    lower, upper = diagram.accuracy.interval()
    columns = {"share_of_rows": diagram.weight, "score": diagram.score, "labels": diagram.labels}
    columns |= {"accuracy": diagram.accuracy.mean, "lower": lower, "upper": upper}
    return pd.DataFrame({name: values[0] for name, values in columns.items()})


def _figures(parts: Mapping[str, Rows]) -> Iterator[dict[str, Any]]:
    """Yield every estimate of everyone, of groups and of predicted classes."""
    metrics = {"accuracy": ACCURACY, "calibration": "expected_calibration_error"}
    metrics |= {"cost": "expected_cost"}
    for attribute, rows in parts.items():
        for row, (quantity, metric) in itertools.product(rows, metrics.items()):
            if estimate := row[quantity]:
                group = row["name"] if attribute else ""
                whom = {"metric": metric, "attribute": attribute, "group": group}
                ends = {end: estimate[end] for end in ("value", "lower", "upper")}
                yield {**whom, **ends, "n": row["labels"], "rows": row["rows"]}


def _basis(scores: MulticlassScores, accuracy: Mapping[str, float]) -> Iterator[str]:
    rows, labels = len(scores), len(scores.labelled)
    labelled = f"{count(labels)} of them with a label ({labels / rows:.2%})"
    yield f"{count(rows)} rows, {labelled}, {count(len(scores.classes))} classes."
    if labels:
        ends = interval(accuracy["lower"], accuracy["upper"])
        yield f"The accuracy is {number(accuracy['value'])} (95 % interval {ends})."
    yield (
        "The accuracy of a predicted class is the share of right ones among the rows predicted so; "
        "its expected calibration error (ECE) is how far scores of such rows are from that share, "
        "over ten bins."
    )
    if labels < rows:
        yield (
            "This assumes that rows were chosen for labelling at random among all; by class, at "
            "random among the rows predicted as each class is enough."
        )


def _notes(
    scores: MulticlassScores, options: Options, classes: Rows, groups: Mapping[str, Rows]
) -> Iterator[str]:
    bare = [row["name"] for row in classes if not row["labels"]]
    if bare and len(scores.labelled):
        named = listed(bare, _MOST_NAMED)
        yield f"{count(len(bare))} predicted classes have no label at all: {named}."
    if left := len(scores.classes) - len(classes):
        yield f"{count(left)} classes were never predicted and are left out."
    for attribute, rows in groups.items():
        few = [row["name"] for row in rows if row["labels"] < FEWEST_COMPARED]
        if few and len(scores.labelled):
            yield f"{attribute}: not compared, with under {FEWEST_COMPARED} labels: {listed(few)}."
    prior = {"uniform": "knows nothing", "scores": "takes the scores at their word"}
    yield (
        "ECE, costs and their P(highest) are of a posterior, whose prior "
        f"{prior[options.prior]} and is worth {options.strength:g} labels; what is concluded rests "
        "on the labels alone."
    )


def _table(kind: str, parts: Rows) -> Table:
    """Return groups or classes with the least accurate first."""
    columns = [Column(kind), Column("rows", "count"), Column("labels", "count")]
    columns += [Column("accuracy", "estimate"), Column("", "bar", narrow=True)]
    columns += [Column("rank", right=True, left_out=1)]
    columns += [Column("ECE", "estimate"), Column("P(highest ECE)", "probability")]
    if parts[0]["cost"]:
        columns += [Column("cost", "estimate"), Column("P(highest cost)", "probability")]
    # Bars are on a scale from the lowest end of all to 1.
    low = float(np.nanmin([0.99, *(row["accuracy"]["lower"] for row in parts)]))
    rows = []
    for row in sorted(parts, key=lambda row: float(row["accuracy"]["value"])):
        accuracy, error, cost = row["accuracy"], row["calibration"], row["cost"]
        value, lower, upper = (100 * (end - low) / (1 - low) for end in _ends(accuracy))
        cells = [row["name"], row["rows"], row["labels"], _ends(accuracy)]
        cells += [None if np.isnan(value) else Bar(lower, value, upper, band=(0, 100))]
        cells += [f"{accuracy['worst_rank']:.0f} to {accuracy['best_rank']:.0f}"]
        cells += [_ends(error), error["extreme"]]
        rows.append([*cells, _ends(cost), cost["extreme"]] if cost else cells)
    caption = (
        "rank: 1 is the least accurate; the ranks of all rows hold together in 95 % of samples"
    )
    return Table(columns, rows, caption=caption, most=_MOST)


def _ends(estimate: Mapping[str, float]) -> tuple[float, float, float]:
    return estimate["value"], estimate["lower"], estimate["upper"]


def _mistake_table(mistakes: Rows) -> Table:
    columns = [Column("true class"), Column("predicted"), Column("labels", "count")]
    columns += [Column("share of those predicted so", "number")]
    columns += [Column("95 % interval", "interval")]
    rows = []
    for row in mistakes:
        share, *ends = _ends(row["share"])
        rows.append([row["target"], row["prediction"], row["count"], share, tuple(ends)])
    return Table(columns, rows, most=_MOST)


def _diagram(bins: pd.DataFrame, everyone: Mapping[str, Any]) -> Gallery:
    """Draw the reliability of all rows over how their scores are distributed."""
    corners = np.repeat(np.linspace(0, 1, len(bins) + 1), 2)[1:-1]
    heights = 0.4 * np.repeat(bins["share_of_rows"].to_numpy(), 2)
    band = [heights, np.zeros_like(heights)]
    bars = Series("", corners, heights, BLUE, lined=False, marked=False, band=band)
    ideal = Series("", [0, 1], [0, 1], GREY, marked=False, dashed=1)
    points = []
    for row in bins[bins["share_of_rows"] > 0].itertuples():
        line = np.array([[row.score, row.lower], [row.score, row.upper]])
        at, hint = ([row.score], [row.accuracy]), f"{row.labels} labels"
        points.append(Series("", *at, BLUE, filled=True, lined=False, outline=line, hint=hint))
    spans = dict.fromkeys("xy", (0.0, 1.0))
    (svg,) = chart([Panel([bars, ideal, *points], "score", "accuracy", spans=spans)])
    ece, accuracy = (
        f"{number(value)} ({interval(lower, upper)})"
        for value, lower, upper in map(_ends, (everyone["calibration"], everyone["accuracy"]))
    )
    caption = f"ECE {ece}, accuracy {accuracy}"
    return Gallery(
        [Figure("reliability of all rows", svg=svg, caption=caption, style="panel")],
        "Share of right predictions among labelled rows of similar scores, with 95 % intervals; on "
        "the dashed line scores are probabilities. Bars: where the scores of all rows lie.",
    )
