"""Writing the report of a results folder: one page without external requests, and its tables.

Its figures set methods beside one another, and error against gaps between groups.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.core.text import latex_comment, markdown, number, spreadsheet_safe
from fairbench.evaluation.table import without_classes
from fairbench.experiments.configuration import Presets, Provenance
from fairbench.inference.comparing import frontier, point_table, points
from fairbench.inference.repeats import finite_mean
from fairbench.metrics.registry import FN, FP
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import (
    COLOURS,
    GREY,
    Panel,
    Series,
    chart,
    near_letters,
    outline_of,
    with_styles,
)
from fairbench.reporting.document.model import (
    Code,
    Document,
    ExecutiveSummary,
    Figure,
    Inline,
    Mark,
    Paragraph,
)
from fairbench.reporting.document.plain_text import latex_table, markdown_table
from fairbench.reporting.document.writing import check_forms, check_page, write_document
from fairbench.reporting.page.pairs import compare_block
from fairbench.reporting.page.sections import (
    PageBlock,
    Source,
    block_section,
    metric_table_of,
    overview_section,
    rows_source,
    runs_summary,
    sources,
)
from fairbench.reporting.page.tables import (
    ARM,
    MeasuredBlock,
    RankedRuns,
    RunBlock,
    blocks,
    metric_tables,
    name_runs,
    read_blocks,
    test_share,
)
from fairbench.results.catalogue import Catalogue, add_differing_options
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


MOST = 9  # methods in a figure: as many as there are different markers
POINTS = 16  # runs in a trade-off: as many as fit into its key and its panel
_FEWEST = 2
_NEAR = 0.6  # in sds of a point; letters of nearer points would overlap
_RATES = ("false_positive_rate", "true_positive_rate")
_SPREAD = ("spread_predicted", "spread_empirical")
_COLOURS = 128  # of a PNG: a palette keeps the page small
_KEPT = (
    "abstention_error_rate",
    "abstention_statistical_parity",
    "abstention_equalized_odds",
    "mean_feature_shift",
)
_TITLES = {
    "consistency": "How far each individual's uncertainty moves across variants",
    "spread": "Residuals against predicted uncertainty",
    "abstention": "Abstaining on the most uncertain",
    "parity": "Uncertainty-aware parity",
    "tradeoff": "Error against fairness",
}


def figures_of(block: MeasuredBlock) -> Iterator[Figure]:
    """Yield the figures of a block that compare uncertainty methods, and its trade-off.

    Compared are the methods without intervention, with one learner; the trade-off has all.
    """
    metrics = _with_labels(block)
    if drawings := tradeoff(block, metrics):
        note = (
            "means over repeats; letters: not dominated; ellipses: 95 % posterior of the mean "
            f"of all repeats; the {POINTS} of least error at most"
        )
        title = f"{_TITLES['tradeoff']}, {block.dataset} by {block.protect}"
        yield _figure(title, note, drawings)
    plain = _plain(block)
    plain_metrics = metrics[metrics["run"].isin(plain[:MOST])]
    undrawn = len(plain) - MOST
    note = f"{undrawn} further methods are in the tables alone" if undrawn > 0 else ""
    for name, draw in (("spread", _spread_charts), ("abstention", _abstention_charts)):
        if _has_values_for(plain_metrics, name):
            yield _figure(_TITLES[name], note, draw(plain_metrics))
    for title, figure in _drawings(plain_metrics):
        yield _figure(title, note, png=_png(figure))


def _figure(title: str, note: str, drawings: Sequence[str] = ("",), png: bytes = b"") -> Figure:
    """Return drawings for a document, with their caption."""
    svg, *more = drawings
    return Figure(title, svg, png, f"{title}: {note}" if note else title, more=more)


def _drawings(metrics: pd.DataFrame) -> Iterator[tuple[str, Drawing]]:
    """Yield the figures that matplotlib draws: consistency boxes, parity, and feature shifts."""
    names = [name for name in ("consistency", "parity") if _has_values_for(metrics, name)]
    shifts = metrics[metrics["metric"] == "feature_shift"]
    if not names and shifts.empty:
        return
    from fairbench.reporting.figures import DRAWN

    metrics, shifts = _texts(metrics), _texts(shifts)
    for name in names:
        yield from ((_TITLES[name], figure) for _, figure in DRAWN[name](metrics))
    for part, figure in DRAWN["abstention"](shifts):
        yield f"{_TITLES['abstention']}, {part.replace('_', ' ')}", figure


def _method_styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how each method looks in every chart."""
    return {
        name: {"colour": COLOURS[i % 8], "shape": i, "dashed": i} for i, name in enumerate(methods)
    }


