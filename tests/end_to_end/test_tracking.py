"""MLflow as a view of the files: logged once, whole, and later if it was down."""

import contextlib
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from benchmarks.faults.servers import server
from benchmarks.stored import configured, copied
from fairbench.core.processes import locked
from fairbench.results.runs import TABLES, Run, seal_run
from fairbench.tracking import entries
from fairbench.tracking.database import local
from fairbench.tracking.importer import Logger, Tracking, TrackingError, _logged_entries
from tests.harness import answers, fairbench, quick, ran, run_folder, served, together, within

# MLflow 3.17 uses what SQLAlchemy 2.1 is about to remove.
pytestmark = pytest.mark.filterwarnings("ignore:.*noload")
SMALL = ("split.repeats=2", "dataset.n_samples=300")
DOWN = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def cwd(tmp_path_factory):
    """Return a folder whose run found no server, and was synchronised since."""
    folder = tmp_path_factory.mktemp("tracking")
    done = ran(*SMALL, cwd=folder, MLFLOW_TRACKING_URI=DOWN)
    said = f"warning: not logged: MLflow at {DOWN}: no connection; `fairbench sync` logs it later"
    assert said in done.stdout
    synchronise(folder)
    return folder


@pytest.fixture
def folder(cwd):
    """Return the run of that folder."""
    return Run(run_folder(cwd / "results"))


@pytest.fixture
def own(cwd, tmp_path):
    """Return a copy of it in a folder of the test's own."""
    shutil.copytree(cwd / "results", tmp_path / "results")
    return Run(run_folder(tmp_path / "results"))


@pytest.fixture
def tracking(tmp_path):
    """Return a database of the test's own."""
    return Tracking(uri=f"sqlite:///{tmp_path / 'mlflow.db'}")


def synchronise(cwd):
    return fairbench("sync", cwd=cwd, PATH="").stdout


def client_and_runs(cwd):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{cwd / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fairbench")
    return client, experiment, client.search_runs([experiment.experiment_id])


def runs_of(cwd):
    return client_and_runs(cwd)[2]


def values_of(folder):
    """Return the values that MLflow shows of a run."""
    return pytest.approx(entries.latest_values(entries.logged_metrics(folder)))


@pytest.mark.thorough
def test_sync_logs_what_is_missing_once(cwd, folder):
    said = f"1 runs of {cwd / 'results'} are in MLflow at sqlite:///mlflow.db"
    assert said in synchronise(cwd)  # a second time
    with contextlib.closing(sqlite3.connect(cwd / "mlflow.db")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    client, experiment, (run,) = client_and_runs(cwd)
    assert run.data.tags["fairbench.run_id"] == folder.path.name
    assert run.data.metrics == values_of(folder)
    assert run.data.params["dataset.n_samples"] == "300"
    assert experiment.artifact_location == (cwd / "mlartifacts").as_uri()
    artifacts = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert {"config.yaml", "metrics.parquet", "environment.json", "figures"} <= artifacts
    curve = client.get_metric_history(run.info.run_id, "abstention/error_rate")
    expected = [p for p in entries.logged_metrics(folder) if p.name == "abstention/error_rate"]
    assert [(p.step, p.value) for p in curve] == [(p.step, p.value) for p in expected]
    assert len(curve) > 5


@pytest.mark.thorough
def test_a_sweep_on_workers_is_logged_while_it_fits(folder, tmp_path, tracking):
    logger = Logger(tracking, ("my sweep", (folder.id,)))
    logger.add(folder)
    within(60, (tmp_path / "mlflow.db").exists)
    logger.end()  # waits for what is being logged
    (run,) = runs_of(tmp_path)
    assert run.data.tags[entries.SWEEP] == "[my sweep]"
    assert run.data.metrics == values_of(folder)
    tracking.sync([folder], [("my sweep", (folder.id,))])
    assert [again.info.run_id for again in runs_of(tmp_path)] == [run.info.run_id]


def test_many_runs_are_found_as_few_are(cwd):
    client, experiment, (logged,) = client_and_runs(cwd)
    run_id = logged.data.tags["fairbench.run_id"]
    few = _logged_entries(client, experiment.experiment_id, [run_id])
    assert few == _logged_entries(client, experiment.experiment_id, [run_id] * 100)
    assert [entry.id for entry in few[run_id]] == [logged.info.run_id]
    assert _logged_entries(client, experiment.experiment_id, ["another"]) == {}


@pytest.mark.parametrize("kind", ["ext4", "nfs4", "fuse.sshfs"])
def test_a_disk_is_local_or_shared_by_its_mount(tmp_path, kind):
    other, mounts = "nfs4" if kind == "ext4" else "ext4", tmp_path / "mounts"
    mounts.write_text(f"a / {other} rw 0 0\nb {tmp_path} {kind} rw 0 0\nc {tmp_path}/x {other}\n")
    assert local(tmp_path / "mlflow.db", mounts) is (kind == "ext4")
    assert local(tmp_path / "mlflow.db", tmp_path / "none")


@pytest.mark.thorough
def test_concurrent_first_runs_share_one_database(tmp_path):
    printed = together(*((*SMALL, "figures=false", f"seed={n}") for n in range(3)), cwd=tmp_path)
    assert all("MLflow: sqlite:///mlflow.db, run " in said for said in printed), printed
    assert len(runs_of(tmp_path)) == 3


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("fails", "it answers with errors$"), ("cuts", "the connection broke off$"), ("hangs", ""),
        ("drips", ""),
    ],
)  # fmt: skip
def test_a_bad_server_is_named_and_costs_no_more_than_is_allowed(behaviour, said, folder):
    with server(behaviour) as address:
        tracking, start = Tracking(address, "my own", idle_s=2, total_s=4), time.monotonic()
        with pytest.raises(TrackingError, match=f"MLflow at {address}: {said}"):
            tracking.sync([folder])
        assert time.monotonic() - start < 8
    later = f"fairbench sync results=old uri={address} 'experiment=my own'"
    assert tracking.later(Path("old")) == later
    assert Tracking().later(Path("results")) == "fairbench sync"


