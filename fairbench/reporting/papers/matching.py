"""Finds, for every published number, the run or computation that answers it.

Terminal and page share this: a run answers where it chose what the mapping asks for, also if it was
made before an option was added, or with fewer repeats than the experiment asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.core.errors import UserError
from fairbench.evaluation.columns import values_of
from fairbench.evaluation.summary import summarise
from fairbench.experiments.presets import Presets
from fairbench.reporting.papers.mapping import (
    ABSENT,
    Paper,
    answers,
    computations_of,
    counts,
    judge,
    metrics_of,
    quick_note,
    rule_of,
    settle,
)
from fairbench.reporting.papers.running import computed_numbers
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

_FRONT = ("experiment", "dataset", "method", "intervention", "option")
_OPTIONS = ("intervention.", "method.")
_COLUMNS = [*_FRONT, "metric", "variant", "attribute", "group", "mean", "sd", "repeats"]


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A published table, compared with our numbers row by row.

    Attributes
    ----------
    rows : the result of :func:`compare`, with a column ``own data set``: the data set's name here.
    """

    paper: str
    table: str
    experiments: tuple[str, ...]
    rows: pd.DataFrame
    runs: tuple[Run, ...]
    note: str

    @property
    def counts(self) -> dict[str, int]:
        """Return how many reproductions have each verdict."""
        return counts(self.rows)


def paper_tables(
    paper: Paper, tables: Sequence[str], collection: Catalogue, presets: Presets, results: Path
) -> Iterator[PaperTable]:
    """Yield tables of a paper with what answers them.

    Raises
    ------
    UserError : a table that the mapping does not have.
    """
    available = set(presets.experiments())
    experiments_of_tables = [
        [experiment for experiment in paper.experiments(t) if experiment in available]
        for t in tables
    ]
    names = dict.fromkeys(name for experiments in experiments_of_tables for name in experiments)
    runs = {name: presets.runs_of(name, collection.runs) for name in names}
    runs_of_paper = collection.only(
        {id_ for runs_of_experiment in runs.values() for id_ in runs_of_experiment}
    )
    metrics = values_of(runs_of_paper.metrics)
    answers_by_experiment = {name: _answers(name, paper, metrics, runs[name]) for name in names}
    for table, experiments in zip(tables, experiments_of_tables, strict=True):
        computed = {
            name: computed_numbers(paper, name, table, results) for name in paper.computed(table)
        }
        yield _table(
            paper,
            table,
            {experiment: answers_by_experiment[experiment] for experiment in experiments},
            computed,
        )


def finished_runs(
    experiment: str, conf: Path, results: Path
) -> list[tuple[dict[str, str], Run, pd.DataFrame]]:
    """Return the choices of an experiment's finished jobs, their runs, and the runs' metrics."""
    collection = Catalogue(results)
    runs = Presets(conf).runs_of(experiment, collection.runs)
    metrics = values_of(collection.metrics)
    metrics = metrics[metrics["run"].isin(runs)]
    metrics = metrics.astype(dict.fromkeys(metrics.select_dtypes("category"), object))
    return [
        ({"experiment": experiment, **run.choices, **chosen}, run, metrics[metrics["run"] == id_])
        for id_, (chosen, run) in runs.items()
    ]


def runs_needed(
    experiment: str, conf: Path, results: Path
) -> list[tuple[dict[str, str], Run, pd.DataFrame]]:
    """Like `finished_runs`, but refuse an experiment without any finished run.

    Raises
    ------
    UserError : there is no finished run; it says which command makes them.
    """
    runs = finished_runs(experiment, conf, results)
    if not runs:
        raise UserError(
            f"there is no finished run of {experiment} in {results}: make them with "
            f"{command(experiment)}"
        )
    return runs


def command(experiment: str) -> str:
    """Return the command line of an experiment."""
    return f"fairbench run -m experiment={experiment}"


@dataclass(frozen=True, eq=False)
class _Answers:
    """The runs that answer an experiment, and their summaries with what each chose in front."""

    runs: dict[str, Run]
    summaries: pd.DataFrame


