"""Which combinations of components are run: every pair that can work together, in few rows."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from heapq import heappop, heappush
from importlib.util import find_spec
from itertools import combinations, product
from math import inf
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from pytest import MonkeyPatch

from fairbench.components import class_named
from fairbench.components.datasets import simulated, simulated_sequences
from fairbench.experiments import build
from tests.harness import CONF, configuration, options

SPLITS = ("holdout", "kfold", "half_splits", "predefined")
POPULATIONS = {
    "simulated": {"missing": 0.1},
    "simulated_classes": {"task": "multiclass"},
    "simulated_regression": {"task": "regression"},
    "three_groups": {"n_groups": 3},
    "simulated_sequences": {"length": 6, "event": 2},
}
# What has nothing to do with how components compose, and only takes time.
QUICK = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
# Any file: the package is missing here, and refuses every combination.
QUICK["tabpfn"] = {"checkpoint": __file__}

# The plainest first: they fill the rows in which every pair has been met.
METHODS = sorted(options("method"), key=lambda name: (name != "baseline", name))


def population(name):
    """Return the options of a small population, which has a partition of its own."""
    if name == "simulated_sequences":
        return {"n_samples": 200, "test_share": 0.2, **POPULATIONS[name]}
    return {"n_samples": 200, "shift": 0.5, **POPULATIONS[name]}


@cache
def _dataset(name):
    made_by = simulated_sequences if name == "simulated_sequences" else simulated
    return made_by.load(None, **population(name))


@cache
def _component(group, name):
    stored = OmegaConf.load(CONF / group / f"{name}.yaml")
    options = OmegaConf.to_container(OmegaConf.merge(stored, QUICK.get(name, {})))
    return class_named(options.pop("_target_"))(**options)


@cache
def refused(dataset, learner, intervention, method):
    """Return the sentence that refuses a combination, None where it works."""
    names = {"learner": learner, "intervention": intervention, "method": method}
    parts = [_component(group, name) for group, name in names.items()]
    unasked = (None, None, None, "", True)  # split, evaluator ... of which none is refused here
    return build._refusal(build._Components(_dataset(dataset), *parts, ("group",), names, *unasked))


def installed(group):
    """Return the options of a group whose packages this machine has."""
    return {
        name
        for name in options(group)
        if all(find_spec(module) for module in _component(group, name).capabilities.requires)
    }


def every():
    """Return every combination of a population, a learner, an intervention and a method."""
    return list(product(POPULATIONS, options("learner"), options("intervention"), METHODS))


def cover(rows: Sequence[Any], parts: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Return few rows that hold each part of any: each time the first with most that are left."""
    left, chosen = {part for row in rows for part in parts(row)}, []
    waiting = [(-inf, place) for place in range(len(rows))]  # by what they hold, which only falls
    while left:
        _, place = heappop(waiting)
        held = left.intersection(parts(rows[place]))
        if waiting and (-len(held), place) > waiting[0]:
            heappush(waiting, (-len(held), place))
        else:
            chosen.append(rows[place])
            left -= held
    return chosen


@cache
def rows():
    """Return combinations (dataset, split, learner, intervention, method) of all pairs."""
    # The plainest first: they are in the rows that only add the last pairs.
    learners = sorted(options("learner"), key=lambda name: name != "logistic_regression")
    interventions = sorted(options("intervention"), key=lambda name: name != "none")
    every = product(POPULATIONS, SPLITS, learners, interventions, METHODS)
    with MonkeyPatch.context() as patch:
        patch.setattr(build, "find_spec", cache(find_spec))  # which looks through every folder
        working = [row for row in every if refused(row[0], *row[2:]) is None]
    return cover(working, lambda row: combinations(enumerate(row), 2))


@cache
def _composed(*overrides):
    return configuration(*overrides, "tracking=none")


def composed(row, results):
    """Return the configuration of a row; each choice is composed once, as that takes longest."""
    dataset, *others = row
    task = "simulated" if dataset == "three_groups" else dataset
    groups = ("split", "learner", "intervention", "method")
    choices = {"dataset": task, **dict(zip(groups, others, strict=True))}
    cfg = _composed(f"dataset={task}").copy()
    for group, name in choices.items():
        options_ = population(dataset) if group == "dataset" else QUICK.get(name, {})
        cfg[group] = OmegaConf.merge(_composed(f"{group}={name}")[group], options_)
    cfg.results = str(results)
    return cfg
