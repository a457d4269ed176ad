"""Fill in a model card or a form of a rule, from predictions or a finished run.

Each measurement has its interval and the number of people that it rests on; what is missing is
said. A dossier measures; whether a law or a rule is kept, it does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.audits.question import Options
from fairbench.cli.command import Asked, Command, Page, Results
from fairbench.cli.verbs.audit import Predictions, print_and_write, read_input
from fairbench.core.errors import UserError
from fairbench_dossiers import question as asked
from fairbench_dossiers.question import DossierOptions, SelectionOptions

if TYPE_CHECKING:
    from fairbench.reporting.document.model import Document

MADE_FOR = "0.1"


def dossiers() -> Mapping[str, Callable[..., Document]]:
    """Return what makes each: of a question, predictions as strings, what people say, and a day."""
    from fairbench_dossiers.documents import ai_act, model_card
    from fairbench_dossiers.lending import lending
    from fairbench_dossiers.selection import four_fifths, ll144

    return {
        "ll144": ll144,
        "four-fifths": four_fifths,
        "lending": lending,
        "model-card": model_card,
        "ai-act": ai_act,
    }


def _write_dossier(kind: str, options: Asked) -> None:
    """Print a dossier and write it, beside its file or where ``out=`` says.

    Raises
    ------
    UserError : the options do not fit, or the law was repealed; says why there is no dossier.
    """
    from fairbench_dossiers.documents import day_of, names_told, pack_of, read_facts

    day = day_of(options.as_of)
    rules = pack_of(kind).on(day)
    how: dict[str, Any] = {}
    if SelectionOptions in _PARTS[kind]:
        how["unknown"] = options.unknown
    if asked.HiringOptions in _PARTS[kind]:
        if not (options.sex and options.race):
            raise UserError("ll144 is of sex and race: name their columns by sex= and race=")
        how |= {"at_threshold": "threshold" in options.given, "keep_small": options.keep_small}
        options = options.replaced(group=(options.sex, options.race))
    if options.total or options.rates:
        instead = "a dossier needs a row for each person; fairbench audit reads counts"
        raise UserError(f"total= and rates=: {instead}")
    facts = read_facts(options.facts, rules)
    question, frame = read_input(options, _PARTS[kind][0])
    if not question.path.is_file():
        of_run = _facts_of_run(options)
        facts = {name: of_run[name] for name in names_told(rules) if name in of_run} | facts
    document = dossiers()[kind](question, frame, facts, day, **how)
    folder = partial(_report_folder, options, question, kind)
    print_and_write(document, folder, kind, options.formats)


def _facts_of_run(options: Asked) -> dict[str, str]:
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


def _report_folder(options: Asked, question: Options, kind: str) -> Path:
    if options.out:
        return Path(options.out)
    path = question.path
    if path.is_file():
        return path.parent / f"{path.name.partition('.')[0]}-{kind}"
    return options.results / "report" / f"{kind}-{path.name}"


def _list_packs(options: asked.RuleListOptions) -> None:
    """Print every rule pack with its dates."""
    from fairbench.reporting.document.terminal import print_document
    from fairbench_dossiers.documents import day_of, list_of_packs

    print_document(list_of_packs(day_of(options.as_of)))


# What each dossier asks of predictions, and what else.
_PARTS: Mapping[str, tuple[type[Any], ...]] = {
    "ll144": (Options, SelectionOptions, asked.HiringOptions),
    "four-fifths": (Options, SelectionOptions),
    "model-card": (Options,),
    "ai-act": (Options,),
    "lending": (asked.LendingQuestion, SelectionOptions),
    "colorado": (Options,),
}


def _dossier(kind: str, sentence: str, *examples: str, holds: bool = True) -> Command:
    """Return the command that writes a dossier; the examples are the words after its name."""
    lines = [f"fairbench dossier {kind} {words}".strip() for words in examples]
    question, *own = _PARTS[kind]
    parts: tuple[type[Any], ...] = (Predictions, *own[::-1], DossierOptions, question, Page)
    return Command((*parts, Results), partial(_write_dossier, kind), lines, sentence, holds)


_OF_ANY_MODEL = "loans.csv target=repaid score=score group=[sex,race]"
_DOSSIERS: Mapping[str, tuple[Any, ...]] = {
    "ll144": (
        "New York's Local Law 144: selection or scoring rates and impact ratios by sex, race and "
        "both.",
        "candidates.xlsx score=score sex=sex race=race",
        "candidates.csv prediction=hired sex=sex race=race",
    ),
    "four-fifths": (
        "The four-fifths rule of the Uniform Guidelines, with whether chance explains it.",
        "candidates.csv prediction=hired 'group=[sex,race]'",
    ),
    "model-card": (
        "A model card (Mitchell et al. 2019) whose figures have intervals.",
        _OF_ANY_MODEL,
    ),
    "ai-act": (
        "The measurements that the AI Act asks for of a high-risk system, and what is missing.",
        _OF_ANY_MODEL,
    ),
    "lending": (
        "A lender's ratios, odds and mean differences, of decisions, scores and prices.",
        "loans.csv prediction=approved favourable=1 group=race,sex",
        "loans.csv score=pd favourable=0 group=race price=apr",
    ),
}
_REPEALED = "Colorado's SB 24-205 was repealed: says by what."
COMMANDS = {
    **{kind: _dossier(kind, *about) for kind, about in _DOSSIERS.items()},
    "list": Command(
        asked.RuleListOptions,
        _list_packs,
        sentence="Every law and format there are rules of: dates, standing, how many are verified.",
        examples=("fairbench dossier list as_of=2027-12-02",),
    ),
    "colorado": _dossier("colorado", _REPEALED, "", holds=False),
}
