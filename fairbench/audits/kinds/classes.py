"""The audit of three classes and more: class by class and group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairbench.audits import question
from fairbench.audits.gaps import FEWEST_LABELS, TOO_FEW
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.question import Options
from fairbench.audits.report import Audit, more_for_open
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError
from fairbench.core.text import listed, with_interval
from fairbench.data.columns import (
    UNKNOWN,
    ColumnRef,
    MulticlassScores,
    class_names,
    numbers,
    read_class_scores,
    to_numbers,
)
from fairbench.data.groups import notes_on_groups, read_groups
from fairbench.data.tables import read_any_table
from fairbench.evaluation import findings
from fairbench.evaluation.findings import Finding, Measure, risk_of
from fairbench.evaluation.table import records
from fairbench.inference import posterior
from fairbench.inference.gaps import GroupLimits
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting import group_tables
from fairbench.reporting.charts import BLUE, Series, chart
from fairbench.reporting.document.model import Bar, Figure, Gallery, Section, Table

_said = partial(group_tables.sentence_of, "classes")
CLASSES = "predicted class"
ACCURACY = "accuracy"
_MOST_NAMED = 5
_FEW = 10  # labels of a group: one of fewer is named
Rows: TypeAlias = Sequence[Mapping[str, Any]]
_DRAWS = 4000
_MISTAKES = 10
_METRICS = {
    "accuracy": "accuracy",
    "calibration": "expected_calibration_error",
    "cost": "expected_cost",
}
# The columns of an estimate. ``extreme`` is the probability that it is the worst of all, if it has
# a posterior; the ranks are the interval of its rank, 1 being the worst. Both NaN for everyone.
_estimate = itemgetter(*Limits._fields)  # of a value with its interval
_ESTIMATE = ("value", "lower", "upper", "extreme", "worst_rank", "best_rank")


def read_multiclass(options: Options, frame: pd.DataFrame) -> MulticlassScores:
    """Return the predictions that `options` describe.

    Raises
    ------
    UserError : if a column is not named, or a value is invalid; names row and column.
    """
    target = options.target
    if not target:
        raise UserError("target= is missing: name the column of true classes, empty if unknown")
    if not (options.scores or options.score):
        raise UserError(_no_score(options, frame))
    file = options.path.name
    if options.labelled:
        marks = ColumnRef(file, options.labelled).marks(frame[options.labelled])
        bare = marks & (class_names(frame[target]) == "").to_numpy()
        expected = f"a class, though '{options.labelled}' is true there"
        ColumnRef(file, target).refuse(frame[target], bare, expected)
        frame = frame.assign(**{target: frame[target].where(marks, "")})
    return read_class_scores(
        frame,
        file,
        target=target,
        prediction=options.prediction,
        columns=options.scores or [options.score],
    )


def _no_score(options: Options, frame: pd.DataFrame) -> str:
    """Return what to do where predictions are neither two decisions nor plainly numbers."""
    label, predicted = (to_numbers(frame[name]) for name in (options.target, options.prediction))
    known = class_names(frame[options.target])
    if ((predicted >= 0) & (predicted <= 1)).all() and known[known != ""].nunique() < 3:
        return _said("probabilities", options=options)
    of_numbers = np.isfinite(label).any() or np.isfinite(predicted).any()
    return _said("no_score") + (_said("or_numbers", options=options) if of_numbers else "")


def _audit_classes(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of three classes and more."""
    scores = read_multiclass(options, frame)
    labels: Mapping[str, pd.Series] = {}
    cells = _all_rows(scores)
    if options.group:
        file = options.path.name
        labels, cells = read_groups(frame, file, options.group, options.reference)
    score = f"'{options.score}'" if options.score else "the score of the predicted class"
    check_labels_at_random(
        options.path.name,
        scores.target != UNKNOWN,
        cells,
        advice=_said("drawn_by"),
        classes=(scores.prediction, [f"predicted '{name}'" for name in scores.classes]),
        values={score: scores.confidence},
    )
    costs = _read_costs(options.cost, scores.classes) if options.cost else None
    found = findings_of(scores, labels, options)
    parts_of = partial(_parts_of, scores, options, rng(options.seed, "posterior"))
    (everyone,) = parts_of(_all_rows(scores))
    classes = parts_of(_predicted_classes(scores), costs)
    groups = {attribute: parts_of(column) for attribute, column in labels.items()}
    bins = _bins(scores, options.strength)
    mistakes = _mistakes(scores)
    frequent = [group_tables.named_table("classes", "mistakes", mistakes)] if mistakes else []
    n_rows, n_labels = len(scores), len(scores.labelled)
    accuracy, *limits = _estimate(everyone["accuracy"])
    return Audit(
        options,
        n_rows,
        n_labels,
        found,
        group_tables.sentences_of(
            "classes",
            {"rows": True, "accuracy": n_labels, "means": True, "at_random": n_labels < n_rows},
            rows=n_rows,
            labels=n_labels,
            share=n_labels / n_rows,
            classes=len(scores.classes),
            accuracy=accuracy,
            limits=limits,
        ),
        [
            Section("Calibration", [_diagram(bins, everyone)]),
            *(Section(f"By {name}", [_table(name, parts)]) for name, parts in groups.items()),
            Section(f"By {CLASSES}, the least accurate first", [_table("class", classes)]),
            *(Section("Most frequent mistakes", [table]) for table in frequent),
        ],
        {
            "class_names": list(scores.classes),
            "everyone": everyone,
            "classes": classes,
            "groups": groups,
            "mistakes": mistakes,
            "reliability": bins.to_dict("list"),
        },
        warning="" if everyone["labels"] else _said("no_labels"),
        notes=[*notes_on_groups(frame, options.group), *_notes(scores, options, classes, groups)],
        unseen=["Of groups only the accuracy was compared, not which classes they are given."],
        todo_if_open=more_for_open(n_rows, n_labels),
        figures=list(_in_long_form({"": [everyone], **groups, CLASSES: classes})),
    )


