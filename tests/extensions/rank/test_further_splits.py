"""Rounds of further splits: what they are laid out by, and that the best is seldom dropped."""

import json
from collections import Counter
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.resolving import OPTIONS, RACES, SimulatedRace, measured
from fairbench.cli.main import main
from fairbench.results.catalogue import Catalogue
from fairbench_rank import resolve
from fairbench_rank.new_tasks import least_half_width, variance_parts
from fairbench_rank.ranking import WRONG, answers
from fairbench_rank.scores import read_scores
from fairbench_rank.sign_flips import as_student

SCALES = np.array([0.01, 0.05, 0.2, 0.05])
SECONDS = {"t0": 1.0, "t1": 1.0, "t2": 1.0, "t3": 10.0}


def read(values):
    """Return scores of methods on tasks, one a family, in splits."""
    methods, tasks, splits = values.shape
    names = [f"m{m}" for m in range(methods)], [f"t{t}" for t in range(tasks)], range(splits)
    index = pd.MultiIndex.from_product(names, names=["method", "task", "split"])
    frame = pd.Series(values.ravel(), index, name="score").reset_index()
    frame = frame.assign(family=frame["task"], seconds=frame["task"].map(SECONDS).fillna(1))
    return read_scores(OPTIONS, frame)


def scores(splits=40, *, means=0.0, sign=1):
    """Return scores of tasks, one a family, whose splits scatter by `SCALES`."""
    draw = np.random.default_rng(0)
    noise = draw.standard_normal((5, len(SCALES), splits)) * SCALES[:, None]
    noise -= noise.mean(axis=-1, keepdims=True)
    return read(means + sign * noise)


def test_the_rounds_share_one_error_rate():
    assert resolve.seconds_of_text("1.5h") == 5400.0
    spent = sum(resolve.wrong_of_round(number) for number in range(1, 10_000))
    assert spent == pytest.approx(WRONG, rel=1e-3) and spent < WRONG


def test_noise_is_that_of_splits_around_means_and_does_not_depend_on_who_is_ahead():
    """Neither shifted means nor deviations that are all turned round change a split."""
    plain = resolve.noise_of_tasks(scores(splits=400), OPTIONS)
    assert [task.task for task in plain] == ["t0", "t1", "t2", "t3"]
    assert [task.noise**0.5 for task in plain] == pytest.approx(SCALES, rel=0.1)
    assert {(task.weight, task.splits) for task in plain} == {(0.25, 400)}
    assert not resolve.noise_of_tasks(scores(splits=1), OPTIONS)
    means = np.random.default_rng(1).normal(size=(5, 4, 1))
    for other in (scores(400, means=means), scores(400, sign=-1)):
        moved = resolve.noise_of_tasks(other, OPTIONS)
        assert [task.noise for task in moved] == pytest.approx([task.noise for task in plain])
        assert resolve.splits_of_round(moved, 5) == resolve.splits_of_round(plain, 5)


def test_every_round_leaves_so_much_of_the_variance_at_the_least_cost():
    tasks = resolve.noise_of_tasks(scores(splits=5), OPTIONS)
    first = resolve.splits_of_round(tasks, 1)
    assert first == dict.fromkeys(SECONDS, 5)
    whole, before = sum(task.variance(5) for task in tasks), first
    for number in range(2, 9):
        splits = resolve.splits_of_round(tasks, number)
        left = sum(task.variance(splits[task.task]) for task in tasks)
        assert left <= whole * resolve.SHRUNK ** (number - 1) * (1 + 1e-9)
        assert all(splits[name] >= before[name] for name in splits)
        before = splits
    assert before["t2"] > before["t1"] >= before["t3"] >= before["t0"] == 5
    quiet = resolve.TaskNoise("quiet", 3, 0.0, 0.5, 1.0)
    assert resolve.splits_of_round([quiet, *tasks], 4)["quiet"] == 3
    assert resolve.splits_of_round([quiet], 4) == {"quiet": 3}


def of_families(difference, between, splits, noise=0.02, families=30):
    """Return the answer about two methods on families, and the floor of its half width."""
    draw, task = np.random.default_rng(0), np.arange(families)
    own = draw.normal(0, between, (2, families, 1)) + np.array([difference, 0])[:, None, None]
    own[0] += difference - (own[0] - own[1]).mean()  # the sample's mean difference, to the digit
    values = own + draw.normal(0, noise, (2, families, splits))
    (answer,) = answers(read(values), OPTIONS)
    parts = variance_parts((values[0] - values[1]).ravel(), np.repeat(task, splits), task)
    return answer, least_half_width(parts, families, answer.held.critical)


