"""Command lines: the jobs they ask for, composed as Hydra would, and what they get wrong."""

import os

import pytest
from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from fairbench.cli.command_line import CommandLine, choices_in_brackets, command_lines, hydra_of
from fairbench.cli.verbs.run import _set_up_workers
from fairbench.core.errors import UserError
from tests.harness import CONF, ROOT, quick


@pytest.fixture
def hydra():
    GlobalHydra.instance().clear()
    with hydra_of():
        yield


def sweep(*words):
    return CommandLine(words, sweep=True)


COMPOSED = {
    "options": (8, "dataset=german,insurance", "method=ensemble,normal_nll", "learner.max_depth=4",
                "experiment=fairlyuncertain/figure3", "seed=range(2)",
                "hydra/launcher=submitit_slurm", "split.repeats=3", "learner=xgboost"),
    "an experiment on another": (None, "experiment=atlas/4_reweighing", "dataset=german,adult",
                                 "learner=lightgbm"),
    "one job's and its neighbour's": (2, "learner.max_depth=4,5", "split.repeats=3",
                                      "consistency={vary: learner.max_depth, values: [2, 3]}",
                                      "results=${data.store}/r"),
}  # fmt: skip


@pytest.mark.parametrize("name", quick(COMPOSED, ["one job's and its neighbour's"]))
def test_jobs_are_composed_as_hydra_composes_them(name, hydra):
    jobs, *words = COMPOSED[name]
    line = sweep(*words)
    assert jobs in (None, len(line.jobs))
    for job in (line.jobs[0], line.jobs[-1]):
        whole = compose("config", list(job), return_hydra_config=True)
        config = line.compose(job)
        parts = OmegaConf.masked_copy(whole, [key for key in whole if key != "hydra"])
        own = {name: part for name, part in config.items() if name != "hydra"}
        assert own == OmegaConf.to_container(parts, resolve=True)
        choices = whole.hydra.runtime.choices
        for group in ("dataset", "method", "learner", "experiment"):
            assert config["hydra"]["runtime"]["choices"][group] == str(choices[group])


@pytest.mark.thorough
def test_a_preset_sweeps_and_the_command_line_has_the_last_word(hydra):
    line = sweep("experiment=fairlyuncertain/figure3", "dataset=german", "n_jobs=3")
    assert all("dataset=german" in job for job in line.jobs)
    assert len(set(line.jobs)) == len(line.jobs) > 1
    assert sweep("learner=svm", "learner=mlp,xgboost").jobs == [
        ("learner=mlp",),
        ("learner=xgboost",),
    ]


def test_settings_of_a_sweep(hydra):
    own = ("hydra.sweep.dir=${results}/here", "hydra.sweeper.max_batch_size=1",
           "hydra/launcher=submitit_slurm")  # fmt: skip
    line = sweep("results=r", "n_jobs=3", "seed=1,2", *own)
    assert line.of_hydra("sweep.dir") == "r/here"
    assert line.of_hydra("sweeper.max_batch_size") == 1
    launcher = line.of_hydra("launcher")
    assert (launcher["executor"], launcher["cpus_per_task"]) == ("slurm", 3)
    assert line.hydra == own
    assert sweep("seed=1,2").of_hydra("launcher").keys() <= {"_target_"}


def test_an_option_whose_value_is_a_mapping_is_set_as_a_whole(hydra):
    words = ["dataset=table", "dataset.privileged={sex: f}", "dataset.path=my file.csv"]
    line = CommandLine(words, sweep=False)
    config = line.compose(line.jobs[0])["dataset"]
    assert (config["privileged"], config["path"]) == ({"sex": "f"}, "my file.csv")


