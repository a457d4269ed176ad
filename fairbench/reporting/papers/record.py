"""The record of what agreed: ``verdicts.csv`` of each paper, and the verdict of each of its rows.

A record has one row for each published number: theirs, ours and the verdict. What a later run finds
is compared with it, so that a verdict that changes is seen. Numbers that were not run, or with
fewer repeats than the paper's, leave the record as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fairbench.core.files import atomic
from fairbench.reporting.papers.contents import CANNOT, Row, contents
from fairbench.reporting.papers.mapping import (
    ABSENT,
    AGREES,
    KEYS,
    MISSING,
    UNANSWERED,
    Paper,
)
from fairbench.reporting.papers.matching import PaperTable

PLACE = ["table", *KEYS, "metric"]
_NUMBERS = ["ours", "our sd", "repeats", "difference", "ours under it"]
_TEXTS = ["value", "sd", "verdict", "cause", "reason"]
COLUMNS = [*PLACE, "value", "sd", *_NUMBERS[:4], "verdict", "cause", _NUMBERS[4], "reason"]
OTHER_DATA = "other data"


def record_path(paper: Paper) -> Path:
    """Return the path of a paper's record."""
    return paper.folder / "verdicts.csv"


def recorded(paper: Paper) -> pd.DataFrame:
    """Return a paper's record with the columns `COLUMNS`; no rows if there is none yet."""
    path = record_path(paper)
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    texts = dict.fromkeys([*PLACE, *_TEXTS], str)
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
    result.loc[unsettled, ["verdict", "cause"]] = [MISSING, ""]
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
    note : the observation, or the reason why there is none.
    numbers : the record of a table's numbers; no rows for other rows.
    """

    row: Row
    verdict: str
    note: str
    numbers: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))

    @property
    def printed(self) -> int:
        """Return how many numbers the paper prints."""
        return len(self.numbers)

    @property
    def compared(self) -> int:
        """Return how many numbers have ours beside them."""
        return int((~self.numbers["verdict"].isin(UNANSWERED)).sum())

    def count(self, verdict: str) -> int:
        """Return how many numbers have a verdict."""
        return int((self.numbers["verdict"] == verdict).sum())

    @property
    def score(self) -> str:
        """Return how many numbers agree, of those compared; nothing where none was."""
        return f"{self.count(AGREES)} of {self.compared}" if self.compared else ""


def answers(paper: Paper, record: pd.DataFrame) -> Iterator[RowAnswer]:
    """Yield the verdict of every row of a paper's contents, tables judged by their record."""
    for row in contents(paper):
        if row.is_counted:
            yield _table_answer(row, record[record["table"] == row.table])
        elif row.kind == "absent":
            yield RowAnswer(row, CANNOT, row.absent)
        else:
            yield RowAnswer(row, row.verdict, " ".join(filter(None, [row.words, row.note])))


def _table_answer(row: Row, numbers: pd.DataFrame) -> RowAnswer:
    """Return the verdict on a table of a paper, from the verdicts on its numbers."""
    verdicts = numbers["verdict"]
    compared, agreeing = (~verdicts.isin(UNANSWERED)).sum(), (verdicts == AGREES).sum()
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
    return RowAnswer(row, verdict, " ".join(sentences), numbers)
