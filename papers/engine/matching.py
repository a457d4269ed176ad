"""Finds what answers every published number, and keeps the record of what agreed.

A number is answered by a run, which chose what the mapping asks for, also if it was made before an
option was added, or with fewer repeats than the experiment asks for; or by a computation that is
stored in the results folder.

The record, ``verdicts.csv`` of each paper, has one row for each published number: theirs, ours and
the verdict. What a later run finds is compared with it, so that a verdict that changes is seen.
Numbers that were not run, or with fewer repeats than the paper's, leave the record as it is.

Begin with `paper_tables`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pandas as pd

from fairbench.components.papers.engine.mapping import (
    ABSENT,
    AGREES,
    CANNOT,
    KEYS,
    MISSING,
    UNANSWERED,
    Paper,
    Row,
    answers,
    computations_of,
    contents,
    judge,
    metrics_of,
    rule_of,
    settle,
)
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import values_of
from fairbench.experiments.configuration import Presets
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

TEXTS = ("label", "cause", "reason")
if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairbench.reporting.charts import Drawing

T = TypeVar("T")
Numbers: TypeAlias = Iterator[dict[str, Any]]  # of a computation, each by `number`
_Given: TypeAlias = Iterator[tuple[str, str, dict[str, Any] | None]]
Drawn: TypeAlias = "Iterator[tuple[str, Figure | Drawing]]"  # a figure's parts, by name


class Effort(Enum):
    """The size of a computation: the paper's own, a quick look, or one pass through the code.

    The value is what the names of stored numbers end with.
    """

    WHOLE = ""
    QUICK = "quick"
    FIRST = "first"

    def choose(self, whole: T, quick: T, first: T) -> T:
        """Return the one of three values that is this effort's."""
        return {Effort.WHOLE: whole, Effort.QUICK: quick, Effort.FIRST: first}[self]


@dataclass(frozen=True)
class Computation:
    """One of a paper's computations, for the numbers of a table that it answers.

    Attributes
    ----------
    results : the folder in which what it finds is stored.
    """

    paper: Paper
    name: str
    table: str
    results: Path

    @property
    def entry(self) -> Mapping[str, Any]:
        """Return what the mapping says of it."""
        return self.paper.computations[self.name]

    @property
    def rows(self) -> pd.DataFrame:
        """Return the published rows that it answers."""
        rows, rules = self.paper.published(self.table), self.paper.tables[self.table]["rules"]
        answered = (computations_of(rule_of(rules, row)) for row in rows.to_dict("records"))
        return rows[[self.name in names for names in answered]]

    def path(self, effort: Effort = Effort.WHOLE) -> Path:
        """Return the path of the stored numbers."""
        stem = "-".join(filter(None, [f"table{self.table}", self.name, effort.value]))
        return self.results / "papers" / self.paper.name / f"{stem}.csv"

    def is_stored(self, effort: Effort = Effort.WHOLE) -> bool:
        """Return whether it was computed for the published numbers as they are."""
        notes = self.path(effort).with_suffix(".json")
        if not notes.is_file():
            return False
        stored = json.loads(notes.read_text(encoding="utf-8"))
        return bool(stored.get("published") == self._digest)

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.rows.to_csv().encode()).hexdigest()

    def store(self, numbers: Numbers, effort: Effort = Effort.WHOLE) -> None:
        """Store what it found; a smaller effort's numbers are kept beside the whole."""
        columns = ["row", "mean", "sd", "repeats", *TEXTS, "error"]
        path, frame = self.path(effort), pd.DataFrame(numbers, columns=columns)
        write_text(path, frame.to_csv(index=False))
        write_text(path.with_suffix(".json"), json.dumps({"published": self._digest}))

    def numbers(self) -> pd.DataFrame:
        """Return what it found, with columns of texts and ``quick``.

        That is what the results folder has of it, else what the paper's folder keeps, else what a
        quick look found.
        """
        if self.is_stored():
            return _read(self.path())
        if kept_file := self.entry.get("kept"):
            numbers = _read(self.paper.folder / str(kept_file))
            return numbers[numbers["row"].isin(self.rows.index)]
        if self.is_stored(Effort.QUICK):
            return _read(self.path(Effort.QUICK)).assign(quick=True)
        return pd.DataFrame(columns=["row"])


