"""Watch predictions as they come: an alarm when a gap has grown, without crying wolf.

Give the same command after each batch of rows, such as by cron: on a file that grows, or on a new
file each week that has a column of periods (time=). Rows that were seen must be there unchanged and
first; labels that were empty may come later, and are counted then. A person or decision that comes
again is counted once: name the column that identifies it (id=). No matter how often you look, at
most one watch in twenty ever gives a false alarm, all gaps and scores together.
The exit status is 0 without an alarm, 1 once there was one, 2 where the file is not what was
watched; then nothing is changed. An alarm stays until another state is started.
With conditions on gaps (fail_if='statistical_parity>0.1') the last line is a verdict, which holds
no matter how often you look, and the status without an alarm is that of the verdict: 0 passes, 1
fails, 3 is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.audits.gate.options import Gating
from fairbench.audits.watching.state import WatchOptions
from fairbench.audits.watching.state_file import WatchFile
from fairbench.cli.command import EXPORTED, Command, Results, check_predictions, narrow_options
from fairbench.cli.gate import GateFiles, check_asked, settle, with_policy
from fairbench.cli.verbs.audit import print_and_write
from fairbench.core.errors import UserError
from fairbench.core.options import hidden, option
from fairbench.evaluation.conditions import conditions_of
from fairbench.results.packs import written_beside

SECTION = "Audit predictions"

ALARM = 1


@dataclass(frozen=True)
class _Options(Results, GateFiles, Gating, WatchOptions):
    """What is watched, and where the state and the page are."""

    state: str = option("", "The file in which everything is kept.", shown="FILE.json")
    out: str = option(
        "", "Where the page and the JSON go; a folder of results/report by default.",
        shown="FOLDER",
    )  # fmt: skip
    given: frozenset[str] = hidden(frozenset(), given=True)

    def __post_init__(self) -> None:
        """Check nothing yet: the state may have the columns."""


def watch(options: _Options) -> int:
    """Look at the file, keep what was found, print and write it; return the exit status."""
    from fairbench.audits.pages.watch import watch_document
    from fairbench.audits.watching.gating import WatchGate, check_watched, gate_of_watch
    from fairbench.audits.watching.look import look

    options = with_policy(options, WatchGate)
    check_asked(options)
    conditions = conditions_of(options.fail_if)
    if not options.state:
        raise UserError(
            "no state file is named, in which the watch is kept: give state=watch.json with every "
            "look, and at the first one the predictions, their columns and groups too"
        )
    file = WatchFile(Path(options.state))
    if not file.exists() and options.path == Path():
        raise UserError(
            f"{file.path} does not exist yet: to start it, give a file of predictions, and its "
            "columns as score=, target= and group="
        )
    if options.path != Path():
        check_predictions(options.path, EXPORTED)
    if conditions:
        watch_options = (
            file.read().options if file.exists() else narrow_options(options, WatchOptions)
        )
        check_watched(conditions, watch_options, options.require)
    watched = look(file, options, options.given)
    name = f"watch-{file.path.stem}"
    folder = Path(options.out) if options.out else written_beside(options.results) / name
    document = watch_document(watched.state, watched.before)
    print_and_write(document, lambda: folder, "watch", more=f"; state: {options.state}")
    if not conditions:
        return ALARM if watched.state.alarms else 0
    status = settle(gate_of_watch(watched.state, conditions, options.require), options,
                    watched.state.options.path)  # fmt: skip
    return ALARM if watched.state.alarms else status


COMMAND = Command(
    _Options,
    watch,
    examples=(
        "fairbench watch loans.csv target=repaid score=score 'group=[sex,race]' state=watch.json",
        "fairbench watch week-7.csv target=repaid score=score group=sex time=week state=watch.json",
        "fairbench watch state=watch.json",
        "fairbench watch state=watch.json 'fail_if=sex:statistical_parity>0.1'",
    ),
)
