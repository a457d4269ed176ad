"""The state of an audit that is being labelled: what was asked for, and every label so far."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from fairbench.audit.options import Options

SCHEMA = 1
# Where the predictions are is kept apart, and where a report goes is not part of an audit.
_ELSEWHERE = ("path", "out")


@dataclass(frozen=True)
class Answer:
    """A label that a person gave.

    Attributes
    ----------
    row : counted from 1. label : empty where the person could not tell. time : UTC, ISO 8601.
    """

    row: int
    label: str
    time: str


@dataclass(frozen=True)
class State:
    """All that the next row depends on.

    Attributes
    ----------
    options : as of an audit; their path is that of the predictions.
    sha256, rows : of the predictions.
    by : the attribute whose groups rows are chosen among.
    answers : in the order they came; of a row's answers, the last one counts.
    """

    options: Options
    sha256: str
    rows: int
    by: str
    question: str
    strategy: str
    answers: tuple[Answer, ...] = ()

    @property
    def labels(self) -> Mapping[int, str]:
        """Return row -> label."""
        return {answer.row: answer.label for answer in self.answers}

    def answered(self, answers: tuple[Answer, ...]) -> State:
        """Return the state after further answers."""
        return replace(self, answers=self.answers + answers)


def to_json(state: State, folder: Path) -> dict[str, Any]:
    """Return a state as plain values; the path of the predictions is seen from `folder`."""
    chosen = {k: v for k, v in asdict(state.options).items() if k not in _ELSEWHERE}
    path = state.options.path.resolve()
    return {
        "schema": SCHEMA,
        "predictions": {
            # Relative, so that the two files can move together.
            "path": Path(os.path.relpath(path, folder.resolve())).as_posix(),
            "sha256": state.sha256,
            "rows": state.rows,
        },
        "options": chosen,
        "by": state.by,
        "question": state.question,
        "strategy": state.strategy,
        "labels": [asdict(answer) for answer in state.answers],
    }


def from_json(content: Any, folder: Path) -> State:
    """Return the state that plain values describe.

    Raises
    ------
    KeyError, TypeError, ValueError : they describe none.
    """
    if content["schema"] != SCHEMA:
        raise ValueError(f"its schema is {content['schema']}; this version reads {SCHEMA}")
    predictions = content["predictions"]
    options = _options(content["options"], folder / predictions["path"])
    answers = tuple(_answer(each, int(predictions["rows"])) for each in content["labels"])
    by, question, strategy = (_text(content, name) for name in ("by", "question", "strategy"))
    digest, rows = _text(predictions, "sha256"), int(predictions["rows"])
    return State(options, digest, rows, by, question, strategy, answers)


def _options(values: Mapping[str, Any], path: Path) -> Options:
    known = {each.name for each in fields(Options)}
    if unknown := set(values) - known:
        raise ValueError(f"it has an option '{min(unknown)}' that this version does not know")
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return Options(path=path, **plain)


def _answer(value: Mapping[str, Any], rows: int) -> Answer:
    answer = Answer(int(value["row"]), _text(value, "label"), _text(value, "time"))
    if not 1 <= answer.row <= rows:
        raise ValueError(f"it has a label of row {answer.row}, of {rows}")
    return answer


def _text(values: Mapping[str, Any], name: str) -> str:
    if not isinstance(values[name], str):
        raise TypeError(f"'{name}' is no text")
    return str(values[name])
