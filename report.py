"""A paper's tables beside ours: ``python report.py fairlyuncertain --table 1``."""

import argparse
import sys
from pathlib import Path

from fairbench.errors import UserError
from fairbench.report.papers import report_table
from fairbench.report.published import Paper

ROOT = Path(__file__).resolve().parent


def main() -> int:
    """Print and write the tables that were run; return 2 for a paper or table that is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", help="a paper of results/published, such as fairlyuncertain")
    parser.add_argument("--table", help="one table; without it all that the paper has here")
    parser.add_argument("--results", default="results", type=Path, help="the results folder")
    arguments = parser.parse_args()
    try:
        paper = Paper.read(arguments.paper, ROOT / "results" / "published")
        tables = [arguments.table] if arguments.table else list(paper.tables)
        lines = [report_table(paper, table, ROOT / "conf", arguments.results) for table in tables]
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
