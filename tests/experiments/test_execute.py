"""Carrying out plans: shared cells once, failures where they belong, on every executor alike."""

import contextlib
import errno
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from fairbench.cli import jobs as summary
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.core.errors import UserError
from fairbench.core.files import token
from fairbench.experiments.execute import (
    KILLED,
    Execution,
    Plan,
    UnitResult,
    WorkUnit,
    _on_workers,
    _work,
    carry_out,
    in_process,
    plan_run,
    prepared,
    prices_of,
    seconds_of_fit,
)
from fairbench.reporting.panels import draw_figures
from fairbench.results.catalogue import Catalogue
from fairbench.results.upkeep import garbage
from tests.harness import ROOT, TINY, comparable, configuration, session, within

READINGS = ("ensemble", "selective_ensemble", "self_consistency")


@pytest.fixture
def plans(tmp_path):
    """Return a function that plans runs of some methods, in a results folder of their own."""

    def make(folder, *methods, words=()):
        options = ("dataset.n_samples=200", "split.repeats=2", "figures=false", *words)
        results = tmp_path / folder
        return [plan_run(configuration(*options, f"method={m}", results=results)) for m in methods]

    return make


def metrics(run):
    return comparable(prepared(run).folder.all_metrics())


def carried_out_once(plans, name, where):
    """Carry out runs that share a bag, which is fitted once; return their metrics."""
    runs, seen = plans(name, *READINGS), []
    execution = Execution(runs, where, on_cell=seen.append)
    assert (execution.cells, execution.stored) == (2, set())
    ends = execution.carry_out()
    assert seen == [True, True]
    assert [end.computed for end in ends] == [2, 0, 0]
    assert not [end.error for end in ends if end.error]
    again = Execution(plans(name, *READINGS), None)  # nothing is left that needs an executor
    assert [end.computed for end in again.carry_out()] == [0, 0, 0]
    return [metrics(run) for run in runs]


def test_runs_that_are_evaluated_together_took_a_part_of_the_seconds_each(plans):
    runs, together = plans("r", "ensemble", "self_consistency"), []

    def where(units):
        for unit in units:
            result = _work(unit)
            together.extend([result.seconds] if unit.others else [])
            yield replace(result, seconds=0.0) if unit.cell else result

    ends = Execution(runs, where).carry_out()
    assert [end.seconds for end in ends] == [sum(together) / 2] * 2 and sum(together) > 0


@pytest.mark.thorough
def test_workers_fit_a_shared_bag_once_and_find_the_same(plans):
    here, beside = (
        carried_out_once(plans, name, where)
        for name, where in (("here", in_process), ("workers", partial(_on_workers, n_jobs=2)))
    )
    for one, other in zip(here, beside, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_cells_of_a_sweep_that_was_killed_are_no_garbage(plans):
    def killed(units):
        yield next(in_process(units))
        raise KeyboardInterrupt

    runs = plans("r", "ensemble")
    with pytest.raises(KeyboardInterrupt):
        Execution(runs, killed).carry_out()
    assert len(list(runs[0].store.root.glob("cells/*/*.parquet"))) == 1
    assert garbage(runs[0].store, 0) == []
    (end,) = Execution(plans("r", "ensemble"), in_process).carry_out()
    assert end.computed == 1
    assert not list((runs[0].store.root / "begun").iterdir())


@pytest.mark.thorough
def test_a_cell_that_fails_fails_the_runs_that_need_it_and_no_others(plans):
    runs, ended, failed = plans("r", *READINGS, "binomial_nll"), [], []

    def where(units):
        for unit in units:
            if unit.cell and not failed:
                failed.append(unit)
                yield UnitResult(unit, error="boom")
            else:
                yield _work(unit)

    ends = Execution(runs, where, on_end=lambda end: ended.append(end.plan.name)).carry_out()
    assert [end.error for end in ends] == ["boom"] * 3 + [""]
    assert sorted(ended) == sorted(run.name for run in runs)
    # The other cell of the bag was kept: the same plans go on with the one that failed.
    ends = Execution(plans("r", *READINGS), in_process).carry_out()
    assert [end.computed for end in ends] == [1, 0, 0]


def test_a_cell_that_another_process_computes_comes_last(plans):
    (run,) = plans("r", "ensemble")
    stored = []
    with contextlib.ExitStack() as elsewhere:
        elsewhere.enter_context(run.store.lock(run.cells[0]))

        def done(fresh):
            stored.append([run.store.has(cell) for cell in run.cells])
            elsewhere.close()

        (end,) = Execution([run], in_process, on_cell=done).carry_out()
    assert stored == [[False, True], [True, True]]
    assert (end.computed, end.error) == (2, "")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (UserError("choose another"), UserError, "^choose another$"),
        (OSError(errno.ENOSPC, "No space left on device"), UserError, "No space left on device"),
        (ZeroDivisionError("in a component"), RuntimeError, "(?s)^Traceback.*in a component"),
    ],
)
def test_what_one_run_failed_of_is_raised(plans, monkeypatch, raised, kind, message):
    def fails(*arguments):
        raise raised

    monkeypatch.setattr(Ensemble, "read", fails)
    config = plans("r", "ensemble")[0].config
    with pytest.raises(kind, match=message):
        carry_out(config)
    monkeypatch.undo()
    assert carry_out(config).computed == 0  # what was fitted was kept


