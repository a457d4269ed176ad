"""The identity of a run: its configuration as plain values, and the id and names made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import yaml
from omegaconf import DictConfig, OmegaConf

from fairbench.components import HOME
from fairbench.core.fingerprint import digest
from fairbench.results.record import GROUPS, UNVERIFIED, VERIFIED, run_name

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


def plain(cfg: DictConfig | Config) -> Config:
    """Return a configuration as plain, resolved values; of Hydra's own part, the choices alone."""
    if not isinstance(cfg, DictConfig):
        return cfg
    chosen = OmegaConf.to_container(cfg.hydra.runtime.choices)
    settings = {str(name): container(node) for name, node in cfg.items() if name != "hydra"}
    return {**settings, "hydra": {"runtime": {"choices": chosen}}}


def container(node: Any) -> Any:
    """Return a part of a configuration as plain, resolved values."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


@dataclass(frozen=True)
class Identity:
    """The identity of a run: the same command is the same run, wherever it is given.

    Attributes
    ----------
    choices : the option chosen for every group of components.
    config : the stored configuration: every component by its name, not by the path of its code.
    """

    choices: dict[str, str]
    config: dict[str, Any]

    @classmethod
    def of(cls, cfg: DictConfig | Config, *, verified: bool = True) -> Identity:
        """Return the identity of the run of a configuration.

        Parameters
        ----------
        verified : whether the raw files of its data set are those that are known. Of others, it is
            another run, and by another name wherever it is listed, compared or shown.
        """
        config = plain(cfg)
        stored: dict[str, Any] = {
            group: {"name": choice(config, group), **config[group]} for group in COMPONENTS
        }
        for options in stored.values():
            del options["_target_"]
        choices = {group: choice(config, group) for group in GROUPS}
        if not verified:
            stored["dataset"][VERIFIED] = False
            choices["dataset"] += UNVERIFIED
        seed = int(config["seed"])
        protect = config["protect"]
        return cls(choices, {**stored, "seed": seed, "protect": protect})

    @cached_property
    def id(self) -> str:
        """The id of the run."""
        return digest(self.config, 12)

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return run_name(self.choices)


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


def full_name(name: str, stored: Mapping[str, Any]) -> str:
    """Return a run's name with every option that is not as its configuration file has it.

    Two runs of one name differ in what was chosen or set, so that this tells them apart.

    Parameters
    ----------
    name : the run's short name: its data set, learner, intervention and method.
    stored : the run's configuration, as an `Identity` has it.
    """
    usual = _usual_choices()
    main_groups = ("dataset", "learner", "intervention", "method")
    parts = []
    for group in (*main_groups, *(group for group in COMPONENTS if group not in main_groups)):
        chosen = str(stored[group]["name"])
        if group not in main_groups and chosen != usual.get(group):
            parts.append(chosen)
        usual_options = configurations(group).get(chosen, {})
        parts += [
            f"{option}={_short(value)}"
            for option, value in stored[group].items()
            if option in usual_options and usual_options[option] != value
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
    """Return the choices and options of a run by default; empty outside of a checkout."""
    path = HOME / "conf" / "config.yaml"
    if not path.is_file():
        return {}
    defaults = yaml.safe_load(path.read_text(encoding="utf-8"))
    chosen = [default for default in defaults.pop("defaults") if isinstance(default, dict)]
    return {**defaults, **{name: value for default in chosen for name, value in default.items()}}
