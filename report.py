"""A paper's tables beside ours, its figures, runs compared with one another, or a page of all.

``python report.py html`` for one page of all finished runs, ``html experiment=NAME`` of a sweep's;
``python report.py fairlyuncertain --table 1``; ``python report.py fairlyuncertain --figures``;
``python report.py compare=[A,B] objectives=[accuracy,equal_opportunity] rope=[0.01,0.01]``
with ids or names of finished runs, or ``compare=all``;
``python report.py tradeoff dataset=german`` for error against fairness of all its finished runs.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairbench.cli.results_folder import add_results, dashed
from fairbench.core.errors import UserError

ROOT = Path(__file__).resolve().parent


def main(arguments: Sequence[str]) -> int:
    """Print and write what was asked for; return 2 for what is not there."""
    try:
        if arguments[:1] == ["html"] or arguments[:1] and arguments[0].startswith("experiment="):
            from fairbench.cli.report import html_command
            from fairbench.reporting.page.answer import answer
            from fairbench.reporting.page.write import Places

            places = Places(ROOT / "results", ROOT / "conf", ROOT / "papers")
            html_command([word for word in arguments if word != "html"], places, answer)
        elif arguments[:1] == ["tradeoff"]:
            from fairbench.cli.tradeoff import tradeoff_command

            tradeoff_command(arguments[1:], ROOT / "conf")
        elif arguments and "=" in arguments[0]:
            from fairbench.cli.compare import compare_command

            compare_command(arguments, ROOT / "conf")
        else:
            paper_tables(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def paper_tables(words: Sequence[str]) -> None:
    """Print a paper's tables beside the published ones, or draw its figures, as far as run."""
    from fairbench.reporting.papers import report_figure, report_table
    from fairbench.reporting.published import Paper

    arguments = _parser().parse_args(dashed(words))
    paper = Paper.read(arguments.paper, ROOT / "papers")
    place = (ROOT / "conf", arguments.results, arguments.overrides)
    if arguments.experiments:
        from fairbench.reporting.sweeps import sweeps

        lines = [" ".join(words) for words in sweeps(paper, place[0], quick=arguments.quick)]
    elif arguments.figures is None:
        tables = [arguments.table] if arguments.table else list(paper.tables)
        lines = [report_table(paper, table, *place) for table in tables]
    else:
        figures = arguments.figures or list(paper.figures)
        lines = [report_figure(paper, figure, *place) for figure in figures]
    print("\n".join(lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", help="a folder of papers/, such as fairlyuncertain")
    parser.add_argument("--table", help="one table; without it all that the paper has here")
    parser.add_argument("--figures", nargs="*", help="draw these figures, or all, and no table")
    parser.add_argument(
        "--experiments", action="store_true", help="print what run.py -m needs for all of these"
    )
    parser.add_argument("--quick", action="store_true", help="with --experiments: for a quick look")
    parser.add_argument(
        "--with", dest="overrides", nargs="+", default=[], metavar="OVERRIDE",
        help="what the sweeps were given besides, such as split.repeats=3 dataset=german",
    )  # fmt: skip
    add_results(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
