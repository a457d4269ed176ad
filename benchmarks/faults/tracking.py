"""MLflow that is down, slow, damaged or shared: ``python -m benchmarks.faults tracking [FLIPS]``.

A finished run is logged, by its command, to a server or a database that behaves badly; beside it,
at the same time, the same command runs with ``tracking=none``. Then the server is well again (a
damaged database is left as it is), and ``fairbench sync`` is given once. Every run must be there
once, with the metrics, parameters and files of its folder, and have cost no more than is allowed.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

from benchmarks.faults.commands import Outcome, Place
from benchmarks.faults.servers import Service, server
from benchmarks.measure import show
from fairbench.core.files import is_aside
from fairbench.results.runs import Run
from fairbench.tracking.database import TrackingError, make_template, quiet
from fairbench.tracking.importer import Tracking, sync
from fairbench.tracking.metrics import logged_values
from fairbench.tracking.run_entry import parameters

SEEDS = 4
ALLOWED, SLOW, NOBODY = 10.0, 60.0, 65534  # seconds; the user that may not write
HEADER = ("MLflow", "seconds more", "allowed", "exit", "what was said", "after one sync")
Row = tuple[str, str, str, str, str, str]


@dataclass
class Trials:
    """The folder that all happens in, a real server, and the rows of the table so far."""

    whole: Place
    four: Place
    service: Service
    rows: list[Row] = field(default_factory=list)
    held: bool = True

    def add(
        self, name: str, pair: Outcome | None, problems: Sequence[str], *, allowed: float = ALLOWED,
        statuses: Sequence[int] = (), said: str = "",
    ) -> None:  # fmt: skip
        """Note a trial: of a pair, the first was given with ``tracking=none``."""
        more = pair.seconds[-1] - pair.seconds[0] if pair else 0.0
        statuses = [*statuses, *(pair.statuses[1:] if pair else [])]
        self.held &= more <= allowed and not problems and set(statuses) <= {0, -signal.SIGKILL}
        self.rows.append(
            (name, f"{more:.1f}" if pair else "", f"{allowed:.0f}" if pair else "",
             " ".join(map(str, statuses)), said or (pair.said if pair else ""),
             "; ".join(problems[:3]) or "each once, equal")
        )  # fmt: skip
        print(*self.rows[-1], sep=" | ", flush=True)


def main(flips: int = 60) -> bool:
    """Print what each bad day costs, and return whether all is as it is promised."""
    quiet()
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    make_template()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for each in ("whole", "four", "server"):
            (folder / each).mkdir()
        trials = Trials(Place(folder / "whole"), Place(folder / "four"), Service(folder / "server"))
        Outcome.of(trials.four.run(seed, "tracking=none") for seed in range(SEEDS))
        Outcome.of([trials.whole.run(0, "tracking=none")])
        trials.service.start()
        try:
            _servers(trials)
            _databases(trials)
            _at_once(trials)
        finally:
            trials.service.kill()
        show("MLflow on bad days", HEADER, trials.rows)
        return _flips(trials.whole, flips) and trials.held


def logged(trials: Trials, name: str, uri: str, *words: str, user: int | None = None) -> Any:
    """Return a copy of the folder, and what a run with and without MLflow came to in it."""
    place = trials.whole.copy(name.replace(" ", "_"), user)
    beside = place.copy(f"{place.root.name}_without")
    pair = [beside.run(0, "tracking=none"), place.run(0, f"tracking.uri={uri}", *words)]
    return place, Outcome.of(pair)


def _servers(trials: Trials) -> None:
    """Try servers that are well, down, and bad in every way."""
    real = trials.service.address
    bad: dict[str, Any] = {
        "answers": {"behaviour": "cuts", "good": 10**6},
        "answers 500": {"behaviour": "fails"},
        "answers 500 from the 5th request": {"behaviour": "fails", "good": 4},
        "answers 500 three times": {"behaviour": "recovers", "good": 3},
        "hangs": {"behaviour": "hangs"},
        "hangs from the 5th request": {"behaviour": "hangs", "good": 4},
        "sends a byte a second": {"behaviour": "drips", "pause": 1.0},
        "answers 2 s late": {"behaviour": "lags", "pause": 2.0},
        "cuts the connection at the 5th request": {"behaviour": "cuts", "good": 4},
        "answers with a web page": {"behaviour": "page"},
        "killed -9 at the 5th request": {
            "behaviour": "cuts", "good": 4, "reached": trials.service.kill
        },
    }  # fmt: skip
    for name, options in bad.items():
        with server(target=real, **options) as address:
            place, pair = logged(trials, name, address, f"tracking.experiment={name}")
        if trials.service.process is None:
            trials.service.start()
        _synchronised(trials, name, place, pair, SLOW if "late" in name else ALLOWED)
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
    for name, address in {"is down": closed, "has no such name": "http://mlflow.invalid"}.items():
        place, pair = logged(trials, name, address)
        _synchronised(trials, name, place, pair)
    _run_killed(trials)


def _synchronised(
    trials: Trials, name: str, place: Place, pair: Outcome | None, allowed: float = ALLOWED
) -> None:
    uri = trials.service.address
    with contextlib.redirect_stdout(io.StringIO()):
        status = sync(str(place.results), uri, name)  # what `fairbench sync` calls
    problems = differences(uri, name, place.runs)
    trials.add(f"server {name}", pair, problems, allowed=allowed, statuses=[status])


def _run_killed(trials: Trials) -> None:
    """Kill a run at its fifth request."""
    name, place = "well, run killed -9", trials.whole.copy("killed")
    started: Queue[subprocess.Popen[str]] = Queue()
    real = trials.service.address
    with server("cuts", target=real, good=4, reached=lambda: started.get().kill()) as address:
        run = place.run(0, f"tracking.uri={address}", f"tracking.experiment={name}")
        started.put(run)
        Outcome.of([run])
    _synchronised(trials, name, place, None)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "well": lambda content: content,
    "of no bytes": lambda content: b"",
    "cut to 60 bytes": lambda content: content[:60],
    "cut to one page": lambda content: content[:4096],
    "cut to a half": lambda content: content[: len(content) // 2],
    "without its last byte": lambda content: content[:-1],
    "of zeros": lambda content: bytes(len(content)),
    "read-only by one bit": lambda content: content[:18] + b"\x42" + content[19:],
}


def _databases(trials: Trials) -> None:
    """Try local databases that are damaged, no file, or not to be written."""
    before = trials.whole.copy("logged")
    Outcome.of([before.sync()])
    content = (before.root / "mlflow.db").read_bytes()
    for name, damage in DAMAGES.items():
        _database_trial(trials, name, partial(Path.write_bytes, data=damage(content)))
    _database_trial(trials, "a folder, then moved away", Path.mkdir, Path.rmdir)

    def protect(path: Path) -> None:
        path.write_bytes(content)
        path.chmod(0o444)

    free = partial(Path.chmod, mode=0o666)
    if os.getuid() == 0 and not _can_run(NOBODY):
        print(f"left out, read-only: user {NOBODY} may not run {sys.executable}", flush=True)
        return
    user = NOBODY if os.getuid() == 0 else None
    _database_trial(trials, "read-only, then not", protect, free, user)


def _can_run(user: int) -> bool:
    """Say whether a user may run this interpreter; root may write where nobody may."""
    try:
        return not subprocess.run([sys.executable, "-c", ""], user=user).returncode
    except PermissionError:
        return False


def _database_trial(
    trials: Trials,
    name: str,
    prepare: Callable[[Path], object],
    heal: Callable[[Path], object] = lambda path: None,
    user: int | None = None,
) -> None:
    place = trials.whole.copy(f"database_{name.replace(' ', '_')}", user)
    prepare(place.root / "mlflow.db")
    beside = place.copy(f"{place.root.name}_without", user)
    pair = Outcome.of([beside.run(0, "tracking=none"), place.run()])
    heal(place.root / "mlflow.db")
    done = Outcome.of([place.sync()])
    problems = differences(_database(place), "fairbench", place.runs)
    trials.add(f"database {name}", pair, problems, statuses=done.statuses)


def _database(place: Place) -> str:
    return f"sqlite:///{place.root / 'mlflow.db'}"


def _at_once(trials: Trials) -> None:
    """Try several that log at the same time."""
    for kind in ("database", "server"):
        place, beside = trials.four.copy(f"{kind}_four"), trials.four.copy(f"{kind}_without")
        name = "four runs at once"
        uri = _database(place) if kind == "database" else trials.service.address
        words = (f"tracking.uri={uri}", f"tracking.experiment={name}")
        without = Outcome.of(beside.run(seed, "tracking=none") for seed in range(SEEDS))
        runs = Outcome.of(place.run(seed, *words) for seed in range(SEEDS))
        pair = Outcome([max(without.seconds), max(runs.seconds)], [0, *runs.statuses], runs.printed)
        done = Outcome.of([place.sync(f"uri={uri}", f"experiment={name}")])
        problems = differences(uri, name, place.runs)
        trials.add(f"{kind}, {name}", pair, problems, statuses=done.statuses)
        syncs = Outcome.of(place.sync(f"uri={uri}", "experiment=two syncs") for _ in range(2))
        problems = differences(uri, "two syncs", place.runs)
        trials.add(f"{kind}, two syncs at once", None, problems, statuses=syncs.statuses,
                   said=syncs.said)  # fmt: skip
    _two_copies(trials)


def _two_copies(trials: Trials) -> None:
    """Have two copies of a folder logged at once, and then again, one after the other."""
    uri, name = trials.service.address, "two copies"
    words = (f"uri={uri}", f"experiment={name}")
    places = [trials.four.copy(each) for each in ("one", "other")]
    first = Outcome.of(place.sync(*words) for place in places)
    doubled = "; ".join(differences(uri, name, places[0].runs)) or "each once"
    trials.add("server, two copies of a folder at once", None, [], statuses=first.statuses,
               said=f"before the second sync: {doubled}")  # fmt: skip
    again = Outcome.of([places[1].sync(*words)])
    problems = differences(uri, name, places[0].runs)
    trials.add("server, two copies, again", None, problems, statuses=again.statuses,
               said=again.said)  # fmt: skip


def differences(uri: str, experiment: str, runs: Sequence[Run]) -> list[str]:
    """Return where MLflow does not show each run once, and as its files are."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    result = client.get_experiment_by_name(experiment)
    entries = client.search_runs([result.experiment_id]) if result else []
    named = Counter(entry.data.tags.get("fairbench.run_id", "") for entry in entries)
    problems = [f"{named[run.id]} entries of {run.id}" for run in runs if named[run.id] != 1]
    if strays := set(named) - {run.id for run in runs}:
        problems.append(f"entries of {', '.join(sorted(strays))}")
    for entry in entries:
        mine = [run for run in runs if run.id == entry.data.tags.get("fairbench.run_id")]
        problems += [f"{run.id}: {each}" for run in mine for each in _unequal(client, entry, run)]
    return problems


