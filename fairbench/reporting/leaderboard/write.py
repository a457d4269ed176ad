"""Writing the leaderboard of a results folder or a pack: a page that works by itself, and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from fairbench.comparison.atlas.approaches import approach_table
from fairbench.comparison.atlas.findings import AtlasFindings
from fairbench.comparison.atlas.report import METRICS, atlas_findings, left_out_sentences
from fairbench.comparison.atlas.unprocessing import unequal_terms_remarks
from fairbench.comparison.atlas.verdicts import pluralise
from fairbench.core.errors import UserError
from fairbench.core.files import write_bytes
from fairbench.metrics.registry import label as metric_label
from fairbench.metrics.registry import unknown_metric
from fairbench.reporting.charts import file_of
from fairbench.reporting.document.model import Block, Column, Document, Paragraph, Section, Table
from fairbench.reporting.document.writing import write_document
from fairbench.reporting.leaderboard.answer import (
    NEXT,
    answer_of,
    frontier_figure,
    frontier_table,
    size_figure,
)
from fairbench.reporting.leaderboard.board import Leaderboard
from fairbench.reporting.leaderboard.claims import claims_section
from fairbench.reporting.leaderboard.means import ERROR, SHOWN_GAPS, TASK, BoardTable
from fairbench.reporting.leaderboard.origin import TABLE, downloads, origin_section, whole_table
from fairbench.reporting.leaderboard.ranks import (
    cost_section,
    explanations_section,
    ranks_section,
    ranks_table,
)
from fairbench.reporting.leaderboard.tasks import styles_of, tasks_section
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run


def write_leaderboard(
    folders: Sequence[Path],
    out: Path,
    *,
    metric: str = "",
    purposes: Sequence[str] = (),
    conf: Path | None = None,
    command: str = "",
) -> Leaderboard:
    """Write ``index.html`` of everything that results folders or packs have.

    Parameters
    ----------
    folders : results folders or packs; a run that several have counts once.
    metric : the metric that the page opens with; the first gap between groups by default.
    purposes : the purposes of the runs that count; all but demos and tuning by default.
    conf : the configurations of a checkout, from which the commands of the runs are made.
    command : the command that makes the page again.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.
    """
    runs: dict[str, Run] = {}
    hidden: list[Run] = []
    notes: list[str] = []
    for folder in folders:
        counted, left_out = Catalogue(folder).counted(purposes)
        if not (finished := counted.runs):
            why = f" ({left_out})" if left_out else ""
            raise UserError(f"{folder} has no finished run{why}: name a results folder or a pack")
        notes += [f"Of the runs of {folder}, {left_out}."] if left_out else []
        hidden += [run for run in finished.values() if run.id in runs and _fitted_anew(run, runs)]
        runs = finished | runs
    folder_names = " and ".join(map(str, folders))
    board = comparable_board(approach_table(list(runs.values())), folder_names, metric)
    remarks = unequal_terms_remarks(list(runs.values()))
    findings = BoardFindings.of(board, metric, remarks).noting(len(runs), hidden, notes)
    document = page_of(board, findings, list(runs.values()), conf, command)
    names = write_document(document, out, "index", ("html", "json"))
    write_bytes(out / TABLE, whole_table(board))
    return Leaderboard(out / names[0], short_of(document, findings), [*names, TABLE])


def _fitted_anew(run: Run, runs_by_id: Mapping[str, Run]) -> bool:
    """Return whether a run has other cells than the run of the same id: other code or versions."""
    return set(run.cells()) != set(runs_by_id[run.id].cells())


def _hidden_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield how many runs are hidden by one of the same name that other code fitted."""
    if runs:
        several = "runs of later folders are" if len(runs) > 1 else "run of a later folder is"
        yield (
            f"{len(runs)} {several} left out, such as {runs[0].name}: the first folder has one of "
            "the same name and options, which other code or versions fitted. A method that is "
            "another one needs another name."
        )


