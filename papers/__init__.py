"""Studies of papers: their published numbers, how they map to our runs, what else they computed.

A folder is a paper, or a part of one. It holds ``published.csv``, ``mapping.yaml``,
``contents.yaml``, ``verdicts.csv``, ``findings.md`` and modules. A module that has studies runs as
``python -m papers.PAPER.MODULE STUDY name=value ...``, where a study is a function of it.
``papers/README.md`` describes the files; `engine` compares all papers with our runs. Here is what
starts a study, and the options that studies of several papers have: a name means the same in all of
them. The results folder is `fairbench.cli.command.Results`, as for every other command.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Command, Results
from fairbench.cli.main import run_verb
from fairbench.cli.output import printed_errors
from fairbench.core.options import option

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
PAPERS = ROOT / "papers"


@dataclass(frozen=True)
class NoOptions:
    """What a study takes that computes one thing only."""


def options_of_study(study: Callable[..., object]) -> type[Any]:
    """Return the dataclass of options that a study takes, by its annotation."""
    kinds = [kind for name, kind in get_type_hints(study).items() if name != "return"]
    return kinds[0] if kinds else NoOptions


def print_table(
    title: str,
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    width: int = 100,
    **style: Any,
) -> None:
    """Print a study's table: names in the first column, numbers in the others."""
    table = Table(title=title, title_justify="left", **{"box": box.SIMPLE_HEAD, **style})
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=width).print(table)


def run_main(*studies: Callable[..., object]) -> None:
    """Do what the command line asks of a module's studies, as ``fairbench`` does a verb.

    ``--help`` prints the docstring of a study and its options. What the user can mend is one line
    and exit status 2.

    Parameters
    ----------
    studies : functions of nothing, or of a frozen dataclass whose fields are made with
        `fairbench.core.options.option`. A word names one of them; none does where there is one,
        called ``main``.
    """
    module = sys.modules[studies[0].__module__]
    name = f"python -m {module.__spec__.name if module.__spec__ else module.__name__}"
    commands = {study.__name__: _command(study, name) for study in studies}
    verb = SimpleNamespace(COMMANDS=commands, __doc__=(module.__doc__ or "").partition("\n\n")[0])
    if "main" in commands:
        verb = SimpleNamespace(COMMAND=commands["main"], __doc__=verb.__doc__)
    with printed_errors() as output:
        output.status = run_verb(name, verb, sys.argv[1:])
    if output.status:
        sys.exit(output.status)


def _command(study: Callable[..., object], name: str) -> Command:
    options = options_of_study(study)

    def run(values: Any) -> None:
        if options is NoOptions:
            study()
        else:
            study(values)

    text = inspect.getdoc(study) or ""
    example = f"{name} {study.__name__}".removesuffix(" main")
    return Command(options, run, (example,), text.partition("\n\n")[0])


def composed(*words: str) -> Any:
    """Return the configuration of a run, as its command line composes it."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", [*words], return_hydra_config=True)


def as_numbers(features: Any) -> Any:
    """Return a table of features with categories as their codes, in the order of the names."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
            for name, column in features.items()
        }
    )


def number_of_runs(default: int) -> Any:
    """Declare the option ``runs=``."""
    return option(default, "How many times the labelled rows are chosen.", least=1)


def number_of_seeds(default: int) -> Any:
    """Declare the option ``seeds=``."""
    return option(default, "How many populations or splits are drawn.", least=1)


def number_of_cvs(default: int) -> Any:
    """Declare the option ``cvs=``."""
    return option(default, "How many repeated cross-validations.", least=1)


@dataclass(frozen=True)
class Look(Results):
    """Where results are kept, and how much is looked at."""

    quick: bool = option(False, "A quick look at a little of it.")


@dataclass(frozen=True)
class Splits(Results):
    """Where fits are kept, and how many splits of the data they are of."""

    repeats: int = option(10, "How many splits of the data.", least=1)


@dataclass(frozen=True)
class CrossValidations:
    """How many cross-validations are looked at, of those that are packed."""

    cvs: int = number_of_cvs(200)
