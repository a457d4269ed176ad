"""What became of a job of a sweep, left in a file where the summary finds it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

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
        from fairbench.core.files import write_text  # which loads numpy: --help does without

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
