"""The page of a results folder: one page without external requests, and its tables.

It has an overview, which says what was run and how to read the tables, and a section for each block
of comparable runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from fairbench.core import VERSION
from fairbench.core import text as formats
from fairbench.core.errors import UserError
from fairbench.evaluation.summary import DEBIASED_MEANS, HEADLINES, headline_of
from fairbench.evaluation.table import DEBIASED
from fairbench.experiments.configuration import Presets, commands_of
from fairbench.inference.verdicts import ALIKE, OPEN, WORSE
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.writing import check_forms, check_page, write_document
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench.reporting.page import tables as measuring
from fairbench.reporting.page.tables import CERTAIN, STANDINGS, RankedRuns, RunBlock
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import FIGURES, LAST, Run, place_of

_GLANCE = (
    "error_rate", "roc_auc", "nll", "log_loss", "expected_calibration_error", "rmse", "r2",
    "equalized_odds", "statistical_parity", "classwise_calibration_error",
    "equal_opportunity_class_mean", "statistical_parity_class_mean",
)  # fmt: skip
_FEW = 5  # runs with fewer repeats are marked as a quick look


@dataclass(frozen=True, eq=False)
class _PageBlock:
    """A block of comparable runs with everything that the page shows of it."""

    block: RunBlock
    tables: Sequence[RankedRuns]
    figures: Sequence[doc.Figure]
    compared: doc.Section | None
    origin: Mapping[str, Any]

    @property
    def note(self) -> str:
        """A warning if there are few repeats; else empty."""
        repeats = self.block.repeats
        return f"quick: {formats.counted(repeats, 'repeat')}" if repeats < _FEW else ""

    def options(self, group: str) -> str:
        """Return the options of a group that were run, such as the methods."""
        return ", ".join(sorted({run.choices[group] for run in self.block.runs.values()}))


def _source_details(origin: Mapping[str, Any]) -> doc.Details:
    """Return the origin of a block: runs, data, versions, and the commands for them."""
    several = "" if len(origin["runs"]) == 1 else "s"
    data = ", ".join(value[:12] for value in origin["data"].values()) or "simulated"
    commits = ", ".join(origin["commits"])
    runs: list[doc.Inline] = []
    for id_ in origin["runs"]:
        runs += [doc.Link(id_, f"#run-{id_}", code=True), " "]
    files: list[doc.Inline] = []
    for file, sha in origin["data"].items():
        files += [f"{file} ", doc.Code(sha), "; "]
    changed = " (+: with files changed since)" if "+" in commits else ""
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    return doc.Details(
        f"{len(origin['runs'])} run{several}; data {data}; commit {commits}",
        [
            doc.Paragraph(("runs (hashes of their configurations): ", *runs)),
            doc.Paragraph(("data, sha256: ", *(files or ["simulated from the seed"]))),
            doc.Paragraph(f"versions: {versions}; commit {commits}{changed}"),
            doc.Paragraph("To compute it again:"),
            *(doc.Paragraph((doc.Code(command),)) for command in origin["commands"]),
        ],
        style="from",
    )


def _block_section(page: _PageBlock) -> doc.Section:
    """Return the section of a block."""
    block = page.block
    runs = len(block.runs)
    text: list[doc.Inline] = [
        f"{runs} run{'' if runs == 1 else 's'} of {block.dataset}, ",
        doc.Code(block.split),
        f", seed {block.first.config['seed']}, {page.options('learner')}, protected: "
        f"{block.protect}",
    ]
    if page.note:
        text += [" ", doc.Mark(page.note, "quick")]
    blocks: list[doc.Block] = [doc.Paragraph(tuple(text)), _source_details(page.origin)]
    if page.figures:
        blocks.append(doc.Section("Figures", page.figures))
    blocks += _at_a_glance(page)
    if page.compared is not None:
        blocks.append(page.compared)
    alone = [table for table in page.tables if not table.group]
    details = [
        *(_metric(page, table, is_open=not i) for i, table in enumerate(alone)),
        *_groups(page),
    ]
    blocks += [doc.Section("Metric by metric", details), _runs(block)]
    return doc.Section(block.title, blocks, name=block.name)


def _at_a_glance(page: _PageBlock) -> Iterator[doc.Block]:
    """Yield the metrics that most readers look at first."""
    whole = [table for table in page.tables if table.is_whole]
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


def _metric_table_of(table: RankedRuns) -> doc.Table:
    """Return a metric's rows as a table, with bars and statuses."""
    above_chance = any(isfinite(row[DEBIASED]) for row in table.rows)
    without = [] if above_chance else [DEBIASED]
    without += [] if table.is_ranked else ["best", "near", "standing"]
    chance = DEBIASED_MEANS if above_chance else ""
    return named_table("runs", "metric", _with_bars(table.rows), without=without, chance=chance)


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
        yield {
            **row,
            "bar": bar,
            "status": _status(row),
            "standing": doc.TableCell(words, mark=words.replace(" ", "-")),
        }


