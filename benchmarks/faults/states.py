"""Two people on one state, under kill -9: ``python -m benchmarks.faults states [rounds] [seed]``.

In half of the rounds two people label the same rows: they are asked one row after the other, give
labels by row, replace some, and do not always agree. In the other half two of them watch the same
weeks, in which people come twice and some labels come late. One of the two has the state by a link
in a folder of their own, and a clock that is a day ahead. Both are killed at random moments, and go
on. In the end the state is compared with the same answers and rows given one after the other to a
new one, and with all that was acknowledged: an answer by the next question, labels by the line that
says how many were stored, a look by its line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.faults.commands import carried_out, in_fork
from benchmarks.faults.kills import bad
from fairbench.cli.main import main as fairbench
from fairbench.core.errors import UserError
from fairbench_label import session as answering
from fairbench_label.questions import next_rows, resume
from fairbench_label.session import Answer, StateFile, check_labels, store
from fairbench_label.verb import label_in_turn
from fairbench_watch import alarms as look_module
from fairbench_watch.alarms import WatchedRows, WatchFile, look, read_tallies, read_watched
from fairbench_watch.state import WatchOptions, WatchState

ROUNDS = 200
ROWS, WEEKS, OF_WEEK = 60, 4, 25
KILLS = 2  # of each person, at most
LONGEST = 120.0  # seconds that a person may take after the last kill, on a busy machine
_ANSWERED = re.compile(r"^typed (\d+) (\S+)$")
# Refusals that must come: what another person has done in the meantime.
_EXPECTED = ("is labelled", "was given", "is gone")
FINE = {"rounds", "kills", "answers", "looks", "refused in a line"}


def main(rounds: int = ROUNDS, seed: int = 0) -> bool:
    """Carry out so many rounds, print their figures, and return whether everything held."""
    total: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            draw = np.random.default_rng([seed, number])
            folder = Path(name) / str(number)
            kind = (Labelling, Watching)[number % 2]
            counts = kind(folder, draw).carry_out()
            total += counts + Counter(rounds=1)
            for what in bad(counts):
                print(f"round {number}: {what}", flush=True)
            if (number + 1) % 20 == 0 or number + 1 == rounds:
                print(f"{time.monotonic() - started:.0f} s: {dict(total)}", flush=True)
    return not bad(total, FINE)


@dataclass
class Trial(ABC):
    """Two people, each with a log of all that was said to them, and the state that they share."""

    folder: Path
    draw: np.random.Generator
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Make the folders: the second person has the state by a link."""
        self.folder.mkdir()
        self.state = self.folder / "shared" / "state.json"
        self.link = self.folder / "other" / "state.json"
        for path in (self.state, self.link):
            path.parent.mkdir()
        self.link.symlink_to(self.state)
        self.logs = [self.folder / f"log-{person}" for person in range(2)]

    @abstractmethod
    def begin(self) -> None:
        """Make what there is before the two begin."""

    @abstractmethod
    def work(self, person: int, seed: int) -> None:
        """Do what a person does, in a process of their own."""

    @abstractmethod
    def compare(self) -> None:
        """Compare the state with what was given and acknowledged."""

    def carry_out(self) -> Counter[str]:
        """Have both at work until they have done all they want; return what was seen."""
        self.begin()
        for log in self.logs:
            log.touch()
        kills = [int(self.draw.integers(KILLS + 1)) for _ in self.logs]
        running = {person: self._start(person) for person in range(2)}
        moments = {person: self._moment(person) for person in range(2)}
        deadline = time.monotonic() + LONGEST
        while running and time.monotonic() < deadline:
            for person, pid in list(running.items()):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del running[person]
                elif kills[person] and self._said(person) >= moments[person]:
                    time.sleep(0.03 * self.draw.random() ** 2)
                    _end(pid)
                    with self.logs[person].open("a") as file:
                        file.write("\nis killed\n")
                    kills[person] -= 1
                    self.counts["kills"] += 1
                    running[person], moments[person] = self._start(person), self._moment(person)
                    deadline = time.monotonic() + LONGEST
            time.sleep(0.002)
        self.counts["waited for ever"] += len(running)
        for pid in running.values():
            _end(pid)
        said = "".join(log.read_text() for log in self.logs)
        self.counts["tracebacks"] += said.count("Traceback")
        for line in said.splitlines():
            if line.startswith(("error: ", "refused ")) or "is held by" in line:
                expected = any(words in line for words in _EXPECTED)
                self.counts["refused in a line" if expected else f"unexpected: {line}"] += 1
        self.compare()
        left = [path.name for path in self.state.parent.iterdir() if path.name.startswith(".")]
        self.counts["files left of killed ones"] += len(left)
        self.counts["links replaced by a file"] += not self.link.is_symlink()
        return +self.counts

    def _said(self, person: int) -> int:
        return self.logs[person].read_bytes().count(b"\n")

    def _moment(self, person: int) -> int:
        """Return the lines that are said before a person is killed the next time."""
        return self._said(person) + int(self.draw.integers(1, 14))

    def _start(self, person: int) -> int:
        seed = int(self.draw.integers(1 << 31))
        return in_fork(partial(self._be, person, seed), self.logs[person])

    def _be(self, person: int, seed: int) -> None:
        if person:
            answering.datetime = look_module.datetime = Ahead  # type: ignore[attr-defined]
        self.work(person, seed)


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