class Calls:
    """What a worker that receives it does first."""

    def __init__(self, function, argument):
        self.what = function, (argument,)

    def __reduce__(self):
        return self.what


@pytest.mark.thorough
def test_a_worker_that_is_killed_or_takes_too_long_loses_its_own_unit_only(plans):
    good, bad, late = plans("r", "ensemble", "binomial_nll", "baseline")
    units = [
        WorkUnit(bad, draw=Calls(signal.raise_signal, signal.SIGKILL)),
        WorkUnit(late, draw=Calls(time.sleep, 60)),
        WorkUnit(good),
        WorkUnit(good, good.cells[0]),
    ]
    started = time.monotonic()
    done = _on_workers(units, 2, minutes=0.2)
    errors = {(finished.unit.plan.id, finished.unit.cell): finished.error for finished in done}
    assert time.monotonic() - started < 30
    said = "took longer than 0.2 minutes (timeout_min): finished cells are kept"
    kept = {(good.id, None): "", (good.id, good.cells[0]): ""}
    assert errors == {(bad.id, None): KILLED, (late.id, None): said, **kept}


def test_a_damaged_cell_is_computed_again_when_its_run_is_evaluated(plans):
    (run,) = plans("r", "ensemble")
    Execution([run], in_process).carry_out()
    before = metrics(run)
    run.store.cell_path(run.cells[0]).write_bytes(b"nothing")
    (prepared(run).folder.path / "environment.json").unlink()
    (again,) = plans("r", "ensemble")
    (end,) = Execution([again], in_process).carry_out()
    assert end.computed == 1
    pd.testing.assert_frame_equal(metrics(again), before)


# The second holds the interpreter as a library does that is being loaded: no thread gets on.
@pytest.mark.thorough
@pytest.mark.parametrize("busy", ["time.sleep(60)", "ctypes.PyDLL(None).sleep(60)"])
def test_no_worker_is_left_by_a_sweep_that_is_killed(busy):
    command = (
        "import ctypes, time; from fairbench.experiments.execute import _on_workers\n"
        "class Task:\n"
        "    def __reduce__(self):\n"
        f"        return exec, ('import ctypes, time; {busy}',)\n"
        "list(_on_workers([Task(), Task()], 2))"
    )
    process = subprocess.Popen([sys.executable, "-c", command], cwd=ROOT, start_new_session=True)
    within(60, lambda: len(session(process.pid, "multiprocessing.spawn")) >= 2)
    time.sleep(1)  # until they are ready
    process.kill()
    process.wait()
    within(5, lambda: not session(process.pid, "multiprocessing.spawn"))


