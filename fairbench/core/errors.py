"""Errors that the user can mend; each is printed as one sentence, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can mend; printed as one sentence, exit status 2, no traceback."""


class IncompatibleError(UserError):
    """A combination of components that cannot work; refused before anything is fitted."""


class DataError(UserError):
    """A data file that is missing, corrupted or malformed."""


def nearest(name: str, valid: Iterable[str], limit: int = 3) -> list[str]:
    """Return the valid names that look most like `name`, best first."""
    return difflib.get_close_matches(name, list(valid), n=limit, cutoff=0.4)


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Build the error for a name that does not exist, with the nearest valid ones.

    Parameters
    ----------
    kind : what the name is for, such as ``"dataset"``.
    name : the name that was given.
    valid : every name that exists.
    """
    valid = sorted(valid)
    close = nearest(name, valid)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return UserError(f"unknown {kind} '{name}': {hint}valid: {', '.join(valid)}")
