"""The state of an audit that is being labelled: what was asked for, every label, and its file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from fairbench.audits.question import Options
from fairbench.core.files import DamagedError, unsealed_json
from fairbench.core.formats import shortened
from fairbench.core.from_plain import from_plain
from fairbench.core.state_file import JsonFile

SCHEMA = 2
_UNSEALED = 1  # the schema of states that had no seal yet
ACCURACY = "accuracy"
_RENAMED = {"accuracy": "each"}  # questions that were called otherwise
# Where the predictions are is kept apart, and where a report goes is not part of an audit.
_ELSEWHERE = ("path", "out")
_PLAIN = ("by", "question", "strategy", "metric", "stop")


@dataclass(frozen=True)
class Answer:
    """A label that a person gave.

    Attributes
    ----------
    row : the number of the row, counted from 1.
    label : the label; empty where the person could not tell.
    time : when it was given, in UTC and ISO 8601.
    """

    row: int
    label: str
    time: str


@dataclass(frozen=True)
class State:
    """The state of labelling: everything that the choice of the next row depends on.

    Attributes
    ----------
    options : the options of an audit; their path is that of the predictions.
    sha256, rows : the digest of the file of predictions, and how many rows it has.
    by : the attribute whose groups rows are chosen among.
    metric : what the question is about.
    stop : the number of answers at which labelling stops, said before the first; 0 if unsaid.
    answers : the answers in the order they came; if a row has several, the last one counts.
    """

    options: Options
    sha256: str
    rows: int = 0
    by: str = ""
    question: str = "worst"
    strategy: str = "top_two"
    answers: tuple[Answer, ...] = ()
    metric: str = ACCURACY
    stop: int = 0

    @property
    def labels(self) -> Mapping[int, str]:
        """Return row -> label."""
        return {answer.row: answer.label for answer in self.answers}

    @property
    def anytime_valid(self) -> bool:
        """Whether intervals have to hold whenever labelling stops.

        So they do unless there are exactly as many labels as were announced beforehand (stop=).
        """
        return self.stop == 0 or len(self.labels) != self.stop

    def with_answers(self, answers: tuple[Answer, ...]) -> State:
        """Return the state after further answers."""
        return replace(self, answers=self.answers + answers)


class StateFile(JsonFile[State]):
    """The file of an audit that is being labelled."""

    of = "an audit"
    start = "fairbench label next PREDICTIONS"
    otherwise = "since labels cannot be made again"

    def values(self, state: State) -> Mapping[str, Any]:
        """Return a state as plain values; the path of the predictions is seen from the file's."""
        path = state.options.path.resolve()
        return {
            "schema": SCHEMA,
            "predictions": {
                # Relative, so that the two files can move together.
                "path": Path(os.path.relpath(path, self.folder.resolve())).as_posix(),
                "sha256": state.sha256,
                "rows": state.rows,
            },
            "options": {k: v for k, v in asdict(state.options).items() if k not in _ELSEWHERE},
            **{name: getattr(state, name) for name in _PLAIN},
            "labels": [asdict(answer) for answer in state.answers],
        }

    def parse(self, content: bytes) -> State:
        """Return the state that a file's content describes."""
        # Earlier states asked about accuracy alone, and said no number.
        values = {"metric": ACCURACY, "stop": 0, **_values(content)}
        if values["schema"] != SCHEMA:
            shown = shortened(str(values["schema"]))
            raise ValueError(f"its schema is {shown}; this version reads {SCHEMA}")
        predictions = values["predictions"]
        rows = _whole(predictions, "rows")
        question = _text(values, "question")
        return State(
            _options(values["options"], self.folder / predictions["path"]),
            _text(predictions, "sha256"),
            rows,
            _text(values, "by"),
            _RENAMED.get(question, question),
            _text(values, "strategy"),
            tuple(_answer(label, rows) for label in values["labels"]),
            _text(values, "metric"),
            _whole(values, "stop"),
        )


def _values(content: bytes) -> dict[str, Any]:
    """Return the plain values of a state's file; one of the first schema has no seal."""
    try:
        return unsealed_json(content)
    except DamagedError:
        with contextlib.suppress(ValueError, RecursionError):
            values = json.loads(content)
            known = isinstance(values, dict) and "seal" not in values
            if known and values.get("schema") == _UNSEALED:
                return {**values, "schema": SCHEMA}
        raise


def _options(values: Mapping[str, Any], path: Path) -> Options:
    if unknown := set(values) - {field.name for field in fields(Options)}:
        raise ValueError(f"it has an option '{min(unknown)}' that this version does not know")
    options: Options = from_plain(Options, {**values, "path": path})
    if "" in options.group:
        raise ValueError("a column of groups has no name")
    return options


def _answer(values: Mapping[str, Any], rows: int) -> Answer:
    answer = Answer(int(values["row"]), _text(values, "label"), _text(values, "time"))
    if not 1 <= answer.row <= rows:
        raise ValueError(f"it has a label of row {answer.row}, of {rows}")
    return answer


_MOST = 2**53  # of a number of rows


def _whole(values: Mapping[str, Any], name: str) -> int:
    if not isinstance(values[name], int) or not 0 <= values[name] < _MOST:
        raise ValueError(f"'{name}' is no number of rows")
    return int(values[name])


def _text(values: Mapping[str, Any], name: str) -> str:
    if not isinstance(values[name], str):
        raise TypeError(f"'{name}' is no text")
    values[name].encode()  # half a sign is none
    return str(values[name])
