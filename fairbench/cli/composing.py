"""Composing each job of a sweep once, where Hydra would do it twice."""

from __future__ import annotations

from omegaconf import DictConfig


def compose_once(kept: int = 500) -> None:
    """Let Hydra compose each job of a sweep once; it would once to check it, and again to run it.

    Checking first refuses a wrong name before hours are spent; at 50 ms a composition, doing so
    twice is most of what a finished sweep costs. The first `kept` compositions are kept.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    compose = ConfigLoaderImpl.load_sweep_config
    composed: dict[tuple[str, ...], DictConfig] = {}

    def load_sweep_config(
        self: ConfigLoaderImpl, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        key = tuple(sweep_overrides)
        if key in composed:
            return composed.pop(key)
        config = compose(self, master_config, sweep_overrides)
        if len(composed) < kept:
            composed[key] = config
        return config

    ConfigLoaderImpl.load_sweep_config = load_sweep_config  # type: ignore[method-assign]
