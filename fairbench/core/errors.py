"""Errors whose message a person reads, and the checks of options that raise them."""

from __future__ import annotations

import difflib
import errno
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from fairbench.core.text import said, shortened, visible

_IMPORTED = sys.modules["fairbench"]
if not hasattr(_IMPORTED, "VERSION"):
    raise ImportError(said("core", "other_project", file=_IMPORTED.__file__))


class UserError(Exception):
    """Something the user can mend; printed as one sentence, exit status 2, no traceback."""


class IncompatibleError(UserError):
    """A combination of components that cannot work; refused before anything is fitted."""


class DataError(UserError):
    """A data file that is missing, corrupted or malformed."""


class OpenQuestion(UserError):
    """What a file leaves open, and an option says.

    Attributes
    ----------
    answers : the words that may be right, such as ``positive=repaid``: one that is likely, or all
        where nobody can tell which.
    """

    def __init__(self, question: str, *answers: str) -> None:
        super().__init__(question)
        self.answers = answers


class OpenQuestions(UserError):
    """All questions about a file: one alone, several in lines with the words that answer them."""

    def __init__(self, questions: Sequence[OpenQuestion]) -> None:
        if len(questions) == 1:
            super().__init__(str(questions[0]))
            return
        lines = [f"{i}. {question}" for i, question in enumerate(questions, 1)]
        likely = dict.fromkeys(q.answers[0] for q in questions if len(q.answers) == 1)
        words = [shlex.join(likely)] if likely else []
        for question in questions:
            if len(question.answers) > 1:
                words.append(f"one of {', '.join(map(shlex.quote, question.answers))}")
        answer = f"If that is right, give {'; and '.join(words)}"
        super().__init__("\n".join([f"{len(lines)} things are open:", *lines, answer]))


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST}


def refused(error: OSError) -> str:
    """Return a line on an error of the disk: which file, why, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    hint = ""
    if error.errno in _FULL:
        hint = ": make room there, and give the command again"
    elif error.errno in _FORBIDDEN:
        hint = ": name another place, with out=FOLDER or results=FOLDER"
    return f"{where}{error.strerror or error}{hint}"


@cache
def warn(sentence: str) -> None:
    """Print a line on the error stream, each only once."""
    print(f"warning: {visible(sentence)}", file=sys.stderr)


def note(sentence: str) -> None:
    """Print a line on the error stream that tells how something was understood."""
    print(f"note: {visible(sentence)}", file=sys.stderr)


_ALIKE = 0.6  # from which names are near: index is not near to gender
_LESS = 0.2  # by which a name is less near than the nearest, and is not meant
_TWO_SIGNS = 2  # of which one is half a name
_LONGEST = 300  # signs of a name that are compared


def nearest(name: str, valid: Iterable[str], limit: int = 3) -> list[str]:
    """Return the valid names that look most like `name`, best first; none that is not near.

    Of dotted names that share their first part, such as ``learner.gamma``, only what follows the
    dot is compared.
    """
    valid = list(valid)
    part = name.rpartition(".")[0] + "."
    if part != "." and valid and all(candidate.startswith(part) for candidate in valid):
        lasts = [candidate.removeprefix(part) for candidate in valid]
        return [part + last for last in nearest(name.removeprefix(part), lasts, limit)]
    alike = 0.5 if len(name) <= _TWO_SIGNS else _ALIKE
    name_of_lower = {candidate[:_LONGEST].lower(): candidate for candidate in valid}
    lower_name = name[:_LONGEST].lower()
    matches = difflib.get_close_matches(lower_name, list(name_of_lower), limit, alike)

    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, candidate, lower_name).ratio()

    near = [match for match in matches if likeness(match) > likeness(matches[0]) - _LESS]
    return [name_of_lower[candidate] for candidate in near]


def unknown_name(kind: str, name: str, valid: Iterable[str], *, listed_by: str = "") -> UserError:
    """Build the error for a name that does not exist, with the nearest valid ones.

    All valid names are listed where none is near, or where there are few.

    Parameters
    ----------
    kind : what the name is for, such as ``"dataset"``.
    name : the name that was given.
    valid : every name that exists.
    listed_by : a command that lists them, named where they are too many for a sentence.
    """
    valid = sorted(valid)
    start = f"unknown {kind} '{shortened(name)}'"
    if not valid:
        return UserError(f"{start}: there is none")
    hint = did_you_mean(name, valid)
    if hint and len(valid) > _FEW_NAMES:
        return UserError(f"{start}: {hint}")
    start += f": {hint} valid: " if hint else "; valid: "
    start += ", ".join(shortened(name) or "''" for name in valid[:_MOST_NAMES])
    if (more := len(valid) - _MOST_NAMES) > 0:
        start += f" and {more} more" + (f"; {listed_by} lists them" if listed_by else "")
    return UserError(start)


def did_you_mean(name: str, valid: Iterable[str], shown: str = "{}") -> str:
    """Return ``did you mean NAME or NAME?`` of the valid names near to `name`; empty if none is.

    Parameters
    ----------
    shown : how a name is shown, such as ``{}=`` for options.
    """
    valid = list(valid)
    near = nearest(name, valid) if len(valid) <= _MANY else []
    names = [shown.format(shortened(candidate)) for candidate in near]
    return f"did you mean {' or '.join(names)}?" if names else ""


_FEW_NAMES = 8  # names that are listed although one of them is near
_MOST_NAMES = 12  # names that are listed
_MANY = 10_000  # names, among which looking for the nearest takes seconds


_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "a text"),
}


def check_types(group: str, target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse the first of `options` that does not fit the plain type `target` declares for it.

    Parameters
    ----------
    group : what the options belong to, such as ``learner``; empty for top-level settings.
    target : a dataclass or function; only ``int``, ``float``, ``bool`` and ``str`` are checked.
    """
    parameters = inspect.signature(target).parameters.values()
    check_plain(group, {option.name: str(option.annotation) for option in parameters}, options)


def check_plain(group: str, types: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Refuse the first of `options` that does not fit its type, as `types` has it by name."""
    for name, annotation in types.items():
        kind, _, optional = annotation.partition(" | ")
        if name not in options or kind not in _TYPES or optional not in ("", "None"):
            continue
        value = options[name]
        accepted, description = _TYPES[kind]
        right = isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool))
        if not right and not (value is None and optional):
            dotted = f"{group}.{name}" if group else name
            raise UserError(f"{dotted} is {value!r}; it must be {description}")


def check_minimum(name: str, value: float, minimum: float, *, whole: bool = False) -> None:
    """Refuse a value under `minimum`, NaN, and with `whole` a number that is no whole one."""
    if not value >= minimum or (whole and value != int(value)):
        kind = "a whole number of " if whole else ""
        raise UserError(f"{name} is {value}; it must be {kind}at least {minimum}")


def check_choice(name: str, value: str, valid: Iterable[str]) -> None:
    """Refuse a value that is none of the `valid` ones."""
    valid = list(valid)
    if value not in valid:
        raise unknown_name(name, value, valid)


def check_share(name: str, value: float, *, zero: bool = False) -> None:
    """Refuse a value outside (0, 1), or outside [0, 1) where `zero` is allowed."""
    if not (0 < value < 1 or (zero and value == 0)):
        within = "at least 0 and under 1" if zero else "between 0 and 1"
        raise UserError(f"{name} is {value}; it must be {within}")
