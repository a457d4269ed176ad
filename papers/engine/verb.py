"""The verb ``fairbench paper``: runs what is missing, prints tables or draws figures, records."""

from __future__ import annotations

from fairbench.cli.command import Command
from fairbench.components import CHECKOUT, HOME, is_installed
from fairbench.components.papers.engine.mapping import ALL, Paper, PaperOptions, papers_in
from fairbench.core.errors import UserError, unknown_name


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
    from fairbench.components.papers.engine.pages import compare_with_record, print_paper
    from fairbench.components.papers.engine.running import run_asked

    if options.record and is_installed():
        raise UserError(
            "the record of verdicts is written into a checkout: clone the repository for that"
        )
    root = CHECKOUT if options.record else HOME
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
    for kind, asked, known in (
        ("table", options.table.replace(ALL, ""), papers[0].tables),
        ("figure", options.figure, papers[0].figures),
    ):
        if asked and asked not in known:
            valid = ", ".join(known)
            raise UserError(f"{options.name} has no {kind} '{asked}' here; valid: {valid}")
    failures = run_asked(papers, options)
    if options.figure or options.figures:
        return bool(failures)
    if options.name == ALL or options.record:
        compare_with_record(papers, options, root)
    else:
        print_paper(papers[0], options.results, options.table)
    return bool(failures)


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