@dataclass(frozen=True, eq=False)
class BoardFindings:
    """The findings of the atlas on a page's table.

    Attributes
    ----------
    atlas : the findings.
    gaps : the metrics of gaps, first the one that the page opens with.
    """

    atlas: AtlasFindings
    gaps: Sequence[str]

    @classmethod
    def of(
        cls, board: BoardTable, metric: str, remarks: Sequence[str] = (), *, draws: int = 300
    ) -> BoardFindings:
        """Compute the findings on a table.

        Parameters
        ----------
        remarks : sentences on interventions that were not configured on equal terms.
        """
        gaps = sorted(board.gaps[:SHOWN_GAPS], key=lambda name: name != metric)
        metrics = [name for name in dict.fromkeys([*METRICS, *gaps]) if name in board.metrics]
        atlas = atlas_findings(board.table, metrics=metrics, remarks=remarks, draws=draws)
        return cls(atlas, gaps)

    def noting(
        self, runs: int, hidden: Sequence[Run] = (), notes: Sequence[str] = ()
    ) -> BoardFindings:
        """Return these findings with notes on runs that are left out, of `runs` in all."""
        notes = (
            *self.atlas.notes,
            *notes,
            *left_out_sentences(self.atlas, runs),
            *_hidden_sentences(hidden),
        )
        return replace(self, atlas=replace(self.atlas, notes=notes))


def comparable_board(table: pd.DataFrame, folder_names: str, metric: str) -> BoardTable:
    """Return the table of a page, if there is something to compare.

    Raises
    ------
    UserError : one task only, or a metric that nothing has.
    """
    if ERROR not in table or table[ERROR].isna().all():
        raise UserError(
            f"no run of {folder_names} has an {ERROR}, by which a leaderboard ranks: tasks whose "
            "target is a number have none, and fairbench report shows them"
        )
    judged = table.groupby([*TASK])[ERROR].transform("count") > 0
    board = BoardTable(table[judged].reset_index(drop=True))
    if len(board.tasks) < 2:
        raise UserError(
            f"{folder_names} has runs of {board.tasks[0].title} alone, and a leaderboard needs "
            "several tasks: run another data set, or use fairbench report"
        )
    if metric and metric not in board.metrics:
        raise unknown_metric("metric", metric, board.metrics)
    return board


def page_of(
    board: BoardTable,
    board_findings: BoardFindings,
    runs: Sequence[Run],
    conf: Path | None,
    command: str,
) -> Document:
    """Return the page."""
    findings = board_findings.atlas
    style_of = styles_of(board)
    opening_gap = board_findings.gaps[0] if board_findings.gaps else ""
    points = sorted(findings.mean_frontiers, key=lambda point: point.gap_metric != opening_gap)
    picture = frontier_figure(points, style_of)
    pictures: list[Block] = [size_figure(findings.by_size)] if findings.by_size else []
    pictures += [picture, frontier_table(points)] if picture else []
    sections = [
        ranks_section(findings, opening_gap),
        claims_section(findings),
        cost_section(findings, opening_gap, style_of),
        explanations_section(findings),
        tasks_section(board),
    ]
    document = Document(
        f"Leaderboard: {pluralise(len(findings.approaches), 'approach', 'approaches')} on "
        f"{pluralise(len(board.tasks), 'task', 'tasks')}",
        sections,
        lead=[*pictures, Paragraph(NEXT)],
        tabs=True,
        summary=answer_of(findings, board_findings.gaps),
        filters=board.filters,
        data=findings.to_dict(),
    )
    drawings = {figure.name: file_of(figure.drawings) for figure in document.figures if figure.svg}
    origin = origin_section(board, runs, list(drawings), conf, command)
    return replace(document, sections=[*sections, origin], files=downloads(board, drawings))


_LINES = 10  # of a ranking on a terminal


def short_of(document: Document, findings: BoardFindings) -> Document:
    """Return the short form for a terminal: the best of two rankings, and the claims."""
    approaches = {approach.name: approach for approach in findings.atlas.approaches}
    metrics = (ERROR, *findings.gaps[:1])
    tables = [
        replace(ranks_table(standing, approaches, most=_LINES), title=metric_label(standing.metric))
        for standing in findings.atlas.standings
        if standing.metric in metrics
    ]
    columns = [Column("claim"), Column("verdict")]
    rows = [[claim.statement, claim.verdict] for claim in findings.atlas.claims]
    if rows:
        tables.append(Table(columns, rows, title="claims of the literature"))
    return Document(document.title, [Section("", tables)], summary=document.summary)
