"""The documents of compared runs: which of two is better and by how much, and a rank for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.text import listed, percent
from fairbench.inference import comparing
from fairbench.inference.comparing import Comparison
from fairbench.inference.verdicts import in_order
from fairbench.metrics.registry import label
from fairbench.reporting.charts import BLUE, GREY, Panel, Series, chart, key_of
from fairbench.reporting.document import model as doc
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of


def pair_document(
    names: Sequence[str],
    shown: Comparison,
    observed: Floats,
    *,
    everywhere: pd.DataFrame,
    inside: pd.DataFrame,
    level: float,
    region: comparing.Region | None = None,
    left_out: Sequence[str] = (),
    tested: str = "",
    computed: str = "",
) -> doc.Document:
    """Return the comparison of two runs, A and B.

    Parameters
    ----------
    names : the names of A and B.
    shown : the comparison whose differences are shown.
    observed : (2, m) each run's values of the metrics in its test rows, A's first.
    everywhere, inside : (repeats, events) probabilities over all draws, and within the
        highest-density region.
    level : the level of the intervals and of the region.
    left_out : sentences on groups and repeats in which a metric is undefined.
    tested : how many rows were tested how often, such as ``like the 500 rows of the data, all of
        which are tested in 1 repeat``; empty if each repeat is compared by itself.
    computed : how it was computed; with it, the probabilities within the highest-density region
        are shown too.
    """
    title = "\n".join(f"{letter}: {name}" for letter, name in zip("AB", names, strict=True))
    probabilities = everywhere.median()
    answer = _answer(probabilities, shown.objectives)
    about = sentence_of("pair", "about", tested=tested) if tested else ""
    notes = [doc.Paragraph(text, style="note") for text in (*left_out, about, computed) if text]
    blocks: list[doc.Block] = [
        doc.Paragraph(f"{answer}\n"),
        _outcomes(everywhere, inside, shown.objectives, level if computed else 0.0),
        _differences(shown, observed, level, averaged=bool(tested)),
        *notes,
    ]
    if region is not None and len(shown.objectives) == 2:
        panel = _lead_panel(shown, region)
        about, drawings = " and ".join(names), chart([panel], key=key_of([panel]))
        caption = sentence_of("pair", "picture")
        blocks.append(doc.Figure(f"the difference of {about}", drawings, caption=caption))
    return doc.Document(title, [doc.Section("", blocks)])


def _lead_panel(comparison: Comparison, region: comparing.Region) -> Panel:
    """Return the region of two leads of A over B, and lines where they matter in practice.

    Parameters
    ----------
    comparison : of two objectives.
    region : its highest-density region; without a density, one that is a line or a point.
    """
    reach = np.where(np.isfinite(comparison.rope), comparison.rope, 0)
    low, high = np.minimum(region.bounds[:, 0], -reach), np.maximum(region.bounds[:, 1], reach)
    room = 0.2 * np.maximum(high - low, 1e-6)
    spans = dict(zip("xy", zip(low - room, high + room, strict=True), strict=True))
    series = []
    for axis, limit in enumerate(comparison.rope):
        for end in (-limit, limit) if np.isfinite(limit) else ():
            x, y = ([end, end], spans["y"]) if axis == 0 else (spans["x"], [end, end])
            series.append(Series(_EQUAL, x, y, GREY, dashed=1, marked=False))
    if (density := region.density) is None:
        x, y = region.bounds
        series.append(Series(_REGION, x, y, BLUE))
    else:
        from matplotlib import figure  # which alone finds contours here

        grid = density.x, density.y, density.values.T
        contours = figure.Figure().subplots().contour(*grid, levels=[density.threshold])
        looks: dict[str, Any] = {"filled": True, "lined": False, "marked": False}
        for line in contours.allsegs[0]:
            series.append(Series(_REGION, [], [], BLUE, **looks, outline=line))
    leads = [f"{label(name)}: A ahead by" for name in comparison.objectives]
    return Panel(series, leads[0], leads[1], spans=spans)


_EQUAL, _REGION = "no difference that matters", "region of the difference"


_SURE = 0.95  # the probability from which an outcome is stated


def _answer(probabilities: pd.Series, objectives: Sequence[str]) -> str:
    """Return whether an outcome of a comparison is sure, and the most probable one, in words."""
    outcome = _outcome_label(str(probabilities.idxmax()), objectives)
    probability = float(probabilities.max())
    said = "decided" if probability >= _SURE else "not_decided"
    return sentence_of("pair", said, outcome=outcome, probability=probability, sure=_SURE)


def _outcome_label(event: str, objectives: Sequence[str]) -> str:
    """Return an event of :meth:`Comparison.events` in plain words."""
    if event == comparing.PRACTICALLY_EQUAL:
        return "no difference that matters in practice"
    if event in (comparing.A_BETTER, comparing.B_BETTER):
        better, worse = ("better", "worse") if _is_directed(objectives) else ("ahead", "behind")
        several = f" in at least one metric and {worse} in none" if len(objectives) > 1 else ""
        return f"{event[0]} is {better}{several}"
    wins: dict[str, list[str]] = {}
    for part in event.split(", "):
        letter, _, objective = part.partition(" ")
        wins.setdefault(letter, []).append(_in_a_sentence(objective))
    (first, its_metrics), (second, other_metrics) = wins.items()
    better = "better" if _is_directed(objectives) else "ahead"
    return f"{first} is {better} in {listed(its_metrics)}, {second} in {listed(other_metrics)}"


def _is_directed(objectives: Sequence[str]) -> bool:
    """Whether every objective says which of two runs is the better."""
    metrics = [comparing.objective(name).metric for name in objectives]
    return all(metric.direction or metric.interval == "difference" for metric in metrics)


def _in_a_sentence(name: str) -> str:
    """Return the label of an objective's metric with the article that a sentence needs."""
    words = label(name)
    return f"the {words}" if words.startswith(("gap ", "ratio ", "difference ")) else words