def changed(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount
        database.commit()


CHANGE = "UPDATE latest_metrics SET value = 0.505 WHERE key = 'accuracy'"


OF_ANOTHER = f"UPDATE tags SET value = 'another' WHERE key = '{entries.VERSION_TAG}'"


def test_an_entry_that_is_not_as_it_would_be_logged_is_replaced(tmp_path, folder, tracking):
    """As by a bit that flipped, which sqlite cannot tell from what was written."""
    path = tmp_path / "mlflow.db"
    (last,) = tracking.sync([folder]).values()
    changed(path, "UPDATE tags SET value = 'mine' WHERE key = 'mlflow.note.content'")
    assert list(tracking.sync([folder]).values()) == [last]
    for changes in ([CHANGE, CHANGE.replace("latest_metrics", "metrics")], [OF_ANOTHER]):
        changed(path, *changes)
        assert list(tracking.sync([folder]).values()) != [last]
        (run,) = runs_of(tmp_path)
        assert run.data.metrics == values_of(folder)
        last = run.info.run_id


def test_of_what_two_copies_logged_the_first_that_is_whole_is_kept(cwd, tmp_path, folder, tracking):
    copies = [shutil.copytree(cwd / "results", tmp_path / name) for name in ("one", "other")]
    (first,) = tracking.sync([Run(run_folder(copies[0]))]).values()
    hidden = "UPDATE tags SET key = 'hidden' WHERE key = 'fairbench.run_id'"
    changed(tmp_path / "mlflow.db", hidden)  # as if the other had asked before
    (second,) = tracking.sync([Run(run_folder(copies[1]))]).values()
    shown = "UPDATE tags SET key = 'fairbench.run_id' WHERE key = 'hidden'"
    changed(tmp_path / "mlflow.db", shown)
    client, experiment, runs = client_and_runs(tmp_path)
    assert len(runs) == 2
    mine = {"fairbench.run_id": folder.id}
    for tags in (mine, {**runs[0].data.tags, "fairbench.logged_at": "1"}):  # killed half-way
        client.set_terminated(client.create_run(experiment.experiment_id, tags=tags).info.run_id)
    assert tracking.sync([Run(run_folder(copies[1]))]) == {folder.id: first} != {folder.id: second}
    assert len(runs_of(tmp_path)) == 1


DAMAGES = {
    "text": lambda content: b"no database" * 100,
    "cut": lambda content: content[:100_000],
    "read-only": lambda content: content[:18] + b"\x42" + content[19:],
}


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_database_that_is_damaged_is_named_to_be_moved_away(damage, tmp_path, own):
    """Each command is a process of its own: MLflow keeps a database open."""
    database = tmp_path / "mlflow.db"
    synchronise(tmp_path)
    database.write_bytes(DAMAGES[damage](database.read_bytes()))
    start = time.monotonic()
    said = fairbench("sync", cwd=tmp_path, PATH="", status=1).stdout
    assert time.monotonic() - start < 20
    assert "move it away, and `fairbench sync` logs every run to a new one" in said
    database.unlink()
    synchronise(tmp_path)
    assert [run.data.tags["fairbench.run_id"] for run in runs_of(tmp_path)] == [own.id]


def test_a_folder_in_the_place_of_a_database_is_named(folder, tracking, tmp_path):
    (tmp_path / "mlflow.db").mkdir()
    with pytest.raises(TrackingError, match=r"mlflow.db: unable to open .*: move it away"):
        tracking.sync([folder])


@pytest.mark.thorough
def test_a_database_that_another_program_writes_is_left_as_it_is(folder, tracking, tmp_path):
    tracking.sync([folder])
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TrackingError, match="mlflow.db is held by a program that writes it$"):
            Tracking(uri=tracking.uri, idle_s=0.2).sync([folder], [("another", (folder.id,))])
    assert (tmp_path / "mlflow.db").exists()


