"""A state as plain JSON in one file: sealed, locked while it changes, and whole after any kill."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from fairbench.core.door import TEXT, names_in, read_bytes, remove
from fairbench.core.errors import UserError, refused
from fairbench.core.files import DamagedError, half_of, sealed_json, write_text
from fairbench.core.locks import BusyError, locked

State = TypeVar("State")


@dataclass(frozen=True)
class JsonFile(ABC, Generic[State]):
    """A file that any number of processes may read and change; each sees the others' changes."""

    path: Path
    of: ClassVar[str]  # whose state it is, such as ``an audit``
    start: ClassVar[str]  # the words that make one
    otherwise: ClassVar[str]  # what to do about a damaged one but to put a copy of it back

    @property
    def place(self) -> Path:
        """The file itself, where `path` is a link to one that several people share."""
        return Path(os.path.realpath(self.path))

    def exists(self) -> bool:
        """Say whether there is one."""
        return self.path.is_file()

    @abstractmethod
    def parsed(self, content: bytes) -> State:
        """Return the state that a file's content describes."""

    @abstractmethod
    def values(self, state: State) -> Mapping[str, Any]:
        """Return a state as plain values."""

    def read(self) -> State:
        """Return the state.

        Raises
        ------
        UserError : no such file, or not one that this version wrote.
        """
        try:
            return self.parsed(read_bytes(self.place, TEXT, private=True))
        except FileNotFoundError as error:
            raise UserError(
                f"{self.path} does not exist: start it with {self.start} state={self.path} ..."
            ) from error
        except DamagedError as error:
            raise UserError(
                f"{self.path} is not the state of {self.of}, or is damaged: {error}; put a copy of "
                f"it back, {self.otherwise}"
            ) from error
        except (OSError, KeyError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(f"{self.path} is not the state of {self.of}: {reason}") from error

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
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.place.with_name(f".{self.place.name}.lock")))
            except BusyError as error:
                raise UserError(f"{self.path} is held by {error}: end that process") from error
            except OSError as error:
                raise UserError(f"{self.path} cannot be written: {refused(error)}") from error
            yield

    def _write(self, state: State) -> None:
        # Whoever holds the lock is alone: what others left half written was left by a kill.
        try:
            for name in names_in(self.place.parent)[0]:
                if half_of(name) == self.place.name:
                    remove(self.place.with_name(name))
            mode = self.place.stat().st_mode & 0o777 if self.exists() else 0o600
            write_text(self.place, sealed_json(self.values(state), indent=1), mode=mode)
        except OSError as error:
            raise UserError(f"nothing was changed: {refused(error)}") from error
