"""Building the components that a composed configuration names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairbench.components import imported
from fairbench.core.errors import UserError, check_minimum, check_types, unknown_name
from fairbench.core.fingerprint import digest
from fairbench.core.formats import quoted, shortened
from fairbench.data import cache as dataset_cache
from fairbench.data.dataset import Dataset, check_combinable, family_of
from fairbench.data.download import Archive
from fairbench.data.groups import check_few_groups
from fairbench.data.splits import Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments.configuration import Config, choice
from fairbench.experiments.contracts import Intervention, Learner, Method
from fairbench.experiments.study import Consistency

_loaded: OrderedDict[str, Dataset] = OrderedDict()
_KEPT = 4
_LARGEST_SEED = 2**63 - 1  # the largest whole number of a record


@dataclass(frozen=True)
class Components:
    """The parts of a run.

    Attributes
    ----------
    protect : the attributes that learners and interventions protect, together.
    family : the family of the data set.
    verified : whether the data set's raw files were compared with the checksums that are known.
    """

    dataset: Dataset
    split: Split
    learner: Learner
    intervention: Intervention
    method: Method
    evaluator: Evaluator
    consistency: Consistency
    protect: tuple[str, ...]
    family: str
    verified: bool


def components(config: Config) -> Components:
    """Make every component, the data set last: it is the one that costs time."""
    check_settings(config)
    check_varied(config)
    split, learner, intervention, method, evaluator, consistency = (
        _component(config, name)
        for name in ("split", "learner", "intervention", "method", "evaluator", "consistency")
    )
    dataset = load_dataset(config)
    protect = _protected_attributes(config, dataset)
    source = f"dataset={dataset.name}"
    check_few_groups(dataset.sensitive, evaluator.intersections, source)
    check_few_groups(dataset.sensitive[list(protect)], len(protect), source)
    return Components(
        dataset,
        split,
        learner,
        intervention,
        method,
        evaluator,
        consistency,
        protect,
        _family(config, dataset),
        _is_verified(config, dataset),
    )


def load_dataset(config: Config) -> Dataset:
    """Load the data set of a configuration; a process keeps the last few it loaded."""
    options = config["dataset"]
    archive = Archive.of(**config["data"])
    key = digest([options, str(archive)])
    if options.get("path"):
        # A file of the user's may change between two runs of one process.
        _loaded.pop(key, None)
    if key not in _loaded:
        data = dataset_cache.load(archive, options, constructor("dataset", options))
        check_combinable(data.sensitive, f"dataset={data.name}")
        _loaded[key] = data
        while len(_loaded) > _KEPT:
            _loaded.popitem(last=False)
    return _loaded[key]


def _family(config: Config, dataset: Dataset) -> str:
    """Return the family of a run's data set; a file of the user's is one by itself."""
    if config["dataset"].get("path"):
        return dataset.name
    module, _, _ = str(config["dataset"]["_target_"]).rpartition(".")
    return family_of(imported(module))


def check_settings(config: Config) -> None:
    """Refuse top-level settings of a wrong type or value."""

    def settings(
        seed: int,
        n_jobs: int,
        timeout_min: float | None,
        wait_min: float,
        resume: bool,
        plan: bool,
        figures: bool,
        results: str,
    ) -> None:
        """Declare the types of the top-level settings."""

    check_types("", settings, config)
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
        chosen_component = f"{group}={choice(config, group)}"
        unknown = str(error).partition("unexpected keyword argument ")[2].strip("'")
        if unknown:
            raise UserError(
                f"{chosen_component} has no option '{unknown}': leave {group}.{unknown} out, or, "
                f"where an experiment sets it, choose a {group} that has it"
            ) from error
        raise UserError(f"{chosen_component}: {error}") from error


def constructor(group: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the constructor of a component: what ``_target_`` names, with the other options.

    Raises
    ------
    UserError : an option of a wrong type.
    """
    module, _, name = str(options["_target_"]).rpartition(".")
    make = getattr(imported(module), name)
    check_types(group, make, options)
    return partial(make, **{key: value for key, value in options.items() if key != "_target_"})


def check_varied(config: Config) -> None:
    """Refuse to vary an option that a component is not configured with, and so would not heed."""
    group, _, option = str(config["consistency"]["vary"] or "").partition(".")
    if group in ("learner", "intervention", "method") and option not in config[group]:
        valid = [name for name in config[group] if name != "_target_"]
        raise unknown_name(f"option of {group}={choice(config, group)} to vary", option, valid)


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
        raise UserError(
            f"protect is {quoted(wanted)}; it must be the name of an attribute, or several, such "
            f"as protect=[sex,race]; dataset={dataset.name} has "
            f"{', '.join(map(shortened, dataset.sensitive.columns))}"
        )
    dataset.groups(names)
    return names


def _is_verified(config: Config, dataset: Dataset) -> bool:
    """Return whether the raw files of a data set were compared with the checksums that are known.

    A table of the user's has none, nor has what is simulated.
    """
    is_own = bool(config["dataset"].get("path")) or not dataset.sources
    return is_own or bool(config["data"]["verify"])
