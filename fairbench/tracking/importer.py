"""Logs finished runs to MLflow, which only shows what the files in the results folder hold.

A results folder has a note on the runs that a local database has. The note is a sealed
cache, which may be removed at any time: without it MLflow is asked, whose import takes seconds, and
whose every answer brings whole runs. It knows the database by its inode, size and times: while
these are as they were when MLflow was last asked, so is what it said. Who changes a run by another
program in the very seconds in which runs are logged is noticed when the database is next written.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isinf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fairbench.core import files, memory
from fairbench.core.errors import UserError, warn
from fairbench.core.processes import BusyError, Progress, Worker, in_time, locked
from fairbench.core.text import digest
from fairbench.reporting.charts import COLOURS
from fairbench.results.runs import FIGURES, LAST, Run, read_summaries
from fairbench.results.upkeep import Sweep, read_sweeps
from fairbench.tracking import entries
from fairbench.tracking.database import SCHEME, Stamp, exclusive, local, quiet, settle, stamp
from fairbench.tracking.entries import FINGERPRINT, RUN, SWEEP, VERSION, LoggedMetric, with_sweeps

if TYPE_CHECKING:
    from mlflow.entities import RunInfo
    from mlflow.tracking import MlflowClient


T = TypeVar("T")
_MOST_BYTES = 1 << 30  # memory that a process may add while it asks MLflow
_RUNS = 50  # that MLflow has `total_s` for
_LOCAL_S = 25.0  # seconds that a step in a local database may take: a new one has many tables


class TrackingError(UserError):
    """MLflow could not be reached or written; results are not affected."""


class _Client:
    """A client of MLflow that notes each answer as progress."""

    def __init__(self, client: MlflowClient, progress: Progress) -> None:
        self._client, self._progress = client, progress

    def __getattr__(self, name: str) -> Any:
        """Return a method of the client, which notes when it has answered."""

        def answered(*arguments: Any, **options: Any) -> Any:
            answer = getattr(self._client, name)(*arguments, **options)
            self._progress()
            return answer

        return answered


# Parts of error messages of requests, urllib3 and http.client -> their meaning.
_MEANINGS = {
    "too many 5": "it answers with errors",
    "Failed to resolve": "no such host",
    "timed out": "no answer",
    "Connection aborted": "the connection broke off",
    "Max retries": "no connection",
    "valid JSON": "the answer is not one of MLflow",
    "malformed": "it is damaged: move it away, and `fairbench sync` logs every run to a new one",
}


def _reason(error: Exception) -> str:
    """Return why a database cannot be used, in words."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    meanings = (meaning for part, meaning in _MEANINGS.items() if part in text)
    return next(meanings, text.splitlines()[0][:200])


NOTE = "mlflow.json"


class _Entry(NamedTuple):
    """A run as MLflow has it, of which the first three are noted.

    Attributes
    ----------
    fingerprint : empty if logging was cut short, or if the run changed after it was logged.
    id : the id that MLflow gave it.
    sweeps : the tag with the names of its sweeps.
    begun : when logging began.
    """

    fingerprint: str
    id: str
    sweeps: str = ""
    begun: int = 0


class _Note(NamedTuple):
    """What a results folder notes of a database.

    Attributes
    ----------
    runs : the runs that are in it, each once and whole.
    all_noted : whether the experiment has no entry of any other run.
    """

    runs: Mapping[str, _Entry] = MappingProxyType({})
    all_noted: bool = False


def read_note(results: Path, place: Mapping[str, str], now: Stamp) -> _Note:
    """Return what a results folder notes of a database.

    Parameters
    ----------
    place : the database, the experiment, and the version of what is logged.
    now : the stamp of the database; of one that was written since the note, nothing is noted.
    """
    try:
        content = files.unsealed_json(files.read_bytes(results / NOTE, files.TEXT))
        if not now or (content["place"], tuple(content["stamp"])) != (dict(place), now):
            return _Note()
        runs = {
            str(id_): _Entry(str(run[0]), str(run[1]), str(run[2]))
            for id_, run in content["runs"].items()
        }
        return _Note(runs, content["all_noted"] is True)
    except files.UNREADABLE:
        return _Note()


def _write_note(results: Path, place: Mapping[str, str], now: Stamp, note: _Note) -> None:
    """Write a note; the parameters are those of :func:`read_note`."""
    runs = {id_: run[:3] for id_, run in note.runs.items()}
    content = {"place": place, "stamp": now, "runs": runs, "all_noted": note.all_noted}
    files.write_cache(results / NOTE, content, lasting=False)


