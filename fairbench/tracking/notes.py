"""Notes in a results folder on the runs that a local MLflow database has.

The note is a sealed cache, which may be removed at any time: without it MLflow is asked, whose
import takes seconds, and whose every answer brings whole runs. It knows the database by its inode,
size and times: while these are as they were when MLflow was last asked, so is what it said. Who
changes a run by another program in the very seconds in which runs are logged is noticed when the
database is next written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fairbench.core.files import unsealed_json, write_cache
from fairbench.core.safe_open import TEXT, read_bytes
from fairbench.tracking.database import Stamp

NOTE = "mlflow.json"


class NotedRun(NamedTuple):
    """A run that MLflow has, as its folder was and as MLflow calls it."""

    fingerprint: str
    id: str
    sweeps: str


@dataclass(frozen=True)
class Note:
    """Which runs are in a database.

    Attributes
    ----------
    stamp : the stamp of the database when the note was written.
    runs : run id -> the note on it, for runs that were in the database then, each once and whole.
    earlier : run id -> the note on it, for runs that were in the database at some earlier time.
    """

    stamp: Stamp = ()
    runs: Mapping[str, NotedRun] = field(default_factory=dict)
    earlier: Mapping[str, NotedRun] = field(default_factory=dict)

    def of(self, stamp: Stamp, *, unchanged: bool = False) -> Mapping[str, NotedRun]:
        """Return the noted runs of a database that has this stamp by now.

        One that was made anew is another file, or smaller.

        Parameters
        ----------
        unchanged : whether only those that are surely there, as they were logged.
        """
        if stamp and stamp == self.stamp:
            return self.runs if unchanged else {**self.earlier, **self.runs}
        same_file = stamp[:1] == self.stamp[:1] and stamp[1:2] >= self.stamp[1:2]
        return {**self.earlier, **self.runs} if stamp and same_file and not unchanged else {}

    def with_logged(
        self, runs: Mapping[str, NotedRun], before: Stamp, after: Stamp, *, certain: bool
    ) -> Note:
        """Return the note when `runs` have been logged.

        Parameters
        ----------
        before, after : the stamps of the database before and after that.
        certain : whether stamps on its disk tell every change.
        """
        unchanged = self.of(before, unchanged=True)
        earlier = {id_: run for id_, run in self.of(before).items() if id_ not in unchanged}
        runs = {**unchanged, **runs}
        if not certain:
            return Note(after, {}, {**earlier, **runs})
        return Note(after, runs, {id_: run for id_, run in earlier.items() if id_ not in runs})


def read_note(results: Path, place: Mapping[str, str]) -> Note:
    """Return the note of a results folder on a database; an empty one if there is none.

    Parameters
    ----------
    place : the database, the experiment, and the version of what is logged.
    """
    try:
        content = unsealed_json(read_bytes(results / NOTE, TEXT))
        if content["place"] != dict(place):
            return Note()
        runs, earlier = (
            {str(id_): NotedRun(*map(str, run)) for id_, run in content[name].items()}
            for name in ("runs", "earlier")
        )
        return Note(tuple(content["stamp"]), runs, earlier)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Note()


def write_note(results: Path, place: Mapping[str, str], note: Note) -> None:
    """Write what a results folder notes of a database."""
    content = {"place": place, "stamp": note.stamp, "runs": note.runs, "earlier": note.earlier}
    write_cache(results / NOTE, content, lasting=False)
