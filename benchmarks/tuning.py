"""How often the gain that tuning promises covers what fresh test rows show, over tasks and splits.

``python -m benchmarks.tuning splits=20 trials=15`` tunes every task of `TASKS` on that many splits
(seeds), three repeats each, and prints, for each objective, how often the promised interval of the
gain on fresh rows covers the gain that the test rows show, and how often it would without the
correction for the choice. It costs about two CPU seconds per task and split.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.cli.command import components_folder
from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.cli.tuning import search_of
from fairbench.comparison.tuning_result import estimate_promise
from fairbench.core.seeds import rng
from fairbench.evaluation.tuning_goals import GoalRows, together
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.execute import prepared
from fairbench.experiments.tuning_trials import Trial, label_rows
from fairbench.inference.comparing.selection import Tails
from fairbench.inference.comparing.tuned_gain import gain_limits
from fairbench.results.predictions import TEST

LINEAR = "learner=logistic_regression learner.C=tag(log,interval(0.001,10))"
TREES = (
    "learner=xgboost learner.max_depth=interval(1,8) learner.rounds=interval(2,20) "
    "learner.learning_rate=interval(0.05,1)"
)
REPAIR = (
    "intervention=disparate_impact_remover intervention.repair_level=interval(0,1) "
    "hydra.sweeper.objectives=[error_rate,statistical_parity]"
)
TASKS = (
    f"dataset=german {LINEAR}",
    f"dataset=german {TREES}",
    f"dataset=german {LINEAR} {REPAIR}",
    f"dataset=heart_disease {TREES}",
    f"dataset=heart_disease {LINEAR} hydra.sweeper.objectives=[log_loss]",
    f"dataset=ricci {LINEAR}",
    f"dataset=heart_disease {TREES} {REPAIR}",
    f"dataset=compas {LINEAR}",
    f"dataset=south_german_credit {TREES}",
    f"dataset=loan_application {TREES}",
    f"dataset=student_mat {TREES} hydra.sweeper.objectives=[error_rate,equal_opportunity]",
    f"dataset=simulated dataset.n_samples=1000 {TREES}",
)
PLAIN = Tails(0.025, 0.025)


def looks(task: str, split: int, trials: int, results: Path) -> Iterator[dict[str, object]]:
    """Tune a task on a split; yield what is promised of each objective, and what came of it."""
    words = [
        "hydra/sweeper=tune", *task.split(), f"seed={split}", f"hydra.sweeper.trials={trials}",
        f"results='{results}'", "split=tuning", "split.repeats=3",
    ]  # fmt: skip
    conf = components_folder() / "conf"
    with hydra_of(conf), ExitStack() as held:
        search, _ = search_of(CommandLine(words, conf, sweep=True), held)
        tried = search.carry_out()
    people = len(prepared(search.default_plan).cells[0].fold.test)
    answer = estimate_promise(tried, search.goals, search.tuning, test_rows=people)
    looked = [tested_rows(trial) for trial in (tried[0], answer.best)]
    default, chosen = (trial.estimates(search.goals) for trial in (tried[0], answer.best))
    assert tried[0].rows is not None
    rows = tried[0].rows.judging_rows(people)
    for promise, one, two in zip(answer.promises, default, chosen, strict=True):
        naive = gain_limits(one, two, rows, PLAIN, fresh=True)
        result = [promise.goal.estimate(each) for each in looked]
        own = gain_limits(result[0], result[1], looked[0].judging_rows(), PLAIN)
        yield {
            "task": " ".join(word for word in task.split() if "hydra" not in word),
            "split": split,
            "objective": promise.goal.metric.name,
            "promised": promise.gain,
            "shown": result[0].value - result[1].value,
            "lower": promise.fresh[0],
            "upper": promise.fresh[1],
            "naive_lower": naive[0],
            "naive_upper": naive[1],
            "expected_lower": promise.expected[0],
            "expected_upper": promise.expected[1],
            "test_lower": own[0],
            "test_upper": own[1],
        }


def tested_rows(trial: Trial) -> GoalRows:
    """Return what the cells of a trial predict of their test rows."""
    assert trial.plan is not None
    run, parts = prepared(trial.plan), []
    for number, cell in enumerate(run.cells):
        stored = run.store.read(cell.id)
        kept = stored.columns["part"] == TEST
        columns = {name: values[kept] for name, values in stored.columns.items()}
        read = run.method.read(raw_outputs(columns), run.dataset.task, rng(0, "read"))
        rows = columns["row"].astype(np.intp)
        numbers = {name: np.asarray(values, float) for name, values in read.items()}
        parts.append(label_rows(run.dataset, run.study.protect, rows, numbers, number))
    return together(parts)


def coverage(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return how often the intervals cover, with the Monte Carlo error in points."""
    shown, some = table["shown"], table.copy()
    some["covers"] = (table["lower"] <= shown) & (shown <= table["upper"])
    some["naive covers"] = (table["naive_lower"] <= shown) & (shown <= table["naive_upper"])
    some["tuned wins"] = shown > 0
    some["untuned wins"] = shown < 0
    some["width"] = table["upper"] - table["lower"]
    some["naive width"] = table["naive_upper"] - table["naive_lower"]
    some["promised too much"] = table["promised"] - shown
    result = some.groupby(list(by))[
        ["covers", "naive covers", "tuned wins", "untuned wins", "width", "naive width",
         "promised", "shown"]
    ].mean()  # fmt: skip
    result.insert(0, "splits", some.groupby(list(by)).size())
    result["error"] = np.sqrt(result["covers"] * (1 - result["covers"]) / result["splits"])
    return result.round(4)


def main(words: Sequence[str]) -> None:
    """Tune, and print coverage by task, by who wins, and in all."""
    options = dict(word.split("=", 1) for word in words)
    splits, trials = int(options.get("splits", 20)), int(options.get("trials", 15))
    first, lines = int(options.get("first", 0)), list[dict[str, object]]()
    out = Path(options["out"]) if "out" in options else None
    for split in range(first, first + splits):
        for task in TASKS:
            with tempfile.TemporaryDirectory() as folder:
                result = list(looks(task, split, trials, Path(folder)))
            lines += result
            if out:
                with out.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(line) + "\n" for line in result)
    table = pd.DataFrame(lines)
    table["winner"] = np.select(
        [table["shown"] > 0, table["shown"] < 0], ["tuned", "untuned"], "neither"
    )
    for by in (["task", "objective"], ["winner"], ["objective"]):
        print(coverage(table, by).reset_index().to_string(index=False))
    every = coverage(table.assign(all="all"), ["all"])
    print(every.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
