"""The record of what agreed: ``verdicts.csv`` of each paper, and the page ``docs/papers.md``.

A record has one row for each published number: theirs, ours and the verdict. What a later run finds
is compared with it, so that a verdict that changes is seen. Numbers that were not run, or with
fewer repeats than the paper's, leave the record as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fairbench.core.files import atomic, write_text
from fairbench.reporting.papers.contents import CANNOT, VERDICTS, Row, contents
from fairbench.reporting.papers.mapping import (
    ABSENT,
    AGREES,
    KEYS,
    MISSING,
    UNANSWERED,
    WITHIN,
    Paper,
    papers_in,
)
from fairbench.reporting.papers.matching import PaperTable

PLACE = ["table", *KEYS, "metric"]
COLUMNS = [*PLACE, "value", "sd", "ours", "our sd", "repeats", "difference", "verdict", "reason"]
_NUMBERS = ["ours", "our sd", "repeats", "difference"]
PAGE = Path("docs", "papers.md")
OTHER_DATA = "other data"


def record_path(paper: Paper) -> Path:
    """Return the path of a paper's record."""
    return paper.folder / "verdicts.csv"


def recorded(paper: Paper) -> pd.DataFrame:
    """Return a paper's record with the columns `COLUMNS`; no rows if there is none yet."""
    path = record_path(paper)
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    texts = dict.fromkeys([*PLACE, "value", "sd", "verdict", "reason"], str)
    return pd.read_csv(
        path, dtype=texts, keep_default_na=False, na_values=dict.fromkeys(_NUMBERS, "")
    )


def verdicts(tables: Sequence[PaperTable]) -> pd.DataFrame:
    """Return a row for each published number of some tables, with `whole`: of the paper's size."""
    rows = pd.concat([table.rows for table in tables], ignore_index=True)
    return rows.loc[rows["reproduces"], [*COLUMNS, "whole"]]


