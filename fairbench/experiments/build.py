"""Building the components that a configuration names, and refusing combinations of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from fairbench.components import class_named, imported
from fairbench.core.errors import (
    IncompatibleError,
    UserError,
    check_minimum,
    check_plain,
    check_types,
    unknown_name,
)
from fairbench.core.text import digest, quoted, said, shortened
from fairbench.data.dataset import Dataset, Datasheet, Task, check_combinable
from fairbench.data.download import Archive
from fairbench.data.features import SequenceEncoding, Sequences
from fairbench.data.groups import check_few_groups
from fairbench.data.splits import Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments.configuration import Config, configurations
from fairbench.experiments.contracts import Capabilities, Consistency, Intervention, Learner, Method
from fairbench.metrics.registry import gaps_of

_loaded: OrderedDict[str, Dataset] = OrderedDict()
_KEPT = 4
_LARGEST_SEED = 2**63 - 1  # the largest whole number of a record


@dataclass(frozen=True)
class _Components:
    """The parts of a run.

    Attributes
    ----------
    protect : the attributes that learners and interventions protect, together; interventions
        compare their groups.
    names : group, such as ``learner``, -> the name of its choice, for the sentences.
    family : the family of the data set.
    verified : whether the data set's raw files were compared with the checksums that are known.
    """

    dataset: Dataset
    learner: Learner
    intervention: Intervention
    method: Method
    protect: tuple[str, ...]
    names: Mapping[str, str]
    split: Split
    evaluator: Evaluator
    consistency: Consistency
    family: str
    verified: bool

    def of(self, group: str) -> Capabilities:
        """Return the capabilities that the choice for a group declares.

        Raises
        ------
        UserError : it declares nothing, not even by inheriting from its contract.
        """
        part = getattr(self, group)
        if not hasattr(part, "capabilities"):
            about = {"kind": type(part).__name__, "contract": group.capitalize()}
            what = self.display(group)
            raise UserError(said("experiments", "no_capabilities", what=what, **about))
        return part.capabilities

    def display(self, group: str) -> str:
        """Return a choice as it is written: ``learner=xgboost``."""
        return f"{group}={self.names[group]}"


def components(config: Config) -> _Components:
    """Make every component, the data set last: it is the one that costs time."""
    _check_settings(config)
    _check_varied(config)
    made = {
        name: _component(config, name)
        for name in ("split", "learner", "intervention", "method", "evaluator", "consistency")
    }
    dataset = _load_dataset(config)
    protect = _protected_attributes(config, dataset)
    gaps = gaps_of(dataset.task)
    if config["headline"] is not None and config["headline"] not in gaps:
        raise unknown_name("headline", str(config["headline"]), gaps)
    source = f"dataset={dataset.name}"
    check_few_groups(dataset.sensitive, made["evaluator"].intersections, source)
    check_few_groups(dataset.sensitive[list(protect)], len(protect), source)
    # A file of the user's is a family by itself; it has no known checksum, nor has a simulation.
    own = bool(config["dataset"].get("path"))
    loader = imported(str(config["dataset"]["_target_"]).rpartition(".")[0])
    return _Components(
        dataset=dataset,
        protect=protect,
        names=config["hydra"]["runtime"]["choices"],
        family=dataset.name if own else _family_of(loader),
        verified=own or not dataset.sources or bool(config["data"]["verify"]),
        **made,
    )


def _family_of(module: ModuleType) -> str:
    """Return the family of a loader's data sets: those that share their people or their source."""
    datasheet: Datasheet | None = getattr(module, "DATASHEET", None)
    declared = datasheet.family if datasheet else ""
    return declared or module.__name__.rpartition(".")[2]


def _load_dataset(config: Config) -> Dataset:
    """Load the data set of a configuration; a process keeps the last few it loaded."""
    options = config["dataset"]
    archive = Archive(**config["data"])
    key = digest([options, str(archive), *map(str, archive.folders)])
    if options.get("path"):
        # A file of the user's may change between two runs of one process.
        _loaded.pop(key, None)
    if key not in _loaded:
        data = constructor("dataset", options)(archive)
        if not options.get("path"):
            data = archive.with_checksums(data)
        check_combinable(data.sensitive, f"dataset={data.name}")
        _loaded[key] = data
        while len(_loaded) > _KEPT:
            _loaded.popitem(last=False)
    return _loaded[key]