def _spread_charts(metrics: pd.DataFrame) -> list[str]:
    """Return the sd of residuals against mean uncertainty, for each number of groups of rows."""
    points = metrics[metrics["metric"].isin(_SPREAD)]
    styles = _method_styles(list(dict.fromkeys(points["method"])))
    keys = ["bins", "method", "bin", "metric"]
    means = points.groupby(keys, observed=True)["value"].mean().unstack()
    points_by_bins: dict[float, dict[str, list[tuple[float, float]]]] = {}
    for (bins, method, _), x, y in means[list(_SPREAD)].itertuples(name=None):
        points_by_bins.setdefault(bins, {}).setdefault(method, []).append((x, y))
    panels = []
    for bins, points_by_method in sorted(points_by_bins.items()):
        series = []
        for method, style in styles.items():
            x, y = np.array(points_by_method.get(method, [])).reshape(-1, 2).T
            series.append(Series(method, x, y, **style, lined=bins <= 30))
        top = float(np.nanmax(np.concatenate([*map(np.array, points_by_method.values())])))
        series.append(Series("calibrated", [0, top], [0, top], GREY, dashed=True, marked=False))
        label = f"mean predicted uncertainty, {bins:.0f} groups of like uncertainty"
        panels.append(Panel(series, label, "sd of target - prediction"))
    return chart(panels, key=panels[0].series)


def _abstention_charts(metrics: pd.DataFrame) -> list[str]:
    """Return error and fairness of the rows kept, and the shift of their features, by rates."""
    curves = metrics[metrics["rate"].notna() & metrics["feature"].isna() & (metrics["group"] == "")]
    styles = _method_styles(list(dict.fromkeys(curves["method"])))
    selected = curves[curves["metric"].isin(_KEPT)]
    summary = selected.groupby(["metric", "method", "rate"], observed=True)["value"].agg(
        ["mean", "std"]
    )
    points_by_metric: dict[str, dict[str, list[tuple[float, ...]]]] = {}
    for (name, method, rate), *mean_and_sd in summary.fillna(0).itertuples(name=None):
        points_by_metric.setdefault(name, {}).setdefault(method, []).append((rate, *mean_and_sd))
    panels = []
    for name in _KEPT:
        series = []
        for method, style in styles.items():
            if method in points_by_metric.get(name, {}):
                rate, mean, sd = np.array(points_by_metric[name][method]).T
                series.append(Series(method, rate, mean, **style, band=sd))
        if series:
            label = f"{metric_label(name.removeprefix('abstention_'))}, rows kept"
            panels.append(Panel(series, "share abstained on", label))
    return chart(panels, key=panels[0].series)


def _png(figure: Drawing) -> bytes:
    """Return a drawing as a PNG of few colours."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _with_labels(block: MeasuredBlock) -> pd.DataFrame:
    """Return the metrics of a block, with its name and the names of its runs as categories."""
    labels = block.names
    names = list(dict.fromkeys(labels.values()))
    run = block.metrics["run"].cat
    code = np.array([names.index(labels[id_]) if id_ in labels else -1 for id_ in run.categories])
    method = pd.Categorical.from_codes(code[run.codes], names)
    return without_classes(block.metrics.assign(dataset=block.dataset, method=method))


def _texts(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return metrics with texts in place of categories."""
    return metrics.astype(dict.fromkeys(("run", "metric", "attribute", "group", "method"), str))


