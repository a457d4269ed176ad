"""Every two of the algorithms compared: probabilities of all events, and the ranking they give.

Posteriors are drawn for each algorithm on its own, as for Tables 2 and 3, and the difference in
equal opportunity is signed as there. No table of the paper has these numbers.
``python -m papers.uncertainty_matters.every_pair [cvs=200]``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.options import CrossValidations
from fairbench.components.papers.uncertainty_matters.measured import Measured, measure
from fairbench.components.papers.uncertainty_matters.posteriors import (
    OBJECTIVES,
    ROPE,
    Cloud,
    short,
)
from fairbench.components.papers.uncertainty_matters.readings import RHOS
from fairbench.inference.comparing.practical_difference import (
    A_BETTER,
    B_BETTER,
    PRACTICALLY_EQUAL,
    event_names,
)
from fairbench.inference.comparing.ranking import ranking

A_ACCURATE, B_ACCURATE = event_names(OBJECTIVES)[3:]
# Event -> the same with A and B exchanged.
_TURNED = {
    A_BETTER: B_BETTER,
    B_BETTER: A_BETTER,
    PRACTICALLY_EQUAL: PRACTICALLY_EQUAL,
    A_ACCURATE: B_ACCURATE,
    B_ACCURATE: A_ACCURATE,
}
# What a row is to a column; the other two events stand where row and column are exchanged.
_PRINTED = {A_BETTER: "better", A_ACCURATE: "accurate", PRACTICALLY_EQUAL: "equal"}


def every_pair(measured: Measured) -> pd.DataFrame:
    """Return rho, A, B and the probability of each event, a row an ordered pair.

    Probabilities are means over the cross-validations that give a posterior.
    """
    return pd.DataFrame(row for rho in RHOS for row in _pairs(measured, rho))


def _pairs(measured: Measured, rho: str) -> Iterator[dict[str, Any]]:
    clouds = [(name, measured.cloud(name, rho)) for name in measured.counts]
    for i, (first, one) in enumerate(clouds):
        for second, other in clouds[i + 1 :]:
            events = _mean(one, other)
            turned = {_TURNED[event]: share for event, share in events.items()}
            yield {"rho": rho, "A": first, "B": second, **events}
            yield {"rho": rho, "A": second, "B": first, **turned}


def _mean(one: Cloud, other: Cloud) -> dict[str, float]:
    each = one.events(other)
    return {name: float(np.mean([events[name] for events in each])) for name in each[0]}


def matrix(rows: pd.DataFrame, names: Sequence[str], event: str) -> NDArray[np.float64]:
    """Return the probabilities of one event at one rho, (M, M): A a row, B a column."""
    wide = rows.pivot(index="A", columns="B", values=event)
    found: NDArray[np.float64] = wide.reindex(index=names, columns=names).to_numpy(float)
    return found


def print_pairs(rows: pd.DataFrame) -> None:
    """Print three lines an algorithm for each rho, in percent, and its rank."""
    console = Console(width=100)
    accuracy, opportunity = ROPE
    console.print(
        f"every two of the algorithms; ropes {accuracy:g} (accuracy) and {opportunity:g} (equal "
        "opportunity difference)\npercent, row against column: better (>>), more accurate but less "
        "fair, practically equal\nrank: 1 + the algorithms that are better with 95 %"
    )
    for rho, mine in rows.groupby("rho", sort=False):
        console.print(_table(str(rho), mine))


def _table(rho: str, rows: pd.DataFrame) -> Table:
    names = list(dict.fromkeys(rows["A"]))
    tables = [(label, matrix(rows, names, event)) for event, label in _PRINTED.items()]
    ranks = ranking(tables[0][1])
    table = Table(title=rho, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for heading in ("", "rank", "row is"):
        table.add_column(heading, no_wrap=True)
    for place in range(len(names)):
        table.add_column(str(place + 1), justify="right", no_wrap=True, min_width=3)
    for place, name in enumerate(names):
        front = [f"{place + 1} {short(name)}", str(ranks[place])]
        for label, shares in tables:
            table.add_row(*front, label, *map(_percent, shares[place]))
            front = ["", ""]
    return table


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{100 * share:.0f}"


def main(options: CrossValidations) -> None:
    """Print all pairs."""
    print_pairs(every_pair(measure(cvs=options.cvs)))


if __name__ == "__main__":
    run_main(main, CrossValidations)
