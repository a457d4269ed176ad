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

    def write(self, folder: Path) -> None:
        """Leave the outcome where the sweep's summary finds it."""
        from fairbench.store import write_text

        write_text(folder / OUTCOME, json.dumps(asdict(self)))


class SweepSummary(Callback):
    """Hydra's hook at the end of a sweep: print the summary, log to MLflow in one process."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Sum up; exit with 1 if a job failed, or none left an outcome."""
        from fairbench import console

        folder = Path(config.hydra.sweep.dir)
        outcomes = [
            Outcome(**json.loads(path.read_text()))
            for path in sorted(folder.glob(f"*/{OUTCOME}"), key=lambda p: int(p.parent.name))
        ]
        status = console.sum_up(outcomes, Path(config.results), config.tracking)
        if status:
            raise SystemExit(status)
