"""The state file: plain JSON, replaced whole under one lock, so that no label is ever lost."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from fairbench.audit.labelling.state import State, from_json, to_json
from fairbench.core.errors import UserError
from fairbench.core.files import write_text


@dataclass(frozen=True)
class StateFile:
    """A file that any number of processes may read and change; each sees the others' changes."""

    path: Path

    def exists(self) -> bool:
        """Say whether there is one."""
        return self.path.is_file()

    def read(self) -> State:
        """Return the state.

        Raises
        ------
        UserError : no such file, or not one that this version wrote.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return from_json(content, self.path.parent)
        except FileNotFoundError as error:
            raise UserError(
                f"{self.path} does not exist: start it with fairbench label next PREDICTIONS "
                f"state={self.path} ..."
            ) from error
        except (OSError, KeyError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(f"{self.path} is not the state of an audit: {reason}") from error

    def change(self, change: Callable[[State], State]) -> State:
        """Read, change and write the state while nobody else can.

        What `change` raises leaves the file as it was. Once this returns, the new state is on the
        disk. The lock is the system's, and so is freed even by a kill.
        """
        with self._lock():
            before = self.read()
            after = change(before)
            if after != before:
                self._write(after)
            return after

    def create(self, state: State) -> State:
        """Write the first state.

        Raises
        ------
        UserError : another process was first.
        """
        with self._lock():
            if self.exists():
                raise UserError(f"{self.path} was made by another process meanwhile: try again")
            self._write(state)
            return state

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = FileLock(self.path.with_name(f".{self.path.name}.lock")).acquire()
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error}") from error
        with held:
            yield

    def _write(self, state: State) -> None:
        # Whoever holds the lock is alone: what others left half written was left by a kill.
        for half in self.path.parent.glob(f".{self.path.name}.*.tmp"):
            half.unlink(missing_ok=True)
        text = json.dumps(to_json(state, self.path.parent), indent=1, ensure_ascii=False)
        try:
            write_text(self.path, text + "\n")
            _sync_folder(self.path.parent)
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename within a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Return a file's checksum.

    Raises
    ------
    UserError : it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
