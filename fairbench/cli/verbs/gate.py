"""Judge predictions by conditions, for continuous integration: pass, fail, or open.

Conditions say what must not hold: fail_if='impact_ratio<0.8' for every attribute, or
'sex:equal_opportunity>0.1' for one. The exit status is 0 (pass) if the data show that none holds, 1
(fail) if they show that one does, 3 if they are too few to decide, and 2 if something cannot be
read. A verdict is wrong with a chance of at most 5 %, however many conditions a gate has. Nothing
is written beside the verdict; fairbench audit with the same options makes the page, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.audits.gate.options import GatedOptions, Gating
from fairbench.audits.question import Options
from fairbench.cli.command import ALL, SUMMARY, Command, check_predictions, narrow_options
from fairbench.cli.gate import GateFiles, check_asked, settle, with_policy
from fairbench.core.errors import UserError
from fairbench.core.options import hidden, option
from fairbench.inference.posterior import FREQUENTIST

SECTION = "Audit predictions"


@dataclass(frozen=True)
class _Options(GateFiles, Gating, Options):
    """What is judged, by which conditions, and where the verdict is written."""

    detail: str = option(
        SUMMARY,
        "What is printed: the verdict in one line, or before it every statement in a table.",
        choices=(SUMMARY, ALL),
    )
    given: frozenset[str] = hidden(frozenset(), given=True)
    out: str = hidden("")
    # Options of an audit alone; a policy that serves both may set them.
    within: tuple[str, ...] = hidden(())
    selected: str = hidden("")
    odds: float = hidden(2.0)
    proxy: tuple[str, ...] = hidden(())
    constraint: str = hidden("")
    epsilon: float = hidden(0.05)
    interval: str = hidden(FREQUENTIST)
    against: str = hidden("")
    cost: str = hidden("")
    top: float = hidden(0.0)
    lists: str = hidden("")
    event: str = hidden("")
    horizon: float = hidden(0.0)
    bounds: tuple[str, ...] = hidden(())
    nominal: float = hidden(0.9)
    prior: str = hidden("uniform")
    strength: float = hidden(2.0)

    def __post_init__(self) -> None:
        """Check nothing yet: the policy may have the columns."""


def gate(options: _Options) -> int:
    """Print the verdict, write it, and return the exit status."""
    options = with_policy(options, GatedOptions)
    if options.path == Path():
        raise UserError(
            "nothing to judge: give a file of predictions, such as fairbench gate loans.csv "
            "target=repaid score=score group=sex 'fail_if=impact_ratio<0.8', or name one in the "
            "policy as predictions"
        )
    if options.fail_if:
        check_asked(options)
    from fairbench.audits.columns import read_frame
    from fairbench.audits.gate.verdict import gate_of

    check_predictions(options.path, "fairbench audit {} 'fail_if=impact_ratio<0.8'")
    gate_options = narrow_options(options, GatedOptions)
    verdict = gate_of(gate_options, read_frame(gate_options))
    if options.detail == ALL:
        from fairbench.reporting.document.model import Document, Section
        from fairbench.reporting.document.terminal import print_document
        from fairbench.reporting.gate_files import gate_table

        title = f"Gate of {options.path.name}"
        print_document(Document(title, [Section("", [gate_table(verdict)])]))
    return settle(verdict, options, options.path)


COMMAND = Command(
    _Options,
    gate,
    examples=(
        "fairbench gate loans.csv target=repaid score=score group=sex 'fail_if=impact_ratio<0.8'",
        "fairbench gate loans.csv policy=fairbench.yaml junit=gate.xml sarif=gate.sarif",
        "fairbench gate policy=fairbench.yaml require=pass",
    ),
    holds=False,
)