_SILENCE = 60.0  # seconds after which a silent other sync is no longer waited for
_CONTENT = "fairbench.content"
_FEW = 20  # up to so many runs are asked for one by one, however few are logged
_PAGE = 100  # runs per request: MLflow sends each with all of its metrics
# Metrics and parameters per request: MLflow takes 1,000 in all, with tags.
_METRICS, _PARAMETERS = 900, 90
_FILES = ("config.yaml", "metrics.parquet", "summary.csv", "cells.txt")


def _sweeps_of_runs(sweeps: Iterable[Sweep]) -> dict[str, list[tuple[str, int]]]:
    """Return run id -> the names of its sweeps, and its places in them."""
    sweeps_of_run: dict[str, list[tuple[str, int]]] = {}
    for name, runs in sweeps:
        for place, run in enumerate(runs if name else ()):
            sweeps_of_run.setdefault(run, []).append((name, place))
    return sweeps_of_run


@dataclass(frozen=True)
class Tracking:
    """Where runs are logged.

    Attributes
    ----------
    uri : the tracking server; None takes ``MLFLOW_TRACKING_URI`` or ``sqlite:///mlflow.db``.
    experiment : the experiment's name.
    idle_s, total_s : seconds without progress, be it another process or a server that is waited
        for, and seconds in all, of each 50 runs, after which it is left for later. A run then loses
        less than 10 to a server that hangs, and less than 60 to one that is slow.
    """

    uri: str | None = None
    experiment: str = "fairbench"
    idle_s: float = 6.0
    total_s: float = 58.0

    @property
    def address(self) -> str:
        """The tracking URI in use."""
        return self.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"

    def later(self, results: Path) -> str:
        """Return the command that logs the runs of a results folder later."""
        options = {"results": str(results), "uri": self.uri, "experiment": self.experiment}
        usual = (None, "", "results", Tracking.experiment)
        words = [f"{name}={value}" for name, value in options.items() if value not in usual]
        return shlex.join(["fairbench", "sync", *words])

    def sync(self, folders: Iterable[Run], sweeps: Iterable[Sweep] = ()) -> dict[str, str]:
        """Log finished runs of a results folder that are not logged; return run id -> MLflow id.

        Logging a run twice logs it once; a run whose metrics were recomputed, or whose logging was
        cut short, has its entry replaced, as has one of another version.

        Parameters
        ----------
        sweeps : the sweeps with whose names their runs are tagged; tags of other sweeps stay.

        Raises
        ------
        TrackingError : the server is down or does not get on, or another process logs runs of this
            results folder, or to this database, for longer than is waited.
        """
        runs = [folder for folder in folders if folder.environment]
        if not runs:
            return {}
        swept = _sweeps_of_runs(sweeps)
        if (noted := self._noted(runs, swept)) is not None:
            return noted
        results, runs = runs[0].results, list(filter(_is_whole, runs))
        with self._alone(results):
            sent = partial(self._send, results, runs, swept)
            logged = self.ask(sent, runs=len(runs))
        return {run_id: entry.id for run_id, entry in logged.items()}

    def ask(self, work: Callable[[MlflowClient], T], *, runs: int = 1) -> T:
        """Return what `work` returns, which asks MLflow; every answer counts as a step.

        Parameters
        ----------
        runs : how many runs it is about.

        Raises
        ------
        TrackingError : MLflow is down, does not get on, or cannot do it.
        """
        address, idle_s = self.address, self.idle_s
        total_s = self.total_s * max(1, runs / _RUNS)
        begun = time.monotonic()
        quiet()
        from mlflow.tracking import MlflowClient

        imported = time.monotonic() - begun
        # MLflow's modules make a million objects: the collection of garbage would look at them
        # again and again while MLflow makes an object of every metric.
        gc.freeze()

        def connected(progress: Progress) -> T:
            return work(cast("MlflowClient", _Client(MlflowClient(tracking_uri=address), progress)))

        try:
            with exclusive(address, idle_s):
                if address.startswith(SCHEME):  # free by now: it may be slow, and does not hang
                    idle_s = max(idle_s, _LOCAL_S)
                return in_time(
                    connected, idle_s=idle_s, total_s=total_s, before_s=imported,
                    most_bytes=min(_MOST_BYTES, memory.most_memory()),
                )  # fmt: skip
        except BusyError as error:
            raise TrackingError(f"MLflow at {address} is held by {error}") from error
        except Exception as error:  # MLflow raises requests', SQLAlchemy's and its own
            raise TrackingError(f"MLflow at {address}: {_reason(error)}") from error
        finally:
            gc.unfreeze()

    @contextlib.contextmanager
    def _alone(self, results: Path) -> Iterator[None]:
        """Lock the results folder, so that no other process logs its runs a second time."""
        # A holder of the lock gives up by itself if the server does not answer, unless it was
        # stopped.
        patience = None if isinf(self.total_s) else max(self.idle_s, self.total_s / 3)
        path = results / "locks" / "tracking.lock"
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # who may not write there cannot lock it
                try:
                    stack.enter_context(locked(path, seconds=patience, silence=_SILENCE))
                except BusyError as error:
                    raise TrackingError(f"{results} is being logged by {error}") from error
            yield

    def _send(
        self, results: Path, runs: Sequence[Run], swept: _Swept, client: MlflowClient
    ) -> dict[str, _Entry]:
        """Log the runs that are not in MLflow yet, and remove what else MLflow has of them.

        The results folder then notes that they are in a local database. Nothing is noted of a
        server, or on a disk whose stamps do not tell every change.

        Returns
        -------
        The entries by run id.
        """
        file = _database(self.address)
        noted = read_note(results, self._place(file), stamp(file)) if file else _Note()
        experiment = self.experiment_id(client)
        ids = [folder.id for folder in runs]
        others = 0 if noted.runs.keys() & {*ids} else len(noted.runs)
        # Nobody has to be asked for entries of runs that cannot be there.
        all_noted = noted.all_noted or not client.search_runs([experiment], max_results=1)
        asked = [id_ for id_ in ids if id_ in noted.runs] if all_noted else ids
        existing = _logged_entries(client, experiment, asked, others)
        names: set[str] = set()  # of the metrics that MLflow is told of
        logged = {}
        new = [run for run in runs if not _current(run, existing.get(run.id, []))]
        means = (of for table in read_summaries(new) for of in table.groupby("run", sort=False))
        for folder in runs:
            # Of several whole entries the first is kept, whoever asks: two copies of a folder may
            # do so at once. The others go when there is a whole one.
            found = sorted(existing.get(folder.id, []), key=lambda entry: (entry.begun, entry.id))
            current, places = _current(folder, found), swept.get(folder.id, [])
            tagged = next((entry.sweeps for entry in (*current, *found) if entry.sweeps), "")
            sweeps = with_sweeps(tagged, [name for name, _ in places])
            if not current:
                points = entries.logged_metrics(folder, dict([next(means)])[folder.id])
                names.update(point.name for point in points)
                run_tags = {SWEEP: sweeps} if sweeps else {}
                if places:  # MLflow draws colours at random, and often the same ones
                    run_tags[entries.COLOUR] = COLOURS[places[0][1] % len(COLOURS)]
                kept = _Entry("", _log(client, experiment, folder, points, run_tags))
            elif (kept := current[0]).sweeps != sweeps:
                client.set_tag(kept.id, SWEEP, sweeps)
            for entry in found:
                if entry.id != kept.id:
                    client.delete_run(entry.id)
            fingerprint = folder.environment["fingerprint"]
            logged[folder.id] = kept._replace(fingerprint=fingerprint, sweeps=sweeps)
        if names:
            _set_view(client, experiment, names)
        if file and local(file):
            note = _Note({**noted.runs, **logged}, all_noted)
            _write_note(results, self._place(file), settle(file), note)
        return logged

    def _noted(self, runs: Sequence[Run], swept: _Swept) -> dict[str, str] | None:
        """Return run id -> MLflow id if all are noted to be in this database, with their sweeps."""
        if not (file := _database(self.address)):
            return None
        noted = read_note(runs[0].results, self._place(file), stamp(file)).runs
        for folder in runs:
            entry = noted.get(folder.id, _Entry("", ""))
            sweeps = with_sweeps(entry.sweeps, [name for name, _ in swept.get(folder.id, [])])
            if (entry.fingerprint, entry.sweeps) != (folder.environment["fingerprint"], sweeps):
                return None
        return {folder.id: noted[folder.id].id for folder in runs}

    def experiment_id(self, client: MlflowClient) -> str:
        """Return the id of the experiment, created with an absolute place for artifacts if new."""
        if (experiment := client.get_experiment_by_name(self.experiment)) is not None:
            return str(experiment.experiment_id)
        # Without a location MLflow would note the creator's working directory, relative.
        is_local = self.address.startswith("sqlite")
        location = (Path.cwd() / "mlartifacts").as_uri() if is_local else None
        return str(client.create_experiment(self.experiment, artifact_location=location))

    def _place(self, file: Path) -> dict[str, str]:
        return {"database": str(file), "experiment": self.experiment, "version": VERSION}


