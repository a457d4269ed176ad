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
    notes = [note for note in (row.other_data, row.note) if note]
    unanswered = numbers[verdicts.isin(UNANSWERED)]
    for reason, rows in unanswered.groupby(unanswered["reason"].replace("", "not run"), sort=False):
        all_of_them = len(rows) == len(numbers)
        number = "none is" if all_of_them else f"{len(rows)} of the {len(numbers)} printed are not"
        notes.append(f"{number} compared: {reason}")
    counted = {"agreeing": agreeing, "within": within, "compared": compared}
    return RowAnswer(row, verdict, "; ".join(notes), **counted, printed=len(numbers))


def page(papers: Sequence[Paper]) -> str:
    """Return the text of ``docs/papers.md``: every row of every work, from the record."""
    ordered = sorted(papers, key=lambda paper: paper.title.lower())
    every = [(paper, list(answers(paper, recorded(paper)))) for paper in ordered]
    lines = [_summary(paper, rows) for paper, rows in every]
    sections = [line for paper, rows in every for line in _section(paper, rows)]
    words = [f"| *{verdict}* | {meaning} |" for verdict, meaning in VERDICTS.items()]
    return "\n".join([*_HEAD, *lines, "", *_WORDS, *words, "", *sections])


_HEAD = """# The five works, row by row

Every table, figure, claim, definition, algorithm and data set of the works that fairbench
implements, what answers it, and what came out. `make papers-all` runs everything and writes this
page from `contents.yaml` and `verdicts.csv` in each folder of `papers/`. The findings of each work,
linked below, say why numbers differ.

Of some works no full text was at hand, only their printed tables, their authors' code and what is
quoted elsewhere. Rows of which nothing is known say "not seen".

| work | rows | with an answer | not run | cannot be had | numbers that agree, of those compared | \
more within the paper's sd | numbers printed |
| --- | --: | --: | --: | --: | --: | --: | --: |""".replace("\\\n", "").splitlines()

_WORDS = """Tables of other people's data than the paper's are not counted.

A table's verdict is computed: a number *agrees* if the two means differ by at most two standard
errors of that difference and half a printed digit. The error has our scatter over repeats in it,
and the paper's where it prints one, so that numbers of few repeats agree easily. Every other
verdict is our judgement:

| verdict | of |
| --- | --- |""".splitlines()


def _summary(paper: Paper, rows: Sequence[RowAnswer]) -> str:
    """Return a work's line of the table on top."""
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
    parts: tuple[tuple[str, list[RowAnswer], list[str], Callable[[RowAnswer], list[str]]], ...] = (
        ("Claims", claims, ["claim", "", "verdict", "what was seen", "command or code"], _claim),
        (
            f"Tables: `fairbench paper {paper.name} table=N run=true`",
            tables,
            ["table", "what it shows", "verdict", "agree", "printed", "what was seen"],
            _table,
        ),
        (
            f"Figures: `fairbench paper {paper.name} figure=N run=true`",
            figures,
            ["figure", "what it shows", "N", "verdict", "what was seen"],
            _figure,
        ),
        (
            "Definitions, algorithms, data sets and the rest",
            other_rows,
            ["row", "what it is", "verdict", "command or code", "what was seen"],
            _other,
        ),
    )
    for title, chosen, headings, cells in parts:
        if chosen:
            yield from (f"### {title}", "", _line(headings), _line(["---"] * len(headings)))
            yield from (_line(cells(answer)) for answer in chosen)
            yield ""


def _claim(answer: RowAnswer) -> list[str]:
    name = answer.row.item.removeprefix("Claim").lstrip(",: ")
    return [name, answer.row.what, answer.verdict, answer.note, _answered_by(answer.row)]


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
