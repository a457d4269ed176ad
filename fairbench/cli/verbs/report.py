"""Write one page of every finished run."""

from __future__ import annotations

from pathlib import Path

from fairbench.cli import command as cli
from fairbench.cli.output import print_line
from fairbench.core.options import option


def _report(
    results: Path = cli.RESULTS,
    experiment: str = option(""),
    formats: tuple[str, ...] = cli.formats("html"),
) -> None:
    """Write the page, and print where it is.

    Parameters
    ----------
    experiment : Only the runs of this experiment, of conf/experiment.

    Raises
    ------
    UserError : an unknown name, or nothing finished.

    Examples
    --------
    fairbench report
    fairbench report experiment=fairlyuncertain/table8_13
    """
    from fairbench.reporting.page import write_report

    path, runs, left_out = write_report(results, experiment=experiment, forms=formats)
    for reason in dict.fromkeys(left_out):
        print_line(f"not compared with others: {reason}")
    print_line(f"{runs} runs on {path}")


COMMAND = cli.command(_report)
