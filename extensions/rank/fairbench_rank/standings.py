"""What many approaches on many tasks show: ranks, trade-offs, and what could not be ranked.

A *task* is a data set with a protected attribute, a *family* tasks that share people or a source;
means are over families. An *approach* is a learner, an intervention and an uncertainty method with
their options; a *setting* on top of it is thresholds for each group, or a share of withheld labels.
Begin with `findings_of`, which computes all of it. Ranks are those of ``fairbench rank``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats, Rows
from fairbench.core.errors import UserError
from fairbench.evaluation.table import COSTS
from fairbench.metrics.registry import find, label
from fairbench.reporting.document.forms import finite
from fairbench.reporting.group_tables import sentence_of
from fairbench_rank import approaches, ranking
from fairbench_rank.approaches import ERROR, NONE, ApproachValues
from fairbench_rank.scores import HIGHER, LOWER, RankOptions, Scores, ScoreTable

METRICS = ("error_rate", "log_loss", "statistical_parity", "equalized_odds", "equal_opportunity")
GAPS = ("statistical_parity", "equalized_odds")
_NOUN = "approaches"  # what methods are called here
_tell = partial(sentence_of, "fairbench_rank:leaderboard")


@dataclass(frozen=True, eq=False)
class RankedValues:
    """One metric of the ranked approaches, with its sign such that smaller is better.

    Attributes
    ----------
    positions : (A,) the index in `values` of each ranked approach.
    losses : (A, T, R) the metric, its sign turned if larger values are better.
    sign : -1 if it was turned, otherwise 1.
    reference : the index of the reference among the A ranked approaches.
    """

    values: ApproachValues
    metric: str
    positions: Rows
    losses: Floats
    sign: float
    reference: int

    @classmethod
    def of(cls, values: ApproachValues, metric: str, reference: int) -> RankedValues | None:
        """Return the approaches with a metric on enough tasks and families; None if too few."""
        declared = find(metric)
        sign = -1.0 if declared is not None and declared.better == HIGHER else 1.0
        losses = sign * values.metric(metric)
        is_paired = np.isfinite(losses) & np.isfinite(losses[reference])
        has_two_splits = is_paired.sum(axis=2) > 1
        families = np.eye(int(values.family.max()) + 1)[values.family]
        enough = ((has_two_splits @ families) > 0).sum(axis=1) >= approaches.FEWEST_FAMILIES
        enough &= has_two_splits.sum(axis=1) >= values.fewest_tasks
        positions = np.flatnonzero(enough)
        if not enough[reference] or len(positions) < 2:
            return None
        of_ranked = int(np.searchsorted(positions, reference))
        return cls(values, metric, positions, losses[positions], sign, of_ranked)

    @property
    def names(self) -> list[str]:
        """The names of the approaches."""
        return [self.values.names[position] for position in self.positions]

    def table(self) -> ScoreTable:
        """Return the values as a table of scores, without tasks that have none."""
        _, tasks, repeats = self.losses.shape
        cells = self.losses.reshape(len(self.losses), -1)
        has_value = np.isfinite(cells).any(axis=0)
        task = np.repeat(np.arange(tasks), repeats)[has_value]
        task_index, task = np.unique(task, return_inverse=True)
        rows = self.values.tasks.iloc[task_index]
        family, families = pd.factorize(rows["family"])
        better = LOWER if self.sign > 0 else HIGHER
        return ScoreTable(
            methods=tuple(self.names),
            tasks=tuple(rows["dataset"].str.cat(rows["protect"], sep=", ")),
            families=tuple(map(str, families)),
            task=task,
            family=family.astype(np.intp),
            splits=repeats,
            questions=0,
            scores=(Scores(self.metric, better, self.sign * cells[:, has_value], None),),
        )


@dataclass(frozen=True, eq=False)
class MetricStandings:
    """The ranking in one metric of the approaches that were run on enough tasks.

    Attributes
    ----------
    ranked : the values that are ranked.
    answer : their ranking, as ``fairbench rank`` has it.
    """

    ranked: RankedValues
    answer: ranking.Ranking

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.ranked.metric

    @property
    def reference(self) -> str:
        """The approach that the others are compared with."""
        return self.ranked.names[self.ranked.reference]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each approach, the best mean first, with its difference from the reference.

        They are those of :meth:`Ranking.rows`, and ``near_percent``, the chance to be near the best
        in words; ``families`` and ``tasks`` are those that both were run on.
        """
        paired = np.isfinite(self.ranked.losses)
        paired &= paired[self.ranked.reference]
        tasks = dict(zip(self.ranked.names, paired.any(axis=2).sum(axis=1).tolist(), strict=True))
        rows = self.answer.rows(self.reference)
        for place, (name, row) in enumerate(zip(self.answer.methods, rows, strict=True)):
            row["tasks"] = tasks[name]
            row["near_percent"] = ranking.near_in_words(self.answer, place, " %")
            if name != self.reference:
                row["families"] = self.answer.difference(name, self.reference).units
        return rows

    @cached_property
    def sentences(self) -> list[str]:
        """All sentences on the ranking; which approaches may be the best is stated once."""
        is_said = 1 < len(self.answer.best) < len(self.answer.methods)
        return [
            *ranking.found_sentences(self.answer, _NOUN),
            *ranking.fresh_sentences(self.answer, _NOUN),
            *ranking.new_task_sentences(self.answer, "approach"),
            *ranking.open_sentences(self.answer, _NOUN)[is_said:],
            *ranking.resolving_sentences(self.answer),
        ]

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        about = {"metric": self.metric, "label": label(self.metric), "reference": self.reference}
        told = {"sentences": self.sentences, "unseen": self.answer.unseen}
        return {**about, **self.answer.plain(), "ranks": self.rows, **told}


