"""The first section of the page: the answer in words, and error against gap across data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairbench.comparison.atlas.claim_values import MarginsBySize
from fairbench.comparison.atlas.findings import (
    AtlasFindings,
    MeanFrontierPoint,
    MetricStandings,
    Standing,
)
from fairbench.comparison.atlas.report import (
    MEAN_OVER_FAMILIES,
    few_tasks_sentences,
    ranks_sentence,
    size_sentence,
)
from fairbench.comparison.atlas.values import THRESHOLDS_NEED, name_with_group_need
from fairbench.comparison.atlas.verdicts import FAILS, HOLDS, OPEN, pluralise
from fairbench.core.formats import (
    interval,
    is_number,
    signed,
)
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import (
    Column,
    Details,
    ExecutiveSummary,
    Figure,
    Table,
    Tags,
)
from fairbench.reporting.leaderboard.means import ERROR, THRESHOLDS, gap_label

TITLES = ("What to use", "How sure this is", "What is not resolved", "")
NEXT = (
    "Before you choose, look under Data sets for a task that is like yours: what holds across "
    "tasks need not hold there. To add your own method, which fits its own cells alone, follow "
    "docs/howto/leaderboard.md."
)


def answer_of(findings: AtlasFindings, gaps: Sequence[str]) -> ExecutiveSummary:
    """Return the answer in plain words.

    Parameters
    ----------
    gaps : the metrics of gaps between groups, the one that the page opens with first.
    """
    by_name = {standing.metric: standing for standing in findings.standings}
    ranked = [by_name[name] for name in (ERROR, *gaps[:1], "log_loss") if name in by_name]
    recommended = [*_recommendation_sentences(findings, ranked), *_cheapest(findings, ranked)]
    return ExecutiveSummary(
        [
            *_size_sentences(findings),
            *recommended,
            *_thresholds(findings, gaps),
            *_claims_sentences(findings),
        ],
        list(_basis_sentences(findings)),
        list(_open_sentences(findings, ranked)),
        titles=TITLES,
    )


def _size_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield how thresholds of each group compare with interventions, by the size of the data."""
    if findings.by_size is not None:
        yield size_sentence(findings.by_size)


def _caveats(findings: AtlasFindings) -> Iterator[str]:
    """Yield the first thing to know of each claim's comparisons; the others stand under Claims."""
    for claim in findings.claims:
        if claim.remarks:
            yield f"On “{claim.statement}” {claim.remarks[0]} More is under Claims."


def _recommendation_sentences(
    findings: AtlasFindings, ranked: Sequence[MetricStandings]
) -> Iterator[str]:
    """Yield for each metric which approach is most likely to be good enough on a new task."""
    for standing in ranked:
        best = most_near(standing)
        if best is None:
            continue
        yield (
            f"For a small {metric_label(standing.metric)}: {best.approach}. On a new task, the "
            f"estimated chance that it scores within {standing.epsilon:g} of whichever approach is "
            f"best there is {best.near_percent}."
        )


def _cheapest(findings: AtlasFindings, ranked: Sequence[MetricStandings]) -> Iterator[str]:
    """Yield which of the approaches that may have the least error costs least."""
    for standing in ranked[:1]:
        tied = [
            approach for approach in findings.approaches if approach.name in standing.may_be_best
        ]
        least = min(tied, key=lambda approach: (approach.fit_seconds, approach.name), default=None)
        if least is not None and len(tied) > 1:
            yield (
                f"Of the {len(tied)} approaches that may have the smallest "
                f"{metric_label(standing.metric)}, the cheapest is {least.name}: "
                f"{least.fit_seconds:.2g} seconds of one processor for a fit."
            )


def most_near(standings: MetricStandings) -> Standing | None:
    """Return the approach most likely to be near the best on a new task."""
    measured = [standing for standing in standings.standings if standing.near_new >= 0]  # not NaN
    return max(measured, key=lambda candidate: candidate.near_new, default=None)