def test_the_least_half_width_is_in_reach_in_one_sample_of_twenty():
    """Of 30 families whose differences have the variance 1, a fifth of which is of their splits."""
    variances = np.random.default_rng(0).chisquare(29, 4000) / 29
    floors = [least_half_width((variance, 0.2), 30, 3.0) for variance in variances]
    truth = float(as_student(3.0, 29)) * (0.8 / 30) ** 0.5
    assert np.mean(np.array(floors) > truth) == pytest.approx(0.05, abs=0.01)


def test_what_families_differ_by_is_out_of_reach_and_what_splits_hide_is_not():
    answer, floor = of_families(0.002, 0.02, 20)
    (plan,) = resolve.rivals_of(answer, answer.methods)
    assert plan["floor"] == pytest.approx(floor) and resolve.is_out_of_reach(plan)
    assert plan["units_needed"] > 100
    _, floor = of_families(0.02, 0.001, 2, noise=0.05)
    assert not resolve.is_out_of_reach({"difference": 0.02, "floor": floor})


def test_a_far_better_method_is_soon_alone():
    race = SimulatedRace("far", methods=3, families=12, gap=0.2, rounds=4)
    assert race.dropped(np.random.default_rng(0)) == (False, 1)


@pytest.mark.slow
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_best_is_dropped_in_one_race_of_twenty_at_most(race):
    dropped, *_ = measured(race, 200)
    assert dropped <= 0.081


SWEEP = (
    "dataset.n_samples=120,140,160,180,200,220", "learner=gaussian_nb,logistic_regression",
    "method=baseline", "split.repeats=2", "figures=false", "tracking=none",
)  # fmt: skip


@pytest.fixture(autouse=True)
def ticking(monkeypatch):
    """Have half a second go by whenever the time is asked for, however slow the machine."""
    clock = SimpleNamespace(monotonic=partial(next, count(step=0.5)))
    monkeypatch.setattr("fairbench_rank.resolve.time", clock)


def resolved(folder, capsys, *more):
    """Run the sweep with a budget; return its exit status, what it printed, and its record."""
    status = main(["resolve", "error_rate", "budget=5s", *SWEEP, f"results={folder}", *more])
    printed = capsys.readouterr()
    (record,) = folder.glob("resolve/*/rounds.json")
    return status, printed.out, json.loads(record.read_text())


@pytest.mark.thorough
def test_rounds_add_splits_and_the_page_says_what_they_bought(tmp_path, capsys):
    status, printed, record = resolved(tmp_path, capsys)
    assert status == 0
    rounds = record["rounds"]
    assert [entry["number"] for entry in rounds] == list(range(1, len(rounds) + 1))
    assert "approaches may have the least error_rate on average over tasks" in printed
    told = json.loads(next(tmp_path.glob("resolve/*/resolve.json")).read_text())
    assert [entry["splits"] for entry in told["rounds"]] == [entry["splits"] for entry in rounds]
    assert told["reason"] in ("budget", "bound", "resolved")
    longest = Counter()
    for run in Catalogue(tmp_path):
        task = f"simulated n_samples={run.config['dataset']['n_samples']}, group"
        longest[task] = max(longest[task], int(run.config["split"]["repeats"]))
    assert rounds[-1]["splits"].items() <= longest.items()
    again = resolved(tmp_path, capsys, "resume=true")[2]["rounds"]
    assert again[: len(rounds)] == rounds  # no round is made twice
    (record,) = tmp_path.glob("resolve/*/rounds.json")
    record.write_text(record.read_text().replace('"fits"', '"fit"'))
    assert main(["resolve", "error_rate", "budget=5s", *SWEEP, f"results={tmp_path}"]) == 2
    assert "rounds.json is not as it was written: remove it" in capsys.readouterr().err


REFUSED = {
    "error_rate": "budget= is missing: fairbench resolve error_rate budget=2h",
    "budget=2h": "no metric is named",
    "error_rate budget=2": "budget=2 is no time: write 90s, 30m, 2h or 1d",
    "error_rate budget=0h": "budget=0h is no time",
    "error_rate budget=soon": "budget=soon is no time",
    "eror_rate budget=1m": "did you mean error_rate",
    "selection_rate budget=1m": "neither higher nor lower values",
    "error_rate budget=1m plan=true": "plan=true plans an experiment",
    "error_rate budget=1m split=test_file": "",
    "error_rate budget=1m split.repeats=1": "two at least, split.repeats=2",
    "error_rate budget=1m dataset.n_samples=120 learner=xgboost": "and this is one run",
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_refused_in_a_line(words, tmp_path, refused):
    sweep = [*SWEEP[:3], *words.split(), f"results={tmp_path}"]
    refused("resolve", *sweep, message=REFUSED[words])
    assert not (tmp_path / "cells").exists()