def _unequal(client: Any, entry: Any, run: Run) -> Iterator[str]:
    """Yield which parts of an entry are not those of a run's folder."""
    expected = logged_values(run)
    shown = entry.data.metrics
    same = shown.keys() == expected.keys()
    if not same or not np.allclose([shown[k] for k in expected], list(expected.values()), 1e-12):
        yield "other metrics"
    if entry.data.params != dict(parameters(run, run.environment)):
        yield "other parameters"
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(client.download_artifacts(entry.info.run_id, "", folder))
        files = {path.relative_to(copied): path for path in copied.rglob("*") if path.is_file()}
        figures = {path.relative_to(run.path) for path in run.figures.glob("*")}
        if not figures < files.keys():
            yield "figures missing"
        if any((run.path / name).read_bytes() != path.read_bytes() for name, path in files.items()):
            yield "other files"


def _flips(whole: Place, number: int) -> bool:
    """Flip a bit of a database, again and again, and print what a sync makes of it."""
    place = whole.copy("flips")
    Outcome.of([place.sync()])
    content = np.frombuffer((place.root / "mlflow.db").read_bytes(), np.uint8)
    used = np.flatnonzero(content)  # most of a new database is empty
    draw, counts = np.random.default_rng(0), Counter[str]()
    for number_of in range(number):
        flipped = content.copy()
        flipped[draw.choice(used)] ^= 1 << int(draw.integers(8))
        path = place.root / f"flip{number_of}" / "mlflow.db"
        path.parent.mkdir()
        path.write_bytes(flipped.tobytes())
        counts[_after_flip(f"sqlite:///{path}", place.runs, path)] += 1
    show(f"{number} bits flipped, one sync", ("what became of it", "times"), counts.most_common())
    return not counts["wrong"]


def _after_flip(uri: str, runs: Sequence[Run], path: Path) -> str:
    before = path.read_bytes()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            Tracking(uri=uri).sync(runs)
    except TrackingError as error:
        return f"refused: {error}".replace(str(path.parent), "")[:100]
    if problems := differences(uri, "fairbench", runs):
        return f"wrong: {problems[0]}"
    if any(is_aside(beside.name) for beside in path.parent.iterdir()):
        return "set aside, and a new one made"
    return "no effect" if path.read_bytes() == before else "mended"
