"""Where a command finds the checkout, and the results folder it reads and writes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.options import option

ROOT = Path(__file__).resolve().parents[2]


def default_results() -> Path:
    """Return ``results``: in a checkout as it is, elsewhere with the folder that one is in.

    Every command names the folder that it read or wrote, so that outside a checkout the whole path
    is printed.
    """
    here = Path("conf", "config.yaml").is_file()
    return Path("results") if here else Path.cwd() / "results"


@dataclass(frozen=True)
class Results:
    """The option that every command has."""

    results: Path = option(
        default_results, "The folder of runs, cells and reports.", shown="FOLDER"
    )


def checkout(verb: str) -> Path:
    """Return the checkout's folder, whose data sets and algorithms can be imported from now on.

    Raises
    ------
    UserError : fairbench was installed without its checkout, or ``datasets`` is another package.
    """
    if not (ROOT / "conf" / "config.yaml").is_file():
        raise UserError(
            f"fairbench {verb} needs a checkout of fairbench (its folders conf/, datasets/ and "
            "algorithms/), and this is the library alone: clone the repository and run make setup"
        )
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    found = find_spec("datasets")
    if found is None or Path(str(found.origin)).resolve().parent != ROOT / "datasets":
        place = "nowhere" if found is None else found.origin
        raise UserError(f"the data sets of {ROOT} are hidden by another 'datasets', from {place}")
    return ROOT
