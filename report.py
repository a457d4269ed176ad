"""A paper's tables beside ours, or runs compared with one another.

``python report.py fairlyuncertain --table 1``;
``python report.py compare=[A,B] objectives=[accuracy,equal_opportunity] rope=[0.01,0.01]``
with ids or names of finished runs, or ``compare=all``.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairbench.errors import UserError

ROOT = Path(__file__).resolve().parent


def main(arguments: Sequence[str]) -> int:
    """Print and write what was asked for; return 2 for what is not there."""
    try:
        if any("=" in word and not word.startswith("-") for word in arguments):
            from fairbench.comparison_command import compare_command

            compare_command(arguments, ROOT / "conf")
        else:
            paper_tables(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def paper_tables(words: Sequence[str]) -> None:
    """Print a paper's tables, as far as they were run, beside the published ones."""
    from fairbench.report.papers import report_table
    from fairbench.report.published import Paper

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", help="a paper of results/published, such as fairlyuncertain")
    parser.add_argument("--table", help="one table; without it all that the paper has here")
    parser.add_argument("--results", default="results", type=Path, help="the results folder")
    arguments = parser.parse_args(words)
    paper = Paper.read(arguments.paper, ROOT / "results" / "published")
    tables = [arguments.table] if arguments.table else list(paper.tables)
    lines = [report_table(paper, table, ROOT / "conf", arguments.results) for table in tables]
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
