"""What of a checkout may change without a cell being fitted again, and what may not."""

import shutil

import pytest

from tests.harness import ROOT, cells_of, python

RUN = ("dataset.n_samples=200", "split.repeats=1", "tracking=none", "figures=false")
TABLE = ("table", "all", "metrics=[false_omission_rate]")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of the checkout that has one finished run."""
    folder = tmp_path_factory.mktemp("copy")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("fairbench", "datasets", "algorithms", "conf"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "run.py", folder)
    assert "fitted 1 of 1 cells" in run(folder)
    return folder


def run(folder, *words, status=0):
    """Run a verb, or the command of the run itself; return what it printed."""
    words = ("-m", "fairbench", *words) if words else ("run.py", *RUN)
    done = python(*words, cwd=folder, status=status, PYTHONPATH=str(folder))
    return done.stdout + done.stderr


def edit(folder, file, old, new):
    path = folder / file
    text = path.read_text()
    assert old in text, (file, old)
    path.write_text(text.replace(old, new, 1))


@pytest.mark.thorough
def test_rewording_and_moving_fit_nothing_and_a_changed_loss_does(checkout):
    for name in ("datasets/simulated", "algorithms/losses", "algorithms/fitters/single"):
        edit(checkout, f"{name}.py", '"""', '"""In other words: ')
    edit(checkout, "fairbench/data/dataset.py", "is not categorical", "has no categories")
    edit(checkout, "fairbench/core/errors.py", "did you mean", "was it")
    assert "nothing to fit" in run(checkout)
    # A module that computes nothing is moved, and everything that imports it follows.
    (checkout / "fairbench/core/errors.py").rename(checkout / "fairbench/core/refusals.py")
    for path in checkout.rglob("*.py"):
        text = path.read_text()
        if "fairbench.core.errors" in text:
            path.write_text(text.replace("fairbench.core.errors", "fairbench.core.refusals"))
    assert "nothing to fit" in run(checkout)
    edit(checkout, "algorithms/losses.py", "return ", "return 1.0 * ")
    assert "fitted 1 of 1 cells" in run(checkout)


@pytest.mark.thorough
def test_a_new_metric_is_evaluated_from_the_cells_of_finished_runs(checkout):
    """By one command for all runs, and by the command of a run given again; nothing is fitted."""
    metric = (ROOT / "docs/examples/metric/false_omission_rate.py").read_text()
    before = cells_of(checkout)
    assert "0 evaluated again" in run(checkout, "store", "evaluate")
    (checkout / "fairbench/metrics/false_omission_rate.py").write_text(metric)
    printed = run(checkout, "store", "evaluate", "dataset=simulated")
    assert "1 evaluated again from their cells, 0 as they would be; nothing was fitted" in printed
    assert "false omission rate" in run(checkout, *TABLE)
    assert cells_of(checkout) == before
    assert "0 evaluated again from their cells, 1 as" in run(checkout, "store", "evaluate")
    (checkout / "fairbench/metrics/false_omission_rate.py").unlink()
    assert "nothing to fit" in run(checkout)
    assert "none of these runs has a metric 'false_om" in run(checkout, *TABLE, status=2)
    # Cells of other code are not read for it: they would have to be fitted again.
    edit(checkout, "algorithms/losses.py", "return ", "return 1.0 * ")
    printed = run(checkout, "store", "evaluate", status=1)
    assert "1 of 1 cells are not in the store; repeat its command" in printed
    assert cells_of(checkout) == before