def _read(path: Path) -> pd.DataFrame:
    numbers = pd.read_csv(path, float_precision="round_trip")
    texts = {name: numbers.get(name, pd.Series("", numbers.index)) for name in TEXTS}
    sd = numbers.get("sd", pd.Series(float("nan"), numbers.index))
    numbers = numbers.assign(**texts, sd=sd, quick=False).astype(dict.fromkeys(TEXTS, object))
    return numbers.fillna(dict.fromkeys(TEXTS, ""))


def number(mean: float, sd: float, repeats: int, **more: Any) -> dict[str, Any]:
    """Return one number of a computation: its mean over repeats, their sd, and what goes with it.

    Parameters
    ----------
    more : ``row``, ``label``, ``cause``, ``error`` and ``reason`` of a computation's rows.
    """
    return {"mean": float(mean), "sd": float(sd), "repeats": repeats, **more}


# The runs and computations beside each published number.

_FRONT = ("experiment", "dataset", "method", "intervention", "option")
_OPTIONS = ("intervention.", "method.")
_COLUMNS = [*_FRONT, "metric", "variant", "attribute", "group", "mean", "sd", "repeats"]


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A published table, compared with our numbers row by row.

    Attributes
    ----------
    rows : the result of :func:`compare`.
    """

    table: str
    rows: pd.DataFrame
    note: str


def paper_tables(
    paper: Paper, tables: Sequence[str], collection: Catalogue, presets: Presets, results: Path
) -> Iterator[PaperTable]:
    """Yield tables of a paper with what answers them."""
    names = dict.fromkeys(name for table in tables for name in paper.experiments(table))
    runs = {name: presets.runs_of(name, collection.runs) for name in names}
    metrics = values_of(collection.only({id_ for found in runs.values() for id_ in found}).metrics)
    metrics = metrics[metrics["metric"].isin(metrics_of(paper)) & (metrics["group"] == "")]
    summaries = {name: _summaries(name, metrics, runs[name]) for name in names}
    for table in tables:
        every = [pd.DataFrame(columns=_COLUMNS)]
        every = [summaries[name] for name in paper.experiments(table)] or every
        names_of = paper.computed(table)
        computed = {name: Computation(paper, name, table, results).numbers() for name in names_of}
        rows = compare(paper, table, pd.concat(every, ignore_index=True), computed)
        is_small = ~rows["whole"].astype(bool) & rows["repeats"].notna()
        yield PaperTable(table, rows, "quick look" if is_small.any() else "")


def finished_runs(experiment: str, results: Path) -> list[tuple[dict[str, str], Run, pd.DataFrame]]:
    """Return the choices of an experiment's finished jobs, their runs, and the runs' metrics."""
    collection = Catalogue(results)
    runs = Presets().runs_of(experiment, collection.runs)
    metrics = values_of(collection.metrics)
    metrics = metrics[metrics["run"].isin(runs)]
    metrics = metrics.astype(dict.fromkeys(metrics.select_dtypes("category"), object))
    return [
        ({"experiment": experiment, **run.choices, **chosen}, run, metrics[metrics["run"] == id_])
        for id_, (chosen, run) in runs.items()
    ]


def runs_needed(experiment: str, results: Path) -> list[tuple[dict[str, str], Run, pd.DataFrame]]:
    """Like `finished_runs`, but refuse an experiment without any finished run.

    Raises
    ------
    UserError : there is no finished run; it says which command makes them.
    """
    runs = finished_runs(experiment, results)
    if not runs:
        raise UserError(
            f"there is no finished run of {experiment} in {results}: make them with "
            f"{command(experiment)}"
        )
    return runs


def command(experiment: str) -> str:
    """Return the command line of an experiment."""
    return f"fairbench run -m experiment={experiment}"


def _summaries(
    name: str, metrics: pd.DataFrame, runs: Mapping[str, tuple[dict[str, str], Run]]
) -> pd.DataFrame:
    """Return the summaries of an experiment's runs, with what each run chose in front."""
    if not runs:
        return pd.DataFrame(columns=_COLUMNS)
    found = summarise(metrics[metrics["run"].isin(runs)], per=["run"], intervals=False)
    found, fronts = found.sort_values("run", kind="stable"), []
    for id_ in found["run"]:
        chosen, run = runs[str(id_)]
        choice = {"experiment": name, **run.choices, **chosen}
        # `option` holds settings of single components.
        option = " ".join(text for key, text in choice.items() if key.startswith(_OPTIONS))
        fronts.append([{**choice, "option": option}[column] for column in _FRONT])
    return pd.concat([pd.DataFrame(fronts, found.index, _FRONT), found], axis=1)


