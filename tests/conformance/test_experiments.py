"""Every experiment is planned job by job, and its runs are found again."""

import os
from math import prod
from types import SimpleNamespace
from unittest import mock

import pytest

from fairbench.cli import jobs as summary
from fairbench.cli.verbs.run import run_words
from fairbench.components import files_of, parts_of
from fairbench.core.errors import UserError
from fairbench.core.text import digest
from fairbench.experiments import build
from fairbench.experiments.configuration import Presets, identity_of
from fairbench.results.catalogue import flat
from tests.harness import configuration, quick
from tests.papers import stand_ins

EXPERIMENTS = list(files_of("experiment"))
CHEAPEST = [  # of each folder
    "atlas/9_tabm", "fairlyuncertain/table1_held", "uncertainty_fairness/compas",
    "uncertainty_matters/adult",
]  # fmt: skip
OFTEN = sorted({*EXPERIMENTS[::12], *CHEAPEST})
RARE = [name for name in EXPERIMENTS if name not in OFTEN]
# That of the atlas takes as long as those of all others.
PRESETS = [*quick(OFTEN, CHEAPEST[1:]), *quick(RARE, (), rest=pytest.mark.slow)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return an empty results folder; data sets are stand-ins, each read once for all presets."""
    folder = tmp_path_factory.mktemp("presets")
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        stand_ins.read_only(stand_ins.write(folder / "raw"), patch.setattr)
        patch.setattr(build, "_KEPT", 1000)
        yield folder / "results"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_planned_as_a_user_plans_it(name, results, monkeypatch, capsys):
    file, outcomes = f"conf/experiment/{name}.yaml", []
    monkeypatch.setattr(summary, "_show_planned_sweep", outcomes.extend)  # in place of a table
    words = ("plan=true", f"results={results}", "tracking=none")
    run_words(["-m", f"experiment={name}", *words])
    assert outcomes, f"{file} does not compose under -m: {capsys.readouterr()}"
    failed = [outcome.line for outcome in outcomes if outcome.status == "failed"]
    assert not failed, f"{file}: {len(failed)} of its {len(outcomes)} jobs fail, first {failed[0]}"
    plans = [outcome.plan for outcome in outcomes if outcome.plan]
    assert plans, f"{file}: all of its jobs are skipped, first {outcomes[0].line}"
    swept = {}  # also by those that it builds on
    for part in parts_of("experiment", name):
        swept |= part.get("hydra", {}).get("sweeper", {}).get("params", {})
    expected = prod(len(str(values).split(",")) for values in swept.values())
    assert len(outcomes) == expected, f"{file} sweeps {expected} jobs, {len(outcomes)} are planned"
    own = {key: value for key, value in part.items() if key not in ("defaults", "hydra")}
    for option, value in flat(own).items():
        if option not in swept:
            got = {str(flat(plan.config).get(option, "nothing")) for plan in plans}
            assert got == {str(value)}, f"{file} says {option}: {value}, its jobs have {got}"


def composed(experiment, *words, which=0):
    """Return a job of an experiment as the one run of a catalogue."""
    jobs = Presets().experiment(experiment)[1].items()
    overrides = [*(f"{key}={[*texts][which]}" for key, texts in jobs), *words]
    choices, config = identity_of(configuration(f"experiment={experiment}", *overrides))
    return {"x": SimpleNamespace(id="x", config=config, choices=choices)}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sd1_3", "sequences", "figure4"])
def test_runs_are_found_whose_experiment_sets_options_of_what_it_sweeps_over(name):
    experiment = f"uncertainty_fairness/{name}"
    other = "split.train=0.7" if name == "figure4" else "dataset.n_samples=404"
    for words, result in (((), True), ((other,), False)):
        run = composed(experiment, *words, which=-1)
        assert bool(Presets().runs_of(experiment, run)) == result


def test_runs_of_a_folder_are_those_of_its_experiments():
    presets, run = Presets(), composed("atlas/6_fairgbm")
    assert presets.runs_of_all("atlas", run) == {"x"}
    assert presets.runs_of_all("uncertainty_matters", run) == set()
    with pytest.raises(UserError, match="atlas"):
        presets.runs_of_all("atlass", run)


def test_presets_of_the_same_study_are_the_same_runs():
    asked = (f"experiment=fairlyuncertain/{name}" for name in ("table1", "figure2"))
    one, other = (digest(identity_of(configuration(words))[1], 12) for words in asked)
    assert one == other
