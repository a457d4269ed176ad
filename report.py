"""A paper's tables beside ours, and its figures: ``python report.py fairlyuncertain --table 1``."""

import argparse
import sys
from pathlib import Path

from fairbench.errors import UserError
from fairbench.report.papers import report_figure, report_table
from fairbench.report.published import Paper

ROOT = Path(__file__).resolve().parent


def main() -> int:
    """Print and write the tables that were run; return 2 for what is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", help="a paper of results/published, such as fairlyuncertain")
    parser.add_argument("--table", help="one table; without it all that the paper has here")
    parser.add_argument("--figures", nargs="*", help="draw these figures, or all, and no table")
    parser.add_argument(
        "--with", dest="overrides", nargs="+", default=[], metavar="OVERRIDE",
        help="what the sweeps were given besides, such as split.repeats=3 dataset=german",
    )  # fmt: skip
    parser.add_argument("--results", default="results", type=Path, help="the results folder")
    arguments = parser.parse_args()
    try:
        paper = Paper.read(arguments.paper, ROOT / "results" / "published")
        place = (ROOT / "conf", arguments.results, arguments.overrides)
        if arguments.figures is None:
            tables = [arguments.table] if arguments.table else list(paper.tables)
            lines = [report_table(paper, table, *place) for table in tables]
        else:
            figures = arguments.figures or list(paper.figures)
            lines = [report_figure(paper, figure, *place) for figure in figures]
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