def changes(new: pd.DataFrame, record: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers whose verdict is another than the recorded one, with ``before``.

    Parameters
    ----------
    new : the result of :func:`verdicts`; numbers that were not run, or were not recorded, are left
        out.
    """
    verdicts_with_before = new.merge(
        record[[*PLACE, "verdict"]], on=PLACE, suffixes=("", " before")
    )
    was_run = verdicts_with_before["verdict"].ne(MISSING) & verdicts_with_before[
        "verdict before"
    ].ne(MISSING)
    changed = verdicts_with_before[
        was_run & verdicts_with_before["verdict"].ne(verdicts_with_before["verdict before"])
    ]
    return changed.rename(columns={"verdict before": "before"})


def merge_record(new: pd.DataFrame, record: pd.DataFrame) -> pd.DataFrame:
    """Return the record, updated by the numbers that were run in the paper's size."""
    settled = new["whole"] | new["verdict"].eq(ABSENT)
    recorded_rows = record.set_index(PLACE)[COLUMNS[len(PLACE) :]]
    new_by_place = new.set_index(PLACE)
    before = recorded_rows.reindex(new_by_place.index)
    stays = ~settled.to_numpy() & before["verdict"].notna().to_numpy()
    result = new_by_place[COLUMNS[len(PLACE) :]].astype(object)
    # A number that was run in a smaller size, and never in the paper's, counts as not run.
    unsettled = ~settled.to_numpy() & ~stays
    result.loc[unsettled, _NUMBERS] = float("nan")
    result.loc[unsettled, "verdict"] = MISSING
    result.loc[stays] = before.loc[stays].astype(object)
    return result.reset_index()[COLUMNS]


def write_record(paper: Paper, rows: pd.DataFrame) -> None:
    """Write a paper's record, numbers with six digits."""
    with atomic(record_path(paper)) as file:
        numeric = rows.astype(dict.fromkeys(_NUMBERS, float))
        numeric.to_csv(file, index=False, float_format="%.6g")


@dataclass(frozen=True)
class RowAnswer:
    """What stands beside a row of a work.

    Attributes
    ----------
    verdict : the row's own, or what a table's numbers say.
    agreeing, within, compared, printed : how many of a table's numbers agree, lie within the
        paper's sd, have ours beside them, and were printed; 0 of other rows.
    note : the observation, or the reason why there is none.
    """

    row: Row
    verdict: str
    note: str
    agreeing: int = 0
    within: int = 0
    compared: int = 0
    printed: int = 0

    @property
    def score(self) -> str:
        """Return how many numbers agree, of those compared; nothing where none was."""
        return f"{self.agreeing} of {self.compared}" if self.compared else ""


def answers(paper: Paper, record: pd.DataFrame) -> Iterator[RowAnswer]:
    """Yield the verdict of every row of a paper's contents, tables judged by their record."""
    for row in contents(paper):
        if row.is_counted:
            yield _table_answer(row, record[record["table"] == row.table])
        elif row.kind == "absent":
            yield RowAnswer(row, CANNOT, row.absent)
        else:
            yield RowAnswer(row, row.verdict, row.note)


def _table_answer(row: Row, numbers: pd.DataFrame) -> RowAnswer:
    """Return the verdict on a table of a paper, from the verdicts on its numbers."""
    verdicts = numbers["verdict"]
    compared = int((~verdicts.isin(UNANSWERED)).sum())
    agreeing, within = int((verdicts == AGREES).sum()), int((verdicts == WITHIN).sum())
    if compared and row.other_data:
        verdict = OTHER_DATA
    elif compared:
        verdict = "agrees in part" if agreeing else "differs"
        verdict = "agrees" if agreeing == compared else verdict
    else:
        verdict = CANNOT if len(numbers) and (verdicts == ABSENT).all() else MISSING
    sentences = [note for note in (row.other_data, row.note) if note]
    unanswered = numbers[verdicts.isin(UNANSWERED)]
    reasons = unanswered["reason"].replace("", "they were not run")
    for reason, rows in unanswered.groupby(reasons, sort=False):
        all_of_them = len(rows) == len(numbers)
        number = "None" if all_of_them else f"{len(rows)} of the {len(numbers)} printed numbers"
        compared_or_not = "is compared" if all_of_them else "are not compared"
        sentences.append(f"{number} {compared_or_not}: {reason}.")
    counted = {"agreeing": agreeing, "within": within, "compared": compared}
    return RowAnswer(row, verdict, " ".join(sentences), **counted, printed=len(numbers))


def page(papers: Sequence[Paper]) -> str:
    """Return the text of ``docs/papers.md``: every row of every work, from the record."""
    ordered = sorted(papers, key=lambda paper: paper.title.lower())
    every = [(paper, list(answers(paper, recorded(paper)))) for paper in ordered]
    brief = [_brief(paper) for paper in ordered if paper.brief]
    counts = [_summary(paper, rows) for paper, rows in every]
    sections = [line for paper, rows in every for line in _section(paper, rows)]
    meanings = {**VERDICTS, **_NOT_JUDGED}
    words = [f"| *{verdict}* | {meaning} |" for verdict, meaning in meanings.items()]
    return "\n".join([*_HEAD, *brief, "", *_COUNTS, *counts, "", *_WORDS, *words, "", *sections])


_HEAD = """# The five works: what replicates

For every work that fairbench implements, this page lists each table, figure, claim, definition,
algorithm and data set. It says what answers each of them, and what came out. The five works have
six rows in the tables below, because Ji's thesis has two: one for chapter 2 and one for chapter 3.

## In brief

| work | what it claims | does it replicate? | read on |
| --- | --- | --- | --- |""".splitlines()

_COUNTS = """## How many numbers agree

| work | rows | with an answer | not run | cannot be had | numbers that agree, of those compared | \
more within the paper's sd | numbers printed |
| --- | --: | --: | --: | --: | --: | --: | --: |""".replace("\\\n", "").splitlines()

_WORDS = """A row is a table, figure, claim, definition, algorithm or data set of the work. Numbers
that agree do not include tables that we ran on other people's data than the paper's.

## How the verdicts were found

The verdict on a table is computed. A number *agrees* if the two means differ by at most two
standard errors of that difference and half a printed digit. The error includes our scatter over
repeats, and the paper's where it prints one. So numbers of few repeats agree easily. A number is
*within the paper's sd* if it does not agree, but differs by at most the standard deviation that the
paper prints. Every other verdict is our judgement.

Of some works we had no full text, but only their printed tables, their authors' code and what is
quoted elsewhere. A row of which nothing is known says "not seen". "Not at hand" means that we have
not seen the text or the caption.

`make papers-all` runs everything and writes this page from `contents.yaml` and `verdicts.csv` in
each folder of `papers/`.

| verdict | what it means |
| --- | --- |""".splitlines()

_NOT_JUDGED = {
    OTHER_DATA: "We ran the table on other people than the paper's, so its numbers may differ.",
    CANNOT: "What it takes was not published, or cannot be computed.",
}


def _brief(paper: Paper) -> str:
    """Return a work's line of the first table."""
    link = f"[findings](../papers/{paper.name}/findings.md)"
    return _line([paper.title, paper.brief["claims"], paper.brief["found"], link])


def _summary(paper: Paper, rows: Sequence[RowAnswer]) -> str:
    """Return a work's line of the table of counts."""
    verdicts = [answer.verdict for answer in rows]
    counted = [answer for answer in rows if answer.verdict != OTHER_DATA]
    agreeing, compared, within = (
        sum(getattr(answer, name) for answer in counted)
        for name in ("agreeing", "compared", "within")
    )
    absent, missing = verdicts.count(CANNOT), verdicts.count(MISSING)
    cells = [
        f"[{paper.title}](../papers/{paper.name}/findings.md)",
        len(rows),
        len(rows) - absent - missing,
        missing,
        absent,
        f"{agreeing} of {compared}" if compared else "",
        within,
        sum(answer.printed for answer in rows),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


# A title, its rows, a sentence that explains them, the headings, and what gives the cells of a row.
_TableOfRows = tuple[str, list[RowAnswer], str, list[str], Callable[[RowAnswer], list[str]]]


def _section(paper: Paper, rows: Sequence[RowAnswer]) -> Iterator[str]:
    """Yield a work's part of the page: its claims, tables and figures, then all else."""
    order = list(VERDICTS)
    claims = [a for a in rows if a.row.is_claim]
    claims.sort(key=lambda a: order.index(a.verdict) if a.verdict in order else len(order))
    tables = [a for a in rows if a.row.is_counted]
    figures = [a for a in rows if a.row.kind == "figure" and a not in claims]
    shown_rows = [*claims, *tables, *figures]
    other_rows = [a for a in rows if a not in shown_rows]
    yield from (f"## {paper.title}", "")
    if claims:
        yield from ("### Claims", "", *(_claim(answer, paper.name) for answer in claims), "")
    parts: tuple[_TableOfRows, ...] = (
        (
            "Tables",
            tables,
            f"`fairbench paper {paper.name} table=N run=true` runs what a table needs, and prints "
            "the paper's numbers with ours. *Agree* counts the numbers that agree, of those "
            "compared; *printed* counts those that the paper prints.",
            ["table", "what it shows", "verdict", "agree", "printed", "what we saw"],
            _table,
        ),
        (
            "Figures",
            figures,
            f"`fairbench paper {paper.name} figure=N run=true` runs what a figure needs and draws "
            "it.",
            ["figure", "what it shows", "N", "verdict", "what we saw"],
            _figure,
        ),
        (
            "Definitions, algorithms, data sets and the rest",
            other_rows,
            "",
            ["row", "what it is", "verdict", "command or code", "what we saw"],
            _other,
        ),
    )
    for title, chosen, explanation, headings, cells in parts:
        if chosen:
            yield from (f"### {title}", "")
            if explanation:
                yield from (explanation, "")
            yield from (_line(headings), _line(["---"] * len(headings)))
            yield from (_line(cells(answer)) for answer in chosen)
            yield ""


def _claim(answer: RowAnswer, paper: str) -> str:
    """Return a claim as an item of a list: what is claimed, the verdict, what we saw, by what."""
    row = answer.row
    verdict = f"*{answer.verdict[:1].upper()}{answer.verdict[1:]}.*"
    code = row.command_of(paper) or row.code
    told = [f"- **{row.what}**", verdict, answer.note, f"`{code}`" if code else ""]
    return " ".join(filter(None, told))


def _table(answer: RowAnswer) -> list[str]:
    row = answer.row
    return [row.item, row.what, answer.verdict, answer.score, str(answer.printed), answer.note]


def _figure(answer: RowAnswer) -> list[str]:
    row = answer.row
    return [row.item, row.what, f"`{row.figure}`", answer.verdict, answer.note]


def _other(answer: RowAnswer) -> list[str]:
    row = answer.row
    return [row.item, row.what, answer.verdict, _answered_by(row), answer.note]


def _answered_by(row: Row) -> str:
    option = row.kind in ("table", "figure", "dataset")
    text = f"{row.kind}={getattr(row, row.kind)}" if option else row.command or row.code
    return f"`{text}`" if text else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write_page(root: Path) -> Path:
    """Write ``docs/papers.md`` of a checkout and return its path."""
    papers = [Paper.read(name, root / "papers") for name in papers_in(root / "papers")]
    write_text(root / PAGE, page(papers))
    return root / PAGE
