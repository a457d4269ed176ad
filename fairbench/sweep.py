"""What a sweep adds to its runs: an outcome file per job, and a summary at the end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """What became of one job of a sweep."""

    status: str  # finished, planned, skipped or failed
    name: str
    run_id: str = ""
    message: str = ""
    computed: int = 0
    seconds: float = 0.0
    estimate: float | None = None
    cells: dict[str, bool] = field(default_factory=dict)  # id -> was it in the store before
    overrides: tuple[str, ...] = ()  # what the sweep asked of this job

    def write(self, folder: Path) -> None:
        """Leave the outcome where the sweep's summary finds it."""
        from fairbench.store import write_text

        write_text(folder / OUTCOME, json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Outcome | None:
        """Return the outcome of the job of a folder, None while it has none."""
        try:
            fields = json.loads((folder / OUTCOME).read_text())
        except FileNotFoundError:
            return None
        return cls(**fields | {"overrides": tuple(fields["overrides"])})

    @property
    def line(self) -> str:
        """The outcome in one line."""
        return f"{self.status}: {self.name}{': ' if self.message else ''}{self.message}"


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


class SweepSummary(Callback):
    """Hydra's hook at the end of a sweep: print the summary, log to MLflow in one process."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Sum up; exit with 1 if a job failed, or none left an outcome."""
        from fairbench import console

        folder = Path(config.hydra.sweep.dir)
        jobs = sorted((p.parent for p in folder.glob(f"*/{OUTCOME}")), key=lambda p: int(p.name))
        outcomes = [outcome for job in jobs if (outcome := Outcome.read(job))]
        status = console.sum_up(outcomes, config)
        if status:
            raise SystemExit(status)
