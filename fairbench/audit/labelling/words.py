"""The words of ``python audit.py next``, ``label`` and ``report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from fairbench.audit.labelling.state_file import StateFile
from fairbench.audit.options import Options
from fairbench.core.errors import UserError, unknown_name

# Besides those of an audit, which next takes to start one.
OWN: Mapping[str, tuple[str, ...]] = {
    "next": ("state", "n", "question", "strategy", "by", "part"),
    "label": ("state", "row", "label", "labels", "overwrite", "part"),
    "report": ("state", "out", "epsilon"),
}


@dataclass(frozen=True)
class Words:
    """A command line: the file of predictions if it names one, and its options in order."""

    path: Path | None
    pairs: Sequence[tuple[str, str]]

    @property
    def given(self) -> Mapping[str, str]:
        """The options by name."""
        return dict(self.pairs)

    @property
    def file(self) -> StateFile:
        """The state file.

        Raises
        ------
        UserError : none is named.
        """
        if not self.given.get("state"):
            raise UserError("no state file is named: state=audit.json")
        return StateFile(Path(self.given["state"]))

    @property
    def number(self) -> int:
        """How many rows are asked for.

        Raises
        ------
        UserError : not a whole number above 0.
        """
        text = self.given.get("n", "1")
        if not text.isdecimal() or not int(text):
            raise UserError(f"n is '{text}'; it must be a whole number above 0")
        return int(text)

    @property
    def part(self) -> tuple[int, int]:
        """Which of the rows are this person's, k of m.

        Raises
        ------
        UserError : not two numbers as in 1/2.
        """
        first, _, total = self.given.get("part", "1/1").partition("/")
        if not (first.isdecimal() and total.isdecimal() and 1 <= int(first) <= int(total)):
            raise UserError(f"part is '{self.given['part']}'; it must be such as 1/2 or 2/2")
        return int(first), int(total)

    @property
    def of_audit(self) -> Mapping[str, str]:
        """The options that are an audit's."""
        return {name: text for name, text in self.pairs if name not in OWN["next"]}


def split(command: str, words: Sequence[str]) -> Words:
    """Return the words that follow a command.

    Raises
    ------
    UserError : more than one file, or an option that the command does not have.
    """
    paths = [word for word in words if "=" not in word or Path(word).is_file()]
    if len(paths) > 1:
        raise UserError(f"give one file of predictions, not {len(paths)}: {' '.join(paths)}")
    pairs = []
    for word in words:
        name, _, text = word.partition("=")
        row = command == "label" and name.lstrip("+-")[:1].isdigit()
        if word not in paths and command != "next" and not row and name not in OWN[command]:
            raise unknown_name(f"option of {command}", name, OWN[command])
        if word not in paths:
            pairs.append((name, text))
    return Words(Path(paths[0]) if paths else None, pairs)


def as_words(options: Options) -> dict[str, str]:
    """Return the options of an audit as they are written on a command line."""
    values = {each.name: getattr(options, each.name) for each in fields(options)}
    scores = values.pop("scores")
    values["score"] = scores or values["score"]
    return {name: _written(value) for name, value in values.items() if name != "path"}


def _written(value: object) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
