"""Rounds of further splits: their record, and the runs that they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fairbench.comparison.atlas.approaches import approach_table
from fairbench.comparison.rank.answer import Ranking, answers
from fairbench.comparison.rank.further_splits import TaskNoise
from fairbench.comparison.rank.question import LEFT_OUT, RankOptions
from fairbench.comparison.rank.sources import (
    approaches_as_methods,
    as_read,
    independent_tasks,
    select_approaches_with_enough_tasks,
    with_methods_and_tasks,
)
from fairbench.comparison.rank.table import ScoreTable, read_scores
from fairbench.core.errors import UserError
from fairbench.core.files import DamagedError, sealed_json, unsealed_json, write_text
from fairbench.core.safe_open import TEXT, make_folder, read_bytes
from fairbench.data.benchmark_logs.table import with_scores
from fairbench.results.runs import Run

# Why there is no further round.
RESOLVED, BOUND, BUDGET, ONE_SPLIT = "resolved", "bound", "budget", "one split"


@dataclass(frozen=True)
class Round:
    """A round, as the record keeps it.

    Attributes
    ----------
    number : the number of the round; 1 is the experiment as it stands.
    wrong : the round's share of the error probability.
    splits : task -> the number of its splits.
    best : the approaches that may be the best after it.
    fits, seconds : the number of fits that were made, and the seconds they took.
    """

    number: int
    wrong: float
    splits: Mapping[str, int]
    best: Sequence[str]
    fits: int
    seconds: float


@dataclass(frozen=True)
class Record:
    """The state of a race between the approaches of an experiment.

    Attributes
    ----------
    noise : the noise of the tasks in round 1, by which later rounds are planned.
    """

    noise: Sequence[TaskNoise] = ()
    rounds: Sequence[Round] = ()

    @classmethod
    def read(cls, path: Path) -> Record:
        """Return the record of a file; an empty one where there is none.

        Raises
        ------
        UserError : the file is damaged.
        """
        try:
            plain = unsealed_json(read_bytes(path, TEXT))
            noise = [TaskNoise(**values) for values in plain["noise"]]
            return cls(noise, [Round(**values) for values in plain["rounds"]])
        except FileNotFoundError:
            return cls()
        except (DamagedError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is not as it was written: remove it, and rounds are counted anew from the "
                "finished runs"
            ) from error

    def write(self, path: Path) -> None:
        """Write the file, whole."""
        make_folder(path.parent)
        write_text(path, sealed_json(asdict(self)))


@dataclass
class ApproachRuns:
    """The runs of an experiment's approaches, and what they say of one metric.

    Attributes
    ----------
    first : position of a job -> its run as the experiment has it.
    longest : position of a job -> its run with the most splits so far.
    """

    metric: str
    first: dict[int, Run] = field(default_factory=dict)
    longest: dict[int, Run] = field(default_factory=dict)

    def keep(self, job_index: int, run: Run) -> None:
        """Note a finished run of a job."""
        self.first.setdefault(job_index, run)
        self.longest[job_index] = run

    @cached_property
    def named(self) -> dict[int, tuple[str, str]]:
        """Each job's approach and task, as the ranking calls them."""
        wide = self._wide(list(self.first.values()))
        about = wide.drop_duplicates("run").set_index("run")[["method", "task"]]
        return {
            job_index: (str(about.at[run.id, "method"]), str(about.at[run.id, "task"]))
            for job_index, run in self.first.items()
            if run.id in about.index
        }

    @staticmethod
    def _wide(runs: Sequence[Run]) -> Any:
        return with_methods_and_tasks(approach_table(runs))

    def table(self) -> tuple[ScoreTable, RankOptions]:
        """Return the scores of all approaches in all of their splits."""
        read = with_scores(
            approaches_as_methods(approach_table(list(self.longest.values()))), [self.metric]
        )
        read = independent_tasks(select_approaches_with_enough_tasks(read))
        options = as_read(RankOptions(path=Path("experiment"), crashed=LEFT_OUT), read)
        return read_scores(options, None, read), options

    def answer(self, error_rate: float) -> tuple[Ranking, ScoreTable, RankOptions]:
        """Rank the approaches, with family-wise error rate `error_rate`."""
        table, options = self.table()
        (answer,) = answers(table, options, error_rate=error_rate, most_planned=0)
        return answer, table, options

    def seconds_of_splits(self) -> dict[str, float]:
        """Return the mean seconds of a split of each task, over approaches."""
        costs: dict[str, list[float]] = {}
        for job_index, (_, task) in self.named.items():
            run = self.first[job_index]
            cost = float(run.environment["cost"]["seconds"])
            costs.setdefault(task, []).append(cost / int(run.config["split"]["repeats"]))
        return {task: sum(values) / len(values) for task, values in costs.items()}