def test_who_logs_already_is_waited_for_and_named(folder):
    with (
        locked(folder.results / "locks" / "tracking.lock"),
        pytest.raises(TrackingError, match=r"is being logged by process \d+ on "),
    ):
        Tracking(uri="sqlite:///other.db", idle_s=0.2, total_s=0.6).sync([folder])


def unasked(*arguments, **options):
    raise AssertionError("MLflow was asked")


def test_what_is_there_is_not_asked_for_until_the_database_is_written(
    tmp_path, monkeypatch, own, tracking
):
    logged = tracking.sync([own])
    with monkeypatch.context() as patched:
        patched.setattr("fairbench.tracking.importer.Tracking.ask", unasked)
        assert tracking.sync([own]) == logged
        with pytest.raises(AssertionError, match="asked"):
            tracking.sync([own], [("seed=0", (own.id,))])
        with pytest.raises(AssertionError, match="asked"):
            Tracking(uri=tracking.uri, experiment="other").sync([own])
    elsewhere = Tracking(uri=f"sqlite:///{tmp_path / 'other.db'}").sync([own])
    assert elsewhere.keys() == logged.keys() and elsewhere != logged
    client, _, _ = client_and_runs(tmp_path)
    client.set_tag(logged[own.id], "owner", "Ada")
    with monkeypatch.context() as patched:
        patched.setattr("fairbench.tracking.importer.Tracking.ask", unasked)
        with pytest.raises(AssertionError, match="asked"):
            tracking.sync([own])
    client.delete_run(logged[own.id])
    assert list(tracking.sync([own])) == [own.id]
    assert tracking.sync([own]) != logged
    (own.path / TABLES).unlink()
    another = Tracking(uri=f"sqlite:///{tmp_path / 'another.db'}")
    assert another.sync([own, Run(tmp_path / "half")]) == {}


def test_more_options_and_metrics_than_mlflow_takes_at_once(tmp_path, monkeypatch, own):
    many = {f"learner.option{i}": i for i in range(150)}
    own = Run(copied(own.path, configured(own.environment, many)))
    points = [entries.LoggedMetric(f"metric{i}", i / 7) for i in range(2000)]
    monkeypatch.setattr("fairbench.tracking.entries.logged_metrics", lambda *_: points)
    tracking = Tracking(uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    logged = tracking.sync([Run(own.path)])
    client, experiment, (run,) = client_and_runs(tmp_path)
    assert run.data.metrics == dict(point[:2] for point in points)
    assert run.data.params["learner.option149"] == "149"
    (entry,) = _logged_entries(client, experiment.experiment_id, [own.id])[own.id]
    assert (entry.id, entry.fingerprint) == (logged[own.id], own.environment["fingerprint"])


def test_a_run_is_of_several_sweeps_and_each_is_noted_once(tmp_path, own, tracking):
    first, second = ("seed=0,1", ("other", own.id)), ("seed=0", (own.id,))
    (logged,) = tracking.sync([own], [first]).values()
    for sweeps in ([], [first], [second], [second, first], [first, first, second]):
        # The run's own folder notes the sweeps as well: a new one is asked about, an old one not.
        assert tracking.sync([own], sweeps) == {own.id: logged}
    (run,) = runs_of(tmp_path)
    assert run.data.tags[entries.SWEEP] == "[seed=0,1] [seed=0]"
    assert run.data.tags[entries.COLOUR].startswith("#")
    seal_run(own.path, own.environment | {"fingerprint": "yet another"})
    assert tracking.sync([Run(own.path)]) != {own.id: logged}
    (run,) = runs_of(tmp_path)
    assert run.data.tags["fairbench.fingerprint"] == "yet another"
    assert run.data.tags[entries.SWEEP] == "[seed=0,1] [seed=0]"


def killed(*arguments, **options):
    raise OSError("killed")


@pytest.mark.thorough
@pytest.mark.parametrize("broken", ["log_inputs", "set_terminated", "log_batch"])
def test_what_is_killed_while_it_is_logged_is_there_once_after_the_next_sync(
    tmp_path, monkeypatch, broken, folder, tracking
):
    from mlflow.tracking import MlflowClient

    sweeps = [("seed=0", (folder.id,))]
    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, broken, killed)
        with pytest.raises(TrackingError, match="killed"):
            tracking.sync([folder], sweeps)
    (half,) = runs_of(tmp_path)
    for _ in range(2):
        ids = tracking.sync([folder], sweeps)
        (run,) = runs_of(tmp_path)
        assert ids == {folder.id: run.info.run_id} != {folder.id: half.info.run_id}
        assert run.data.tags[entries.SWEEP] == "[seed=0]"
        assert run.data.metrics == values_of(folder)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number",
    quick([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGTERM], rest=pytest.mark.slow),
)
def test_the_server_ends_with_the_command_that_started_it(number, tmp_path):
    """On Ctrl-C, when it is terminated, and when its terminal is closed."""
    # A shell may ignore it.
    heeds = {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}
    with served(tmp_path, **heeds) as (command, port):
        command.send_signal(number)
        assert command.wait(30) == 0
        within(10, lambda: not answers(port))