# What fits will cost, by what they have cost, and the list that a plan prints.


@pytest.fixture
def paid(tmp_path):
    """Return the plan of a run that was carried out, and what its cells have cost each."""
    end = carry_out(configuration(*TINY, "dataset.n_samples=200", results=tmp_path))
    return end.plan, end.prepared.folder.environment["cost"]["seconds_per_cell"]


def test_the_same_components_cost_the_same_and_more_rows_more(paid, tmp_path):
    planned, seconds = paid
    prices, chosen = prices_of(Catalogue(tmp_path)), planned.config["hydra"]["runtime"]["choices"]
    assert planned.rows == 200
    assert seconds_of_fit(prices, planned.cost_key, 200, chosen) == pytest.approx(seconds)
    assert seconds_of_fit(prices, planned.cost_key, 600, {}) == pytest.approx(3 * seconds)
    assert seconds_of_fit(prices, "of other options", 200, chosen) == pytest.approx(seconds)
    assert seconds_of_fit(prices, "", 200, {**chosen, "learner": "another"}) is None


def test_a_plan_of_many_runs_is_a_price_list(paid, capsys):
    planned, seconds = paid
    config = dict(planned.config)
    chosen = config["hydra"]["runtime"]["choices"]
    other = {**config, "hydra": {"runtime": {"choices": {**chosen, "learner": "another"}}}}
    runs = [
        Plan(cells, f"{name}{k}", "", (f"{name}{k}",), False, False, key, 200)
        for name, cells, key in (("a", config, planned.cost_key), ("b", other, ""))
        for k in range(41)
    ]
    summary._show_plan(runs)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{chosen['learner']} none 41 41 0 41 {41 * seconds:.0f} s" in printed
    assert "another none 41 41 0 41 unknown" in printed
    assert "82 cells to compute; about" in printed
    assert "no earlier run tells what 41 of them cost" in printed


# What a run leaves behind, and when its figures are drawn.


@pytest.mark.thorough
def test_figures_can_wait_are_drawn_once_and_half_of_them_goes(tmp_path):
    config = configuration(*TINY, results=tmp_path)
    first = carry_out(config)
    folder = first.prepared.folder
    assert first.computed == 1 and not folder.figures.exists()
    # Of a process that was killed, and somebody's own.
    half, own = (folder.path / f".figures.{name}" for name in (f"{token()}.tmp", "own"))
    for place in (half, own):
        place.mkdir()
        (place / "reliability.png").write_bytes(b"half")
    assert carry_out(config, draw=draw_figures).computed == 0
    assert "reliability.png" in {path.name for path in folder.figures.iterdir()}
    assert own.exists() and not half.exists()
    times = [path.stat().st_mtime_ns for path in sorted(folder.figures.iterdir())]
    carry_out(config)
    assert [path.stat().st_mtime_ns for path in sorted(folder.figures.iterdir())] == times
    (folder.figures / "thesis.docx").write_text("somebody's own")
    first.prepared.writer.remove_figures()
    (aside,) = folder.path.glob("figures.damaged-*")
    assert (aside / "thesis.docx").read_text() == "somebody's own"


@pytest.mark.thorough
def test_a_run_says_what_its_task_is(tmp_path):
    words = ("dataset=simulated", "dataset.n_samples=200", "split.repeats=2")
    run = carry_out(configuration(*TINY, *words, results=tmp_path)).prepared
    data, task = run.dataset, run.folder.environment["task"]
    shares = data.groups("group").value_counts(normalize=True)
    assert task == {
        "family": "simulated", "rows": 200, "features": 6 + 1, "groups": 2,
        "positive_share": data.target.mean(), "smallest_group_share": shares.min(),
    }  # fmt: skip