def findings_of(
    scores: MulticlassScores, groups: Mapping[str, pd.Series], options: Options
) -> list[Finding]:
    """Return what labels say of the accuracies of groups, and of predicted classes.

    Parameters
    ----------
    scores : the predictions.
    groups : attribute, or combination of two -> (n,) categorical labels.
    """
    risk = risk_of(len(groups) + 1)
    found = []
    for attribute, labels in groups.items():
        found += _compare_accuracies(scores, options, attribute, labels, risk)
    by_class = _compare_accuracies(scores, options, CLASSES, _predicted_classes(scores), risk)
    return [*found, *(finding for finding in by_class if finding.about == findings.LOWEST)]


def _compare_accuracies(
    scores: MulticlassScores, options: Options, attribute: str, groups: pd.Series, risk: float
) -> list[Finding]:
    """Compare the accuracies of groups by labels alone; of more than two, find the lowest."""
    counts = _counts_of(scores, groups)
    names = counts.index.astype(str).tolist()
    labels = int(counts["labels"].sum())
    gap = Finding(findings.GAP, attribute, ACCURACY, bound=options.epsilon, n=labels, needs=TOO_FEW)
    lowest = replace(gap, about=findings.LOWEST)
    if (counts["labels"] > 0).sum() < 2:
        return [gap, lowest]
    at_level = partial(GroupLimits.of, counts["right"], counts["labels"])
    few = counts["labels"].between(1, FEWEST_LABELS - 1).any()
    may_be_small = len(scores.labelled) == len(scores) or not few
    measure = Measure.of_limits(gap, names, at_level, may_be_small=may_be_small).answered(risk)
    found = measure.conclude()
    if len(names) == 2:
        return found
    # Those that are surely above no other group may be the lowest.
    above = {high for high, _ in measure.answer.pairs}
    candidates = [name for group, name in enumerate(names) if group not in above]
    rates = at_level(findings.LEVEL).pointwise
    lowest = replace(lowest, verdict=findings.OPEN, groups=tuple(candidates), needs="")
    if len(candidates) == 1:
        value, lower, upper = rates.at(int(rates.value.argmin()))
        lowest = replace(lowest, verdict=findings.LARGE, value=value, lower=lower, upper=upper)
    return [*found, lowest]


# Predictions measured by group, or by predicted class, in plain columns.


def _counts_of(scores: MulticlassScores, groups: pd.Series) -> pd.DataFrame:
    """Return the rows, labels and right predictions of the groups that have rows."""
    by_group = pd.Series(scores.correct).groupby(groups.array, observed=True)
    return by_group.agg(rows="size", labels="count", right="sum")


