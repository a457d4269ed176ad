"""Fill in a model card or a form of a rule about a model, from predictions or a finished run.

Each measurement has its interval and the number of people that it rests on; what is missing is
said. A dossier measures; whether a law or a rule is kept, it does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairbench.audits.question import LendingQuestion, Options
from fairbench.cli.command import Command
from fairbench.cli.verbs.audit import AuditedOptions, print_and_write, read_input
from fairbench.core.errors import UserError
from fairbench.core.options import option
from fairbench.results.packs import written_beside

SECTION = "Audit predictions"


@dataclass(frozen=True)
class DossierOptions(AuditedOptions):
    """The options of an audit, and what people say of the model."""

    facts: str = option(
        "",
        "A file of what no prediction can tell, in lines such as 'contact: us@example.org', or in "
        "JSON. The dossier names what is missing.",
        shown="FILE",
    )
    as_of: str = option(
        "", "Take the rules as they are on this day, such as 2026-11-23; by default today.",
        shown="DAY",
    )  # fmt: skip


@dataclass(frozen=True)
class RuleListOptions:
    """The day as of which rule packs are listed."""

    as_of: str = option(
        "", "List the rules as they are on this day, such as 2026-11-23; by default today.",
        shown="DAY",
    )  # fmt: skip


@dataclass(frozen=True)
class SelectionOptions(DossierOptions):
    """The same, of rules on categories of people."""

    unknown: tuple[str, ...] = option(
        (),
        "Answers that mean that a category is not known, beside those that usually do, such as "
        "'Prefer not to say' and 'N/A'. Such people are counted, and in no category.",
        shown="[LABEL,...]",
    )


@dataclass(frozen=True)
class HiringOptions(SelectionOptions):
    """The same, with the columns that New York's rules are about."""

    sex: str = option("", "The column of sex.", shown="COLUMN")
    race: str = option("", "The column of race or ethnicity.", shown="COLUMN")
    keep_small: bool = option(
        True,
        "Categories of under 2 % of the people of the file have impact ratios as all others. With "
        "false they are excluded, as an independent auditor may decide and has to justify.",
    )


@dataclass(frozen=True)
class LendingOptions(SelectionOptions, LendingQuestion):
    """The same, with what is asked of a lender."""


def ll144(options: HiringOptions) -> None:
    """Write the tables of Local Law 144."""
    if not (options.sex and options.race):
        raise UserError("ll144 is of sex and race: name their columns by sex= and race=")
    both_columns = replace(options, group=(options.sex, options.race))
    write_dossier(
        "ll144",
        both_columns,
        at_threshold="threshold" in options.given,
        unknown=options.unknown,
        keep_small=options.keep_small,
    )


def four_fifths(options: SelectionOptions) -> None:
    """Write what the four-fifths rule looks at."""
    write_dossier("four-fifths", options, unknown=options.unknown)


def lending(options: LendingOptions) -> None:
    """Write the figures of a lender."""
    write_dossier("lending", options, LendingQuestion, unknown=options.unknown)


def write_dossier(
    kind: str, options: DossierOptions, question: type[Options] = Options, **how: Any
) -> None:
    """Print a dossier and write it, beside its file or where ``out=`` says.

    Parameters
    ----------
    question : the dataclass of the options of the dossier's function.
    how : further arguments of that function.
    """
    if options.total or options.rates:
        raise UserError(
            "total= and rates=: a dossier needs a row for each person; fairbench audit reads counts"
        )
    from fairbench.audits.dossiers import DOSSIERS
    from fairbench.audits.dossiers.facts import names_told, read_facts
    from fairbench.audits.dossiers.rulebook import day_of, pack_of

    day = day_of(options.as_of)
    rules = pack_of(kind).on(day)
    facts = read_facts(options.facts, rules)
    question_options, frame = read_input(options, question)
    if not question_options.path.is_file():
        facts_of_run = _facts_of_run(options)
        facts = {
            name: facts_of_run[name] for name in names_told(rules) if name in facts_of_run
        } | facts
    document = DOSSIERS[kind](question_options, frame, facts, day, **how)
    report_folder = partial(_report_folder, options, question_options, kind)
    print_and_write(document, report_folder, kind, options.formats, detail=options.detail)


