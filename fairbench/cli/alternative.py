"""A less discriminatory alternative as a command line asks for it: from its words to the page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from fairbench.cli.command import (
    check_run_words,
    components_folder,
    options_of,
    typed_command,
    with_note,
)
from fairbench.cli.command_line import CommandLine, choices_in_brackets, hydra_of
from fairbench.cli.jobs import figure_drawer, log_runs, protect_from_collection
from fairbench.cli.output import explain_hydra_errors, print_line
from fairbench.cli.tuning import dimension
from fairbench.cli.verbs.audit import print_and_write
from fairbench.comparison.alternative import (
    SECONDS,
    TRIALS,
    WHOLE,
    WORTH,
    Alternative,
    Row,
    Searched,
    alternative_among_runs,
    compare_models,
    gap_named,
)
from fairbench.comparison.choice import read_shared, shared_rows
from fairbench.components import conf_folders
from fairbench.core.errors import IncompatibleError, UserError, unknown_name
from fairbench.core.options import hydra_word
from fairbench.core.text import digest, fixed
from fairbench.data.dataset import Task
from fairbench.evaluation.tuning_goals import Tuning
from fairbench.experiments.configuration import Presets, check_files_named
from fairbench.experiments.execute import Execution, Plan, executor, plan_run, prepared
from fairbench.experiments.tuning import DrawnSearch, Family, Trial
from fairbench.reporting.searches import alternative_document, value_text
from fairbench.results.catalogue import Catalogue, comparable_sets
from fairbench.results.record import TUNING
from fairbench.results.runs import Run

COMPONENTS = ("learner", "intervention", "method")
# One fit of each candidate; validation rows choose, and test rows play no part in the choice.
USUAL = {
    "split": "tuning",
    "split.repeats": "1",
    "split.validation": "0.25",
    "figures": "false",
    "purpose": TUNING,
}


def carry_out(options: Any) -> int:
    """Search as the options say, print the result, and write the page and the log."""
    answer, default_folder, last_line = (_search_stored if options.stored else _search_drawn)(
        options
    )
    if answer is None:
        return 0
    document = alternative_document(answer, typed_command())
    folder = Path(options.out) if options.out else default_folder
    print_and_write(document, lambda: folder, "alternative", options.formats)
    print_line(last_line) if last_line else None
    return 0


def _search_stored(options: Any) -> tuple[Alternative, Path, str]:
    """Search the finished runs that the words select."""
    catalogue = Catalogue(options.results)
    words = [f"{name}={text}" for name, text in options.words]
    selected = catalogue.matching([*options.ids, *words])
    if not options.ids and "purpose" not in dict(options.words):
        selected = with_note(*selected.counted())
    in_use: list[Run] = []
    if options.in_use:
        if len(options.in_use) > 1 or "=" in options.in_use[0]:
            raise UserError("with stored=true the model in use is a finished run: in_use=RUN")
        in_use = [catalogue.one(options.in_use[0])]
    ids = {run.id for run in in_use}
    runs = [*in_use, *(run for run in selected if run.id not in ids)]
    answer = alternative_among_runs(
        read_shared(runs),
        gap_named(options.gap),
        within=options.within,
        level=options.level,
        in_use_is_named=bool(in_use),
        names=catalogue.only(runs).label(),
        without_group=options.without_group,
    )
    key = digest([[run.id for run in runs], options.gap, options.within], 12)
    return answer, options.results / "report" / f"alternative-{key}", ""


def _search_drawn(options: Any) -> tuple[Alternative | None, Path, str]:
    """Draw candidates until the search ends, and judge the chosen one on the test rows."""
    from fairbench.cli.run import set_up_process

    root = components_folder()
    check_run_words([name for name, _ in options.words], list(options_of(type(options))), root)
    set_up_process()
    with explain_hydra_errors(root / "conf"), hydra_of(root / "conf"), ExitStack() as locks:
        request = Asked(options, root / "conf")
        config = request.line.compose(request.fixed)
        protect_from_collection([config["results"]], locks, make=not config["plan"])
        search = request.search()
        search.check()
        folder = options.results / "alternative" / search.folder.name
        if search.default_plan.config["plan"]:
            families = "; ".join(f"{of.name} {of.options}".rstrip() for of in search.families)
            print_line(
                f"at most {search.tuning.trials} candidates, each of one cell, beside the model in "
                f"use; each draw is of one of these, all as likely: {families}"
            )
            return None, folder, ""
        search.show = lambda number, trial: _print_candidate(search, number, trial)
        search.carry_out()
        answer, runs = judge_search(search, request)
        logged = log_runs(runs, search.default_plan.config["tracking"])
        paths = ", ".join(str(prepared(run).folder.path) for run in runs)
        return answer, folder, f"fitted {search.fitted} cells; runs: {paths}; {logged}"


def judge_search(search: DrawnSearch, request: Asked) -> tuple[Alternative, list[Plan]]:
    """Return the result of a search that has ended, and the finished runs of both models.

    Test rows are read here, for the model in use and the chosen one alone.
    """
    default_plan = search.default_plan
    chosen_plan = plan_run(search.compose(search.everyone[search.chosen_index].values))
    runs = list({run.id: run for run in (default_plan, chosen_plan)}.values())
    drawer = figure_drawer(default_plan.config["figures"])
    for end in Execution(runs, search.executor, drawer).carry_out():
        end.checked()
    shared = shared_rows([prepared(run).folder for run in runs])
    pair_predictions = shared.judging.prediction[:, [0, len(runs) - 1]]
    rows = replace(shared.judging, prediction=pair_predictions)
    level = search.tuning.level
    run = prepared(default_plan)
    # Sequences have no names of features.
    features = [*map(str, getattr(run.dataset.features, "columns", ()))]
    # The runs that searches have had judged on the test rows of the model in use.
    sets = comparable_sets(list(Catalogue(run.folder.results)))
    (comparable,) = (runs for runs in sets if run.id in [other.id for other in runs])
    judged_runs = {chosen_plan.id, *(other.id for other in comparable if other.purpose == TUNING)}
    looks = len(judged_runs - {default_plan.id}) or 1
    comparison = compare_models(rows, search.goals[0].metric, level=level, looks=looks)
    ended = (
        (search.is_enough, WORTH),
        (search.tried_all, WHOLE),
        (len(search.trials) >= search.tuning.trials, TRIALS),
        (True, SECONDS),
    )
    answer = Alternative(
        data=run.dataset.name,
        protect=run.protect,
        tried=_read_candidates(search, request.in_use),
        chosen_index=search.chosen_index,
        within=search.within,
        chosen_by=len(run.cells[0].fold.validation),
        comparison=comparison,
        runs=tuple(run.id for run in runs),
        label=run.dataset.positive_label or "1",
        notes=shared.notes,
        read=tuple(name for name in run.study.protect if name in features),
        search=Searched(
            len(search.trials),
            seen=float(search.values[search.chosen_index, 0]),
            gap=comparison.gaps[1][2],
            level=level,
            whole=search.tried_all,
            families=search.families,
            left_out=request.families[1],
            ended=next(reason for holds, reason in ended if holds),
            worth=search.worth,
            folder=str(search.folder),
            seed=run.study.seed,
        ),
    )
    return answer, runs


def _read_candidates(search: DrawnSearch, values_in_use: Mapping[str, str]) -> list[Row]:
    """Return the model in use and every candidate, as the log has them."""
    families = {family.name: family for family in search.families}
    in_use_needs_group = prepared(search.default_plan).study.group_at_prediction
    rows: list[Row] = []
    for trial, (gap, error) in zip(search.everyone, search.values.tolist(), strict=True):
        values = trial.values or values_in_use
        family = families.get(" ".join(_typed({group: values[group] for group in COMPONENTS})))
        row = {
            "what": " ".join(_typed(values)),
            "label": _label(values),
            "gap": gap,
            "error": error,
            "group_at_prediction": bool(family and family.group_at_prediction),
            "family": family.name if family else "",
            "seconds": trial.seconds,
            "reason": trial.error,
        }
        in_use = {"group_at_prediction": in_use_needs_group, "family": ""}
        rows.append(row if trial.values else {**row, **in_use})
    return rows


def _label(values: Mapping[str, Any]) -> str:
    """Return a candidate for a reader: its components, and the options that are not the usual."""
    parts = [values[name] for name in ("learner", "intervention") if values[name] != "none"]
    options = ", ".join(
        f"{name.rpartition('.')[2]}={value_text(value)}"
        for name, value in values.items()
        if "." in name
    )
    return f"{' + '.join(parts)}{f': {options}' if options else ''}"


def _print_candidate(search: DrawnSearch, number: int, trial: Trial) -> None:
    """Print a candidate on standard error as it ends."""
    if trial.error:
        ended = f"has no value: {trial.error}"
    else:
        gap, error = (estimate.value for estimate in trial.estimates(search.goals))
        ended = f"gap {fixed(gap, 4)}, error {fixed(error, 4)}"
    name = f"candidate {number}: {_label(trial.values)}" if number else "in use"
    print(f"  {name}: {ended}", file=sys.stderr, flush=True)


@dataclass(frozen=True, eq=False)
class Asked:
    """The search that a command asks for, read while Hydra composes."""

    options: Any
    conf: Path

    @cached_property
    def _words_by_name(self) -> dict[str, str]:
        """The words by their names, the usual ones among them."""
        return {**USUAL, **dict(self.options.words)}

    @cached_property
    def line(self) -> CommandLine:
        """The command line of all words except those on learner, intervention and method."""
        texts = {
            name: text
            for name, text in self._words_by_name.items()
            if name.partition(".")[0] not in COMPONENTS
        }
        texts["results"] = hydra_word(str(self.options.results))
        line = CommandLine(["hydra/sweeper=tune", *_typed(texts)], self.conf, sweep=True)
        for name in line.spaces:
            raise UserError(
                f"'{name}={texts[name]}' has several values, and an alternative is searched for "
                "one model on one split: give it one"
            )
        return line

    @property
    def fixed(self) -> tuple[str, ...]:
        """The words that the model in use and all candidates share."""
        return self.line.jobs[0]

    @cached_property
    def _stated(self) -> Mapping[str, Mapping[str, Any]]:
        """The model in use and the candidates, where the command does not name them."""
        stated: Any = yaml.safe_load((self.conf / "alternative.yaml").read_text(encoding="utf-8"))
        return dict(stated)

    def _choices(self, group: str) -> list[str]:
        """Return the choices of a component that are searched."""
        if group not in self._words_by_name:
            return list(self._stated[group])
        text = self._words_by_name[group]
        named = choices_in_brackets(f"{group}={text}", self.conf) or text.split(",")
        return list(dict.fromkeys(named))

    @cached_property
    def _options(self) -> dict[str, str]:
        """The words of the command about the components' options."""
        return {
            name: text
            for name, text in self._words_by_name.items()
            if "." in name and name.partition(".")[0] in COMPONENTS
        }

    @cached_property
    def families(self) -> tuple[list[Family], dict[str, str]]:
        """The families, and why other combinations are none, by what they are made of."""
        families = []
        left_out = dict[str, str]()
        for choices in product(self._choices("learner"), self._choices("intervention")):
            pair = dict(zip(("learner", "intervention"), choices, strict=True))
            family, reason = self._family(pair)
            if family and self.options.without_group and family.group_at_prediction:
                family, reason = None, "it needs a person's group at prediction time"
            if family:
                families.append(family)
            else:
                left_out[" ".join(_typed(pair))] = reason
        return families, left_out

    def _family(self, pair: Mapping[str, str]) -> tuple[Family | None, str]:
        """Return the family of a learner and an intervention with the first method it can have."""
        reason = ""
        for method in self._choices("method"):
            choices = {**pair, "method": method}
            config = self.line.compose([*self.fixed, *_typed(choices)])
            try:
                study = prepared(plan_run(config)).study
            except IncompatibleError as error:
                reason = reason or str(error)
                continue
            if study.dataset.task is not Task.BINARY:
                raise UserError(
                    f"dataset={study.dataset.name} has no binary target, and it is decisions of "
                    "yes or no whose gaps an alternative makes smaller: name another dataset="
                )
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
            group, _, option = name.partition(".")
            if option.partition(".")[0] in config[group]:
                stated[name] = text
        fixed = dict[str, str]()
        space = []
        for name, text in stated.items():
            override = self.line.parse(f"{name}={text}")
            if override.is_sweep_override():
                space.append(dimension(override, config))
            else:
                fixed[name] = text
        return fixed, tuple(space)

    def search(self) -> DrawnSearch:
        """Return the search, after checking the words.

        Raises
        ------
        UserError : an option that no candidate has, or fewer than two candidates.
        """
        families, left_out = self.families
        if not families:
            pair, reason = next(iter(left_out.items()))
            raise UserError(f"there is nothing to search: {pair}: {reason}")
        having = {name for family in families for name in family.stated}
        for name in self._options:
            if name not in having:
                available = {
                    f"{group}.{option}"
                    for family in families
                    for group in COMPONENTS
                    for option in self.line.compose([*self.fixed, *_typed(family.choices)])[group]
                    if option != "_target_"
                }
                raise unknown_name("option", name, available)
        if sum(family.count for family in families) < 2:
            raise UserError(
                f"there is one candidate alone, {families[0].name}: name several learners or "
                "interventions, or give an option an interval, such as "
                "'learner.C=tag(log,interval(0.01,10))'"
            )
        base = self._compose({})
        options = self.options
        tuning = Tuning(
            objectives=(options.gap, "error_rate"),
            trials=options.trials,
            cpu_seconds=options.cpu_seconds,
            level=options.level,
            study=options.study,
        )
        for family in families:  # refuses impossible values before anything is fitted
            example = {option.name: option.example for option in family.space}
            plan_run(self._compose({**family.choices, **family.fixed, **example}))
        return DrawnSearch(
            tuning,
            families,
            self._compose,
            executor(self.line.settings().launcher, base["n_jobs"], base["timeout_min"]),
            within=options.within,
            worth=options.worth,
        )

    def _compose(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration of a candidate, and without values that of the model in use."""
        return self.line.compose([*self.fixed, *_typed(values or self.in_use)])

    @cached_property
    def in_use(self) -> dict[str, str]:
        """The components and options of the model in use.

        Raises
        ------
        UserError : words that say something else, or a run of other data.
        """
        words = self.options.in_use
        stated = dict(word.split("=", 1) for word in words if "=" in word)
        if len(words) == 1 and not stated:
            stated = self._parts_of_run(words[0])
        elif len(stated) < len(words):
            raise UserError(
                f"in_use=[{','.join(words)}] is neither words such as learner=xgboost nor one run"
            )
        for name, text in stated.items():
            if name.partition(".")[0] not in COMPONENTS:
                raise UserError(
                    f"in_use: '{name}={text}' is no part of a model: name learner, intervention, "
                    "method and their options, and say all else outside of in_use="
                )
            if self.line.parse(f"{name}={text}").is_sweep_override():
                raise UserError(f"in_use: '{name}={text}' has several values: one is in use")
        chosen = {**self._stated["in_use"], **stated}
        if "method" not in chosen:
            family, reason = self._family({k: chosen[k] for k in ("learner", "intervention")})
            if family is None:
                raise UserError(f"in_use: {reason}")
            chosen = {"method": family.choices["method"], **chosen}
        return {name: chosen[name] for name in (*COMPONENTS, *chosen)}

    def _parts_of_run(self, name: str) -> dict[str, str]:
        """Return the components and options of the model of a finished run."""
        run = Catalogue(self.options.results).one(name)
        data = str(self.line.compose(self.fixed)["hydra"]["runtime"]["choices"]["dataset"])
        if run.choices["dataset"] != data:
            raise UserError(
                f"in_use={name} is a run of {run.choices['dataset']}, and the search is on {data}: "
                f"name the same, dataset={run.choices['dataset']}"
            )
        chosen = {group: run.choices[group] for group in COMPONENTS}
        presets = Presets(self.conf, tuple(conf_folders()))
        words = presets.overrides(run)  # only those that differ from the defaults
        check_files_named(run, COMPONENTS, self._options)
        return chosen | {k: text for k, text in words.items() if k.partition(".")[0] in COMPONENTS}


def _typed(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]
