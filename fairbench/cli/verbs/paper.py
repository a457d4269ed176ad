"""Compare the numbers that a paper printed with ours: both, the difference, and a verdict.

A number agrees if the two means differ by at most two standard errors and half a printed digit. If
ours, by the setting of the paper's text, differs, a cause is named: the one setting that, changed,
makes it agree. Without table= a summary counts the verdicts of every table. With `all` in place of
a paper, every row of all papers is listed, with what answers it or why nothing can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.cli.command import Command, Results, components_folder
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option

if TYPE_CHECKING:
    from fairbench.reporting.papers.mapping import Paper
    from fairbench.reporting.papers.parts import Failure, PaperPart
    from fairbench.reporting.papers.running import Effort

SECTION = "Compare finished runs"

ALL = "all"


@dataclass(frozen=True)
class PaperOptions(Results):
    """Which of a paper's tables or figures, and whether to run what is missing."""

    name: str = option("", "The name of a paper's folder in papers/; or all.", argument="NAME")
    table: str = option("", "One table by its number, or all of them one by one.")
    figure: str = option("", "Draw one figure by its number, instead of printing tables.")
    figures: bool = option(False, "Draw all figures, instead of printing tables.")
    run: bool = option(False, "Run what is missing first: sweeps, computations and studies.")
    quick: bool = option(False, "With run=true: few repeats on small data sets.")
    record: bool = option(False, "Write what came out to papers/*/verdicts.csv and docs/papers*.")


def paper(options: PaperOptions) -> int:
    """Run what is missing of a paper, or of all; print its tables, or draw its figures.

    Returns
    -------
    int
        1 if a part that was to be run failed; 0 otherwise.

    Raises
    ------
    UserError : no paper, or one or a table that is not there.
    """
    from fairbench.reporting.papers.mapping import Paper, papers_in
    from fairbench.reporting.papers.printing import print_paper
    from fairbench.reporting.papers.running import Effort

    root = components_folder(writing="the record of verdicts" if options.record else "")
    names = papers_in(root / "papers")
    if not options.name:
        raise UserError(
            f"no paper is named: fairbench paper NAME, of {', '.join(names)}, or of {ALL}"
        )
    if options.quick and options.record:
        raise UserError("record=true writes what has the papers' size, which quick=true has not")
    if options.quick and not options.run:
        raise UserError("quick=true says how much run=true computes: add run=true")
    if options.name not in (*names, ALL):
        raise unknown_name("paper", options.name, [*names, ALL])
    paper_names = names if options.name == ALL else [options.name]
    papers = [Paper.read(name, root / "papers") for name in paper_names]
    if options.name == ALL and (options.table or options.figure):
        raise UserError(f"{ALL} takes no table= and no figure=: name one paper")
    effort = Effort.QUICK if options.quick else Effort.WHOLE
    failures = _run(papers, options, root, effort)
    if options.figure or options.figures:
        return bool(failures)
    if options.name == ALL or options.record:
        _compare_with_record(papers, options, root)
    else:
        print_paper(papers[0], root / "conf", options.results, options.table)
    return bool(failures)


def _run(
    papers: Sequence[Paper], options: PaperOptions, root: Path, effort: Effort
) -> list[Failure]:
    """Run what the options ask for, and say at the end what could not be done.

    Raises
    ------
    UserError : nothing of what was asked for can be done.
    """
    from fairbench.reporting.papers.parts import carry_out, costs

    parts = [part for paper in papers for part in _parts(paper, options, root, effort)]
    failures = carry_out(parts, options.results, effort)
    if failures and len(failures) == len(parts) and not any(part.trace for part in failures):
        reasons = "; ".join(dict.fromkeys(failure.reason for failure in failures))
        rest = f"fairbench paper {options.name} run=true"
        raise UserError(f"{reasons}; {rest} runs all that can be run without it")
    if options.name == ALL and options.run:
        hours = costs(options.results).groupby("paper")["cpu_seconds"].sum() / 3600
        spent = ", ".join(f"{paper} {hour:.2f}" for paper, hour in hours.items())
        print(f"CPU hours in this results folder so far: {spent}")
    for failure in failures:
        print(f"not done: {failure.part.paper}, {failure.part.name}: {failure.reason}")
    return failures


def _parts(paper: Paper, options: PaperOptions, root: Path, effort: Effort) -> list[PaperPart]:
    """Return the tables, figures and studies of a paper that the options ask for."""
    from fairbench.reporting.papers.parts import figure_parts, study_parts, table_parts

    tables = [] if options.table in ("", ALL) else [options.table]
    figures = [options.figure] if options.figure else []
    for table in tables:
        paper.table(table)
    for figure in figures:
        paper.figure(figure)
    parts: list[PaperPart] = []
    only_figures = bool(options.figure or options.figures)
    if options.run and not only_figures:
        parts += table_parts(paper, root, options.results, tables, effort)
    if only_figures or (options.name == ALL and options.run):
        figures_drawn = list(figure_parts(paper, root, options.results, figures, effort))
        if not options.run:  # what is drawn of runs is drawn of those that are there
            figures_drawn = [part for part in figures_drawn if part.name.startswith("figure ")]
        parts += figures_drawn
    if options.name == ALL and options.run:
        parts += study_parts(paper, options.results, effort)
    return parts


def _compare_with_record(papers: Sequence[Paper], options: PaperOptions, root: Path) -> None:
    """Print the verdicts that changed, then every row of the papers; record them if asked to."""
    from fairbench.experiments.presets import Presets
    from fairbench.reporting.papers.matching import paper_tables
    from fairbench.reporting.papers.pages import write_pages
    from fairbench.reporting.papers.printing import print_changes, print_contents
    from fairbench.reporting.papers.record import (
        answers,
        changes,
        merge_record,
        recorded,
        verdicts,
        write_record,
    )
    from fairbench.results.catalogue import Catalogue

    catalogue = Catalogue(options.results)
    presets = Presets(root / "conf")
    rows = {}
    for paper in papers:
        record = recorded(paper)
        if paper.tables:
            tables = list(paper_tables(paper, [*paper.tables], catalogue, presets, options.results))
            new = verdicts(tables)
            print_changes(paper, changes(new, record))
            record = merge_record(new, record)
        rows[paper.name] = record
    for paper in papers:
        print_contents(paper, list(answers(paper, rows[paper.name])))
    if options.record:
        for paper in papers:
            if paper.tables:
                write_record(paper, rows[paper.name])
        print(f"written: papers/*/verdicts.csv, {', '.join(map(str, write_pages(root)))}")
    else:
        print(f"Record these verdicts: fairbench paper {options.name} record=true")


COMMAND = Command(
    PaperOptions,
    paper,
    examples=(
        "fairbench paper fairlyuncertain",
        "fairbench paper fairlyuncertain table=1 run=true quick=true",
        "fairbench paper active_assessment figure=3.2 run=true",
        "fairbench paper all run=true record=true",
    ),
)