def _status(row: Mapping[str, Any]) -> str:
    return "" if row["status"] == "ok" else str(row["status"])


def _bar_ends(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the interval of a row around its mean; one sd either way if it has no interval."""
    mean = row["mean"]
    sd = 0.0 if isnan(row["sd"]) else row["sd"]
    lower = mean - sd if isnan(row["lower"]) else row["lower"]
    return lower, mean, mean + sd if isnan(row["upper"]) else row["upper"]


def _metric(page: _PageBlock, table: RankedRuns, *, is_open: bool) -> doc.Details:
    """Return the folded table of a metric."""
    summary = _by_attribute(table) + (f", {table.setting}" if table.setting else "")
    remark = table.direction
    if table.is_ranked:
        best = "; ".join(table.labels_with_standing(ALIKE)) or "none for certain"
        remark += f"; as good as the best: {best}"
    rope = [doc.Paragraph(f"rope {formats.number(table.rope, 4)}", "note")]
    return doc.Details(
        summary,
        [_metric_table_of(table), *(rope if table.is_ranked else [])],
        remark=remark,
        name=f"{page.block.name}-{table.key}",
        style="metric",
        is_open=is_open,
    )


def _by_attribute(table: RankedRuns) -> str:
    """Return the label of a table's metric, and between whose groups it is."""
    return metric_label(table.metric) + (f" by {table.attribute}" if table.attribute else "")


def _groups(page: _PageBlock) -> Iterator[doc.Details]:
    """Yield a metric of every group of people side by side."""
    group_tables = [table for table in page.tables if table.group]
    for metric in dict.fromkeys(table.metric for table in group_tables):
        tables = [table for table in group_tables if table.metric == metric]
        columns = [doc.Column(table.group, "spread", decimals=4) for table in tables]
        caption = "mean (sd over repeats), and the 95 % interval of the mean"
        table = _side_by_side(tables, columns, _group_cell, caption)
        yield doc.Details(
            f"{metric_label(metric)} of each group",
            [table],
            remark=tables[0].attribute,
            style="metric",
        )


def _group_cell(row: Mapping[str, Any]) -> doc.TableCell:
    """Return the cell of a group: mean and sd, with the interval below."""
    less = f"{DEBIASED} {formats.number(row[DEBIASED], 4)}" if isfinite(row[DEBIASED]) else ""
    remarks = [formats.interval(row["lower"], row["upper"], 4), less, _status(row)]
    return doc.TableCell((row["mean"], row["sd"]), note="; ".join(filter(None, remarks)))


def _side_by_side(
    tables: Sequence[RankedRuns],
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


def _runs(block: RunBlock) -> doc.Section:
    """Return the section that lists the runs of a block: commit, processor and files of each."""
    rows = []
    for run in block.runs.values():
        tables = place_of(run.path, "summary.csv").name
        files = {"configuration": LAST, "all metrics": tables, "figures": f"{FIGURES}/"}
        links = [doc.Link(text, f"../runs/{run.id}/{name}") for text, name in files.items()]
        changed = "+" if run.environment.get("git_dirty") else ""
        rows.append(
            [
                doc.TableCell((doc.Code(run.id),), name=f"run-{run.id}"),
                block.names[run.id],
                (doc.Code(run.environment.get("git_commit", "")[:12] + changed),),
                run.environment.get("cpu", ""),
                tuple(piece for link in links for piece in (link, " ")),
            ]
        )
    columns = [doc.Column(title) for title in ("run", "method", "commit", "processor", "files")]
    return doc.Section("Runs", [doc.Table(columns, rows, sortable=True)])


def _runs_summary(pages: Sequence[_PageBlock], left_out: Sequence[str]) -> doc.ExecutiveSummary:
    """Return the summary of a page of runs: which is best, how sure that is, what to do next."""
    quick = [page.block.title for page in pages if page.note]
    protected = list(dict.fromkeys(page.block.protect for page in pages))
    values = {
        "names": formats.listed(quick, _MOST_NAMED),
        "them": "it" if len(quick) == 1 else "them",
        "attributes": formats.listed(protected, _MOST_NAMED),
        "count": len(set(left_out)),
        "certain": CERTAIN,
    }
    compared = any(page.compared is not None for page in pages)
    parts: tuple[Mapping[str, object], ...] = (
        {"certain": True, "quick": quick},
        {"protected": True, "not_compared": left_out, "not_run": True},
        {"repeat": quick, "read": compared, "next": True},
    )
    sure, unseen, todo = (sentences_of("runs", part, **values) for part in parts)
    return doc.ExecutiveSummary(list(_result_sentences(pages)), sure, unseen, todo)


_MOST_TOLD, _MOST_NAMED = 6, 3


def _result_sentences(pages: Sequence[_PageBlock]) -> Iterator[str]:
    """Yield the findings in the first blocks, and how many blocks have more."""
    findings = [(page, sentences) for page in pages if (sentences := list(_winners(page)))]
    for page, sentences in findings[:_MOST_TOLD]:
        yield f"{page.block.title}: {' '.join(sentences)}"
    if len(findings) > _MOST_TOLD:
        yield sentence_of("runs", "more", count=len(findings) - _MOST_TOLD)
    if not findings:
        yield sentence_of("runs", "alone")


def _winners(page: _PageBlock) -> Iterator[str]:
    """Yield the sentences on the best run by the error, and by the gap between groups."""
    tables = {table.metric: table for table in page.tables if table.is_ranked and not table.setting}
    for part in ("error", "gap"):
        first = headline_of(page.block.runs.values()) if part == "gap" else ""
        names = (first, *(of_task[part] for of_task in HEADLINES.values()))
        name = next((name for name in names if name in tables), "")
        if name and len(tables[name].rows) > 1:
            yield _winner(tables[name])


def _winner(table: RankedRuns) -> str:
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


def _runs_table(pages: Sequence[_PageBlock]) -> doc.Table:
    """Return the table of what was run, with a row for each block."""
    groups = ("learner", "intervention", "method")
    columns = [doc.Column("data set"), doc.Column("runs", "count"), doc.Column("repeats", "count")]
    columns += [doc.Column(f"{group}s") for group in groups]
    rows = []
    for page in pages:
        title = doc.TableCell(page.block.title, link=f"#{page.block.name}")
        counts = len(page.block.runs), page.block.repeats
        rows.append([title, *counts, *map(page.options, groups)])
    return doc.Table(columns, rows, sortable=True)


def _how_to_read() -> doc.Items:
    """Return explanations of the page's numbers."""
    marks: list[doc.Inline] = []
    for verdict, where in ((ALIKE, "good"), (WORSE, "bad"), (OPEN, "between")):
        mark = doc.Mark(STANDINGS[verdict], STANDINGS[verdict].replace(" ", "-"))
        marks += [mark, sentence_of("runs", where, certain=CERTAIN, not_certain=1 - CERTAIN)]
    said = [sentence_of("runs", name) for name in ("intervals", "probabilities")]
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
    pages = []
    left_out: list[str] = []
    console = Console(stderr=True)
    shown = track(
        [*measuring.together(measuring.blocks(collection))], "data sets and splits",
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    for some in shown:
        read = measuring.read(some)
        for block, whole, tables in zip(some, read, measuring.metric_tables(read), strict=True):
            compared, unread = measuring.compare_block(whole)
            left_out += unread
            figures = list(measuring.figures_of(whole))
            origin = _provenance(tuple(block.runs.values()), presets)
            # The page keeps the block without its metrics.
            pages.append(_PageBlock(block, tables, figures, compared, origin))
    summary = _runs_summary(pages, left_out)
    document = _page_document(pages, experiment, summary)
    names = write_document(document, folder, "index", forms)
    return folder / names[0], len(collection.runs), left_out


def _page_document(
    pages: Sequence[_PageBlock], experiment: str, summary: doc.ExecutiveSummary
) -> doc.Document:
    """Return the page: a summary, an overview, then a section for each block."""
    notes = {page.note for page in pages}
    command = f"fairbench report{f' experiment={experiment}' if experiment else ''}"
    runs = sum(len(page.block.runs) for page in pages)
    text: list[doc.Inline] = [f"{runs} finished runs. Written by ", doc.Code(command)]
    text.append(f" with fairbench {VERSION}")
    if len(notes) == 1 and notes != {""}:  # otherwise each block has its own
        text += ["; ", doc.Mark(notes.pop(), "quick")]
    reading = doc.Section("How to read the tables", [_how_to_read()], name="reading")
    overview = [doc.Section("What was run", [_runs_table(pages)]), reading]
    sections = [doc.Section("Overview", overview, name="overview")]
    sections += [_block_section(page) for page in pages]
    title = experiment or "All finished runs"
    return doc.Document(
        title, sections, lead=[doc.Paragraph(tuple(text), "note")], tabs=True, summary=summary
    )


def _provenance(runs: Sequence[Run], presets: Presets) -> dict[str, Any]:
    """Return the origin of some runs, and so of a table of them.

    Returns
    -------
    runs : ids of the runs, which are hashes of their resolved configurations.
    data : file -> sha256; empty for simulated data.
    versions : package -> version, several where runs differ.
    commits : the commits of this project, with ``+`` if files were changed since.
    commands : the commands that compute the runs again.
    """
    environments = [run.environment for run in runs]
    commits = {
        str(environment.get("git_commit", "unknown"))[:12]
        + ("+" if environment.get("git_dirty") else "")
        for environment in environments
    }
    return {
        "runs": [run.id for run in runs],
        "data": _merge(environment["data_sha256"] for environment in environments),
        "versions": _merge(environment["versions"] for environment in environments),
        "commits": sorted(commits),
        "commands": commands_of(runs, presets),
    }


def _merge(tables: Iterator[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, value in table.items():
            values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(different) for name, different in values.items()}