def list_packs(options: RuleListOptions) -> None:
    """Print every rule pack with its dates."""
    from fairbench.audits.dossiers.listing import list_of_packs
    from fairbench.audits.dossiers.rulebook import day_of
    from fairbench.reporting.document.terminal import print_document

    print_document(list_of_packs(day_of(options.as_of)))


def say_repealed(kind: str, options: DossierOptions) -> None:
    """Say of a law that no dossier is made of why there is none.

    Raises
    ------
    UserError : says so.
    """
    from fairbench.audits.dossiers.rulebook import day_of, pack_of

    pack_of(kind).on(day_of(options.as_of))


def _facts_of_run(options: DossierOptions) -> dict[str, str]:
    """Return what is known of a model from its run."""
    from fairbench.results.catalogue import Catalogue

    run = Catalogue(options.results).one(str(options.path))
    choices = run.choices
    return {
        "type": f"{choices['learner']}; intervention: {choices['intervention']}; how it tells its "
        f"uncertainty: {choices['method']}",
        "version": f"run {run.id}",
        "training_data": f"the training rows of {choices['dataset']}",
        "evaluation_data": f"the test rows of {choices['dataset']}, repeat {options.repeat}",
    }


def _report_folder(options: DossierOptions, question_options: Options, kind: str) -> Path:
    if options.out:
        return Path(options.out)
    path = question_options.path
    if path.is_file():
        return path.parent / f"{path.name.partition('.')[0]}-{kind}"
    return written_beside(options.results) / f"{kind}-{path.name}"


_PARTS = (
    (
        "model-card",
        "A model card (Mitchell et al. 2019) whose figures have intervals.",
        "loans.csv target=repaid score=score group=[sex,race]",
    ),
    (
        "ai-act",
        "The measurements that the AI Act asks for of a high-risk system, and what is missing.",
        "loans.csv target=repaid score=score group=[sex,race]",
    ),
)
COMMANDS = {
    "ll144": Command(
        HiringOptions,
        ll144,
        sentence="New York's Local Law 144: selection or scoring rates and impact ratios by sex, "
        "race and both.",
        examples=(
            "fairbench dossier ll144 candidates.xlsx score=score sex=sex race=race",
            "fairbench dossier ll144 candidates.csv prediction=hired sex=sex race=race",
        ),
    ),
    "four-fifths": Command(
        SelectionOptions,
        four_fifths,
        sentence="The four-fifths rule of the Uniform Guidelines, with whether chance explains it.",
        examples=(
            "fairbench dossier four-fifths candidates.csv prediction=hired 'group=[sex,race]'",
        ),
    ),
    **{
        kind: Command(
            DossierOptions,
            partial(write_dossier, kind),
            sentence=sentence,
            examples=(f"fairbench dossier {kind} {example}",),
        )
        for kind, sentence, example in _PARTS
    },
    "lending": Command(
        LendingOptions,
        lending,
        sentence="A lender's ratios, odds and mean differences, of decisions, scores and prices.",
        examples=(
            "fairbench dossier lending loans.csv prediction=approved favourable=1 group=race,sex",
            "fairbench dossier lending loans.csv score=pd favourable=0 group=race price=apr",
        ),
    ),
    "list": Command(
        RuleListOptions,
        list_packs,
        sentence="Every law and format there are rules of: dates, standing, how many are verified.",
        examples=("fairbench dossier list as_of=2027-12-02",),
        holds=False,
    ),
    "colorado": Command(
        DossierOptions,
        partial(say_repealed, "colorado"),
        sentence="Colorado's SB 24-205 was repealed: says by what.",
        examples=("fairbench dossier colorado",),
        holds=False,
    ),
}
