"""A finished run's configuration composed again from the names of its components."""

from __future__ import annotations

from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf, open_dict

from fairbench.experiments.build import COMPONENTS
from fairbench.results.runs import Run


def recompose(run: Run, conf: Path) -> DictConfig:
    """Return the configuration of a stored run, whose names stand for the files in `conf`."""
    words = [f"{group}={run.config[group]['name']}" for group in COMPONENTS]
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        cfg = compose("config", [*words, f"seed={run.seed}"], return_hydra_config=True)
    with open_dict(cfg):
        for group in COMPONENTS:
            options = {name: v for name, v in run.config[group].items() if name != "name"}
            cfg[group] = OmegaConf.merge(cfg[group], options)
        cfg.protect = run.config["protect"]
        cfg.results = str(run.results)
    return cfg