def _outcomes(
    everywhere: pd.DataFrame, inside: pd.DataFrame, objectives: Sequence[str], region: float
) -> doc.Table:
    """Return the table of the outcomes' probabilities, medians over repeats.

    Parameters
    ----------
    region : the level of the region whose probabilities are shown, too; 0 for none.
    """
    several = len(inside) > 1
    shown = {
        "outcome": [_outcome_label(event, objectives) for event in everywhere],
        "probability": everywhere.median(),
        "inside": inside.median(),
        "ends": list(zip(inside.min(), inside.max(), strict=True)),
    }
    rows = pd.DataFrame(shown).to_dict("records")
    without = [] if region and several else ["ends"] if region else ["inside", "ends"]
    said = {"outcomes": True, "region": region, "medians": several}
    caption = "".join(sentences_of("pair", said, level=region, repeats=len(inside)))
    return named_table("pair", "outcomes", rows, without=without, caption=caption)


def _differences(
    comparison: Comparison, observed: Floats, level: float, *, averaged: bool
) -> doc.Table:
    """Return the table of both runs' values and of their differences, with intervals."""
    ends = np.quantile(comparison.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
    columns = {
        "label": list(map(label, comparison.objectives)),
        "a": observed[0],
        "b": observed[1],
        "ahead": comparison.delta.mean(axis=0),
        "ends": list(map(tuple, ends.T)),
        "rope": comparison.rope,
        **({"missed": comparison.reach(level)} if averaged else {}),
    }
    rows = pd.DataFrame(columns).to_dict("records")
    said: dict[str, object] = {"mean_values" if averaged else "values": True, "ahead": True}
    said |= {"equal": True, "missed": averaged}
    explained = sentences_of("pair", said, directions=_directions(comparison.objectives))
    where, without = ("", []) if averaged else (", in the typical repeat", ["missed"])
    values: dict[str, Any] = {"where": where, "level": level, "caption": "\n".join(explained)}
    return named_table("pair", "differences", rows, without=without, **values)


def _directions(objectives: Sequence[str]) -> str:
    """Say how a lead is computed from both runs' values, and when it is positive."""
    metrics = [comparing.objective(name).metric for name in objectives]
    without = {"difference": "larger counts as better, whichever group it favours"}
    ways = [
        f"{'B - A' if metric.better == 'lower' else 'A - B'} in {_in_a_sentence(metric.name)} "
        f"({metric.direction or without.get(metric.interval, 'neither way is better')})"
        for metric in metrics
    ]
    better = "better" if _is_directed(objectives) else "ahead"
    text = f"{listed(ways)}; positive if A is {better}."
    is_ratio = any(isinstance(metric.better, float) for metric in metrics)
    return f"{text} Of a ratio above 1, its inverse is taken." if is_ratio else text


MATRIX = "Probability that the run of the row outperforms the run of the column, in percent"


def ranking_document(
    outperforms: Floats,
    ranks: NDArray[np.int64],
    names: Sequence[str],
    ids: Sequence[str],
    *,
    data: str,
    groups: str,
    objectives: Sequence[str],
    certainty: float,
) -> doc.Document:
    """Return the comparison of all pairs of several runs, in the order of their ranks.

    Parameters
    ----------
    outperforms : (R, R) probabilities that the row's run outperforms the column's.
    ranks : (R,), from 1; equal ones are tied.
    data, groups : the names of the data set and of the attributes whose groups are compared.
    certainty : the probability from which a run ranks above another.
    """
    by = listed([_in_a_sentence(name) for name in objectives])
    title = f"{data}, groups by {groups}: runs ranked by {by}"
    order = in_order(ranks, outperforms)
    places = [[rank_of(ranks, i), rank, names[i], ids[i]] for rank, i in enumerate(order, start=1)]
    columns = [doc.Column("rank", right=True), doc.Column("", "count")]
    columns += map(doc.Column, ("run", "id"))
    caption = sentence_of("ranking", "ranks", certainty=certainty)
    ranked = doc.Table(columns, places, caption=caption)
    return doc.Document(title, [doc.Section("", [ranked, _matrix(outperforms, order)])])


def rank_of(ranks: NDArray[np.int64], i: int) -> str:
    """Return a run's rank, with = if it is tied."""
    is_tied = (ranks == ranks[i]).sum() > 1
    return f"{ranks[i]}=" if is_tied else f"{ranks[i]}"


def _matrix(outperforms: Floats, order: NDArray[np.intp]) -> doc.Table:
    """Return every pair's probability; ``<1`` is no impossibility."""
    columns = [doc.Column("", "count", narrow=True)]
    columns += [doc.Column(str(i), "percent", narrow=True) for i in range(1, len(order) + 1)]
    rows = [
        [rank, *(None if i == j else outperforms[i, j] for j in order)]
        for rank, i in enumerate(order, start=1)
    ]
    first, second = order[:2]
    pair = (outperforms[first, second], outperforms[second, first])
    first_text, second_text = (
        percent(value).replace("<", "less than ").replace(">", "more than ") for value in pair
    )
    caption = sentence_of("ranking", "matrix", first=first_text, second=second_text)
    return doc.Table(columns, rows, title=MATRIX, caption=caption, repeated=1)