def _thresholds(findings: AtlasFindings, gaps: Sequence[str]) -> Iterator[str]:
    """Yield on how many tasks thresholds of each group do no worse than every intervention."""
    for gap in gaps[:1]:
        verdicts = [verdict.verdict for verdict in findings.verdicts if verdict.gap_metric == gap]
        if verdicts:
            yield (
                f"At the same {gap_label(gap)}, {THRESHOLDS_NEED} on an unconstrained "
                f"model do no worse than every intervention on {verdicts.count(HOLDS)} of "
                f"{len(verdicts)} tasks, and worse than one on {verdicts.count(FAILS)}; on "
                f"{verdicts.count(OPEN)} that is not resolved."
            )


def _claims_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield how many of the literature's claims hold here, and how many fail."""
    verdicts = [claim.verdict for claim in findings.claims]
    if verdicts:
        yield (
            f"Of {pluralise(len(verdicts), 'claim', 'claims')} of the literature, "
            f"{pluralise(verdicts.count(HOLDS), 'holds', 'hold')} here, "
            f"{pluralise(verdicts.count(FAILS), 'fails', 'fail')}, and "
            f"{pluralise(verdicts.count(OPEN), 'is', 'are')} not resolved: see Claims."
        )


def _basis_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield the basis of the answer, and how it is to be read."""
    repeats = f", {pluralise(findings.repeats, 'split', 'splits')} each" if findings.repeats else ""
    yield (
        f"It rests on {pluralise(len(findings.approaches), 'approach', 'approaches')} and "
        f"{pluralise(len(findings.tasks), 'task', 'tasks')} of "
        f"{pluralise(findings.families, 'family', 'families')} of data{repeats}. Data sets "
        "from one source count as one family; results apply to new families of this kind."
    )
    yield from _caveats(findings)
    if findings.standings:
        yield ranks_sentence(findings)
    yield MEAN_OVER_FAMILIES
    yield from few_tasks_sentences(findings)
    yield from findings.notes


def _unranked_reason(findings: AtlasFindings) -> str:
    """Return why no approach is ranked by its error rate, and what to run; empty if some are."""
    if any(standing.metric == ERROR for standing in findings.standings):
        return ""
    if len(findings.approaches) < 2:
        why = (
            "there is one approach alone: run another on the same tasks, or add=[PACK] others' runs"
        )
    elif findings.families < FEWEST_FAMILIES:
        why = (
            f"how much families of data differ cannot be told from {findings.families}: run data "
            f"sets of at least {FEWEST_FAMILIES}"
        )
    elif findings.repeats < 2:
        why = "one split does not show what is luck: run at least split.repeats=2"
    else:
        why = (
            f"no approach shares splits with {findings.reference} on at least "
            f"{findings.fewest_tasks} tasks of {FEWEST_FAMILIES} families: run the same ones"
        )
    return f"Nothing is ranked, as {why}."


def _open_sentences(findings: AtlasFindings, ranked: Sequence[MetricStandings]) -> Iterator[str]:
    """Yield the questions that the runs leave open."""
    if why := _unranked_reason(findings):
        yield why
    for index, standings in enumerate(ranked):
        name = metric_label(standings.metric)
        if len(standings.may_be_best) > 1:
            yield (
                f"Which of {len(standings.may_be_best)} approaches has the smallest {name} on "
                "average over families."
            )
        if index == 0:
            yield from (f"On the {name}: {sentence}" for sentence in standings.resolving[:2])
    open_claims = [claim.statement for claim in findings.claims if claim.verdict == OPEN]
    if open_claims:
        yield f"Of the literature's claims: “{'” “'.join(open_claims)}”"
    yield "Only the approaches that were run are here; one that was not may be better."


_CORNERS = 24
Styles = dict[str, dict[str, Any]]


def frontier_figure(points: Sequence[MeanFrontierPoint], style_of: Styles) -> Figure | None:
    """Return a panel for each gap: one line per intervention, from its weakest to its strongest."""
    gaps = list(dict.fromkeys(point.gap_metric for point in points))
    if not gaps:
        return None
    panels = [
        _panel([point for point in points if point.gap_metric == gap], style_of) for gap in gaps
    ]
    shown_interventions = dict.fromkeys(["none", *(_point_name(point)[0] for point in points)])
    key = [
        Series(_key(name), [], [], **style_of[name])
        for name in style_of
        if name in shown_interventions
    ]
    svg, *more = chart(panels, key=key)
    caption = (
        "What each intervention changes, the mean over families of data, against the same "
        "learner without it: down is a smaller gap, right is more errors. Points of a line are "
        "strengths; an ellipse is where a point lies at 95 %, each by itself; the widest leave the "
        "frame. What was run on fewer than half of the tasks is left out. The pointer shows "
        "numbers."
    )
    title = "Error against gap across data sets"
    return Figure(title, svg=svg, more=more, caption=caption, name="frontier")


def _panel(points: Sequence[MeanFrontierPoint], style_of: Styles) -> Panel:
    """Return the panel of one gap: changes of error and of gap, with a line per intervention."""
    gap = gap_label(points[0].gap_metric)
    x = np.array([[point.error, point.error_lower, point.error_upper] for point in points])
    y = np.array([[point.gap, point.gap_lower, point.gap_upper] for point in points])
    spans = {"x": _span(x), "y": _span(y)}
    return Panel(
        list(_series(points, style_of)), "error rate, change", f"{gap}, change", from_zero="",
        spans=spans,
    )  # fmt: skip


def _span(ends: np.ndarray) -> tuple[float, float]:
    """Return an axis for points, 0, and all but the widest quarter of their ellipses, (n, 3)."""
    value, lower, upper = ends.T
    low = min(value.min(), 0.0, np.quantile(lower, 0.25))
    high = max(value.max(), 0.0, np.quantile(upper, 0.75))
    room = 0.05 * (high - low) or 0.01
    return float(low - room), float(high + room)


def _key(name: str) -> str:
    return "no intervention" if name == "none" else name


def _series(points: Sequence[MeanFrontierPoint], style_of: Styles) -> Iterator[Series]:
    """Yield a line for each intervention, a marker with its ellipse for each of its strengths."""
    lines: dict[tuple[str, str], list[MeanFrontierPoint]] = {}
    for point in points:
        words = [word for word in _point_name(point)[1].split() if not is_number(word)]
        lines.setdefault((_point_name(point)[0], " ".join(words)), []).append(point)
    for (name, _), line in lines.items():
        line.sort(key=_strength)
        tags = _tags(line[0])
        x, y = (
            [frontier_point.error for frontier_point in line],
            [frontier_point.gap for frontier_point in line],
        )
        yield Series(name, x, y, style_of[name]["colour"], marked=False, tags=tags)
        for frontier_point in line:
            yield Series(
                name, [frontier_point.error], [frontier_point.gap], **style_of[name], lined=False,
                outline=_ellipse(frontier_point), hint=_hint(frontier_point), tags=tags,
            )  # fmt: skip
    yield Series("no intervention", [0.0], [0.0], **style_of["none"], lined=False)


def _point_name(point: MeanFrontierPoint) -> tuple[str, str]:
    """Return an intervention and its strength; of thresholds, how large the gap may be."""
    if point.setting:
        return THRESHOLDS, point.setting.partition("<=")[2]
    name, _, strength = point.intervention.partition(" ")
    return name, strength


def _strength(point: MeanFrontierPoint) -> list[float]:
    return [float(word) for word in _point_name(point)[1].split() if is_number(word)]


def _tags(point: MeanFrontierPoint) -> Tags:
    name = _point_name(point)[0]
    return {"intervention": "none" if name == THRESHOLDS else name}


def _ellipse(point: MeanFrontierPoint) -> np.ndarray:
    """Return the ends of both intervals as the axes of a curve, (m, 2)."""
    turn = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    centre = np.array([point.error, point.gap])
    up = np.array([point.error_upper, point.gap_upper]) - centre
    down = centre - np.array([point.error_lower, point.gap_lower])
    curve: np.ndarray = centre + corners * np.where(corners > 0, up, down)
    return curve


def _hint(point: MeanFrontierPoint) -> str:
    name = name_with_group_need(" ".join(_point_name(point)), needs_group=point.group_at_prediction)
    return (
        f"{name}: error {signed(point.error)} "
        f"({interval(point.error_lower, point.error_upper)}), gap {signed(point.gap)} "
        f"({interval(point.gap_lower, point.gap_upper)}), {point.tasks} tasks"
    )


def frontier_table(points: Sequence[MeanFrontierPoint]) -> Details:
    """Return the numbers of the picture."""
    columns = [Column("intervention"), Column("strength"), Column("gap of")]
    for name in ("error, change", "gap, change"):
        columns += [Column(name, "estimate", decimals=4)]
    columns += [Column("tasks", "count"), Column("families", "count")]
    columns += [Column("group at prediction")]
    rows = [
        [
            *_point_name(point), gap_label(point.gap_metric),
            (point.error, point.error_lower, point.error_upper),
            (point.gap, point.gap_lower, point.gap_upper),
            point.tasks, point.families, "needed" if point.group_at_prediction else "not needed",
        ]
        for point in points
    ]  # fmt: skip
    tags = [{"metric": point.gap_metric, **_tags(point)} for point in points]
    caption = "change: the mean over families, both intervals of a row together at 95 %"
    table = Table(columns, rows, caption=caption, sortable=True, tags=tags)
    return Details("The numbers of the picture", [table])


def size_figure(margins: MarginsBySize) -> Figure:
    """Return a chart of errors of thresholds minus those of interventions, by size of data."""
    tasks = [task for task in margins.tasks if task.rows > 0]
    points = [
        Series(
            task.family, [np.log10(task.rows)], [task.difference], "black", lined=False,
            outline=np.array([[np.log10(task.rows), end] for end in (task.lower, task.upper)]),
            hint=f"{task.dataset} by {task.protect}, {task.rows:,.0f} rows: "
            f"{signed(task.difference)} ({interval(task.lower, task.upper)})",
            tags={"family": task.family},
        )
        for task in tasks
    ]  # fmt: skip
    means = [
        Series(
            f"mean over families, {size_class.label}",
            np.log10([size_class.least_rows, size_class.most_rows]),
            [size_class.difference] * 2,
            colour,
            marked=False,
            dashed=index,
            band=np.array(
                [
                    [size_class.difference - size_class.lower],
                    [size_class.upper - size_class.difference],
                ]
            ),
        )
        for index, (size_class, colour) in enumerate(zip(margins.classes, COLOURS, strict=False))
    ]
    values = np.array([[task.difference, task.lower, task.upper] for task in tasks])
    panel = Panel(
        [*means, *points],
        "rows of the data set: 2 is 100, 3 is 1,000, 4 is 10,000",
        "extra error of thresholds",
        title="thresholds against interventions, same gap",
        from_zero="",
        spans={"y": _span(values)},
    )
    task_key = Series("a task", [], [], "black", lined=False)
    caption = (
        f"The error of {THRESHOLDS_NEED} minus that of interventions at the same gap, the "
        "mean over all interventions and strengths: above 0 thresholds err more. A point is a task "
        "with its 95 % interval for new splits; the widest leave the frame. A band is the plain "
        "mean over families with its 95 % interval."
    )
    title = "Thresholds for each group against interventions, by the size of the data"
    svg, *more = chart([panel], key=[task_key, *means])
    return Figure(title, svg=svg, more=more, caption=caption, name="by-size")
