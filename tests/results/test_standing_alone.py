"""A results folder stands alone: copied whole, it answers everything without data or components."""

import shutil
from contextlib import ExitStack

import pytest

from fairbench.cli.jobs import protect_from_collection
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.experiments import build
from fairbench.experiments.execute import carry_out
from tests.harness import configuration, run_folder

RUNS = (("method=baseline",), ("learner=logistic_regression",))
DATA = ("dataset.n_samples=300", "split.repeats=2", "split.validation=0.2")
COMMON = (*DATA, "tracking=none", "figures=false")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results, and the same copied to where there is nothing else."""
    folder = tmp_path_factory.mktemp("mine") / "results"
    for run in RUNS:
        carry_out(configuration(*COMMON, *run, results=folder))
    return folder, shutil.copytree(folder, tmp_path_factory.mktemp("copied") / "results")


@pytest.fixture(scope="module")
def pack(results, tmp_path_factory):
    """Return the same as a pack."""
    out = tmp_path_factory.mktemp("packed") / "results.zip"
    run_command(["store", "pack", f"results={results[0]}", f"out={out}"])
    return out


@pytest.fixture
def nothing_loads(monkeypatch):
    """Have every loader and every component refuse to be made."""

    def refuse(*_, **__):
        raise AssertionError("a finished run needs neither data nor components")

    for name in ("constructor", "_load_dataset", "components"):
        monkeypatch.setattr(build, name, refuse)


COMMANDS = ("compare runs=all draws=200", "tradeoff dataset=simulated", "store ls", "table",
            "audit {run}", "report")  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_a_copy_says_what_the_original_says(command, results, said_by, nothing_loads):
    run = next((results[1] / "runs").iterdir()).name
    words = command.format(run=run).split()
    said = {folder: said_by(*words, f"results={folder}") for folder in results}
    mine, copied = (text.replace(str(folder), "RESULTS") for folder, text in said.items())
    assert mine == copied
    assert "left out" not in mine


def test_no_run_is_made_in_a_pack(pack):
    with pytest.raises(UserError, match="is a pack: fairbench store unpack .* out=FOLDER"):
        protect_from_collection([pack], ExitStack(), make=True)


def test_target_and_groups_are_exported_only_where_they_may_be_passed_on(
    make_dataset, tmp_path, monkeypatch, said_by
):
    monkeypatch.setattr(build, "_load_dataset", lambda cfg: make_dataset(200))
    folder = tmp_path / "results"
    words = ("split.repeats=1", "tracking=none", "method=baseline")
    carry_out(configuration(*words, results=folder))
    file = tmp_path / "run.csv"
    words = ("store", "export", run_folder(folder).name, file, f"results={folder}")
    said_by(*words)
    assert file.read_text().startswith("row,fold,score,prediction\n")
    said_by(*words, "people=true")
    assert file.read_text().startswith("row,fold,target,score,prediction,sex,race\n")
