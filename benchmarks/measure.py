"""What benchmarks have in common: commands, seconds, intervals, tables and pages."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import make_dataclass
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_type_hints

import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import special

from fairbench.cli.command import read
from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.core.options import option

Given = ParamSpec("Given")
Result = TypeVar("Result")
ROOT = Path(__file__).resolve().parents[1]


def command(function: Callable[..., bool], words: Sequence[str]) -> int:
    """Call a function with what words say: values by name, ``name=value``, or in its order.

    Returns
    -------
    int
        The exit status: 0 where all held, 1 where it did not, 2 where the words are refused.
    """
    kinds = get_type_hints(function)
    parameters = signature(function).parameters.values()
    declared = [(p.name, kinds[p.name], option(p.default, argument=p.name)) for p in parameters]
    try:
        return int(not function(**vars(read(make_dataclass("Options", declared), words))))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def fresh(call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Return what a function returns in a process of its own, which has no caches of another's."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(call, *args, **kwargs).result()


def cpu_seconds() -> float:
    """Return the CPU seconds of this process so far, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu_of(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process and its children."""
    started = cpu_seconds()
    call()
    return cpu_seconds() - started


def configuration(*words: str) -> dict[str, Any]:
    """Compose a configuration as run.py would, of data at hand."""
    with hydra_of():
        line = CommandLine([*words, "data.download=false"], sweep=False)
        return line.compose(line.jobs[0])


def cpu_of_process(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command, run in an empty folder, children included.

    Raises
    ------
    RuntimeError : it failed.
    """
    # Data folders are looked up from the checkout, which the empty folder is not.
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=here)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return cpu_seconds() - began


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, numbers with three digits."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    Console(width=100).print(table)


def exact_interval(successes: int, trials: int, certainty: float) -> tuple[float, float]:
    """Return the exact interval of a share, of Clopper and Pearson."""
    tail, rest = (1 - certainty) / 2, trials - successes
    lower = special.betaincinv(successes, rest + 1, tail) if successes else 0.0
    upper = special.betaincinv(successes + 1, rest, 1 - tail) if rest else 1.0
    return float(lower), float(upper)


# Pages of figures: words that are written by hand, and tables of a CSV file beside them.


def markdown(rows: Sequence[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """Return a table in Markdown, of a header and rows; all columns but the first to the right."""
    rule = rule or ("---", *["--:"] * (len(rows[0]) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def read_rows(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a CSV file, none of one that is not there.

    Parameters
    ----------
    texts : its columns that are texts, whatever they look like; all others are numbers.
    """
    if not path.is_file():
        return pd.DataFrame(columns=list(texts))
    return pd.read_csv(path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=[""])


def replaced(
    there: pd.DataFrame, rows: pd.DataFrame, key: str, order: Sequence[str]
) -> pd.DataFrame:
    """Return rows with new ones in place of those of the same keys, in the keys' order.

    Those of keys that are not in that order are left out: nothing writes them any more.
    """
    kept = there[~there[key].isin(rows[key])]
    every = pd.concat([each for each in (kept, rows) if len(each)] or [rows])
    every = every[every[key].isin(order)]
    # Each row has a number of its own again: pages find the lowest of several by it.
    return every.sort_values(
        key, key=lambda of: of.map(order.index), kind="stable", ignore_index=True
    )


def fill(page: Path, parts: Mapping[str, str], *, words: Path | None = None) -> None:
    """Put tables in their places on a page, between two comments with their names.

    Parameters
    ----------
    words : the page that another one begins as, where that is not there yet.

    Raises
    ------
    UserError : the page has no place for a table.
    """
    source = page if page.is_file() or words is None else words
    text = source.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise UserError(f"{source} has no place for a table: a line '{begin}', and '{end}'")
        start, stop = text.index(begin), text.index(end)
        text = f"{text[:start]}{begin}\n\n{part}\n\n{text[stop:]}"
    write_text(page, text)
