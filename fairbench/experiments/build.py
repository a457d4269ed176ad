"""Building the components that a composed configuration names."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from hydra.errors import InstantiationException
from hydra.utils import get_method, instantiate
from omegaconf import DictConfig, OmegaConf

from fairbench.core.errors import UserError, check_types
from fairbench.core.fingerprint import ROOT, digest
from fairbench.data import cache as dataset_cache
from fairbench.data.dataset import Dataset, check_combinable
from fairbench.data.download import Archive
from fairbench.data.splits import Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments.contracts import Intervention, Learner, Method
from fairbench.experiments.study import Consistency
from fairbench.results.catalogue import GROUPS

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


def components(cfg: DictConfig) -> Components:
    """Instantiate every component, the data set last: it is the one that costs time."""
    check_settings(cfg)
    split, learner, intervention, method, evaluator, consistency = (
        _instantiate(cfg, name)
        for name in ("split", "learner", "intervention", "method", "evaluator", "consistency")
    )
    return Components(
        load_dataset(cfg), split, learner, intervention, method, evaluator, consistency
    )


def load_dataset(cfg: DictConfig) -> Dataset:
    """Load the data set of a configuration; a process keeps the last few it loaded."""
    archive = Archive.of(**container(cfg.data))
    key = digest([container(cfg.dataset), str(archive)])
    if cfg.dataset.get("path"):
        # A file of the user's may change between two runs of one process.
        _loaded.pop(key, None)
    if key not in _loaded:
        loader = _instantiate(cfg, "dataset", _partial_=True)
        data = dataset_cache.load(archive, container(cfg.dataset), loader)
        check_combinable(data.sensitive, f"dataset={data.name}")
        _loaded[key] = data
        while len(_loaded) > _KEPT:
            _loaded.popitem(last=False)
    return _loaded[key]


def check_settings(cfg: DictConfig) -> None:
    """Refuse top-level settings of a wrong type or value."""

    def settings(
        seed: int, n_jobs: int, resume: bool, plan: bool, figures: bool, results: str
    ) -> None:
        """Declare the types of the top-level settings."""

    check_types("", settings, {str(name): value for name, value in cfg.items() if name != "hydra"})
    if cfg.n_jobs < 1 and cfg.n_jobs != -1:
        raise UserError(f"n_jobs is {cfg.n_jobs}; it must be at least 1, or -1 for every core")


def _instantiate(cfg: DictConfig, group: str, **extra: Any) -> Any:
    options = container(cfg[group])
    check_types(group, get_method(str(options["_target_"])), options)
    try:
        return instantiate(cfg[group], **extra, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, UserError):
            raise cause from None
        if isinstance(cause, TypeError):
            raise UserError(f"{group}={choice(cfg, group)}: {cause}") from error
        raise


def container(node: DictConfig) -> dict[str, Any]:
    """Return a configuration node as plain, resolved Python values."""
    values: Any = OmegaConf.to_container(node, resolve=True)
    return {str(key): value for key, value in values.items()}


def resolved(cfg: DictConfig) -> dict[str, Any]:
    """Return a configuration as plain values; of Hydra's own part, the choices alone."""
    chosen: Any = OmegaConf.to_container(cfg.hydra.runtime.choices)
    own = OmegaConf.create({name: cfg[name] for name in cfg if name != "hydra"})
    return {**container(own), "hydra": {"runtime": {"choices": chosen}}}


def protected_attributes(cfg: DictConfig, dataset: Dataset) -> tuple[str, ...]:
    """Return the attributes that `protect` names, the data set's first by default.

    Raises
    ------
    UserError : one that the data set does not have.
    """
    wanted = cfg.protect
    if wanted is None:
        return (str(dataset.sensitive.columns[0]),)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    dataset.groups(names)
    return names


def stored_configuration(cfg: DictConfig) -> dict[str, Any]:
    """Return what the run is: every component by its name, never by where its code lies."""
    stored: dict[str, Any] = {}
    for group in COMPONENTS:
        options = container(cfg[group])
        del options["_target_"]
        stored[group] = {"name": choice(cfg, group), **options}
    plain: Any = OmegaConf.to_container(OmegaConf.create({"protect": cfg.protect}))
    return {**stored, "seed": int(cfg.seed), **plain}


def run_id(cfg: DictConfig) -> str:
    """Return the id of the run: the same command is the same run."""
    return digest(stored_configuration(cfg), 12)


def choice(cfg: DictConfig, group: str) -> str:
    """Return the option chosen for a group, as Hydra composed it.

    The configuration has to be composed with ``return_hydra_config=True``.
    """
    return str(cfg.hydra.runtime.choices[group])


@cache
def configurations(group: str) -> dict[str, dict[str, Any]]:
    """Return every choice of a group as its file has it, by name; none outside of a checkout."""
    paths = sorted((ROOT / "conf" / group).glob("*.yaml"))
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


def choices(cfg: DictConfig) -> dict[str, str]:
    """Return the option chosen for every group that makes up a run."""
    return {group: choice(cfg, group) for group in GROUPS}


def run_name(chosen: dict[str, str]) -> str:
    """Return a short name for people: data set, learner, intervention, method."""
    names = (chosen[group] for group in ("dataset", "learner", "intervention", "method"))
    return ", ".join(name for name in names if name != "none")
