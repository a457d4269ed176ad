"""The tables of a paper: which runs they need, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from fairbench.core.files import atomic, write_text
from fairbench.evaluation.summary import summarise
from fairbench.experiments import build
from fairbench.reporting.published import Paper, compare, quick_note, scoreboard
from fairbench.results.runs import RunFolder

_FRONT = ("experiment", "dataset", "method", "intervention", "option")
_OPTIONS = ("intervention.", "method.")
_NUMBERS = ("published", "ours", "difference")


def jobs(experiment: str, conf: Path, overrides: Sequence[str] = ()) -> list[list[str]]:
    """Return the overrides of every job of an experiment's sweep.

    `overrides` are what the sweep is given besides, such as ``split.repeats=3`` or
    ``dataset=german,adult``.
    """
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        composed = compose("config", [f"experiment={experiment}"], return_hydra_config=True)
    params = {str(name): str(value) for name, value in composed.hydra.sweeper.params.items()}
    given = dict(pair.split("=", 1) for pair in overrides)
    params |= {name: value for name, value in given.items() if name in params}
    fixed = [f"{name}={value}" for name, value in given.items() if name not in params]
    values = [[each.strip() for each in value.split(",")] for value in params.values()]
    return [
        [f"experiment={experiment}", *map("=".join, zip(params, chosen, strict=True)), *fixed]
        for chosen in product(*values)
    ]


def finished_runs(
    experiment: str, conf: Path, results: Path, overrides: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], RunFolder]]:
    """Yield what an experiment's jobs chose, with the folders of those that are finished."""
    wanted = jobs(experiment, conf, overrides)
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        for job in wanted:
            folder = RunFolder(results / "runs" / build.run_id(compose("config", job)))
            if folder.environment():
                yield dict(pair.split("=", 1) for pair in job), folder


def summaries(
    experiment: str, conf: Path, results: Path, overrides: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the summaries of an experiment's finished runs, what each chose in front."""
    found = []
    for choice, folder in finished_runs(experiment, conf, results, overrides):
        summary = summarise(folder.metrics())
        found.append(with_choice({**folder.environment()["choices"], **choice}, summary))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def with_choice(choice: Mapping[str, str], summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with what its run chose; ``option`` holds settings of single components.

    Parameters
    ----------
    choice : the run's choices, ``experiment`` and what else the sweep chose.
    """
    option = " ".join(text for name, text in choice.items() if name.startswith(_OPTIONS))
    columns = {**choice, "option": option}
    front = pd.DataFrame({name: columns[name] for name in _FRONT}, summary.index)
    return pd.concat([front, summary], axis=1)


def report_table(
    paper: Paper, table: str, conf: Path, results: Path, overrides: Sequence[str] = ()
) -> str:
    """Print one table beside the published one, write it, and return its scoreboard."""
    parts = [summaries(name, conf, results, overrides) for name in paper.experiments(table)]
    ours = pd.concat(parts, ignore_index=True)
    commands = [command(name, overrides) for name in paper.experiments(table)]
    if ours.empty:
        return f"table {table}: nothing was run yet of {', '.join(paper.experiments(table))}"
    rows = compare(paper, table, ours)
    for metric, of_metric in rows.groupby("metric", sort=False):
        title = f"{paper.name}, table {table}: {metric}, mean (sd)"
        Console(width=100).print(_printed(of_metric, title))
    _write(rows, results / "report" / paper.name / f"table{table}", commands)
    note = quick_note(rows, paper.runs)
    found = f"{scoreboard(rows)}{f' ({note})' if note else ''}"
    return f"table {table}: {found}; made by {', '.join(paper.experiments(table))}"


def report_figure(
    paper: Paper, figure: str, conf: Path, results: Path, overrides: Sequence[str] = ()
) -> str:
    """Draw one figure from finished runs, write its PNGs, and say which were made of what."""
    from fairbench.reporting.across import DRAWN

    experiment, draw = paper.figure(figure)
    parts = []
    for choice, folder in finished_runs(experiment, conf, results, overrides):
        metrics = folder.metrics()
        chosen = {name: choice[name] for name in ("dataset", "method")}
        parts.append(metrics[metrics["variant"] == ""].assign(**chosen))
    made_by = command(experiment, overrides)
    if not parts:
        return f"figure {figure}: nothing was run yet; {made_by}"
    names = []
    for name, drawn in DRAWN[draw](pd.concat(parts, ignore_index=True)):
        names.append("_".join([f"figure{figure}", *filter(None, [name])]))
        with atomic(results / "report" / paper.name / "figures" / f"{names[-1]}.png") as temporary:
            drawn.savefig(temporary, format="png")
    return f"figure {figure}: {', '.join(names)}; made by {made_by}"


def command(experiment: str, overrides: Sequence[str] = ()) -> str:
    """Return the command line of an experiment."""
    return " ".join([f"python run.py -m experiment={experiment}", *overrides])


def _printed(rows: pd.DataFrame, title: str) -> Table:
    """Return the rows of one metric by data set, a published mean and sd beside ours."""
    table = Table(title=title, title_justify="left")
    for column in ("data set", "method", *_NUMBERS, "verdict"):
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    previous = None
    for row in rows.sort_values("dataset", kind="stable").to_dict("records"):
        if previous not in (None, row["dataset"]):
            table.add_section()
        ours = f"{_text(row['ours'])} ({_text(row['our sd'])})"
        table.add_row(
            "" if row["dataset"] == previous else row["dataset"],
            row["our method"],
            f"{_text(row['published'])} ({_text(row['published sd'])})",
            "-" if np.isnan(row["ours"]) else ours,
            _text(row["difference"]),
            row["verdict"] if row["reproduces"] else f"({row['verdict']})",
        )
        previous = row["dataset"]
    return table


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "-" if np.isnan(value) else f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def _write(rows: pd.DataFrame, stem: Path, commands: list[str]) -> None:
    write_text(stem.with_suffix(".csv"), rows.to_csv(index=False))
    lines = [" | ".join(rows.columns), " | ".join("---" for _ in rows.columns)]
    lines += [" | ".join(_text(value) for value in row) for row in rows.itertuples(index=False)]
    body = "\n".join(f"| {line} |" for line in lines)
    write_text(stem.with_suffix(".md"), f"Made by `{'`, `'.join(commands)}`.\n\n{body}\n")