def compare(
    paper: Paper, table: str, ours: pd.DataFrame, computed: Mapping[str, pd.DataFrame] | None = None
) -> pd.DataFrame:
    """Return a row per published number and method of ours that answers it.

    ``reproduces`` marks the answer that is to agree, whose verdict is that on the printed number;
    ``whole`` marks one of the paper's size.

    Parameters
    ----------
    ours : summaries of finished runs with the columns ``experiment``, ``dataset``, ``method``,
        ``intervention`` and ``option`` in front.
    computed : computation -> its numbers, by the place of the published row.
    """
    mapping, runs_of = paper.tables[table], dict[tuple[str, str], list[dict[str, Any]]]()
    for each in ours.to_dict("records"):
        runs_of.setdefault((each["dataset"], each["metric"]), []).append(each)
    runs, own_names = mapping.get("runs", paper.runs), mapping.get("datasets", {})
    rows: list[dict[str, Any]] = []
    computed_by_row = {
        name: {row: rows.to_dict("records") for row, rows in numbers.groupby("row", sort=False)}
        for name, numbers in (computed or {}).items()
    }
    published = paper.published(table)
    for row_number, row in zip(published.index, published.to_dict("records"), strict=True):
        rule = rule_of(mapping["rules"], row)
        front = {**row, "published method": f"{row['method']} {row['setting']}".strip()}
        is_computed = "computation" in rule
        if is_computed:
            of_row = {name: found.get(row_number, []) for name, found in computed_by_row.items()}
            given = _numbers_of_computations(rule, row, of_row)
        else:
            given = _numbers_of_runs(rule, row, own_names, runs_of)
        answers_of_row = []
        for label, cause, numbers in given:
            found = numbers or {"quick": True, "repeats": 0}
            verdict = judge(paper, row, numbers, mapping.get("runs"))
            reason = rule.get("absent") or found.get("reason", "")
            if reason:
                verdict["verdict"] = ABSENT
            # Of the paper's size: no quick look, and no fewer repeats than its runs.
            whole = not found.get("quick", False) if is_computed else found["repeats"] >= runs
            why = {"reason": reason, "cause": cause, "whole": bool(whole)}
            answers_of_row.append({"our method": label, **verdict, **why})
        answers_of_row[0] |= settle(paper, row, answers_of_row)
        rows += [
            {**front, "reproduces": i == 0, "ours under it": float("nan"), **answer}
            for i, answer in enumerate(answers_of_row)
        ]
    return pd.DataFrame(rows)


def _numbers_of_computations(
    rule: Mapping[str, Any], row: Mapping[str, str], computed: Mapping[str, list[dict[str, Any]]]
) -> _Given:
    """Yield the numbers of computations that answer a published row: label, cause, numbers."""
    for name, cause in computations_of(rule).items():
        records = computed.get(name, [])
        if not (records or cause):
            yield row["method"], "", None
        for record in records:
            own = cause or record["cause"]
            yield record["label"] or own or row["method"], own, record


def _numbers_of_runs(
    rule: Mapping[str, Any],
    row: Mapping[str, str],
    own_names: Mapping[str, str],
    runs_of: Mapping[tuple[str, str], Sequence[dict[str, Any]]],
) -> _Given:
    """Yield our numbers for a published row: label, cause, and None where there are none.

    Parameters
    ----------
    runs_of : data set and metric -> summaries of runs, of which the first that is asked for counts.
    """
    if "metrics" not in rule or "absent" in rule:
        yield row["method"], "", None
        return
    dataset = own_names.get(row["dataset"], row["dataset"])
    for choice, metric in answers(rule, row):
        cause = choice.pop("cause", "")
        label = choice.pop("label", "") or _label(choice)
        asked = {**choice, "attribute": metric.get("attribute", ""), "variant": "", "group": ""}
        runs = runs_of.get((dataset, metric["metric"]), ())
        first = next((run for run in runs if asked.items() <= run.items()), None)
        numbers = None
        if first is not None:  # in the paper's unit
            scale = metric.get("scale", 1.0)
            mean = metric.get("shift", 0.0) + scale * first["mean"]
            numbers = {"mean": mean, "sd": abs(scale) * first["sd"], "repeats": first["repeats"]}
        yield label, cause, numbers