def _parts_of(
    scores: MulticlassScores,
    options: Options,
    generator: np.random.Generator,
    groups: pd.Series,
    costs: Floats | None = None,
) -> list[dict[str, Any]]:
    """Return accuracy, calibration error and cost of the groups that have rows.

    The accuracy is estimated from the labels alone, unless scores are its prior, or intervals are
    those of a posterior. Other quantities are posterior means.

    Parameters
    ----------
    groups : (n,) categorical labels.
    costs : (C, C) the costs of mistakes, if groups are the predicted classes.

    Returns
    -------
    A mapping for each group: its name, rows, labels, and ``accuracy``, ``calibration`` and
    ``cost``. Each of these is None or a mapping of value, lower, upper, extreme (the probability
    that it is the worst), worst_rank and best_rank.
    """
    strength, informed = options.strength, options.prior == "scores"
    names = groups.cat.categories
    code = groups.cat.codes.to_numpy(np.int64)
    n = len(names)
    counts = _counts_of(scores, groups)
    kept = names.get_indexer(counts.index)
    diagram = posterior.reliability_diagram(
        scores.confidence, scores.correct, code, n_groups=n, strength=strength
    )
    error = diagram.calibration_error_draws(_DRAWS, generator)[:, kept]
    calibration = _draw_estimates(diagram.expected_calibration_error()[kept], error)
    cost: Sequence[Mapping[str, Any] | None] = [None] * len(kept)
    if costs is not None:
        shares = posterior.uninformative_prior(n, strength=strength)
        if informed:
            shares = posterior.prior_from_scores(scores, strength=strength)
        mistakes = posterior.confusion_posterior(scores, shares)
        draws = posterior.cost_draws(mistakes, costs, _DRAWS, generator)[:, kept]
        cost = _draw_estimates(posterior.expected_cost(mistakes, costs)[0][kept], draws)
    limits = rate_limits(counts["right"], counts["labels"])
    if informed or options.interval != posterior.FREQUENTIST:
        prior = posterior.uniform(n, strength)
        if informed:
            prior = posterior.score_prior(scores.confidence, code, n, strength=strength)
        known = posterior.accuracy_posterior(scores.correct, code, prior)
        draws = known.draws(_DRAWS, generator)[:, kept]
        limits = Limits(known.mean[kept], *posterior.central_interval(draws))
    # Ranks come from the labels alone.
    above = GroupLimits.of(counts["right"], counts["labels"]).leads > 0
    worst = 1 + above.sum(axis=1)
    best = len(kept) - above.sum(axis=0)
    accuracy = _estimates(limits, worst_rank=worst, best_rank=best)
    table = counts.drop(columns="right").rename_axis("name").reset_index()
    return records(table.assign(accuracy=accuracy, calibration=calibration, cost=cost))


def _in_long_form(parts: Mapping[str, Rows]) -> Iterator[dict[str, Any]]:
    """Yield every estimate of groups, one per row, from attribute, empty of everyone -> its groups.

    Yields
    ------
    metric, attribute, group, value, lower, upper, n, the group's labels, and rows.
    """
    for attribute, of_groups in parts.items():
        for of_group, (quantity, metric) in product(of_groups, _METRICS.items()):
            if estimate := of_group[quantity]:
                yield {
                    "metric": metric,
                    "attribute": attribute,
                    "group": of_group["name"] if attribute else "",
                    **{name: estimate[name] for name in Limits._fields},
                    "n": of_group["labels"],
                    "rows": of_group["rows"],
                }


def _draw_estimates(mean: Floats, draws: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups by draws (T, G); the group with the largest is the worst."""
    order = posterior.ranks(draws, largest=True)
    ranked = {"extreme": "first", "worst_rank": "lower", "best_rank": "upper"}
    columns = {column: order[name] for column, name in ranked.items()}
    return _estimates(Limits(mean, *posterior.central_interval(draws)), **columns)


def _estimates(limits: Limits, **order: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups, with what is known of their order if there are several."""
    columns = limits._asdict() | (order if len(limits.value) > 1 else {})
    return records(pd.DataFrame(columns, columns=list(_ESTIMATE), dtype=float))


def _mistakes(scores: MulticlassScores) -> list[dict[str, Any]]:
    """Return the most frequent mistakes, with their shares of those predicted so.

    Returns
    -------
    Of each: target, prediction, count, and share: value, lower and upper.
    """
    n = len(scores.classes)
    classes = np.array(scores.classes, object)
    counts = posterior.confusion_posterior(scores, np.zeros((n, n)))
    mistakes = counts * (1 - np.eye(n))
    cells = np.argsort(-mistakes, axis=None, kind="stable")[:_MISTAKES]
    predicted, true = np.divmod(cells[mistakes.flat[cells] > 0], n)
    number_wrong = mistakes[predicted, true]
    total = counts.sum(axis=1)[predicted]
    lower, upper = posterior.Beta(1 + number_wrong, 1 + total - number_wrong).interval()
    share = Limits(number_wrong / total, lower, upper)
    mistakes = pd.DataFrame({"target": classes[true], "prediction": classes[predicted]})
    return records(mistakes.assign(count=number_wrong.astype(int), share=_estimates(share)))


def _bins(scores: MulticlassScores, strength: float) -> pd.DataFrame:
    """Return the bins of the reliability diagram of all rows.

    Parameters
    ----------
    strength : how many labels the prior of a bin is worth.

    Returns
    -------
    A row for each bin: share_of_rows, score (their mean), labels, accuracy, lower and upper.
    """
    diagram = posterior.reliability_diagram(scores.confidence, scores.correct, strength=strength)
    lower, upper = diagram.accuracy.interval()
    columns = {"share_of_rows": diagram.weight, "score": diagram.score, "labels": diagram.labels}
    columns |= {"accuracy": diagram.accuracy.mean, "lower": lower, "upper": upper}
    return pd.DataFrame({name: values[0] for name, values in columns.items()})


def _all_rows(scores: MulticlassScores) -> pd.Series:
    return pd.Series(pd.Categorical(["everyone"] * len(scores)))


def _predicted_classes(scores: MulticlassScores) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(scores.prediction, scores.classes))


