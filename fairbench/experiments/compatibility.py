"""Checks whether components can work together; only this module refuses a combination.

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
        """Return the capabilities that the choice for a group declares.

        Raises
        ------
        UserError : it declares nothing, not even by inheriting from its contract.
        """
        parts = {"learner": self.learner, "intervention": self.intervention, "method": self.method}
        if not hasattr(parts[group], "capabilities"):
            kind = f"{type(parts[group]).__name__}({group.capitalize()})"
            raise UserError(
                f"{self.display(group)} declares no capabilities: write class {kind}, with "
                f"{group.capitalize()} from fairbench.experiments.contracts"
            )
        return parts[group].capabilities

    def display(self, group: str) -> str:
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


def _objections(combination: Combination) -> Iterator[Objection]:
    """Yield the reasons against a combination, the most obvious first."""
    for group in ("method", "learner", "intervention"):
        yield from _data_reasons(combination, group)
    yield from _needs_reasons(combination, "intervention")
    yield from _needs_reasons(combination, "method")
    if combination.of("method").needs and not combination.of("intervention").gives_members:
        sentence = f"{combination.display('method')} reads the members of one fitted learner"
        yield (
            f"{sentence}, which {combination.display('intervention')} does not pass on",
            "intervention",
        )
    yield from _loss_reasons(combination)
    reads_score = (
        combination.dataset.task is not Task.REGRESSION and combination.of("method").reads_score
    )
    if reads_score and not combination.of("intervention").gives_score:
        sentence = f"{combination.display('method')} reads a probability"
        yield (
            f"{sentence}, and {combination.display('intervention')} predicts labels only",
            "method",
        )
    yield from _group_reasons(combination)


def _data_reasons(combination: Combination, group: str) -> Iterator[Objection]:
    """Yield why one component cannot be used here: its packages, the task, the number of rows."""
    capabilities = combination.of(group)
    choice = combination.display(group)
    data = f"dataset={combination.dataset.name}"
    for module in capabilities.requires:
        if find_spec(module) is None:
            sentence = f"{choice} needs the package {module}, which is not installed"
            yield f"{sentence} (pip install {module})", group
    if combination.dataset.task not in capabilities.tasks:
        needed = " or ".join(
            needs for task, needs in _TARGETS.items() if task in capabilities.tasks
        )
        yield f"{choice} needs {needed}, and {data} is {_KINDS[combination.dataset.task]}", group
    kind = "sequences" if isinstance(combination.dataset.features, Sequences) else "columns"
    if group != "method" and kind not in capabilities.features:
        yield (
            f"{choice} takes {' or '.join(sorted(capabilities.features))}, and {data} has {kind}",
            group,
        )
    rows = len(combination.dataset.target)
    if capabilities.rows_at_most and rows > capabilities.rows_at_most[0]:
        most, option = capabilities.rows_at_most
        yield f"{choice} takes {most} rows and {data} has {rows} (raise {option})", group


def _needs_reasons(combination: Combination, group: str) -> Iterator[Objection]:
    """Yield the objection that the learner lacks what an intervention or a method needs."""
    capabilities = combination.of(group)
    if capabilities.needs and capabilities.needs not in combination.of("learner").gives:
        lacks = f"{combination.display('learner')} has not"
        yield (
            f"{combination.display(group)} needs a learner with {capabilities.needs}, which "
            f"{lacks}",
            "learner",
        )


def _loss_reasons(combination: Combination) -> Iterator[Objection]:
    """Yield that the learner or the intervention cannot take the method's loss."""
    loss = combination.method.fitter.loss(
        combination.dataset.task, len(combination.dataset.classes)
    ).name
    for group, verb, other_group in (
        ("learner", "minimises", "learner"),
        ("intervention", "takes", "method"),
    ):
        losses = combination.of(group).losses
        if losses is not None and loss not in losses:
            only = f"{combination.display(group)} only {verb} {', '.join(sorted(losses))}"
            yield f"{combination.display('method')} minimises {loss}, and {only}", other_group


def _group_reasons(combination: Combination) -> Iterator[Objection]:
    """Yield that the intervention compares fewer groups than there are."""
    most = combination.of("intervention").groups_at_most
    if most is None:
        return
    count = len(combination.dataset.groups(combination.protect).unique())
    if count > most:
        sentence = f"{combination.display('intervention')} compares at most {most} groups"
        count_text = (
            f"{' x '.join(combination.protect)} of dataset={combination.dataset.name} has {count}"
        )
        yield f"{sentence}, and {count_text} (protect=... an attribute with fewer)", "intervention"


def _alternatives(combination: Combination, group: str) -> str:
    """Return which other choices for a group work, or what a component itself advises."""
    names = [
        name
        for name, other in _choices(group).items()
        if not refusal(replace(combination, **{group: other}))
    ]
    if not names:
        return combination.of("method").advice or combination.of("intervention").advice
    listed = f"{', '.join(names[: _LISTED - 1])}, ..." if len(names) > _LISTED else _or(names)
    return f"use {group}={listed}"


def _or(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


@cache
def _choices(group: str) -> dict[str, Any]:
    """Return every choice of a group that can be built as it is configured, by name."""
    components = {}
    for name, options in configurations(group).items():
        with suppress(UserError, TypeError, ImportError):
            components[name] = constructor(group, options)()
    return {
        name: component
        for name, component in components.items()
        if hasattr(component, "capabilities")
    }