def _plain(block: MeasuredBlock) -> list[str]:
    """Return the ids of plain runs with the most frequent learner, one for each label."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    runs_of_learner = [run for run in runs if run.choices["learner"] == most]
    return list(
        {
            label: run.id
            for label, run in zip(name_runs(runs_of_learner), runs_of_learner, strict=True)
        }.values()
    )


def _has_values_for(metrics: pd.DataFrame, name: str) -> bool:
    """Return whether anything can be drawn."""
    needed = {
        "consistency": "consistency_sd",
        "spread": "spread_predicted",
        "abstention": "abstention_error_rate",
        "parity": "uncertainty_aware_statistical_parity",
    }[name]
    values = metrics.loc[metrics["metric"] == needed, "value"]
    return bool(values.notna().any())


def tradeoff(block: MeasuredBlock, metrics: pd.DataFrame) -> list[str]:
    """Return the chart of ``fairbench tradeoff`` for a block's runs: at most those of least error.

    Parameters
    ----------
    metrics : the block's.
    """
    arms = metrics[metrics["run"].isin(block.arms)]
    counts = dict(confusion_counts(arms, block.protect))
    if len(counts) < _FEWEST:
        return []
    errors = {
        id_: run_counts[..., [FP, FN]].sum() / run_counts.sum()
        for id_, run_counts in counts.items()
    }
    ids = sorted(errors, key=lambda id_: float(errors[id_]))[:POINTS]
    share = test_share(block.metrics)
    run_points = [
        points(counts[id_], block.dataset, test_share=share if _differ(counts[id_]) else np.nan)
        for id_ in ids
    ]
    table = point_table(ids, _names([block.runs[id_] for id_ in ids]), run_points)
    curve, base = _frontier(block, metrics)
    table = table[table["gap"].notna()]
    return _tradeoff_chart(with_styles(table), curve, base) if len(table) else []


def _tradeoff_chart(table: pd.DataFrame, curve: pd.DataFrame, base: str) -> list[str]:
    """Return a panel for each metric; points that none dominates are filled and have a letter.

    Every row of the table has a gap: a metric that is undefined for all runs has no panel.
    """
    rows: list[dict[str, Any]] = table.astype({"letter": object}).to_dict("records")
    kinds, interventions = (list(dict.fromkeys(row[name] for row in rows)) for name in _LOOKS)
    panels = []
    for metric in dict.fromkeys(row["metric"] for row in rows):
        of_metric = [row for row in rows if row["metric"] == metric]
        lettered_rows = sorted(_add_letters(of_metric), key=lambda row: bool(row["best"]))
        series = [_point(row, kinds, interventions) for row in lettered_rows]
        if len(curve):
            limits = curve[curve["constraint"] == metric].sort_values("relaxation")
            if len(limits):
                ends = limits["error"], limits["gap"]
                series.append(Series(base, *ends, COLOURS[-1], filled=True))
        gap = f"{metric_label(str(metric))} gap"
        panels.append(Panel(series, "error rate", gap, from_zero="y"))
    runs = {row["run"]: row for row in reversed(rows)}  # rows of the first metric win
    lettered = [{**row, "label": _letter(row)} for row in reversed(runs.values())]
    lettered.sort(key=lambda row: (not row["label"], row["label"]))
    key = [_point(row, kinds, interventions) for row in lettered]
    if base:
        name = f"{base}, a threshold per group, from unprocessed to parity"
        key.append(Series(name, [], [], COLOURS[-1], filled=True))
    return chart(panels, key=key)


_LOOKS = ("kind", "intervention")


def _letter(row: Mapping[str, Any]) -> str:
    return row["letter"] if isinstance(row["letter"], str) else ""


def _add_letters(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with a ``label``; points near each other share one at the first of them."""
    best = [row for row in rows if row["best"] and _letter(row)]
    best.sort(key=lambda row: float(row["error"]))
    sds = finite_mean(
        np.sqrt([[float(row[name]) for row in rows] for name in ("error_variance", "gap_variance")])
    )
    labels = {best[i]["run"]: letters for i, letters in near_letters(best, _NEAR * sds).items()}
    return [{**row, "label": labels.get(row["run"], "")} for row in rows]


def _point(row: Mapping[str, Any], kinds: Sequence[str], interventions: Sequence[str]) -> Series:
    """Return a run as a point: its marker shows the kind, colour and dashes the intervention."""
    name = f"{row['intervention']}, {row['kind']}"
    return Series(
        name,
        [row["error"]],
        [row["gap"]],
        row["colour"],
        shape=kinds.index(row["kind"]),
        dashed=interventions.index(row["intervention"]),
        filled=bool(row["best"]),
        lined=False,
        outline=outline_of(row),
        label=row["label"],
        hint=f"{name}: error {number(row['error'])}, gap {number(row['gap'])}",
    )


