"""Printing the tables of Uncertainty Matters in a hundred columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

_TITLES = {
    "hdr95_area": "area of the 95 % region of accuracy and equal opportunity difference",
    "percent_of_cv_results_inside_hdr95": "percent of the cross-validations inside that region",
}
_EVENTS = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A accurate, B fair",
    "p_b_accuracy_a_fairness": "B accurate, A fair",
}
_SHORT = {"accuracy": "acc.", "EO": "EO"}
_NUMBERS = ("published", "ours (sd)", "predictive", "paired", "diff.")


def print_table(table: str, rows: pd.DataFrame) -> None:
    """Print one table; ours are means (sds) over cross-validations with a posterior each."""
    console = Console(width=100)
    if table == "width":
        console.print(_width(rows))
        return
    by = "metric" if table == "12.1" else "method"
    for name, mine in rows.groupby(by, sort=False):
        title = f"table {table}: {_TITLES.get(str(name), f'A: {name}'.replace(' vs ', ', B: '))}"
        console.print(_rows(mine, title, events=table != "12.1"))


def short(name: str) -> str:
    """Return an algorithm's name as it fits a table."""
    return name.replace("Disparate impact remover", "DI remover")


def _rows(rows: pd.DataFrame, title: str, *, events: bool) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    first = ("rho", "event") if events else ("algorithm", "rho")
    shown = [name for name in _NUMBERS if events or name != "paired"]
    for name in (*first, *shown, "verdict"):
        table.add_column(name, justify="right" if name in shown else "left", no_wrap=True)
    digits = 4 if rows["metric"].iloc[0] == "hdr95_area" else 2
    previous = ""
    for row in rows.to_dict("records"):
        group, label = (row["setting"], _EVENTS[row["metric"]]) if events else (
            short(row["method"]), row["setting"])  # fmt: skip
        if previous not in ("", group):
            table.add_section()
        table.add_row(
            "" if group == previous else group, label, *_numbers(row, shown, digits), row["verdict"]
        )
        previous = group
    return table


def _numbers(row: Mapping[str, Any], shown: list[str], digits: int) -> Iterator[str]:
    form: Callable[[float], str] = lambda value: "-" if np.isnan(value) else f"{value:.{digits}f}"  # noqa: E731
    for name in shown:
        if name == "ours (sd)":
            yield f"{form(row['posterior'])} ({form(row['posterior sd'])})"
        else:
            yield form(row["difference" if name == "diff." else name])


def _width(rows: pd.DataFrame) -> Table:
    table = Table(
        title="sds over cross-validations (partition noise), and of the posterior at rho=1/K",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    table.add_column("algorithm", no_wrap=True)
    headers = {"mean": "mean", "sd": "CVs", "posterior": "post.", "predictive": "pred."}
    for objective in ("accuracy", "EO"):
        for header in headers.values():
            table.add_column(f"{_SHORT[objective]}\n{header}", justify="right")
    table.add_column("r", justify="right")
    for row in rows.to_dict("records"):
        cells = [
            f"{row[f'{short} {name}']:.4f}" for short in ("accuracy", "EO") for name in headers
        ]
        table.add_row(short(row["method"]), *cells, f"{row['r']:.2f}")
    return table
