"""Which components cannot work together, and why: the one place that refuses a combination.

It reads what components declare of themselves, their `Capabilities`, and names no component.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any

from fairbench.core.errors import IncompatibleError, UserError
from fairbench.data.dataset import Dataset, Task
from fairbench.data.encoding import SequenceEncoding
from fairbench.data.sequences import Sequences
from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments.build import Components, constructor
from fairbench.experiments.configuration import configurations
from fairbench.experiments.contracts import Capabilities, Intervention, Learner, Method

_LISTED = 6
_TARGETS = {
    Task.BINARY: "a binary target",
    Task.MULTICLASS: "one of several classes",
    Task.REGRESSION: "a numeric target",
}
_KINDS = {
    Task.BINARY: "binary",
    Task.MULTICLASS: "of several classes",
    Task.REGRESSION: "a regression",
}
# A sentence that refuses a combination, and the group of which another choice may mend it.
Objection = tuple[str, str]


@dataclass(frozen=True)
class Combination:
    """The components of one run, checked for whether they can work together.

    Attributes
    ----------
    protect : the sensitive attributes whose groups interventions compare.
    names : group, such as ``learner``, -> the name of its choice, for the sentences.
    """

    dataset: Dataset
    learner: Learner
    intervention: Intervention
    method: Method
    protect: tuple[str, ...]
    names: Mapping[str, str]

    def of(self, group: str) -> Capabilities:
        """Return what the choice for a group declares.

        Raises
        ------
        UserError : it declares nothing, not even by inheriting from its contract.
        """
        parts = {"learner": self.learner, "intervention": self.intervention, "method": self.method}
        if not hasattr(parts[group], "capabilities"):
            kind = f"{type(parts[group]).__name__}({group.capitalize()})"
            raise UserError(
                f"{self.named(group)} declares no capabilities: write class {kind}, with "
                f"{group.capitalize()} from fairbench.experiments.contracts"
            )
        return parts[group].capabilities

    def named(self, group: str) -> str:
        """Return a choice as it is written: ``learner=xgboost``."""
        return f"{group}={self.names[group]}"


def refusal(combination: Combination) -> str | None:
    """Return the first reason why the components cannot work together, or None."""
    return next((sentence for sentence, _ in _objections(combination)), None)


def check(components: Components, names: Mapping[str, str]) -> None:
    """Refuse components that cannot work together, and say which other choices can.

    Parameters
    ----------
    names : group -> the name of its choice.

    Raises
    ------
    UserError : a modality that a data set of sequences does not have.
    IncompatibleError : the first reason of any other kind.
    """
    parts = components
    combination = Combination(
        parts.dataset, parts.learner, parts.intervention, parts.method, parts.protect, names
    )
    for sentence, group in _objections(combination):
        advice = _alternatives(combination, group)
        raise IncompatibleError(f"{sentence}: {advice}" if advice else sentence)
    _check_sequences(parts.dataset, parts.learner, parts.evaluator)
    if parts.evaluator.weights and parts.dataset.weight is None:
        raise IncompatibleError(
            f"evaluator.weights=true, but dataset={parts.dataset.name} has no survey weights: "
            "leave it out (a table of yours has them where dataset.weight names their column)"
        )


def _check_sequences(dataset: Dataset, learner: Learner, evaluator: Evaluator) -> None:
    """Refuse options that a data set of sequences cannot meet."""
    if not isinstance(dataset.features, Sequences):
        return
    if isinstance(learner.encoding, SequenceEncoding):
        dataset.features.select(learner.encoding.modalities, f"dataset={dataset.name}")
    for option in ("neighbours", "feature_shift_rates"):
        if getattr(evaluator, option):
            raise IncompatibleError(
                f"evaluator.{option} compares columns, and dataset={dataset.name} has sequences: "
                "leave it out"
            )


def _objections(c: Combination) -> Iterator[Objection]:
    """Yield what stands against a combination, the plainest reason first."""
    for group in ("method", "learner", "intervention"):
        yield from _about_data(c, group)
    yield from _about_needs(c, "intervention")
    yield from _about_needs(c, "method")
    if c.of("method").needs and not c.of("intervention").gives_members:
        sentence = f"{c.named('method')} reads the members of one fitted learner"
        yield f"{sentence}, which {c.named('intervention')} does not pass on", "intervention"
    yield from _about_losses(c)
    reads_score = c.dataset.task is not Task.REGRESSION and c.of("method").reads_score
    if reads_score and not c.of("intervention").gives_score:
        sentence = f"{c.named('method')} reads a probability"
        yield f"{sentence}, and {c.named('intervention')} predicts labels only", "method"
    yield from _about_groups(c)


def _about_data(c: Combination, group: str) -> Iterator[Objection]:
    """Yield why one component cannot be used here: its packages, the task, the number of rows."""
    own, here, data = c.of(group), c.named(group), f"dataset={c.dataset.name}"
    for module in own.requires:
        if find_spec(module) is None:
            sentence = f"{here} needs the package {module}, which is not installed"
            yield f"{sentence} (pip install {module})", group
    if c.dataset.task not in own.tasks:
        needed = " or ".join(needs for task, needs in _TARGETS.items() if task in own.tasks)
        yield f"{here} needs {needed}, and {data} is {_KINDS[c.dataset.task]}", group
    has = "sequences" if isinstance(c.dataset.features, Sequences) else "columns"
    if group != "method" and has not in own.features:
        yield f"{here} takes {' or '.join(sorted(own.features))}, and {data} has {has}", group
    rows = len(c.dataset.target)
    if own.rows_at_most and rows > own.rows_at_most[0]:
        most, option = own.rows_at_most
        yield f"{here} takes {most} rows and {data} has {rows} (raise {option})", group


def _about_needs(c: Combination, group: str) -> Iterator[Objection]:
    """Yield that the learner does not have what an intervention or a method needs."""
    own = c.of(group)
    if own.needs and own.needs not in c.of("learner").gives:
        has_not = f"{c.named('learner')} has not"
        yield f"{c.named(group)} needs a learner with {own.needs}, which {has_not}", "learner"


def _about_losses(c: Combination) -> Iterator[Objection]:
    loss = c.method.fitter.loss(c.dataset.task, len(c.dataset.classes)).name
    for group, verb, other in (
        ("learner", "minimises", "learner"),
        ("intervention", "takes", "method"),
    ):
        known = c.of(group).losses
        if known is not None and loss not in known:
            only = f"{c.named(group)} only {verb} {', '.join(sorted(known))}"
            yield f"{c.named('method')} minimises {loss}, and {only}", other


def _about_groups(c: Combination) -> Iterator[Objection]:
    most = c.of("intervention").groups_at_most
    if most is None:
        return
    count = len(c.dataset.groups(c.protect).unique())
    if count > most:
        sentence = f"{c.named('intervention')} compares at most {most} groups"
        has = f"{' x '.join(c.protect)} of dataset={c.dataset.name} has {count}"
        yield f"{sentence}, and {has} (protect=... an attribute with fewer)", "intervention"


def _alternatives(c: Combination, group: str) -> str:
    """Return which other choices for a group work, or what a component itself advises."""
    names = [
        name for name, other in _choices(group).items() if not refusal(replace(c, **{group: other}))
    ]
    if not names:
        return c.of("method").advice or c.of("intervention").advice
    listed = f"{', '.join(names[: _LISTED - 1])}, ..." if len(names) > _LISTED else _or(names)
    return f"use {group}={listed}"


def _or(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


@cache
def _choices(group: str) -> dict[str, Any]:
    """Return every choice of a group that can be built as it is configured, by name."""
    built = {}
    for name, options in configurations(group).items():
        with suppress(UserError, TypeError, ImportError):
            built[name] = constructor(group, options)()
    return {name: each for name, each in built.items() if hasattr(each, "capabilities")}
