"""Write what a rule or a format asks to be told of a model, from predictions or a finished run.

Each measurement has its interval and the number of people that it rests on; what is missing is
said. A dossier measures; whether a law or a rule is kept, it does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.audits.question import Options
from fairbench.cli.command import Command
from fairbench.cli.verbs.audit import AuditOptions, print_and_write, read_input
from fairbench.core.errors import UserError
from fairbench.core.options import option
from fairbench.results.packs import written_beside

if TYPE_CHECKING:
    import pandas as pd

    from fairbench.audits.dossiers.facts import Fact
    from fairbench.reporting.document.model import Document

Made = Callable[[Options, "pd.DataFrame", dict[str, str]], "Document"]


@dataclass(frozen=True)
class DossierOptions(AuditOptions):
    """The options of an audit, and what people say of the model."""

    facts: str = option(
        "",
        "A file of what no prediction can tell, in lines such as 'contact: us@example.org', or in "
        "JSON. The dossier names what is missing.",
        shown="FILE",
    )


@dataclass(frozen=True)
class HiringOptions(DossierOptions):
    """The same, with the columns that New York's rules are about."""

    sex: str = option("", "The column of sex.", shown="COLUMN")
    race: str = option("", "The column of race or ethnicity.", shown="COLUMN")


def ll144(options: HiringOptions) -> None:
    """Write the tables of Local Law 144."""
    from fairbench.audits.dossiers.contents import read_facts
    from fairbench.audits.dossiers.facts import LL144_FACTS
    from fairbench.audits.dossiers.selection import ll144 as made

    if not (options.sex and options.race):
        raise UserError("ll144 is of sex and race: name their columns by sex= and race=")
    facts = read_facts(options.facts, LL144_FACTS)
    asked, frame = read_input(replace(options, group=(options.sex, options.race)))
    scoring = bool(asked.score) and not asked.prediction and "threshold" not in options.given
    document = made(asked, frame, options.sex, options.race, facts, scoring=scoring)
    _write(options, asked, document, "ll144")


def four_fifths(options: DossierOptions) -> None:
    """Write what the four-fifths rule looks at."""
    from fairbench.audits.dossiers.facts import FOUR_FIFTHS_FACTS
    from fairbench.audits.dossiers.selection import four_fifths as made

    _carry_out(options, "four-fifths", made, FOUR_FIFTHS_FACTS)


def model_card(options: DossierOptions) -> None:
    """Write a model card."""
    from fairbench.audits.dossiers.cards import model_card as made
    from fairbench.audits.dossiers.facts import CARD_FACTS

    _carry_out(options, "model-card", made, CARD_FACTS)


def ai_act(options: DossierOptions) -> None:
    """Write what articles 10 and 15 of the AI Act ask to be measured."""
    from fairbench.audits.dossiers.cards import ai_act as made
    from fairbench.audits.dossiers.facts import ACT_FACTS

    _carry_out(options, "ai-act", made, ACT_FACTS)


def _carry_out(options: DossierOptions, kind: str, made: Made, asked_for: Sequence[Fact]) -> None:
    from fairbench.audits.dossiers.contents import names_told, read_facts

    facts = read_facts(options.facts, asked_for)
    asked, frame = read_input(options)
    own = {} if asked.path.is_file() else _of_run(options)
    facts = {**{name: own[name] for name in names_told(asked_for) if name in own}, **facts}
    _write(options, asked, made(asked, frame, facts), kind)


def _of_run(options: DossierOptions) -> dict[str, str]:
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


def _write(options: DossierOptions, asked: Options, document: Document, kind: str) -> None:
    """Print a dossier and write it, beside its file or where ``out=`` says."""
    print_and_write(document, lambda: _place(options, asked, kind), kind, options.formats)


def _place(options: DossierOptions, asked: Options, kind: str) -> Path:
    if options.out:
        return Path(options.out)
    path = asked.path
    if path.is_file():
        return path.parent / f"{path.name.partition('.')[0]}-{kind}"
    return written_beside(options.results) / f"{kind}-{path.name}"


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
        DossierOptions,
        four_fifths,
        sentence="The four-fifths rule of the Uniform Guidelines, with whether chance explains it.",
        examples=(
            "fairbench dossier four-fifths candidates.csv prediction=hired group=[sex,race]",
        ),
    ),
    "model-card": Command(
        DossierOptions,
        model_card,
        sentence="A model card (Mitchell et al. 2019) whose figures have intervals.",
        examples=(
            "fairbench dossier model-card loans.csv target=repaid score=score group=[sex,race]",
        ),
    ),
    "ai-act": Command(
        DossierOptions,
        ai_act,
        sentence="The measurements that articles 10 and 15 of the AI Act ask for, and what is "
        "missing.",
        examples=("fairbench dossier ai-act loans.csv target=repaid score=score group=[sex,race]",),
    ),
}
