"""The local database of MLflow: migrated once at set-up, copied where needed, locked, checked.

``python -m fairbench.tracking.database`` makes the copy's original, under the environment's prefix.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairbench.core import files
from fairbench.core.errors import UserError
from fairbench.core.processes import BusyError, locked

# Of a database and its write-ahead log: inode, bytes, time of modification, time of change (ns).
Stamp = tuple[int, ...]

SCHEME = "sqlite:///"
# Disks that several machines share: sqlite's write-ahead journal needs one machine's memory.
_REMOTE = {"afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "smb", "sshfs"}


def quiet() -> None:
    """Turn off MLflow's telemetry, log and addresses; call before MLflow is imported."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_CONFIGURE_LOGGING", "false")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    for name in ("alembic", "mlflow", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _template() -> Path:
    """Return the path of the migrated, empty database of this MLflow version."""
    version = importlib.metadata.version("mlflow")
    return Path(sys.prefix) / "share" / "fairbench" / f"mlflow-{version}.db"


@contextlib.contextmanager
def exclusive(address: str, seconds: float) -> Iterator[None]:
    """Lock a local database while it is opened and written; a server needs no lock.

    Several processes that open a new sqlite store at once would all migrate it.

    Parameters
    ----------
    seconds : how long to wait for it.

    Raises
    ------
    BusyError : another process holds it, or writes it, for so many seconds by now.
    UserError : it is no database that can be written.
    """
    if not address.startswith(SCHEME):
        yield
        return
    path = Path(address.removeprefix(SCHEME))
    with locked(path.with_name(f"{path.name}.lock"), seconds=seconds):
        _check(path, seconds)
        if not path.exists() and _template().is_file():
            content = _template().read_bytes()
            if local(path):  # sqlite writes ahead to it: a commit then costs far less
                # By the two versions of the format: https://www.sqlite.org/fileformat.html, 1.3.3.
                content = content[:18] + b"\2\2" + content[20:]
            files.write_bytes(path, content)
        yield


def _check(path: Path, seconds: float) -> None:
    """Refuse a database that sqlite cannot write, for which MLflow would wait two minutes.

    Raises
    ------
    BusyError : a program writes it, for so many seconds by now.
    UserError : it is damaged, or is no file.
    """
    if not path.exists():
        return
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=seconds)) as database:
            # One whose header says that it is read-only can be read, and is never written again.
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
            database.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise BusyError("a program that writes it") from error
        told = "move it away, and `fairbench sync` logs every run to a new one"
        raise UserError(f"{path}: {error}: {told}") from error


def stamp(path: Path) -> Stamp:
    """Return a stamp that changes whenever a local database is written; empty without a file."""
    try:
        states = [path.stat()]
    except OSError:
        return ()
    with contextlib.suppress(OSError):
        ahead = path.with_name(f"{path.name}-wal").stat()
        states += [ahead] if ahead.st_size else []
    parts = ((file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns) for file in states)
    return tuple(number for part in parts for number in part)


def settle(path: Path) -> Stamp:
    """Return the stamp of a local database once its write-ahead log is in the file itself.

    Whoever closes it last would put it there, and so change the stamp.
    """
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(path, timeout=1)) as database,
    ):
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return stamp(path)


def local(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Return whether a path is on a disk of this machine, as far as the table of mounts tells."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return True
    above = {str(parent) for parent in [path.resolve(), *path.resolve().parents]}
    kinds = {line[1]: line[2] for line in lines if line[1] in above}
    kind = kinds[max(kinds, key=len)] if kinds else ""
    return kind.removeprefix("fuse.").rstrip("0123456789") not in _REMOTE


def _make_template() -> Path:
    """Create the template by ``mlflow db upgrade``, unless it is there.

    That makes the tables and no experiment: the default one would note the folder it was made in.
    """
    path = _template()
    if path.is_file():
        return path
    quiet()
    from mlflow.db import commands

    with tempfile.TemporaryDirectory() as folder:
        database_file = Path(folder) / path.name
        commands.main(["upgrade", f"{SCHEME}{database_file}"], standalone_mode=False)
        files.write_bytes(path, database_file.read_bytes())
    return path


if __name__ == "__main__":
    _make_template()
