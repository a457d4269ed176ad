"""Judge predictions by conditions, for continuous integration: pass, fail, or open.

Conditions say what must not hold: fail_if='impact_ratio<0.8' for every attribute, or
'sex:equal_opportunity>0.1' for one. The exit status is 0 (pass) if the data show that none holds, 1
(fail) if they show that one does, 3 if they are too few to decide, and 2 if something cannot be
read. A verdict is wrong with a chance of at most 5 %, however many conditions a gate has. What is
printed is the verdict; junit= and sarif= have every statement, and fairbench audit with the same
options makes the page, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.audits.question import GatedOptions, Gating, JudgedOptions
from fairbench.cli.command import check_predictions, command, narrow_options
from fairbench.cli.gate import GateFiles, check_asked, settle, with_policy
from fairbench.core.errors import UserError

SECTION = "Audit predictions"


@dataclass(frozen=True)
class _Options(GateFiles, Gating, JudgedOptions):
    """What is judged, by which conditions, and where the verdict is written."""

    given: frozenset[str] = frozenset()  # the options that the command line has

    def __post_init__(self) -> None:
        """Check nothing yet: the policy may have the columns."""


def gate(options: _Options) -> int:
    """Print the verdict, write it, and return the exit status.

    Examples
    --------
    fairbench gate loans.csv target=repaid score=score group=sex 'fail_if=impact_ratio<0.8'
    fairbench gate loans.csv policy=fairbench.yaml junit=gate.xml sarif=gate.sarif
    fairbench gate policy=fairbench.yaml require=pass
    """
    options = with_policy(options, GatedOptions)
    if options.path == Path():
        raise UserError(
            "nothing to judge: give a file of predictions, such as fairbench gate loans.csv "
            "target=repaid score=score group=sex 'fail_if=impact_ratio<0.8', or name one in the "
            "policy as predictions"
        )
    if options.fail_if:
        check_asked(options)
    from fairbench.audits.calls import gate_of
    from fairbench.audits.table import read_frame

    check_predictions(options.path, "fairbench audit {} 'fail_if=impact_ratio<0.8'")
    gate_options = narrow_options(options, GatedOptions)
    verdict = gate_of(gate_options, read_frame(gate_options))
    return settle(verdict, options, options.path)


COMMAND = command(gate, holds=False)
