"""One folder a paper: its published numbers, how they map to our runs, and what else it computed.

A folder holds ``published.csv``, ``mapping.yaml``, ``contents.yaml``, ``verdicts.csv``,
``findings.md`` and modules that run as ``python -m papers.PAPER.MODULE name=value ...``.
``papers/README.md`` describes the files.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

from fairbench.cli.command import Command
from fairbench.cli.main import call_command, run_words

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
PAPERS = ROOT / "papers"
T = TypeVar("T")


@dataclass(frozen=True)
class NoOptions:
    """What a module takes that computes one thing only."""


@overload
def run_main(main: Callable[[], object]) -> None: ...


@overload
def run_main(main: Callable[[T], object], options: type[T]) -> None: ...


def run_main(main: Callable[..., object], options: type[Any] = NoOptions) -> None:
    """Call a module's main function with what the command line says, as ``fairbench`` calls a verb.

    ``--help`` prints the first paragraph of the module's docstring and its options. What the user
    can mend is one line and exit status 2.

    Parameters
    ----------
    options : a frozen dataclass whose fields are made with `fairbench.core.options.option`; `main`
        gets an instance. Without it `main` gets nothing, and every word is refused.
    """

    def run(values: Any) -> None:
        if options is NoOptions:
            main()
        else:
            main(values)

    module = sys.modules[main.__module__]
    name = module.__spec__.name if module.__spec__ else module.__name__
    text = (module.__doc__ or "").partition("\n\n")[0]
    command = Command(options, run)
    words = partial(run_words, f"python -m {name}", text, command, sys.argv[1:])
    if status := call_command(words):
        sys.exit(status)
