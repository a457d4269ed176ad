"""Runs of an MLflow experiment, logged and read through MLflow's own client."""

import sqlite3

import pytest

from fairbench.core.errors import UserError
from fairbench.tracking.database import ask
from fairbench.tracking.experiment_scores import experiment_table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's packages
MODELS, DATA = ("forest", "linear"), ("german", "adult")


def log(client, experiment, parameters, metrics, status="FINISHED"):
    run = client.create_run(experiment).info.run_id
    for name, value in parameters.items():
        client.log_param(run, name, value)
    for name, value in metrics.items():
        client.log_metric(run, name, value)
    client.set_terminated(run, status)


def logged(client, progress):
    models = client.create_experiment("models")
    for model in MODELS:
        for place, data in enumerate(DATA):
            for fold in range(2):
                value = 0.7 + place / 10 + fold / 100
                log(client, models, {"model": model, "dataset": data, "fold": fold, "depth": 3},
                    {"accuracy": value, "loss": 1 - value})  # fmt: skip
                progress()
    log(client, models, {"model": "svm", "dataset": "adult", "fold": 0}, {}, "FAILED")
    log(client, models, {"depth": 4}, {"accuracy": 0.5})
    log(client, client.create_experiment("odd"), {"which": "a", "on": "b"}, {"gain": 1.0})
    twice = client.create_experiment("twice")
    for _ in range(2):
        log(client, twice, {"model": "a", "dataset": "b"}, {"accuracy": 0.5})
    client.create_experiment("empty")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    address = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    ask(address, logged, idle_s=60, total_s=120)
    return address


def test_runs_of_an_experiment_are_scores_of_methods_on_tasks(address):
    table = experiment_table(address, "models", ["accuracy"])
    assert table.sentence == (
        "MLflow runs: 3 methods, 2 tasks and 2 splits; accuracy (higher is better)"
    )
    frame = table.frame.set_index(["method", "task", "split"])["accuracy"]
    assert frame["forest", "adult", "1"] == pytest.approx(0.81)
    assert frame.isna().sum() == 1
    assert table.notes == (
        "read as method=model, task=dataset, split=fold",
        "1 of 10 runs have not finished",
        "1 runs do not say their model or dataset: left out",
    )


def test_parameters_of_other_names_are_named(address):
    with pytest.raises(UserError, match=r"usual for the method: name one by method=NAME \(on, wh"):
        experiment_table(address, "odd")
    table = experiment_table(address, "odd", named={"method": "which", "task": "on"})
    assert table.frame["gain"].tolist() == [1.0]
    with pytest.raises(UserError, match="unknown parameter or tag of experiment 'odd' 'whic'"):
        experiment_table(address, "odd", named={"method": "whic"})


@pytest.mark.parametrize(
    ("experiment", "line"),
    [
        ("model", "unknown experiment of MLflow 'model': did you mean models?"),
        ("empty", "experiment 'empty' of MLflow has no runs with metrics"),
        ("models", "the MLflow runs have 2 scores: accuracy, loss; name the one"),
        ("twice", "rows too many: method 'a', task 'b' is there twice"),
    ],
)
def test_experiments_that_cannot_be_ranked_are_refused(address, experiment, line):
    with pytest.raises(UserError) as caught:
        experiment_table(address, experiment)
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_only_a_database_of_mlflow_s_is_opened_and_none_is_made(tmp_path):
    missing, other = tmp_path / "none.db", tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE a (b)")
    before = other.read_bytes()
    (tmp_path / "text.db").write_text("text")
    for name, line in (("none", "is not a file"), ("other", "no database of MLflow's"),
                       ("text", "no database of MLflow's")):  # fmt: skip
        with pytest.raises(UserError, match=line):
            experiment_table(f"sqlite:///{tmp_path / name}.db", "models")
    assert not missing.exists() and other.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"other.db", "text.db"}