def test_two_signs_of_plus_set_what_there_is_and_one_adds_to_a_mapping(hydra):
    words = ["learner=sklearn", "++seed=3", "+learner.options.max_depth=2"]
    line = CommandLine([*words, "learner.options.n_estimators=5"], sweep=False)
    config = line.compose(line.jobs[0])
    assert config["seed"] == 3
    assert config["learner"]["options"] == {"max_depth": 2, "n_estimators": 5}
    depths = sweep("learner=sklearn", "++learner.options.max_depth=2,3", "++seed=1,2")
    assert [depths.compose(job)["learner"]["options"]["max_depth"] for job in depths.jobs] == [
        2, 2, 3, 3
    ]  # fmt: skip


def test_choices_are_listed_in_brackets_as_in_other_verbs(hydra):
    assert sweep("method=[ensemble]").jobs == [("method=ensemble",)]
    listed = sweep("dataset=[german, adult]", "protect=[sex,race]", "method=[ensemble]")
    plainly = sweep("dataset=german,adult", "protect=[sex,race]", "method=ensemble")
    assert listed.jobs == plainly.jobs
    assert CommandLine(["method=[ensemble]"], sweep=False).jobs == [("method=ensemble",)]
    with pytest.raises(UserError, match="dataset=german,adult names several values"):
        CommandLine(["dataset=[german,adult]"], sweep=False)
    assert choices_in_brackets("dataset=[german,adult]") == ("german", "adult")
    for word in ("protect=[sex,race]", "dataset=german", "dataset=german,adult", "=[a,b]"):
        assert not choices_in_brackets(word)


def test_an_option_goes_to_the_choices_that_have_it_and_a_line_says_which_have_not(hydra, capsys):
    line = sweep(
        "learner=xgboost,logistic_regression,svm", "learner.max_depth=3,4", "split.repeats=2"
    )
    assert sorted(line.jobs) == [
        ("learner=logistic_regression", "split.repeats=2"),
        ("learner=svm", "split.repeats=2"),
        ("learner=xgboost", "learner.max_depth=3", "split.repeats=2"),
        ("learner=xgboost", "learner.max_depth=4", "split.repeats=2"),
    ]
    assert capsys.readouterr().err == (
        "note: learner.max_depth is set for xgboost; logistic_regression, svm have no such option, "
        "and run without it\n"
    )
    depths = [line.compose(job)["learner"].get("max_depth") for job in line.jobs]
    assert depths == [3, 4, None, None]
    assert sweep("learner=xgboost,lightgbm", "learner.max_depth=3").jobs
    assert not capsys.readouterr().err


def test_workers_find_the_package_and_nothing_that_lies_in_it(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert _set_up_workers() == str(ROOT)
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "elsewhere"]


@pytest.mark.thorough
def test_a_folder_of_experiments_is_every_one_of_its_sweeps(hydra):
    words = ("experiment=uncertainty_matters", "seed=3", "split.repeats=1")
    lines = command_lines(words, sweep=True)
    names = sorted(path.stem for path in (CONF / "experiment/uncertainty_matters").glob("*.yaml"))
    assert len(lines) == len(names)
    alone = sweep(f"experiment=uncertainty_matters/{names[0]}", *words[1:])
    assert lines[0].jobs == alone.jobs
    assert lines[0].compose(lines[0].jobs[0]) == alone.compose(alone.jobs[0])
    assert {job[-2:] for line in lines for job in line.jobs} == {words[1:]}


def test_a_folder_of_experiments_needs_a_sweep(hydra):
    with pytest.raises(UserError, match="experiment=uncertainty_matters is a folder of sweeps"):
        command_lines(("experiment=uncertainty_matters",), sweep=False)
    (line,) = command_lines(("experiment=uncertainty_matters/adult",), sweep=False)
    assert line.jobs


@pytest.mark.thorough
def test_one_run_of_an_experiment_that_sweeps_says_so(hydra, capsys):
    words = ["experiment=atlas/8_scores", "dataset=german"]
    command_lines(words, sweep=False)
    said = capsys.readouterr().err
    assert said.startswith("note: this is one run; the experiment sweeps ")
    assert "learner, " in said and "dataset" not in said
    assert said.endswith("add -m for all\n")
    command_lines(["dataset=german"], sweep=False)
    command_lines(words, sweep=True)
    assert not capsys.readouterr().err
