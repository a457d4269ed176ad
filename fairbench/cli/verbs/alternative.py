"""Search for a model with a smaller gap and nearly the same error, and say what is left to gain.

Candidates are drawn independently from a distribution that is stated: learners, interventions,
their options and thresholds. conf/alternative.yaml says which, and words such as
learner=logistic_regression,xgboost, intervention=none,reweighing or
"learner.C=tag(log,interval(0.01,10))" say otherwise, as for fairbench tune. The model in use is a
logistic regression unless in_use= names another, by its words or as a run.

Of the candidates whose error on the validation rows is at most within= above that of the model in
use, the one with the smallest gap is chosen. Both are then judged on the test rows, which took no
part in the choice. The search ends once, with 95 % confidence, the expected gain of one more
candidate is below worth=, or after trials= of them. The bound on what further search may gain holds
whenever it ends (arXiv 2512.23943). The page, and the log of everything that was tried, failed ones
with the reason, are written to the results folder. Run the same command again after an
interruption, and it resumes.

stored=true fits nothing and searches the finished runs that the words select, as in "fairbench
choose". They were not drawn at random, so no bound on further search is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, command, formats
from fairbench.core.errors import UserError, check_share
from fairbench.core.options import option

SECTION = "Audit predictions"


@dataclass(frozen=True)
class AlternativeOptions(Results):
    """What is searched, what the model in use is, and when the search ends."""

    ids: tuple[str, ...] = option(
        (), "Finished runs to search, whose ids begin so, with stored=true.", argument="RUN"
    )
    words: tuple[tuple[str, str], ...] = option(
        (), "The data set and what is drawn, as for fairbench tune; with stored=true, which runs.",
        argument="NAME=VALUE", pairs=lambda name: True,
    )  # fmt: skip
    within: float = option(
        0.005, "By how much the error rate may be above that of the model in use."
    )
    gap: str = option(
        "statistical_parity", "The gap between groups that is to be smaller.", shown="METRIC"
    )
    in_use: tuple[str, ...] = option(
        (),
        "The model in use: words such as [learner=xgboost,learner.max_depth=4], or a finished run. "
        "By default a logistic regression; of stored runs, the one of least validation error.",
        shown="[NAME=VALUE,...]|RUN",
    )
    without_group: bool = option(False, "Leave out what needs a person's group at prediction time.")
    trials: int = option(100, "How many candidates are drawn at most.", least=1)
    cpu_seconds: float | None = option(
        None, "After how many CPU seconds of fitting no further candidate is begun."
    )
    worth: float = option(
        0.005,
        "The search ends when one more candidate surely lowers the gap by less on average.",
        share=True,
    )
    level: float = option(0.95, "How sure the intervals and the bound are.", share=True)
    stored: bool = option(False, "Search finished runs, and fit nothing.")
    study: str = option("", "A name, to begin another search beside the first.", shown="NAME")
    formats: tuple[str, ...] = formats("html", "json")
    out: str = option("", "Where the page and the log are written.", shown="FOLDER")

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, before anything is composed or read."""
        check_share("within", self.within, zero=True)
        if self.cpu_seconds is not None and not self.cpu_seconds > 0:
            raise UserError(f"cpu_seconds is {self.cpu_seconds:g}; it must be above 0")


def alternative(options: AlternativeOptions) -> int:
    """Search, judge what is chosen on test rows, and write the page and the log.

    Examples
    --------
    fairbench alternative dataset=german within=0.005
    fairbench alternative dataset=adult learner=xgboost in_use=learner=xgboost trials=40
    fairbench alternative dataset=german gap=equal_opportunity without_group=true
    fairbench alternative stored=true dataset=adult in_use=3f2a within=0.01
    """
    from fairbench.cli.alternative import carry_out
    from fairbench.comparison.alternative import gap_named
    from fairbench.reporting.document.writing import check_forms

    if options.ids and not options.stored:
        raise UserError(
            f"'{options.ids[0]}' is no option: write name=value, or stored=true to search "
            "finished runs"
        )
    if not (options.words or options.stored):
        raise UserError("nothing to search is named, such as dataset=german")
    gap_named(options.gap)
    check_forms(options.formats)
    return carry_out(options)


COMMAND = command(alternative)
