"""Options for ranking a table of scores: its columns, and how they count."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.options import check_declared, option

HIGHER, LOWER = "higher", "lower"
FAMILIES, TASKS = "families", "tasks"
NEW, THESE = "new", "these"
WORST, LEFT_OUT = "worst", "left-out"
# Usual names of columns, tried if the options name none.
USUAL_NAMES = {
    "method": ("method", "model", "algorithm", "learner", "system", "approach"),
    "task": ("task", "dataset", "data_set", "benchmark", "problem"),
    "split": ("split", "fold", "repeat", "repetition", "seed"),
    "item": ("item", "question", "question_id", "doc_id", "instance", "example"),
    "family": ("family", "source"),
}


@dataclass(frozen=True)
class RankOptions:
    """Options for ranking: the table, its columns, and how they count."""

    path: Path = option(
        Path,
        "A CSV, Excel, Parquet or Arrow file with one row for each score of a method; a file or "
        "folder of lm-evaluation-harness, inspect_ai, TabArena, OpenML, AutoGluon or benchopt; or "
        "a results folder or pack.",
        argument="SCORES",
    )
    score: tuple[str, ...] = option(
        (), "The column of scores, or several; they share one error rate.", shown="[COLUMN,...]"
    )
    method: str = option(
        "", "The column of what is ranked; one called method, model or algorithm by default.",
        shown="COLUMN",
    )  # fmt: skip
    task: str = option(
        "", "The column of tasks; one called task or dataset by default.", shown="COLUMN"
    )
    split: tuple[str, ...] = option(
        (), "The columns that tell the splits of a task apart, such as [repeat,fold].",
        shown="[COLUMN,...]",
    )  # fmt: skip
    item: str = option(
        "", "The column of questions, where each row is a method's answer to one.", shown="COLUMN"
    )
    family: str = option(
        "", "The column of families: tasks of one source, which go together.", shown="COLUMN"
    )
    cost: str = option("", "The column of what a row cost, by which plans are priced.",
                       shown="COLUMN")  # fmt: skip
    better: tuple[str, ...] = option(
        (), "Whether higher or lower scores are better, for each score; by its name by default.",
        shown="higher|lower",
    )  # fmt: skip
    within: float | None = option(
        None, "The largest difference that does not matter; by default 0.01, or 1 where scores "
        "are percentages.",
        least=0,
    )  # fmt: skip
    crashed: str = option(
        "", "What an empty or NaN score counts as: the worst score of any method on that task, "
        "left-out, or a number. Without it such tables are refused.", shown="worst|left-out|NUMBER",
    )  # fmt: skip
    mean: str = option(
        FAMILIES,
        "What has equal weight in a mean: each family, or each task (with item=, each question).",
        choices=(FAMILIES, TASKS),
    )  # fmt: skip
    about: str = option(
        NEW, "What conclusions are about: new tasks, or these same tasks with new questions.",
        choices=(NEW, THESE),
    )  # fmt: skip
    pair: tuple[str, ...] = option(
        (), "Two methods whose difference is shown by itself.", shown="[METHOD,METHOD]"
    )
    seed: int = option(0, "The seed of random draws.", least=0)
    out: str = option("", "The folder of the page and the JSON.", shown="FOLDER")

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        check_declared(self)
        for direction in self.better:
            if direction not in (HIGHER, LOWER):
                raise UserError(f"better is '{direction}'; it must be higher or lower")
        if len(self.better) > 1 and len(self.better) != len(self.score):
            raise UserError(
                f"better= has {len(self.better)} directions for {len(self.score)} scores: give one "
                "for all of them, or one for each"
            )
        if self.pair and len(set(self.pair)) != 2:
            raise UserError("pair= needs two different methods: pair=[A,B]")
        self.crashed_value  # noqa: B018  (refuses what is no number)

    @property
    def crashed_value(self) -> float | None:
        """The number that a crashed method's score counts, where it is one."""
        if self.crashed in ("", WORST, LEFT_OUT):
            return None
        try:
            return float(self.crashed)
        except ValueError:
            raise UserError(
                f"crashed is '{self.crashed}'; it must be worst, left-out or a number"
            ) from None