_PAUSE_S = 1.0  # between two batches


class Logger:
    """Logs the runs of a sweep in a process of its own while others are fitted, now and then.

    What it cannot log is left to `Tracking.sync`, which says why. A kill leaves half an entry at
    most, which the next sync replaces.
    """

    def __init__(self, tracking: Tracking, sweep: Sweep) -> None:
        self._tracking, self._sweep = tracking, sweep
        self._finished, self._over = deque[Run](), threading.Event()
        self._thread = threading.Thread(target=self._log, daemon=True)
        self._thread.start()

    def add(self, run: Run) -> None:
        """Log a run, which has finished, with the next batch."""
        self._finished.append(run)

    def end(self) -> None:
        """Wait until all that have finished are logged."""
        self._over.set()
        self._thread.join()

    def _log(self) -> None:
        worker, over = Worker(), False
        with contextlib.suppress(EOFError, OSError):
            while not over:
                over = self._over.wait(_PAUSE_S)
                if runs := [self._finished.popleft() for _ in range(len(self._finished))]:
                    worker.pipe.send((_logged, (self._tracking, runs, self._sweep)))
                    over = not worker.pipe.recv() or over
        worker.kill()


def _logged(batch: tuple[Tracking, Sequence[Run], Sweep]) -> bool:
    """Log runs of a sweep; return whether they are."""
    tracking, runs, sweep = batch
    try:
        tracking.sync(runs, [sweep])
    except (UserError, OSError):
        return False
    return True


