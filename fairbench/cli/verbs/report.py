"""Write one page of every finished run."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, command, formats
from fairbench.cli.output import print_line
from fairbench.components import components_folder
from fairbench.core.options import option


@dataclass(frozen=True)
class _ReportOptions(Results):
    """Which runs are on the page.

    Attributes
    ----------
    experiment : Only the runs of this experiment, of conf/experiment.
    """

    experiment: str = option("")
    formats: tuple[str, ...] = formats("html")


def _report(options: _ReportOptions) -> None:
    """Write the page, and print where it is.

    Raises
    ------
    UserError : an unknown name, or nothing finished.

    Examples
    --------
    fairbench report
    fairbench report experiment=fairlyuncertain/table8_13
    """
    from fairbench.reporting.page.write import write_report

    conf = components_folder() / "conf"
    path, runs, left_out = write_report(
        options.results, conf, experiment=options.experiment, forms=options.formats
    )
    for reason in dict.fromkeys(left_out):
        print_line(f"not compared with others: {reason}")
    print_line(f"{runs} runs on {path}")


COMMAND = command(_report)