def _names(runs: Sequence[Run]) -> list[Mapping[str, str]]:
    """Name the parts of every run, each by its choice and the options of it that differ."""
    name_of = {
        part: add_differing_options([run.choices[part] for run in runs], runs, [part])
        for part in ARM
    }
    return [{part: name_of[part][i].replace("_", " ") for part in ARM} for i in range(len(runs))]


def _frontier(block: MeasuredBlock, metrics: pd.DataFrame) -> tuple[pd.DataFrame, str]:
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


def confusion_counts(
    metrics: pd.DataFrame, protect: str
) -> Iterator[tuple[str, NDArray[np.float64]]]:
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
    # Where each row belongs: its run, its split, its group.
    run, runs = pd.factorize(rows["run"])
    split = rows.groupby(["repeat", "fold"]).ngroup().to_numpy()
    group, groups = pd.factorize(rows["group"])
    repeat_of_split = rows["repeat"].groupby(split).first().to_numpy()
    shape = len(runs), len(repeat_of_split), len(groups)
    counts_by_rate = []
    for rate in _RATES:
        is_rate = (rows["metric"] == rate).to_numpy(bool)
        table = np.full((2, *shape), np.nan)
        for column, name in zip(table, ("value", "n"), strict=True):
            column[run[is_rate], split[is_rate], group[is_rate]] = rows[name].to_numpy()[is_rate]
        counts_by_rate.append(_split(*table))
    counts = np.concatenate(counts_by_rate, axis=-1)
    is_tested = np.zeros(shape[:2], bool)
    is_tested[run, split] = True
    for name, run_counts, tested in zip(runs, counts, is_tested, strict=True):
        if not np.isnan(run_counts[tested]).any():
            repeats = len(np.unique(repeat_of_split[tested]))
            yield str(name), run_counts[tested].reshape(repeats, -1, *run_counts.shape[1:])


def _differ(counts: NDArray[np.float64]) -> bool:
    """Return whether the repeats (R, 1, G, 4) of a run test other people, and no folds of all."""
    labels = counts.reshape(*counts.shape[:-1], 2, 2).sum(axis=-1)
    return counts.shape[1] == 1 and bool((labels != labels[0]).any())