_Swept = Mapping[str, Sequence[tuple[str, int]]]  # run id -> names of its sweeps, places in them


def _is_whole(folder: Run) -> bool:
    """Return whether a run's files are as they were written; others are not logged."""
    if damaged := folder.damaged_files():
        names = ", ".join(damaged)
        warn(f"{folder.path} is not logged: {names} missing or damaged: repeat that run's command")
    return not damaged


def _database(address: str) -> Path | None:
    """Return the file of a local database."""
    path = Path(address.removeprefix(SCHEME)).resolve()
    return path if address.startswith(SCHEME) and path.is_file() else None


def _set_view(client: MlflowClient, experiment: str, names: Iterable[str] = ()) -> list[str]:
    """Set the columns that MLflow's page of runs opens on to those that any run has; return them.

    Parameters
    ----------
    names : the names of metrics that were logged since the view was set.
    """
    tag = f"{entries.SHARED}{entries.VIEW}"
    before = client.get_experiment(experiment).tags.get(tag, "")
    metric_columns = entries.columns(names, before)
    view = entries.view(metric_columns)
    if view != before:
        client.set_experiment_tag(experiment, entries.PRIMARY, metric_columns[0])
        client.set_experiment_tag(experiment, tag, view)
    return metric_columns


def _logged_entries(
    client: MlflowClient, experiment: str, run_ids: Sequence[str], others: int = 0
) -> dict[str, list[_Entry]]:
    """Return fairbench run id -> its entries, for `run_ids` at least.

    Parameters
    ----------
    others : how many other runs are known to be logged.
    """
    # MLflow sends every metric of every run along: fewer runs are asked for one by one.
    is_asked_by_id = len(run_ids) <= max(_FEW, others)
    filters = [f"tags.`{RUN}` = '{run_id}'" for run_id in run_ids] if is_asked_by_id else [""]
    entries_of_run: dict[str, list[_Entry]] = {}
    for run in (run for text in filters for run in _search(client, experiment, text)):
        run_tags = run.data.tags
        content = _content(run.data.metrics, run.data.params, run.info.artifact_uri)
        logged_as = run_tags.get(entries.VERSION_TAG), run_tags.get(_CONTENT)
        whole = run.info.status == "FINISHED" and logged_as == (VERSION, content)
        begun = run_tags.get(entries.BEGUN, "")
        entry = _Entry(
            run_tags.get(FINGERPRINT, "") if whole else "",
            str(run.info.run_id),
            run_tags.get(SWEEP, ""),
            int(begun) if begun.isdecimal() else run.info.start_time,
        )
        entries_of_run.setdefault(run_tags.get(RUN, ""), []).append(entry)
    return entries_of_run