def _answers(
    name: str, paper: Paper, metrics: pd.DataFrame, runs: Mapping[str, tuple[dict[str, str], Run]]
) -> _Answers:
    """Return the finished runs of an experiment, and the summaries of what the paper compares."""
    if not runs:
        return _Answers({}, pd.DataFrame(columns=_COLUMNS))
    chosen = metrics["run"].isin(runs) & metrics["metric"].isin(metrics_of(paper))
    summaries_of_runs = [
        _with_choice(
            {"experiment": name, **runs[str(id_)][1].choices, **runs[str(id_)][0]}, summary
        )
        for id_, summary in summarise(
            metrics[chosen & (metrics["group"] == "")], per=["run"], intervals=False
        ).groupby("run", observed=True)
    ]
    summaries = (
        pd.concat(summaries_of_runs, ignore_index=True)
        if summaries_of_runs
        else pd.DataFrame(columns=_COLUMNS)
    )
    return _Answers({id_: run for id_, (_, run) in runs.items()}, summaries)


def _with_choice(choice: Mapping[str, str], summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with what its run chose; ``option`` holds settings of single components."""
    option = " ".join(text for name, text in choice.items() if name.startswith(_OPTIONS))
    columns = {**choice, "option": option}
    front = pd.DataFrame({name: columns[name] for name in _FRONT}, summary.index)
    return pd.concat([front, summary], axis=1)


def _table(
    paper: Paper,
    table: str,
    answers_by_experiment: Mapping[str, _Answers],
    computed: Mapping[str, pd.DataFrame],
) -> PaperTable:
    """Return a table of a paper beside the numbers of the runs and computations that answer it."""
    summaries = [value.summaries for value in answers_by_experiment.values()]
    ours = pd.concat(summaries, ignore_index=True) if summaries else pd.DataFrame(columns=_COLUMNS)
    rows = compare(paper, table, ours[ours["metric"].isin(metrics_of(paper, table))], computed)
    own_names = paper.table(table).get("datasets", {})
    rows = rows.assign(
        **{"own data set": rows["dataset"].map(lambda name: own_names.get(name, name))}
    )
    runs = {id_: run for value in answers_by_experiment.values() for id_, run in value.runs.items()}
    quick = any(value["quick"].any() for value in computed.values() if len(value))
    note = quick_note(rows, paper.table(table).get("runs", paper.runs)) or (
        "quick look" if quick else ""
    )
    return PaperTable(
        paper.name, table, tuple(answers_by_experiment), rows, tuple(runs.values()), note
    )


def compare(
    paper: Paper,
    table: str,
    ours: pd.DataFrame,
    computed: Mapping[str, pd.DataFrame] | None = None,
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
    mapping = paper.table(table)
    rows: list[dict[str, Any]] = []
    lookup = _Lookup(ours)
    computed_by_row = {name: _by_row(numbers) for name, numbers in (computed or {}).items()}
    for row_number, row in zip(*_placed(paper.published(table)), strict=True):
        rule = rule_of(mapping["rules"], row)
        front = {
            **row,
            "published method": " ".join(filter(None, [row["method"], row["setting"]])),
        }
        given: Iterable[tuple[str, str, dict[str, Any] | None]]
        if "computation" in rule:
            given = _numbers_of_computations(computed_by_row, rule, row_number, row)
        else:
            given = _numbers_of_runs(rule, row, mapping.get("datasets", {}), lookup)
        answers_of_row = [
            _answer(paper, rule, mapping, row, numbers_of, label, cause)
            for label, cause, numbers_of in given
        ]
        settled = settle(paper, row, answers_of_row)
        answers_of_row[0] |= settled
        rows += [
            {**front, "reproduces": i == 0, "ours under it": float("nan"), **answer}
            for i, answer in enumerate(answers_of_row)
        ]
    return pd.DataFrame(rows)


def _answer(
    paper: Paper,
    rule: Mapping[str, Any],
    mapping: Mapping[str, Any],
    row: Mapping[str, str],
    numbers: dict[str, Any] | None,
    label: str,
    cause: str,
) -> dict[str, Any]:
    """Return one answer to a printed number with its verdict and the cause it stands for."""
    verdict = judge(paper, row, numbers, mapping.get("runs"))
    reason = rule.get("absent") or (numbers or {}).get("reason", "")
    if reason:
        verdict["verdict"] = ABSENT
    return {
        "our method": label,
        **verdict,
        "reason": reason,
        "cause": paper.cause(cause),
        "whole": _is_whole(paper, rule, mapping, numbers),
    }


def _is_whole(
    paper: Paper,
    rule: Mapping[str, Any],
    mapping: Mapping[str, Any],
    numbers: Mapping[str, Any] | None,
) -> bool:
    """Return whether an answer has the paper's size: no quick look, as many repeats as its runs."""
    if numbers is None:
        return False
    if "computation" in rule:
        return not numbers.get("quick", False)
    return bool(numbers["repeats"] >= mapping.get("runs", paper.runs))


def _placed(rows: pd.DataFrame) -> tuple[list[int], list[dict[str, str]]]:
    return list(rows.index), rows.to_dict("records")


def _by_row(numbers: pd.DataFrame) -> dict[int, list[dict[str, Any]]]:
    """Return the numbers of a computation by the place of the published row that they answer."""
    result: dict[int, list[dict[str, Any]]] = {}
    for record in numbers.to_dict("records"):
        result.setdefault(record["row"], []).append({str(name): v for name, v in record.items()})
    return result


def _numbers_of_computations(
    computed: Mapping[str, Mapping[int, list[dict[str, Any]]]],
    rule: Mapping[str, Any],
    row_number: int,
    row: Mapping[str, str],
) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Yield the numbers of computations that answer a published row: label, cause, numbers."""
    for name, cause in computations_of(rule).items():
        records = computed.get(name, {}).get(row_number, [])
        if not (records or cause):
            yield row["method"], "", None
        for record in records:
            own = cause or record["cause"]
            yield record["label"] or own or row["method"], own, record


def _numbers_of_runs(
    rule: Mapping[str, Any], row: Mapping[str, str], own_names: Mapping[str, str], ours: _Lookup
) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Yield our numbers for a published row: label, cause, and None where there are none."""
    if "metrics" not in rule or "absent" in rule:
        yield row["method"], "", None
        return
    dataset = own_names.get(row["dataset"], row["dataset"])
    for choice, metric in answers(rule, row):
        cause = choice.pop("cause", "")
        label = choice.pop("label", "") or _label(choice)
        yield label, cause, _matching_numbers(ours, {"dataset": dataset, **choice}, metric)


def _label(choice: Mapping[str, str]) -> str:
    """Name our answer: its method unless an intervention says it all, and a run that differs."""
    intervention = "" if choice["intervention"] == "none" else choice["intervention"]
    method = "" if intervention and choice["method"] == "baseline" else choice["method"]
    held_out = "validation" if choice.get("experiment", "").endswith("_validation") else ""
    return " ".join(filter(None, [method, intervention, choice.get("option", ""), held_out]))


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Rows of a table, found by the values of some columns: read once for each set of columns."""

    rows: pd.DataFrame
    _places: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = field(default_factory=dict)

    def first(self, values_by_column: Mapping[str, str]) -> pd.Series | None:
        """Return the first row with these values."""
        names = tuple(values_by_column)
        if names not in self._places:
            places: dict[tuple[Any, ...], int] = {}
            for row_number, values in enumerate(
                zip(*(self.rows[name] for name in names), strict=True)
            ):
                places.setdefault(values, row_number)
            self._places[names] = places
        place_of_row = self._places[names].get(tuple(values_by_column.values()))
        return None if place_of_row is None else self.rows.iloc[place_of_row]


def _matching_numbers(
    ours: _Lookup, choice: Mapping[str, str], metric: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return mean and sd of the one row, in the paper's unit: ``shift`` plus ``scale`` times it."""
    keys = {
        **choice,
        "metric": metric["metric"],
        "variant": "",
        "attribute": metric.get("attribute", ""),
        "group": "",
    }
    first = ours.first(keys)
    scale = metric.get("scale", 1.0)
    if first is None:
        return None
    mean = metric.get("shift", 0.0) + scale * first["mean"]
    return {"mean": mean, "sd": abs(scale) * first["sd"], "repeats": first["repeats"]}
