"""``report.py html``: writing the page, and saying how the papers' numbers compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from fairbench.core.errors import unknown_name
from fairbench.reporting.page.better import Compared, Question
from fairbench.reporting.page.write import Places, write_report
from fairbench.reporting.published import scoreboard

# From a question, the results folder and that of the configurations.
Answer = Callable[[Question, Path, Path], Compared]
_DEFAULTS = {"results": "", "experiment": "", "paper": ""}


def html_command(words: Sequence[str], places: Places, answer: Answer) -> None:
    """Write the page of all finished runs, and print the scoreboard of the papers' tables.

    Parameters
    ----------
    words : ``results=FOLDER``, ``experiment=NAME`` for the runs of one sweep, and ``paper=NAME``
        for the numbers of one paper beside them.
    answer : what compares runs by their stored predictions.

    Raises
    ------
    UserError : another word, an unknown name, or nothing finished.
    """
    options = dict(_DEFAULTS)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in options:
            raise unknown_name("option", name, options)
        options[name] = value
    if options["results"]:
        places = replace(places, results=Path(options["results"]))

    def compare(question: Question) -> Compared:
        return answer(question, places.results, places.conf)

    report = write_report(
        places, experiment=options["experiment"], paper=options["paper"], compare=compare
    )
    for reason in dict.fromkeys(report.left_out):
        print(f"not compared with others: {reason}")
    for table in report.papers:
        if table.runs:
            note = f" ({table.note})" if table.note else ""
            print(f"{table.paper}, table {table.table}: {scoreboard(table.rows)}{note}")
    for paper in dict.fromkeys(table.paper for table in report.papers if table.runs):
        rows = [table.rows for table in report.papers if table.paper == paper and table.runs]
        print(f"{paper}: {scoreboard(pd.concat(rows))}")
    print(f"{report.runs} runs on {report.path}")
