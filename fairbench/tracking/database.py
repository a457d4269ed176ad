"""The local MLflow database: migrated once at set-up, then copied wherever a new one is needed.

``python -m fairbench.tracking.database`` makes the copy's original, under the environment's prefix.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from math import isinf
from pathlib import Path

from fairbench.core.files import atomic, set_aside
from fairbench.core.locks import locked

SCHEME = "sqlite:///"
# Disks that several machines share: sqlite's write-ahead journal needs one machine's memory.
_REMOTE = {"afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "smb", "sshfs"}


def quiet() -> None:
    """Turn off MLflow's telemetry and its migration log; call before MLflow is imported."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_CONFIGURE_LOGGING", "false")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    for name in ("alembic", "mlflow", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)


def template() -> Path:
    """Return where the migrated, empty database of this MLflow version is kept."""
    version = importlib.metadata.version("mlflow")
    return Path(sys.prefix) / "share" / "fairbench" / f"mlflow-{version}.db"


@contextlib.contextmanager
def exclusive(address: str, seconds: float = 60.0) -> Iterator[None]:
    """Hold a local database while it is opened and written; a server needs no such care.

    Several processes that open a new sqlite store at once would all migrate it. A damaged database
    is set aside, and a new one made.

    Raises
    ------
    BusyError : another process holds it, for so many seconds by now.
    """
    if not address.startswith(SCHEME):
        yield
        return
    path = Path(address.removeprefix(SCHEME))
    # sqlite and MLflow wait for ever for what they cannot have.
    wait = None if isinf(seconds) else seconds
    with locked(path.with_name(f"{path.name}.lock"), seconds=wait):
        if path.exists() and damaged(path):
            set_aside(path, "a new one is made, and `fairbench sync` logs every run to it")
            for journal in ("wal", "shm"):
                path.with_name(f"{path.name}-{journal}").unlink(missing_ok=True)
        if not path.exists() and template().is_file():
            with atomic(path) as temporary:
                shutil.copyfile(template(), temporary)
                if local(path):
                    _write_ahead(temporary)
        yield


_CHECKED = 1 << 25  # bytes of a database that is read whole to see whether it is damaged
_PAGES = slice(28, 32)  # where a database says how many pages it has


def damaged(path: Path) -> bool:
    """Say whether a file is no database that can be read to its end; a locked one may be fine."""
    size = path.stat().st_size
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=1)) as database:
            page = int(database.execute("PRAGMA page_size").fetchone()[0])
            with open(path, "rb") as file:
                pages = int.from_bytes(file.read(100)[_PAGES], "big")
            if not size or size < page * pages:
                return True
            if size > _CHECKED:
                database.execute("SELECT count(*) FROM sqlite_master")
                return False
            return bool(database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True


def _write_ahead(path: Path) -> None:
    """Have sqlite write ahead, which the file itself notes: a commit then costs far less."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")


def local(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Say whether a path is on a disk of this machine, as far as the table of mounts tells."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return True
    above = {str(each) for each in [path.resolve(), *path.resolve().parents]}
    kinds = {line[1]: line[2] for line in lines if line[1] in above}
    kind = kinds[max(kinds, key=len)] if kinds else ""
    return kind.removeprefix("fuse.").rstrip("0123456789") not in _REMOTE


def make_template() -> Path:
    """Create the template by ``mlflow db upgrade``, unless it is there.

    That makes the tables and no experiment: the default one would note the folder it was made in.
    """
    path = template()
    if path.is_file():
        return path
    quiet()
    from mlflow.db import commands

    with atomic(path) as temporary:
        commands.main(["upgrade", f"{SCHEME}{temporary}"], standalone_mode=False)
    return path


if __name__ == "__main__":
    make_template()