def _split(rate: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many of the rows were predicted 0 and 1, (..., 2); a group may have none."""
    rows = np.nan_to_num(rows)
    ones = np.where(rows == 0, 0, np.rint(rate * rows))
    return np.stack([rows - ones, ones], axis=-1)


_CSV = [
    "run", "label", "mean", "sd", "lower", "upper", "n", "repeats", "status", "best", "near",
    "standing",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Report:
    """A written report: its path, and the number of its runs.

    `left_out` says which runs could not be compared with others, and why.
    """

    path: Path
    runs: int
    left_out: Sequence[str]


def write_report(
    results: Path,
    conf: Path,
    *,
    experiment: str = "",
    pairs: bool = True,
    forms: Sequence[str] = ("html",),
) -> Report:
    """Write ``report/index.html`` of all finished runs, or of an experiment's.

    Parameters
    ----------
    results, conf : the folders of runs and of configurations.
    pairs : whether runs are compared by their predictions.
    forms : the forms that the page is written in; see :data:`FORMS`.

    Raises
    ------
    UserError : an unknown experiment, nothing finished, or somebody else's page in its place.
    """
    check_forms(forms)
    presets = Presets(conf)
    collection = Catalogue(results)
    if experiment:
        collection = collection.only(presets.runs_of_all(experiment, collection.runs))
    if not collection.runs:
        condition = f"of experiment={experiment} " if experiment else ""
        raise UserError(f"{results} has no finished run {condition}to report on")
    folder = results / "report" / experiment.replace("/", "-")
    check_page(folder / "index.html")
    pages = []
    left_out: list[str] = []
    source = sources(presets)
    run_blocks = blocks(collection)
    console = Console(stderr=True)
    shown = track(
        _with_tables(run_blocks), "data sets and splits", len(run_blocks), console=console,
        transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    for block, measured_block, tables in shown:
        compared, unread = compare_block(measured_block) if pairs else (None, [])
        left_out += unread
        figures = list(figures_of(measured_block))
        pages.append(PageBlock(block, tables, figures, compared))
        _write_tables(pages[-1], source, folder / block.name)
    summary = runs_summary(pages, left_out)
    document = page_document(pages, source, experiment, summary)
    names = write_document(document, folder, "index", forms)
    return Report(folder / names[0], len(collection.runs), left_out)


def page_document(
    pages: Sequence[PageBlock],
    source: Source,
    experiment: str,
    summary: ExecutiveSummary,
) -> Document:
    """Return the page: a summary, an overview, then a section for each block."""
    notes = {page.note for page in pages}
    command = f"fairbench report{f' experiment={experiment}' if experiment else ''}"
    runs = sum(len(page.block.runs) for page in pages)
    text: list[Inline] = [f"{runs} finished runs. Written by ", Code(command)]
    text.append(f" with fairbench {VERSION}")
    if len(notes) == 1 and notes != {""}:  # otherwise each block has its own
        text += ["; ", Mark(notes.pop(), "quick")]
    sections = [overview_section(pages)]
    sections += [block_section(page, source) for page in pages]
    title = experiment or "All finished runs"
    return Document(
        title, sections, lead=[Paragraph(tuple(text), "note")], tabs=True, summary=summary
    )


def _with_tables(
    run_blocks: Sequence[RunBlock],
) -> Iterator[tuple[RunBlock, MeasuredBlock, list[RankedRuns]]]:
    """Yield each block without and with its metrics, and its tables; metrics are not kept."""
    remaining = iter(run_blocks)
    for batch in read_blocks(run_blocks):
        for measured_block, tables in zip(batch, metric_tables(batch), strict=True):
            yield next(remaining), measured_block, tables


def _write_tables(page: PageBlock, source: Source, folder: Path) -> None:
    """Write ``<metric>.md``, ``.tex`` and ``.csv``, each with its sources in a comment."""
    tables = [table for table in page.tables if not table.group]
    for table, text in zip(tables, _csv_texts(tables), strict=True):
        notes = list(_notes(table, rows_source(page.block, table.rows, source)))
        printed_table = metric_table_of(table, on_page=False)
        comment = "".join(map(latex_comment, notes))
        texts = {
            "md": markdown_table(printed_table) + "\n" + "\n\n".join(map(markdown, notes)) + "\n",
            "tex": comment + latex_table(printed_table),
            "csv": text,
        }
        for kind, content in texts.items():
            # Derived files are written again by the same command: they need not outlive a power
            # cut.
            write_text(folder / f"{table.key}.{kind}", content, lasting=False)


def _csv_texts(tables: Sequence[RankedRuns]) -> Iterator[str]:
    """Yield each table as `csv_text` writes one; the texts of all are made safe at once."""
    safe = spreadsheet_safe(pd.DataFrame([row for t in tables for row in t.rows], columns=_CSV))
    rows = zip(*(safe[name].tolist() for name in _CSV), strict=True)
    for table in tables:
        cells = [["" if cell != cell else cell for cell in next(rows)] for _ in table.rows]
        returns = any("\r" in cell for row in cells for cell in row if isinstance(cell, str))
        buffer = io.StringIO()
        # A carriage return would end a row unless all texts are in quotation marks.
        written = csv.writer(
            buffer,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )
        written.writerows([_CSV, *cells])
        yield buffer.getvalue()


def _notes(table: RankedRuns, source: Provenance) -> Iterator[str]:
    """Yield the sources of a table: rope, runs, data, versions, commit and commands."""
    yield f"{metric_label(table.metric)}; {table.direction or 'without a direction'}"
    if table.is_ranked:
        yield f"P(near): within {number(table.rope, 4)} of the best"
    yield f"runs: {', '.join(source.runs)}"
    data = [f"{name} {value}" for name, value in source.data.items()]
    yield f"data, sha256: {'; '.join(data) or 'simulated'}"
    yield f"versions: {', '.join(f'{name} {value}' for name, value in source.versions.items())}"
    yield f"commit: {', '.join(source.commits)}"
    yield from source.commands
