"""Search for a model with a smaller gap and nearly the same error.

Candidates are drawn independently from a distribution that is stated: learners, interventions,
their options and thresholds. conf/alternative.yaml says which, and words such as
learner=logistic_regression,xgboost, intervention=none,reweighing or
"learner.C=tag(log,interval(0.01,10))" say otherwise, as for fairbench tune. The model in use is a
logistic regression unless in_use= names another, by its words.

Of the candidates whose error on the validation rows is at most error_margin= above that of the
model in use, the one with the smallest gap is chosen. Both are then judged on the test rows, which
took no part in the choice. The search ends once, with 95 % confidence, the expected gain of one
more candidate is below worth=, or after trials= of them. The bound on what further search may gain
holds whenever it ends (arXiv 2512.23943). The page, and the log of everything that was tried,
failed ones with the reason, are written to the results folder. Run the same command again after an
interruption, and it resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from fairbench.cli import command as cli
from fairbench.cli.command import command
from fairbench.cli.command_line import CommandLine, choices_in_brackets, hydra_of
from fairbench.cli.jobs import figure_drawer, log_runs, protect_from_collection
from fairbench.cli.output import print_line
from fairbench.cli.verbs.audit import print_and_write
from fairbench.components import CONF
from fairbench.core.errors import IncompatibleError, UserError, unknown_name
from fairbench.core.options import hydra_word, option
from fairbench.core.text import said
from fairbench.data.dataset import Task
from fairbench.experiments.execute import plan_run, prepared
from fairbench.reporting.document.writing import check_forms
from fairbench.results.record import TUNING
from fairbench_search import alternative as comparison
from fairbench_search.alternative import COMPONENTS
from fairbench_search.goals import Tuning, refusal
from fairbench_search.pages import alternative_document
from fairbench_search.tune_verb import check_run_words, dimension, showing, typed
from fairbench_search.tuning import DrawnSearch, Family

MADE_FOR = "0.1"
# One fit of each candidate; validation rows choose, and test rows play no part in the choice.
USUAL = {
    "split": "tuning",
    "split.repeats": "1",
    "split.validation": "0.25",
    "figures": "false",
    "purpose": TUNING,
}


@dataclass(frozen=True)
class _AlternativeOptions(cli.Page, cli.Results):
    """What is searched, what the model in use is, and when the search ends.

    Attributes
    ----------
    words : The data set and what is drawn, as for fairbench tune.
    error_margin : By how much the error rate may be above that of the model in use.
    minimise : The gap between groups that is to be smaller.
    in_use : The model in use: words such as [learner=xgboost,learner.max_depth=4]. By default a
        logistic regression.
    without_group : Leave out what needs a person's group at prediction time.
    trials : How many candidates are drawn at most.
    cpu_seconds : After how many CPU seconds of fitting no further candidate is begun.
    worth : The search ends when one more candidate surely lowers the gap by less on average.
    level : How sure the intervals and the bound are.
    study : A name: another one is another search, with other draws.
    """

    words: tuple[tuple[str, str], ...] = option((), argument="NAME=VALUE", pairs=lambda name: True)
    error_margin: float = option(0.005, least=0, share=True)
    minimise: str = option("statistical_parity", shown="METRIC")
    in_use: tuple[str, ...] = option((), shown="[NAME=VALUE,...]")
    without_group: bool = option(False)
    trials: int = option(100, least=1)
    cpu_seconds: float | None = option(None, above=0)
    worth: float = option(0.005, share=True)
    level: float = option(0.95, share=True)
    study: str = option("", shown="NAME")


def _alternative(options: _AlternativeOptions) -> int:
    """Draw candidates until the search ends, judge the chosen one on test rows, and write the page.

    Examples
    --------
    fairbench alternative dataset=german error_margin=0.005
    fairbench alternative dataset=adult learner=xgboost in_use=learner=xgboost trials=40
    fairbench alternative dataset=german minimise=equal_opportunity without_group=true
    """
    from fairbench.cli.verbs.run import set_up_process

    if not options.words:
        raise UserError("nothing to search is named, such as dataset=german")
    comparison.gap_named(options.minimise)
    check_forms(options.formats)
    check_run_words(dict(options.words), list(cli.options_of(type(options))))
    set_up_process()
    with hydra_of(), ExitStack() as locks:
        request = _Request(options)
        config = request.line.compose(request.fixed)
        protect_from_collection([config["results"]], locks, make=not config["plan"])
        search = request.search()
        search.check()
        if search.default_plan.config["plan"]:
            families = "; ".join(f"{of.name} {of.options}".rstrip() for of in search.families)
            told = {"trials": search.tuning.trials, "families": families}
            print_line(said("fairbench_search", "plan_of_search", **told))
            return 0
        search.show = showing(search, comparison.candidate_name)
        drawer = figure_drawer(search.default_plan.config)
        answer, runs = comparison.alternative_of_search(search, request.in_use, drawer)
        logged = log_runs(runs, search.default_plan.config["tracking"])
        paths = ", ".join(str(prepared(run).folder.path) for run in runs)
        document = alternative_document(answer, cli.typed_command())
        folder = Path(options.out or options.results / "alternative" / search.id)
        print_and_write(document, lambda: folder, "alternative", options.formats)
        print_line(f"fitted {search.fitted} cells; runs: {paths}; {logged}")
    return 0


class _Request:
    """The search that a command asks for, read while Hydra composes.

    Attributes
    ----------
    line : the command line of all words except those on learner, intervention and method.
    fixed : the words that the model in use and all candidates share.
    left_out : why combinations of components are no families, by what they are made of.
    """

    def __init__(self, options: _AlternativeOptions) -> None:
        """Sort the words into those on the model, and those that all candidates share."""
        self.options = options
        texts = {**USUAL, **dict(options.words)}
        self._of_model = {name: texts.pop(name) for name in [*texts] if _is_of_model(name)}
        texts["results"] = hydra_word(str(options.results))
        self.line = CommandLine(["hydra/sweeper=tune", *typed(texts)], sweep=True)
        for name in self.line.spaces:
            raise refusal("several_values", name=name, text=texts[name])
        self.fixed = self.line.jobs[0]
        # The model in use and the candidates, where the command does not name them.
        self._stated: Any = yaml.safe_load((CONF / "alternative.yaml").read_text(encoding="utf-8"))
        self._options = {name: text for name, text in self._of_model.items() if "." in name}
        self.left_out: dict[str, str] = {}

    def _choices(self, group: str) -> list[str]:
        """Return the choices of a component that are searched."""
        if group not in self._of_model:
            return list(self._stated[group])
        text = self._of_model[group]
        named = choices_in_brackets(f"{group}={text}") or text.split(",")
        return list(dict.fromkeys(named))

    def _families(self) -> list[Family]:
        """Return the families that are drawn from, and note what else is none."""
        families = []
        parts = "learner", "intervention"
        for names in product(*map(self._choices, parts)):
            pair = dict(zip(parts, names, strict=True))
            family, reason = self._family(pair)
            if family and self.options.without_group and family.group_at_prediction:
                family, reason = None, "it needs a person's group at prediction time"
            if family:
                families.append(family)
            else:
                self.left_out[" ".join(typed(pair))] = reason
        return families

    def _family(self, pair: Mapping[str, str]) -> tuple[Family | None, str]:
        """Return the family of a learner and an intervention with the first method it can have."""
        reason = ""
        for method in self._choices("method"):
            choices = {**pair, "method": method}
            config = self.line.compose([*self.fixed, *typed(choices)])
            try:
                study = prepared(plan_run(config)).study
            except IncompatibleError as error:
                reason = reason or str(error)
                continue
            if study.dataset.task is not Task.BINARY:
                name = study.dataset.name
                raise refusal("no_binary_target", name=name)
            fixed, space = self._space(choices, config)
            return Family(choices, fixed, space, study.group_at_prediction), ""
        return None, reason

    def _space(
        self, choices: Mapping[str, str], config: Mapping[str, Any]
    ) -> tuple[dict[str, str], tuple[Any, ...]]:
        """Return the options of a family that are fixed, and those that are drawn."""
        stated = {
            f"{group}.{option}": str(text)
            for group, name in choices.items()
            for option, text in (self._stated[group].get(name) or {}).items()
        }
        for name, text in self._options.items():
            group, option, *_ = name.split(".")
            if option in config[group]:
                stated[name] = text
        overrides = {name: self.line.parse(f"{name}={text}") for name, text in stated.items()}
        drawn = {name: of for name, of in overrides.items() if of.is_sweep_override()}
        fixed = {name: text for name, text in stated.items() if name not in drawn}
        return fixed, tuple(dimension(override, config) for override in drawn.values())

    def search(self) -> DrawnSearch:
        """Return the search, after checking the words.

        Raises
        ------
        UserError : an option that no candidate has, or fewer than two candidates.
        """
        families = self._families()
        if not families:
            pair, reason = next(iter(self.left_out.items()))
            raise UserError(f"there is nothing to search: {pair}: {reason}")
        having = {name for family in families for name in family.stated}
        if unknown := [name for name in self._options if name not in having]:
            raise unknown_name("option that is drawn", unknown[0], having - {*unknown})
        if sum(family.count for family in families) < 2:
            raise refusal("one_candidate", name=families[0].name)
        options = self.options
        shared = ("trials", "cpu_seconds", "level", "study")
        stated = {name: getattr(options, name) for name in shared}
        tuning = Tuning(objectives=(options.minimise, "error_rate"), **stated)
        executor = self.line.executor(self._compose({}))
        ends: dict[str, Any] = {"within": options.error_margin, "worth": options.worth}
        parts = tuning, families, self._compose, executor
        return DrawnSearch(*parts, **ends, left_out=self.left_out)

    def _compose(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration of a candidate, and without values that of the model in use."""
        return self.line.compose([*self.fixed, *typed(values or self.in_use)])

    @cached_property
    def in_use(self) -> dict[str, str]:
        """The components and options of the model in use.

        Raises
        ------
        UserError : words that say something else.
        """
        words = self.options.in_use
        stated = dict(word.split("=", 1) for word in words if "=" in word)
        if len(stated) < len(words):
            raise refusal("in_use_unclear", words=",".join(words))
        for name, text in stated.items():
            if not _is_of_model(name):
                raise refusal("not_of_model", name=name, text=text)
            if self.line.parse(f"{name}={text}").is_sweep_override():
                raise UserError(f"in_use: '{name}={text}' has several values: one is in use")
        chosen = {**self._stated["in_use"], **stated}
        if "method" not in chosen:
            family, reason = self._family({k: chosen[k] for k in ("learner", "intervention")})
            if family is None:
                raise UserError(f"in_use: {reason}")
            chosen = {"method": family.choices["method"], **chosen}
        return {name: chosen[name] for name in (*COMPONENTS, *chosen)}


def _is_of_model(name: str) -> bool:
    """Say whether a word of this name is on learner, intervention or method."""
    return name.partition(".")[0] in COMPONENTS


COMMAND = command(_alternative)