def standings_of(ranked: RankedValues, *, error_rate: float = ranking.WRONG) -> MetricStandings:
    """Return ranks and differences of each approach in one metric.

    Parameters
    ----------
    error_rate : the chance that any rank, difference or candidate for the best is wrong.
    """
    options = RankOptions(epsilon=approaches.epsilon_of(ranked.metric))
    most = len(ranked.positions)
    (answer,) = ranking.answers(ranked.table(), options, error_rate=error_rate, most_planned=most)
    return MetricStandings(ranked, answer)


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a table of approaches shows.

    Attributes
    ----------
    values : the values of approaches in all settings.
    approaches : a row for each: ``name``, its learner, intervention, method and options,
        ``group_at_prediction`` (whether a person's group must be known to predict), ``tasks`` on
        which it was run, ``fit_seconds`` and ``predict_seconds`` (CPU seconds for a split, medians
        over tasks), and ``relative_cost``: its fit seconds over the reference's, the geometric mean
        over tasks.
    standings : the ranking in each metric.
    mean_frontiers : a row for each intervention, or thresholds for each group: the mean change of
        error and gap over families, as (value, lower, upper); both intervals hold together.
    reference : the name of the approach that the others are compared with.
    runs, repeats : the number of runs, and of splits of each task.
    notes : sentences on runs that are left out.
    """

    values: ApproachValues
    approaches: Sequence[Mapping[str, Any]]
    standings: Sequence[MetricStandings]
    mean_frontiers: Sequence[Mapping[str, Any]]
    reference: str
    runs: int
    repeats: int
    notes: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Mapping[str, Any]]:
        """Each of the approaches by its name."""
        return {row["name"]: row for row in self.approaches}

    @property
    def few(self) -> list[Mapping[str, Any]]:
        """The approaches that were run on too few tasks to be ranked."""
        return [row for row in self.approaches if row["tasks"] < self.values.fewest_tasks]

    @property
    def families(self) -> int:
        """The number of families that the tasks belong to."""
        return int(self.values.tasks["family"].nunique())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, None for numbers that are unknown."""
        names = ("dataset", "protect", "family", *approaches.FACTS)
        tasks = self.values.tasks.reindex(columns=names).to_dict("records")
        kept = ("approaches", "mean_frontiers", "reference", "runs", "repeats", "notes")
        standings = [standing.plain() for standing in self.standings]
        content = {name: getattr(self, name) for name in kept}
        content |= {"standings": standings, "fewest_tasks": self.values.fewest_tasks}
        return dict(finite({"tasks": tasks, **content}))


def findings_of(table: pd.DataFrame, *, metrics: Sequence[str] = METRICS) -> Findings:
    """Return the findings of a table of approaches; all rankings share one error rate.

    Parameters
    ----------
    table : the result of :func:`fairbench_rank.approaches.approach_table`.

    Raises
    ------
    UserError : there are no binary tasks.
    """
    rows = table[table[ERROR].notna()] if ERROR in table else table.iloc[:0]
    if rows.empty:
        raise UserError("ranking needs finished runs with an error rate: none of these has one")
    values = ApproachValues.of(rows)
    plain = values.only(values.table["setting"] == "")
    index = reference_index(plain)
    measured = (RankedValues.of(plain, name, index) for name in metrics)
    ranked = [of_metric for of_metric in measured if of_metric is not None]
    of_each = ranking.WRONG / max(len(ranked), 1)
    return Findings(
        values=values,
        approaches=list(_approaches(plain, index)),
        standings=[standings_of(one, error_rate=of_each) for one in ranked],
        mean_frontiers=list(mean_frontiers(values)),
        reference=plain.names[index],
        runs=int(table["run"].nunique()),
        repeats=int(values.cell_index[:, 2].max()) + 1,
    )


def reference_index(plain: ApproachValues) -> int:
    """Return the index of the approach that all are compared with.

    It is the cheapest that was run on most tasks without an intervention.
    """
    task_counts = np.isfinite(plain.metric(ERROR)).any(axis=2).sum(axis=1)
    seconds = np.nan_to_num(np.nanmedian(_costs(plain), axis=1), nan=np.inf)
    rows = plain.approaches
    # The uncertainty method of most interventions, or of most approaches.
    changed = rows[rows["intervention"] != NONE]
    method = (changed if len(changed) else rows)["method"].mode().iloc[0]
    is_plain = (rows["intervention"] == NONE).to_numpy() & (rows["method"] == method)
    return int(np.lexsort((seconds, -task_counts, ~is_plain))[0])


def _costs(plain: ApproachValues) -> Floats:
    """Return the mean seconds of a fit, (A, T)."""
    return approaches.finite_mean(np.moveaxis(plain.metric("fit_seconds"), 2, 0))


def _approaches(plain: ApproachValues, reference: int) -> Iterator[dict[str, Any]]:
    """Yield every approach with its costs, absolute and relative to the reference."""
    fit_seconds = _costs(plain)
    by_approach = plain.table.groupby(plain.cell_index[:, 0])
    medians = by_approach[[name for name in COSTS if name in plain.table]].median()
    needs_group = by_approach["group_at_prediction"].any()
    with np.errstate(invalid="ignore", divide="ignore"):
        all_log_ratios = np.log(fit_seconds / fit_seconds[reference])
    for index, row in enumerate(plain.about_approaches):
        log_ratios = all_log_ratios[index][np.isfinite(all_log_ratios[index])]
        yield {
            "name": plain.names[index],
            **{part: row[part] for part in (*approaches.PARTS, "options")},
            "group_at_prediction": bool(needs_group[index]),
            "tasks": int(np.isfinite(fit_seconds[index]).sum()),
            **{name: float(medians.get(name, {}).get(index, np.nan)) for name in COSTS},
            "relative_cost": float(np.exp(log_ratios.mean())) if len(log_ratios) else math.nan,
        }


def mean_frontiers(values: ApproachValues) -> Iterator[dict[str, Any]]:
    """Yield the mean changes by interventions and by thresholds for each group, over families.

    Interventions that were run on too few tasks to be ranked are left out.
    """
    for gap_metric in GAPS:
        relaxed = values.table["setting"].str.startswith(f"{gap_metric}<=")
        relaxed &= values.table["intervention"].eq(NONE)
        shown = values.only(values.table["setting"].eq("") | relaxed)
        compared = [
            (part, contrast)
            for part, base in (("intervention", NONE), ("setting", ""))
            for contrast in approaches.contrasts(shown, part, base)
        ]
        contrasts = [contrast for _, contrast in compared]
        metrics = shown.metric(ERROR), shown.metric(gap_metric)
        changes = np.stack([approaches.mean_differences(of, contrasts) for of in metrics])
        tasks = (np.isfinite(changes).all(axis=0).sum(axis=2) > 1).sum(axis=1)
        enough = tasks >= shown.fewest_tasks
        compared = list(compress(compared, enough))
        measured = shown.estimate_differences(np.concatenate(changes[:, enough]))
        # The two intervals of a point hold together, so that it lies in its ellipse's box at 95 %.
        of_families = approaches.family_means(measured)
        means = np.stack(approaches.mean_over_families(of_families, level=1 - 0.05 / 2))
        for place, (part, contrast) in enumerate(compared):
            limits = means[:, [place, len(compared) + place]].T  # of its error, of its gap
            if np.isfinite(limits).all():
                yield {
                    "intervention": contrast.label if part == "intervention" else "",
                    "setting": contrast.label if part == "setting" else "",
                    "group_at_prediction": contrast.needs_group,
                    "gap_metric": gap_metric,
                    "tasks": int(measured.known[place].sum()),
                    "families": int(measured.families[place]),
                    "error": tuple(limits[0].tolist()),
                    "gap": tuple(limits[1].tolist()),
                }


def left_out_sentences(findings: Findings, runs: int) -> Iterator[str]:
    """Yield a sentence on how many of the runs were not used; nothing if all were."""
    if (left := runs - findings.runs) > 0:
        yield _tell("left_out", runs=pluralise(left, "more run is", "more runs are"))


def few_tasks_sentences(findings: Findings) -> Iterator[str]:
    """Yield a sentence on how many approaches are not ranked, and why; nothing if all are."""
    if few := len(findings.few):
        counts = {
            "few": few,
            "total": len(findings.approaches),
            "fewest": findings.values.fewest_tasks,
        }
        yield _tell("few_tasks", tasks=len(findings.values.tasks), **counts)


def ranks_sentences(findings: Findings) -> Iterator[str]:
    """Yield that ranks and differences of all metrics hold simultaneously, if there are any."""
    if answers := [standing.answer for standing in findings.standings]:
        yield ranking.simultaneous_sentences(answers, "all metrics")


def pluralise(number: int, one: str, several: str) -> str:
    """Return a count with the singular or the plural of a word.

    Examples
    --------
    >>> pluralise(1, "is", "are"), pluralise(2, "is", "are")
    ('1 is', '2 are')
    """
    return f"{number} {one if number == 1 else several}"