def _check_settings(config: Config) -> None:
    """Refuse top-level settings of a wrong type or value."""
    types = {"seed": "int", "n_jobs": "int", "timeout_min": "float | None", "wait_min": "float"}
    truths = dict.fromkeys(("resume", "plan", "figures"), "bool")
    check_plain("", {**types, **truths, "results": "str"}, config)
    for name, seed in (("seed", config["seed"]), ("dataset.seed", config["dataset"].get("seed"))):
        if isinstance(seed, int):
            check_minimum(name, seed, 0)
            if seed > _LARGEST_SEED:
                raise UserError(f"{name} is {seed}; it must be at most {_LARGEST_SEED}")
    for name in ("timeout_min", "wait_min"):
        if config[name] is not None and not 0 < config[name] < float("inf"):
            raise UserError(f"{name} is {config[name]}; it must be a number of minutes above 0")
    n_jobs = config["n_jobs"]
    if n_jobs < 1 and n_jobs != -1:
        raise UserError(f"n_jobs is {n_jobs}; it must be at least 1, or -1 for every core")


def _component(config: Config, group: str) -> Any:
    """Make the component that the configuration names for a group."""
    make = constructor(group, config[group])
    try:
        return make()
    except TypeError as error:
        name = config["hydra"]["runtime"]["choices"][group]
        text = f"{group}={name}: {error}"
        if unknown := str(error).partition("unexpected keyword argument ")[2].strip("'"):
            text = said("experiments", "no_option", group=group, name=name, option=unknown)
        raise UserError(text) from error


