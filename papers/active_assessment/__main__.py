"""Print the tables beside the published ones, and draw the learning curves.

``python -m papers.active_assessment [--tables 3.2 3.5] [--replications 1000] [--figures]``.
Everything is kept in results/report/active/; what is there is not computed again.
"""

from __future__ import annotations

import argparse
import sys

import pandas as pd

from fairbench.core.errors import UserError
from papers import ROOT
from papers.active_assessment.tables import TABLES, rows, scoreboard

FOLDER = ROOT / "results" / "report" / "active"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    try:
        if options.figures:
            from papers.active_assessment.figures import draw

            draw(FOLDER, options.replications)
        else:
            _print(options.tables, options.replications)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _print(tables: list[str], replications: int) -> None:
    table = scoreboard(pd.DataFrame(rows(tables, FOLDER, replications)))
    for name, part in table.groupby("table"):
        print(f"\nTable {name}: {replications} replications")
        print(part.drop(columns=["table", "replications"]).round(2).to_string(index=False))
    compared = table[table["verdict"] != ""]
    print(f"\n{(compared['verdict'] == 'agrees').sum()} of {len(compared)} agree")
    table.to_csv(FOLDER / "tables.csv", index=False)


if __name__ == "__main__":
    sys.exit(main())