class Ahead(datetime):
    """A clock that is a day ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Ahead:
        """Return the time by it."""
        return super().now(tz) + timedelta(days=1)


@dataclass(frozen=True)
class Given:
    """Labels that a person gave at once: row -> label, and what became of them.

    Attributes
    ----------
    place : among all lines that were said to the person, so that no two are equal.
    """

    labels: Mapping[int, str]
    acknowledged: bool
    overwrite: bool
    person: int
    place: int


class Labelling(Trial):
    """Two people who label the same predictions."""

    def begin(self) -> None:
        """Write the predictions, and start the state."""
        score = self.draw.beta(1, 1.5, ROWS)
        self.truth = (self.draw.random(ROWS) < score).astype(int)
        sex = self.draw.choice(["Male", "Female"], ROWS)
        path = self.state.parent / "p.csv"
        pd.DataFrame({"sex": sex, "score": score}).to_csv(path, index=False)
        self._begin(self.state)

    def _begin(self, state: Path) -> None:
        path = self.state.parent / "p.csv"
        words = ["label", "next", str(path), f"state={state}", "score=score", "group=sex"]
        self.counts["not begun"] += carried_out(words)[0] != 0

    def work(self, person: int, seed: int) -> None:
        """Be asked for some rows, or give labels by row, and replace some of them."""
        draw = np.random.default_rng(seed)
        place = (self.state, self.link)[person]
        for _ in range(4):
            if draw.random() < 0.5:
                self._sit(StateFile(place), draw)
            else:
                rows = draw.choice(ROWS, int(draw.integers(1, 4)), replace=False)
                pairs = [f"{row + 1}={self._label(row, draw)}" for row in rows]
                overwrite = bool(draw.random() < 0.3)
                print(f"gives {overwrite} {' '.join(pairs)}")
                words = ["label", "ask", f"state={place}", *pairs, f"overwrite={overwrite}".lower()]
                fairbench(words)
        print("is done")

    def _label(self, row: int, draw: np.random.Generator) -> int:
        label = int(self.truth[row])
        return 1 - label if draw.random() < 0.2 else label

    def _sit(self, file: StateFile, draw: np.random.Generator) -> None:
        left = int(draw.integers(1, 6))

        def ask(prompt: str) -> str:
            nonlocal left
            row = int(prompt.split()[3])
            left -= 1
            answer = "q" if left < 0 else str(self._label(row - 1, draw))
            print(f"typed {row} {answer}")
            return answer

        label_in_turn(file, resume(file, Path()), (1, 1), ask)

    def given(self) -> Iterator[Given]:
        """Yield all that both gave."""
        for person, log in enumerate(self.logs):
            lines = log.read_text().splitlines()
            for place, line in enumerate(lines):
                # What comes up to the next thing that they do says what became of this.
                said = []
                for following in lines[place + 1 :]:
                    said.append(following)
                    if following.startswith(("typed", "gives", "is done", "is killed")):
                        break
                text = " ".join(said)
                if (match := _ANSWERED.match(line)) and match[2] != "q":
                    done = bool(re.search(r"typed|Stopped|No row is left", text))
                    done = done and "was not stored" not in text
                    yield Given({int(match[1]): match[2]}, done, False, person, place)
                elif line.startswith("gives "):
                    _, overwrite, *pairs = line.split()
                    labels = {int(row): label for row, label in (p.split("=") for p in pairs)}
                    done = bool(re.search(r"\d+ stored", text))
                    yield Given(labels, done, overwrite == "True", person, place)

    def compare(self) -> None:
        """Compare the state's labels with those that were given."""
        state = StateFile(self.state).read()
        given = list(self.given())
        self.counts["answers"] += sum(len(one.labels) for one in given if one.acknowledged)
        offered = {pair for one in given for pair in one.labels.items()}
        replaced = {row for one in given if one.overwrite for row in one.labels}
        answers = [(answer.row, answer.label) for answer in state.answers]
        stored = {*answers}
        for one in given:
            labels = one.labels.items()
            if one.acknowledged:
                self.counts["acknowledged and lost"] += len(labels - stored)
                fixed = {pair for pair in labels if pair[0] not in replaced}
                self.counts["acknowledged and changed"] += len(fixed - state.labels.items())
            elif not any(other.labels.items() & labels for other in given if other != one):
                half = len(labels & stored) not in (0, len(labels))
                self.counts["half of what was given"] += half
        self.counts["stored and never given"] += len(stored - offered)
        times = Counter(row for row, _ in answers if row not in replaced)
        self.counts["counted twice"] += sum(n > 1 for n in times.values())
        self._replay(state.answers)

    def _replay(self, answers: Sequence[Answer]) -> None:
        """Give the stored answers one after the other to a new state; both must be the same."""
        again = StateFile(self.state.parent / "again.json")
        values = json.loads(self.state.read_text())
        begun = resume(StateFile(self.state), Path())
        self._begin(again.path)
        for answer in answers:
            session = resume(again, Path())
            labels = check_labels(session, {answer.row: answer.label})
            store(again, session, labels, overwrite=True)
        session = resume(again, Path())
        same = session.state.labels == begun.state.labels
        same &= np.array_equal(session.table.label, begun.table.label, equal_nan=True)
        same &= np.array_equal(next_rows(session, 3), next_rows(begun, 3))
        self.counts["other counts than one after the other"] += not same
        in_order = [(label["row"], label["label"]) for label in values["labels"]]
        given = [(answer.row, answer.label) for answer in again.read().answers]
        self.counts["answers out of order"] += in_order != given