def _notes(
    scores: MulticlassScores, options: Options, classes: Rows, groups: Mapping[str, Rows]
) -> Iterator[str]:
    """Yield which classes and groups have too few labels, and what the prior is."""
    unlabelled = [row["name"] for row in classes if not row["labels"]]
    if unlabelled and len(scores.labelled):
        names = listed(unlabelled, _MOST_NAMED)
        yield _said("unlabelled", count=len(unlabelled), names=names)
    if left := len(scores.classes) - len(classes):
        yield _said("never", left=left)
    for attribute, rows in groups.items():
        few = [row["name"] for row in rows if row["labels"] < _FEW]
        if few and len(scores.labelled):
            yield _said("few", attribute=attribute, enough=_FEW, names=few)
    prior = {"uniform": "knows nothing", "scores": "takes the scores at their word"}
    yield _said("prior", prior=prior[options.prior], strength=options.strength)


def _table(kind: str, parts: Rows) -> Table:
    """Return the table of groups or classes, the least accurate first."""
    # Bars are on a scale from the lowest limit of all to 1.
    low = float(np.nanmin([0.99, *(row["accuracy"]["lower"] for row in parts)]))
    rows = []
    for row in sorted(parts, key=lambda row: float(row["accuracy"]["value"])):
        accuracy = row["accuracy"]
        value, lower, upper = (100 * (figure - low) / (1 - low) for figure in _estimate(accuracy))
        bar = None if np.isnan(value) else Bar((lower, value, upper), band=(0, 100))
        rank = f"{accuracy['worst_rank']:.0f} to {accuracy['best_rank']:.0f}"
        rows.append({**row, "bar": bar, "rank": rank})
    without = () if parts[0]["cost"] else ("cost",)
    return group_tables.named_table("classes", "parts", rows, without=without, kind=kind)


def _diagram(bins: pd.DataFrame, everyone: Mapping[str, Any]) -> Gallery:
    """Draw the reliability of all rows over how their scores are distributed."""
    corners = np.repeat(np.linspace(0, 1, len(bins) + 1), 2)[1:-1]
    heights = 0.4 * np.repeat(bins["share_of_rows"].to_numpy(), 2)
    band = [heights, np.zeros_like(heights)]
    bars = Series("", corners, heights, BLUE, lined=False, marked=False, band=band)
    of_bins = bins.loc[bins["share_of_rows"] > 0, ["score", "accuracy", "lower", "upper"]]
    points = of_bins.itertuples(index=False, name=None)
    drawings = chart([group_tables.reliability_panel(points, "accuracy", [bars])])
    ece, accuracy = (with_interval(*_estimate(everyone[of])) for of in ("calibration", "accuracy"))
    caption = f"ECE {ece}, accuracy {accuracy}"
    return Gallery(
        [Figure("reliability of all rows", drawings, caption=caption, style="panel")],
        _said("gallery"),
    )


def _read_costs(path: str, classes: Sequence[str]) -> Floats:
    """Read a (C, C) matrix of costs: a first column of true classes, a header of predicted ones.

    Raises
    ------
    UserError : a file that is not there, a class that is missing, or a cost that is no number.
    """
    if not Path(path).is_file():
        raise UserError(f"cost={path} cannot be read: there is no such file")
    frame = read_any_table(Path(path), [], every=True, numeric=None)
    label_column, *columns = frame.columns
    rows = list(class_names(frame[label_column]))
    for kind, names in (("column", columns), ("row", rows)):
        for name in classes:
            if names.count(name) != 1:
                raise UserError(f"{path}: {names.count(name)} {kind}s of class '{name}', not 1")
    order = [rows.index(name) for name in classes]
    return np.column_stack([numbers(frame, name, path).to_numpy()[order] for name in classes])


AUDITS = {question.CLASSES: _audit_classes}
