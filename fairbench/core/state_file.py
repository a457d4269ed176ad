"""A state as plain JSON in one file: sealed, locked while it changes, and whole after any kill.

Several people may share one, by a link too. Whoever finds it held is told so after two seconds, and
after half a minute by whom, with nothing changed: a holder that was stopped keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from fairbench.core.errors import UserError, note, refused, warn
from fairbench.core.files import UNREADABLE, DamagedError, half_of, sealed_json, write_text
from fairbench.core.formats import visible
from fairbench.core.locks import BusyError, locked
from fairbench.core.safe_open import TEXT, names_in, opened, read_bytes, remove

State = TypeVar("State")
_QUIET, _PATIENCE = 2.0, 28.0  # seconds that one waits for a held state without a word, and with


@dataclass(frozen=True)
class JsonFile(ABC, Generic[State]):
    """A file that any number of processes may read and change; each sees the others' changes."""

    path: Path
    of: ClassVar[str]  # whose state it is, such as ``an audit``
    start: ClassVar[str]  # the words that make one
    otherwise: ClassVar[str]  # what to do about a damaged one but to put a copy of it back

    @property
    def place(self) -> Path:
        """The file itself, where `path` is a link to one that several people share.

        Raises
        ------
        UserError : the link leads back to itself.
        """
        try:
            return self.path.resolve()
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"{self.path} is a link that leads back to itself: remove it, or name another state"
            ) from error

    @property
    def folder(self) -> Path:
        """The folder of the file itself, from which a state names other files."""
        return self.place.parent if self.path.is_symlink() else self.path.parent

    def path_in_folder(self, path: Path) -> Path:
        """Return the path of another file that the state names, if it lies in the state's folder.

        Raises
        ------
        UserError : it lies elsewhere, where a stranger's state could name any file.
        """
        try:
            is_within = path.resolve().is_relative_to(self.folder.resolve())
        except (OSError, ValueError, RuntimeError):  # a byte of value 0, a link to itself
            is_within = False
        if not is_within:
            raise UserError(
                f"{self.path} names a file outside of its folder, {visible(str(path))}: it is read "
                "if the command names it, too, right after the verb"
            )
        return path

    def exists(self) -> bool:
        """Say whether there is a file, or anything else, of this name."""
        return os.path.lexists(self.place)

    @abstractmethod
    def parse(self, content: bytes) -> State:
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
            return self.parse(read_bytes(self.place, TEXT, private=True))
        except FileNotFoundError as error:
            raise UserError(
                f"{self.path} does not exist: start it with {self.start} state={self.path} ..."
            ) from error
        except DamagedError as error:
            raise UserError(
                f"{self.path} is not the state of {self.of}, or is damaged: {error}; put a copy of "
                f"it back, {self.otherwise}"
            ) from error
        except UNREADABLE as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            reason = error.strerror or reason if isinstance(error, OSError) else reason
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

    def swap(self, before: State | None, after: State) -> bool:
        """Write a state unless it has changed; return whether it had not.

        What takes long is done in between, while others may use the state, and done anew if they
        have changed it.

        Parameters
        ----------
        before : the state as it was read, or None where there was none.
        """
        with self._lock():
            now = self.read() if self.exists() else None
            if self._text(now) != self._text(before):
                return False
            if self._text(after) != self._text(now):
                self._write(after)
            return True

    def create(self, state: State) -> State:
        """Write the first state.

        Raises
        ------
        UserError : another process was first.
        """
        if not self.swap(None, state):
            raise UserError(
                f"{self.path} was started by another process a moment ago: give the command again "
                "to go on with it"
            )
        return state

    def _text(self, state: State | None) -> str:
        return "" if state is None else sealed_json(self.values(state), indent=1)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file's lock while the block runs, waiting half a minute for other processes."""
        lock = self.place.with_name(f".{self.place.name}.lock")
        with contextlib.ExitStack() as stack:
            try:
                try:
                    stack.enter_context(locked(lock, seconds=_QUIET))
                except BusyError as error:
                    note(f"{self.path} is held by {error}: waiting for it")
                    stack.enter_context(locked(lock, seconds=_PATIENCE))
            except BusyError as error:
                raise UserError(
                    f"{self.path} is held by {error}: nothing was changed; end that process, or "
                    "give the command again when it is done"
                ) from error
            except OSError as error:
                raise UserError(f"{self.path} cannot be written: {refused(error)}") from error
            yield

    def _write(self, state: State) -> None:
        """Write the state in place of the one before, with its owner and its permissions."""
        # Whoever holds the lock is alone: what others left half written was left by a kill.
        try:
            for name in names_in(self.place.parent)[0]:
                if half_of(name) == self.place.name:
                    remove(self.place.with_name(name))
            about = self.place.stat() if self.exists() else None
            mode = about.st_mode & 0o777 if about else 0o600
            if about and about.st_nlink > 1:
                warn(
                    f"{self.path} has other names, which are hard links: they keep what was there "
                    "before; to share a state, give it a symbolic link"
                )
            write_text(self.place, self._text(state), mode=mode)
            if about:
                self._share_as(about)
        except OSError as error:
            raise UserError(f"nothing was changed: {refused(error)}") from error

    def _share_as(self, before: os.stat_result) -> None:
        """Give a new file the owner, group and mode of the one before it, as far as is allowed."""
        now = self.place.stat()
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            if owner not in (-1, now.st_uid) or group not in (-1, now.st_gid):
                with contextlib.suppress(PermissionError):
                    os.chown(self.place, owner, group)
        if (now.st_mode ^ before.st_mode) & 0o777:
            with open(opened(self.place), "rb") as file:
                os.fchmod(file.fileno(), before.st_mode & 0o777)
