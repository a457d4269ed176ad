"""The audit of three classes and more: class by class and group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairbench.audits.gaps import FEWEST_LABELS, TOO_FEW
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError
from fairbench.core.text import interval, listed, number
from fairbench.data.columns import (
    UNKNOWN,
    ColumnRef,
    MulticlassScores,
    class_names,
    numbers,
    read_class_scores,
)
from fairbench.data.groups import notes_on_groups, read_groups
from fairbench.data.tables import read_table
from fairbench.evaluation import findings
from fairbench.evaluation.by_group import (
    counts_of,
    estimates_by_group,
    frequent_mistakes,
    reliability_bins,
)
from fairbench.evaluation.by_group import estimates_in_long_form as in_long_form
from fairbench.evaluation.findings import Finding, Measure, risk_of
from fairbench.inference.gaps import GroupLimits
from fairbench.inference.posterior import FREQUENTIST
from fairbench.reporting.charts import BLUE, Series, chart
from fairbench.reporting.document.model import Bar, Figure, Gallery, Section, Table
from fairbench.reporting.group_tables import (
    named_table,
    reliability_panel,
    sentence_of,
    sentences_of,
)

_said = partial(sentence_of, "classes")
CLASSES = "predicted class"
ACCURACY = "accuracy"
_MOST_NAMED = 5
_FEW = 10  # labels of a group: one of fewer is named
Rows: TypeAlias = Sequence[Mapping[str, Any]]


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
        raise UserError(
            "score= is missing: name the column of the probability given to the predicted class"
        )
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


def audit_classes(options: Options, frame: pd.DataFrame) -> Audit:
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
    parts_of = partial(
        estimates_by_group,
        scores,
        generator=rng(options.seed, "posterior"),
        strength=options.strength,
        informed=options.prior == "scores",
        frequentist=options.interval == FREQUENTIST,
    )
    (everyone,) = parts_of(_all_rows(scores))
    classes = parts_of(_predicted_classes(scores), costs=costs)
    groups = {attribute: parts_of(column) for attribute, column in labels.items()}
    bins = reliability_bins(scores, options.strength)
    mistakes = frequent_mistakes(scores)
    frequent = [named_table("classes", "mistakes", mistakes)] if mistakes else []
    n_rows, n_labels = len(scores), len(scores.labelled)
    accuracy, *limits = _estimate(everyone["accuracy"])
    return Audit(
        options,
        n_rows,
        n_labels,
        found,
        sentences_of(
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
        todo_if_open="Label more rows for what stays open and matters most.",
        figures=list(in_long_form({"": [everyone], **groups, CLASSES: classes})),
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
    counts = counts_of(scores, groups)
    names = counts.index.astype(str).tolist()
    labels = int(counts["labels"].sum())
    gap = Finding(
        findings.GAP, attribute, ACCURACY, findings.NOT_MEASURED, bound=options.epsilon, n=labels
    )
    gap = replace(gap, needs=TOO_FEW)
    lowest = replace(gap, about=findings.LOWEST)
    if (counts["labels"] > 0).sum() < 2:
        return [gap, lowest]

    def at_level(level: float) -> GroupLimits:
        return GroupLimits.of(counts["right"], counts["labels"], level=level)

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
    return named_table("classes", "parts", rows, without=without, kind=kind)


def _estimate(estimate: Mapping[str, float]) -> tuple[float, float, float]:
    return estimate["value"], estimate["lower"], estimate["upper"]


def _diagram(bins: pd.DataFrame, everyone: Mapping[str, Any]) -> Gallery:
    """Draw the reliability of all rows over how their scores are distributed."""
    corners = np.repeat(np.linspace(0, 1, len(bins) + 1), 2)[1:-1]
    heights = 0.4 * np.repeat(bins["share_of_rows"].to_numpy(), 2)
    band = [heights, np.zeros_like(heights)]
    bars = Series("", corners, heights, BLUE, lined=False, marked=False, band=band)
    of_bins = bins.loc[bins["share_of_rows"] > 0, ["score", "accuracy", "lower", "upper"]]
    points = of_bins.itertuples(index=False, name=None)
    drawings = chart([reliability_panel(points, "accuracy", [bars])])
    ece, accuracy = (
        f"{number(value)} ({interval(lower, upper)})"
        for value, lower, upper in map(_estimate, (everyone["calibration"], everyone["accuracy"]))
    )
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
    try:
        frame = read_table(Path(path).read_bytes(), path)
    except OSError as error:
        raise UserError(f"cost={path} cannot be read: {error}") from error
    label_column, *columns = frame.columns
    rows = list(class_names(frame[label_column]))
    for kind, names in (("column", columns), ("row", rows)):
        for name in classes:
            if names.count(name) != 1:
                raise UserError(f"{path}: {names.count(name)} {kind}s of class '{name}', not 1")
    order = [rows.index(name) for name in classes]
    return np.column_stack([numbers(frame, name, path).to_numpy()[order] for name in classes])