class Watching(Trial):
    """Two people who watch the same weeks."""

    def begin(self) -> None:
        """Write the weeks, each without some of its labels and with all of them."""
        number = np.arange(WEEKS * OF_WEEK)
        score = self.draw.beta(1, 1.5, len(number)).round(int(self.draw.integers(1, 4)))
        frame = pd.DataFrame({"person": [f"p{each}" for each in number]}).assign(
            sex=self.draw.choice(["Male", "Female"], len(number)),
            score=score,
            label=(self.draw.random(len(number)) < score).astype(int).astype(str),
        )
        for place in range(WEEKS):
            # People of this week or before come again.
            again = frame[: OF_WEEK * (place + 1)].sample(6, random_state=place)
            week = pd.concat([frame[number // OF_WEEK == place], again])
            week = week.assign(week=f"week {place + 1}")
            early = week["label"].where(self.draw.random(len(week)) < 0.6, "")
            week.assign(label=early).to_csv(self.path(place, early=True), index=False)
            week.to_csv(self.path(place), index=False)

    def path(self, week: int, *, early: bool = False) -> Path:
        """Return the file of a week, in its first form or with all labels."""
        return self.state.parent / f"week-{week}{'-early' * early}.csv"

    def look(self, state: Path, path: Path) -> WatchState:
        """Look at a file."""
        options = WatchOptions(
            path=path, group=("sex",), target="label", score="score", time="week", id="person",
        )  # fmt: skip
        return look(WatchFile(state), options, {"path", "group", "target", "time", "id"})[1]

    def work(self, person: int, seed: int) -> None:
        """Look at one week after the other, some of them twice, and at late labels."""
        draw, place = np.random.default_rng(seed), (self.state, self.link)[person]

        def slowly(*words: Any) -> WatchedRows:
            time.sleep(0.1 * draw.random())  # as of a large file, so that looks overlap
            return read_watched(*words)

        look_module.read_watched = slowly  # type: ignore[assignment]
        for week in range(WEEKS):
            for early in [True] * int(draw.integers(1, 3)) + [False] * bool(draw.random() < 0.5):
                try:
                    state = self.look(place, self.path(week, early=early))
                except UserError as error:
                    print(f"refused {error}")
                    continue
                alarms = len(state.alarms)
                print(f"looked {week} {early} {state.rows} {state.labels} {state.repeats} {alarms}")

    def compare(self) -> None:
        """Give all weeks once more in peace, and compare with a state that saw nothing else."""
        state = WatchFile(self.state).read()
        weeks = {period.name for period in state.periods}
        reached = (state.rows, state.labels, state.repeats, len(state.alarms))
        for line in "\n".join(log.read_text() for log in self.logs).splitlines():
            if line.startswith("looked "):
                week, _, *said = line.split()[1:]
                fewer = any(now < int(was) for now, was in zip(reached, said, strict=True))
                self.counts["looks"] += 1
                self.counts["acknowledged and lost"] += (
                    fewer or f"week {int(week) + 1}" not in weeks
                )
        again = self.state.parent / "again.json"
        for number in range(WEEKS):
            result = self.look(self.state, self.path(number))
            expected = self.look(again, self.path(number))
        same = self._counted(result) == self._counted(expected)
        self.counts["other counts than one after the other"] += not same
        self.counts["people counted twice"] += result.rows - result.repeats != WEEKS * OF_WEEK
        marks = [mark.row for mark in result.marks]
        self.counts["marks out of order"] += marks != sorted(marks)

    def _counted(self, state: WatchState) -> Mapping[str, object]:
        """Return all that a state counts, however it was looked at."""
        tallies, counts = read_tallies(state.seen), state.marks[-1].counts
        return {
            "periods": [(period.name, period.labels) for period in state.periods],
            "sums": {
                name: dict(zip(state.groups[name], np.round(sums, 9).tolist(), strict=True))
                for name, sums in counts.items()
            },
            "rows": (state.rows, state.labels, state.repeats),
            "seen": dict(zip(tallies.index, tallies["times"], strict=True)),
        }