def constructor(group: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the constructor of a component: what ``_target_`` names, with the other options.

    Raises
    ------
    UserError : an option of a wrong type.
    """
    make = class_named(str(options["_target_"]))
    check_types(group, make, options)
    return partial(make, **{key: value for key, value in options.items() if key != "_target_"})


def _check_varied(config: Config) -> None:
    """Refuse to vary an option that a component is not configured with, and so would not heed."""
    group, _, option = str(config["consistency"]["vary"] or "").partition(".")
    if group in ("learner", "intervention", "method") and option not in config[group]:
        valid = [name for name in config[group] if name != "_target_"]
        what = f"option of {group}={config['hydra']['runtime']['choices'][group]} to vary"
        raise unknown_name(what, option, valid)


def _protected_attributes(config: Config, dataset: Dataset) -> tuple[str, ...]:
    """Return the attributes that `protect` names, the data set's first by default.

    Raises
    ------
    UserError : one that the data set does not have, or what is no name.
    """
    wanted = config["protect"]
    if wanted is None:
        return (str(dataset.sensitive.columns[0]),)
    names = tuple(wanted) if isinstance(wanted, list) else (wanted,)
    if not names or not all(isinstance(name, str) for name in names):
        about = {"given": quoted(wanted), "dataset": dataset.name}
        about["attributes"] = ", ".join(map(shortened, dataset.sensitive.columns))
        raise UserError(said("experiments", "no_attribute", **about))
    if len({*names}) < len(names):
        raise UserError(f"protect=[{','.join(names)}] names an attribute twice: name it once")
    dataset.groups(names)
    return names


# Checks whether components can work together; only this module refuses a combination.
#
# It reads what components declare of themselves, their `Capabilities`, and names no component.

_LISTED = 6
# What a component needs, and what a data set is.
_TASKS = {
    Task.BINARY: ("a binary target", "binary"),
    Task.MULTICLASS: ("one of several classes", "of several classes"),
    Task.REGRESSION: ("a numeric target", "a regression"),
}
# A sentence that refuses a combination, and the group of which another choice may mend it.
Objection = tuple[str, str]


def _refusal(parts: _Components) -> str | None:
    """Return the first reason why the components cannot work together, or None."""
    return next((sentence for sentence, _ in _objections(parts)), None)


def check(parts: _Components) -> None:
    """Refuse components that cannot work together, and say which other choices can.

    Raises
    ------
    UserError : a modality that a data set of sequences does not have.
    IncompatibleError : the first reason of any other kind.
    """
    for sentence, group in _objections(parts):
        advice = _alternatives(parts, group)
        raise IncompatibleError(f"{sentence}: {advice}" if advice else sentence)
    dataset, evaluator = parts.dataset, parts.evaluator
    if isinstance(dataset.features, Sequences):
        if isinstance(parts.learner.encoding, SequenceEncoding):
            dataset.features.select(parts.learner.encoding.modalities, f"dataset={dataset.name}")
        for option in ("neighbours", "feature_shift_rates"):
            if getattr(evaluator, option):
                about = {"option": option, "dataset": dataset.name}
                raise IncompatibleError(said("experiments", "compares_columns", **about))
    if evaluator.weights and dataset.weight is None:
        raise IncompatibleError(said("experiments", "no_weights", dataset=dataset.name))


def _objections(parts: _Components) -> Iterator[Objection]:
    """Yield the reasons against a combination, the most obvious first."""
    for group in ("method", "learner", "intervention"):
        yield from _data_reasons(parts, group)
    method, intervention = parts.display("method"), parts.display("intervention")
    gives = parts.of("learner").gives
    for group in ("intervention", "method"):
        if (needs := parts.of(group).needs) and needs not in gives:
            lacks = f"which {parts.display('learner')} has not"
            yield f"{parts.display(group)} needs a learner with {needs}, {lacks}", "learner"
    if parts.of("method").needs and not parts.of("intervention").gives_members:
        sentence = f"{method} reads the members of one fitted learner"
        yield f"{sentence}, which {intervention} does not pass on", "intervention"
    yield from _loss_reasons(parts)
    is_labels = parts.dataset.task is not Task.REGRESSION
    reads_score = is_labels and parts.of("method").reads_score
    if reads_score and not parts.of("intervention").gives_score:
        yield f"{method} reads a probability, and {intervention} predicts labels only", "method"
    most = parts.of("intervention").groups_at_most
    if most is not None:
        count = len(parts.dataset.groups(parts.protect).unique())
        if count > most:
            has = f"{' x '.join(parts.protect)} of dataset={parts.dataset.name} has {count}"
            sentence = f"{intervention} compares at most {most} groups, and {has}"
            yield f"{sentence} (protect=... an attribute with fewer)", "intervention"


def _data_reasons(parts: _Components, group: str) -> Iterator[Objection]:
    """Yield why one component cannot be used here: its packages, the task, the number of rows."""
    capabilities = parts.of(group)
    choice, task = parts.display(group), parts.dataset.task
    data = f"dataset={parts.dataset.name}"
    for module in capabilities.requires:
        if find_spec(module) is None:
            sentence = f"{choice} needs the package {module}, which is not installed"
            yield f"{sentence} (pip install {module})", group
    if task not in capabilities.tasks:
        needed = " or ".join(_TASKS[able][0] for able in _TASKS if able in capabilities.tasks)
        yield f"{choice} needs {needed}, and {data} is {_TASKS[task][1]}", group
    kind = "sequences" if isinstance(parts.dataset.features, Sequences) else "columns"
    if group != "method" and kind not in capabilities.features:
        takes = " or ".join(sorted(capabilities.features))
        yield f"{choice} takes {takes}, and {data} has {kind}", group
    rows = len(parts.dataset.target)
    if capabilities.rows_at_most and rows > capabilities.rows_at_most[0]:
        most, option = capabilities.rows_at_most
        yield f"{choice} takes {most} rows and {data} has {rows} (raise {option})", group


def _loss_reasons(parts: _Components) -> Iterator[Objection]:
    """Yield that the learner or the intervention cannot take the method's loss."""
    loss = parts.method.fitter.loss(parts.dataset.task, len(parts.dataset.classes)).name
    for group, verb, other_group in (
        ("learner", "minimises", "learner"),
        ("intervention", "takes", "method"),
    ):
        losses = parts.of(group).losses
        if losses is not None and loss not in losses:
            only = f"{parts.display(group)} only {verb} {', '.join(sorted(losses))}"
            yield f"{parts.display('method')} minimises {loss}, and {only}", other_group


def _alternatives(parts: _Components, group: str) -> str:
    """Return which other choices for a group work, or what a component itself advises."""
    others = _choices(group).items()
    names = [name for name, other in others if not _refusal(replace(parts, **{group: other}))]
    if not names:
        return parts.of("method").advice or parts.of("intervention").advice
    if len(names) > _LISTED:
        return f"use {group}={', '.join(names[: _LISTED - 1])}, ..."
    return f"use {group}={' or '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}"


@cache
def _choices(group: str) -> dict[str, Any]:
    """Return every choice of a group that can be built as it is configured, by name."""
    components = {}
    for name, options in configurations(group).items():
        with suppress(UserError, TypeError, ImportError):
            component = constructor(group, options)()
            if hasattr(component, "capabilities"):
                components[name] = component
    return components
