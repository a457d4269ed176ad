"""Building the components that a composed configuration names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import yaml
from omegaconf import DictConfig, OmegaConf

from fairbench.components import HOME, imported
from fairbench.core.errors import UserError, check_minimum, check_types, unknown_name
from fairbench.core.fingerprint import digest
from fairbench.data import cache as dataset_cache
from fairbench.data.dataset import Dataset, check_combinable, family_of
from fairbench.data.download import Archive
from fairbench.data.splits import Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments.contracts import Intervention, Learner, Method
from fairbench.experiments.study import Consistency
from fairbench.results.record import GROUPS

# What a run is, as against how and where it is computed.
IDENTITY = (
    "dataset",
    "split",
    "learner",
    "intervention",
    "method",
    "evaluator",
    "consistency",
    "seed",
    "protect",
)
COMPONENTS = (*GROUPS, "consistency")
# A composed configuration as plain values; of Hydra's own part it has the choices.
Config: TypeAlias = Mapping[str, Any]
_loaded: OrderedDict[str, Dataset] = OrderedDict()
_KEPT = 4


@dataclass(frozen=True)
class Components:
    """The parts of a run."""

    dataset: Dataset
    split: Split
    learner: Learner
    intervention: Intervention
    method: Method
    evaluator: Evaluator
    consistency: Consistency


def plain(cfg: DictConfig | Config) -> Config:
    """Return a configuration as plain, resolved values; of Hydra's own part, the choices alone."""
    if not isinstance(cfg, DictConfig):
        return cfg
    chosen = OmegaConf.to_container(cfg.hydra.runtime.choices)
    own = {str(name): container(node) for name, node in cfg.items() if name != "hydra"}
    return {**own, "hydra": {"runtime": {"choices": chosen}}}


def container(node: Any) -> Any:
    """Return a part of a configuration as plain, resolved values."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def components(config: Config) -> Components:
    """Make every component, the data set last: it is the one that costs time."""
    check_settings(config)
    check_varied(config)
    split, learner, intervention, method, evaluator, consistency = (
        _made(config, name)
        for name in ("split", "learner", "intervention", "method", "evaluator", "consistency")
    )
    return Components(
        load_dataset(config), split, learner, intervention, method, evaluator, consistency
    )


def load_dataset(cfg: DictConfig | Config) -> Dataset:
    """Load the data set of a configuration; a process keeps the last few it loaded."""
    config = plain(cfg)
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


def family(config: Config, dataset: Dataset) -> str:
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
    check_minimum("seed", config["seed"], 0)
    for name in ("timeout_min", "wait_min"):
        if config[name] is not None and not 0 < config[name] < float("inf"):
            raise UserError(f"{name} is {config[name]}; it must be a number of minutes above 0")
    n_jobs = config["n_jobs"]
    if n_jobs < 1 and n_jobs != -1:
        raise UserError(f"n_jobs is {n_jobs}; it must be at least 1, or -1 for every core")


def _made(config: Config, group: str) -> Any:
    make = constructor(group, config[group])
    try:
        return make()
    except TypeError as error:
        named = f"{group}={choice(config, group)}"
        unknown = str(error).partition("unexpected keyword argument ")[2].strip("'")
        if unknown:
            raise UserError(
                f"{named} has no option '{unknown}': leave {group}.{unknown} out, or, where an "
                f"experiment sets it, choose a {group} that has it"
            ) from error
        raise UserError(f"{named}: {error}") from error


def constructor(group: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return what makes a component: what ``_target_`` names, with the other options.

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


def protected_attributes(config: Config, dataset: Dataset) -> tuple[str, ...]:
    """Return the attributes that `protect` names, the data set's first by default.

    Raises
    ------
    UserError : one that the data set does not have.
    """
    wanted = config["protect"]
    if wanted is None:
        return (str(dataset.sensitive.columns[0]),)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    dataset.groups(names)
    return names


def stored_configuration(cfg: DictConfig | Config) -> dict[str, Any]:
    """Return what the run is: every component by its name, never by where its code lies."""
    config = plain(cfg)
    stored: dict[str, Any] = {
        group: {"name": choice(config, group), **config[group]} for group in COMPONENTS
    }
    for options in stored.values():
        del options["_target_"]
    return {**stored, "seed": int(config["seed"]), "protect": config["protect"]}


def run_id(stored: Mapping[str, Any]) -> str:
    """Return the id of the run of a stored configuration: the same command is the same run."""
    return digest(stored, 12)


def choice(config: Config, group: str) -> str:
    """Return the option chosen for a group, as Hydra composed it.

    The configuration has to be composed with ``return_hydra_config=True``.
    """
    return str(config["hydra"]["runtime"]["choices"][group])


@cache
def configurations(group: str) -> dict[str, dict[str, Any]]:
    """Return every choice of a group as its file has it, by name; none outside of a checkout."""
    paths = sorted((HOME / "conf" / group).glob("*.yaml"))
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


def choices(config: Config) -> dict[str, str]:
    """Return the option chosen for every group that makes up a run."""
    return {group: choice(config, group) for group in GROUPS}


def run_name(chosen: dict[str, str]) -> str:
    """Return a short name for people: data set, learner, intervention, method."""
    names = (chosen[group] for group in ("dataset", "learner", "intervention", "method"))
    return ", ".join(name for name in names if name != "none")


def telling_name(name: str, stored: Mapping[str, Any]) -> str:
    """Return a run's name with every option that is not as its configuration file has it.

    Two runs of one name differ in what was chosen or set, so that this tells them apart.

    Parameters
    ----------
    name : of the run: its data set, learner, intervention and method.
    stored : of :func:`stored_configuration`.
    """
    usual, named = _usual_choices(), ("dataset", "learner", "intervention", "method")
    parts = []
    for group in (*named, *(group for group in COMPONENTS if group not in named)):
        chosen = str(stored[group]["name"])
        if group not in named and chosen != usual.get(group):
            parts.append(chosen)
        known = configurations(group).get(chosen, {})
        parts += [
            f"{option}={_short(value)}"
            for option, value in stored[group].items()
            if option in known and known[option] != value
        ]
    parts += [
        f"{option}={_short(stored[option])}"
        for option in ("seed", "protect")
        if stored[option] != usual.get(option)
    ]
    return ", ".join([name, *parts])


_LONGEST = 40


def _short(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@cache
def _usual_choices() -> dict[str, Any]:
    """Return what a run chooses and sets that is told nothing; nothing outside of a checkout."""
    path = HOME / "conf" / "config.yaml"
    if not path.is_file():
        return {}
    known = yaml.safe_load(path.read_text(encoding="utf-8"))
    chosen = [each for each in known.pop("defaults") if isinstance(each, dict)]
    return {**known, **{name: value for each in chosen for name, value in each.items()}}