def _label(choice: Mapping[str, str]) -> str:
    """Name our answer: its method unless an intervention says it all, and its options."""
    intervention = "" if choice["intervention"] == "none" else choice["intervention"]
    method = "" if intervention and choice["method"] == "baseline" else choice["method"]
    return " ".join(filter(None, [method, intervention, choice.get("option", "")]))


# The record, and the verdict of each row of a work.

PLACE = ["table", *KEYS, "metric"]
_NUMBERS = ["ours", "our sd", "repeats", "difference", "ours under it"]
_RECORDED_TEXTS = ["value", "sd", "verdict", "cause", "reason"]
COLUMNS = [*PLACE, "value", "sd", *_NUMBERS[:4], "verdict", "cause", _NUMBERS[4], "reason"]
OTHER_DATA = "other data"
RECORD = "verdicts.csv"


def recorded(paper: Paper) -> pd.DataFrame:
    """Return a paper's record with the columns `COLUMNS`; no rows if there is none yet."""
    path = paper.folder / RECORD
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    texts = dict.fromkeys([*PLACE, *_RECORDED_TEXTS], str)
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
        out, and so are those of a smaller size than the paper's.
    """
    before = record[[*PLACE, "verdict"]].rename(columns={"verdict": "before"})
    both = new.merge(before, on=PLACE)
    was_run = both["whole"] & both["before"].ne(MISSING)
    return both[was_run & both["verdict"].ne(both["before"])]


def merge_record(new: pd.DataFrame, record: pd.DataFrame) -> pd.DataFrame:
    """Return the record, updated by the numbers that were run in the paper's size."""
    unsettled = ~(new["whole"] | new["verdict"].eq(ABSENT)).to_numpy()
    result = new.set_index(PLACE)[COLUMNS[len(PLACE) :]].astype(object)
    before = record.set_index(PLACE)[COLUMNS[len(PLACE) :]].reindex(result.index)
    stays = unsettled & before["verdict"].notna().to_numpy()
    # A number that was run in a smaller size, and never in the paper's, counts as not run.
    result.loc[unsettled, _NUMBERS] = float("nan")
    result.loc[unsettled, ["verdict", "cause"]] = [MISSING, ""]
    result.loc[stays] = before.loc[stays].astype(object)
    return result.reset_index()[COLUMNS]


def write_record(paper: Paper, rows: pd.DataFrame) -> None:
    """Write a paper's record, numbers with six digits."""
    numeric = rows.astype(dict.fromkeys(_NUMBERS, float))
    write_text(paper.folder / RECORD, numeric.to_csv(index=False, float_format="%.6g"))


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


def row_answers(paper: Paper, record: pd.DataFrame) -> Iterator[RowAnswer]:
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
    answer = RowAnswer(row, MISSING, "", numbers)
    compared, agreeing = answer.compared, answer.count(AGREES)
    if compared and row.other_data:
        verdict = OTHER_DATA
    elif compared:
        verdict = "agrees in part" if agreeing else "differs"
        verdict = "agrees" if agreeing == compared else verdict
    else:
        verdict = CANNOT if len(numbers) and answer.count(ABSENT) == len(numbers) else MISSING
    sentences = [note for note in (row.other_data, row.note) if note]
    for reason, count in unanswered(numbers).items():
        all_of_them = count == len(numbers)
        number = "None" if all_of_them else f"{count} of the {len(numbers)} printed numbers"
        compared_or_not = "is compared" if all_of_them else "are not compared"
        sentences.append(f"{number} {compared_or_not}: {reason}.")
    return replace(answer, verdict=verdict, note=" ".join(sentences))


def unanswered(numbers: pd.DataFrame) -> pd.Series:
    """Return how many of the numbers nothing answers, by the reason."""
    left_out = numbers[numbers["verdict"].isin(UNANSWERED)]
    reasons = left_out["reason"].replace("", "they were not run")
    return left_out.groupby(reasons, sort=False).size()