def _content(metrics: Mapping[str, float], options: Mapping[str, str], artifacts: str) -> str:
    """Return a digest of a run's metrics and parameters; people may change tags and name."""
    return digest([metrics, options, artifacts])


def _search(client: MlflowClient, experiment: str, filter_text: str) -> Iterator[Any]:
    """Yield the runs that a filter finds, page by page."""
    token = None
    while True:
        page = client.search_runs([experiment], filter_text, max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _current(folder: Run, existing: Iterable[_Entry]) -> list[_Entry]:
    """Return the entries that have a run as it is."""
    return [entry for entry in existing if entry.fingerprint == folder.environment["fingerprint"]]


def _log(
    client: MlflowClient,
    experiment: str,
    folder: Run,
    points: Sequence[LoggedMetric],
    further: Mapping[str, str],
) -> str:
    """Log a run in MLflow, files and metrics and all; return the id that it has there.

    Metrics and parameters go in batches of as many as MLflow takes. The digest of all comes last,
    as MLflow writes the tags of a batch: an entry without it, or with another's, is a half one, and
    is logged again.
    """
    from mlflow.entities import Metric, Param, RunTag

    began, ended = entries.times(folder)
    now = int(1000 * time.time())
    run_tags = {**entries.tags(folder), entries.BEGUN: str(now), **further}
    run = client.create_run(experiment, began, run_tags, run_tags[entries.NOTE])
    run_id = str(run.info.run_id)
    client.log_inputs(run_id, [entries.data_set(folder)])
    figures = [folder.figures / name for name in files.names_in(folder.figures)[0]]
    contents = {name: folder.content(name) for name in _FILES}
    contents[LAST] = files.read_bytes(folder.path / LAST)
    contents |= {f"{FIGURES}/{path.name}": files.read_bytes(path) for path in figures}
    with _artifacts_of(client, run.info) as folder_of_artifacts:
        for name, of_file in contents.items():
            files.write_bytes(folder_of_artifacts / name, of_file, lasting=False)
    # Before metrics are logged: to change the status, MLflow reads all metrics of the run.
    client.set_terminated(run_id, end_time=ended)
    options = dict(entries.parameters(folder))
    content = _content(entries.latest_values(points), options, run.info.artifact_uri)
    metrics = [Metric(point.name, point.value, now, point.step) for point in points]
    params = [Param(name, value) for name, value in options.items()]
    while len(metrics) > _METRICS or len(params) > _PARAMETERS:
        client.log_batch(run_id, metrics[:_METRICS], params[:_PARAMETERS])
        del metrics[:_METRICS], params[:_PARAMETERS]
    client.log_batch(run_id, metrics, params, [RunTag(_CONTENT, content)])
    return run_id


@contextlib.contextmanager
def _artifacts_of(client: MlflowClient, info: RunInfo) -> Iterator[Path]:
    """Give a folder whose files become a run's artifacts: their own one if it is of this machine.

    To be told of it, MLflow reads the run again, which takes as long as a tenth of all logging.
    """
    if (address := urlsplit(info.artifact_uri)).scheme == "file":
        yield Path(url2pathname(address.path))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as copies:
        yield Path(copies)
        client.log_artifacts(info.run_id, copies)


def links(tracking: Tracking, site: str, results: Path) -> list[str]:
    """Return lines with the addresses of the experiment and of the latest sweep's charts.

    Raises
    ------
    TrackingError : MLflow is down, or does not get on.
    """
    sweep, _ = next(reversed(read_sweeps(results)), ("", ()))

    def found(client: MlflowClient) -> str:
        """Set the columns of the page of runs; return the experiment."""
        experiment = tracking.experiment_id(client)
        metric_columns = _set_view(client, experiment)
        if sweep:
            tag, view = entries.SHARED + entries.SWEEP_VIEW, entries.view(metric_columns, sweep)
            client.set_experiment_tag(experiment, tag, view)
        return experiment

    runs = f"{site}/#/experiments/{tracking.ask(found)}/runs?viewStateShareKey="
    charts = f"the latest sweep: {runs}{entries.SWEEP_VIEW}&compareRunsMode=CHART"
    return [f"runs: {runs}{entries.VIEW}", *[charts] * bool(sweep)]
