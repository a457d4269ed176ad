"""Flips and truncations of every kind of file: ``python -m benchmarks.faults flips 2000``.

In each round one file of every kind is damaged, in a copy: a bit is flipped (three in four) or its
end is cut off. Then it is read as the library reads it, and the same command is given again. Each
damage must be found, or be of no effect on what is read; what can be made again must have the bytes
that it had. A labelling state cannot be made again: it is refused.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults import commands
from benchmarks.measure import configuration
from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.core.files import DamagedError, sealed_json, unsealed_json, write_text
from fairbench.experiments.execute import carry_out
from fairbench.experiments.pipeline import ensure_all, prepare
from fairbench.reporting.panels import draw_figures
from fairbench.results import runs, tables
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import FILES
from fairbench.tracking.importer import NOTE
from fairbench_label.session import Answer, State, StateFile

RUN = ("dataset=simulated", "dataset.n_samples=120", "split.repeats=1", "method=baseline",
       "learner=logistic_regression")  # fmt: skip
Total = Counter[tuple[str, str]]
Read = Callable[["Place"], Any]


@dataclass(frozen=True)
class Place(commands.Place):
    """A folder with results of one run and the state of labelling."""

    @property
    def one(self) -> runs.Run:
        """Its run."""
        return runs.Run(self.results / "runs" / self.runs[0])

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of the run."""
        return configuration(*RUN, f"results={self.results}")

    def make(self) -> None:
        """Make everything."""
        carry_out(self.configuration(), draw=draw_figures)
        write_text(self.results / NOTE, sealed_json({"stamp": [], "runs": {}}))
        write_text(self.root / _CODE, sealed_json({"0": ["1", ["fairbench.x"]]}))
        options = Options(path=self.root / "p.csv", target="y", score="s", group=("sex",))
        state = State(options, "0" * 64, 90, "sex", "worst", "top_two")
        answers = tuple(Answer(row, "yes", "2026-01-01T00:00:00+00:00") for row in range(1, 9))
        StateFile(self.root / "state.json").create(state.with_answers(answers))


@dataclass(frozen=True)
class Kind:
    """A kind of file: where one is, how it is read, and whether it can be made again."""

    name: str
    pattern: str
    read: Read
    again: bool = True


def _cell(place: Place) -> Any:
    store = runs.Store(place.results)
    cells = sorted(path.stem for path in place.root.glob("results/cells/*/*.parquet"))
    return [_bytes(store.read(cell).columns) for cell in cells]


def _people(place: Place) -> Any:
    people = place.one.people()
    about = [getattr(people, name) for name in tables.FACTS]
    return about, _bytes({"target": people.target}), people.sensitive.to_csv()


def _listed(place: Place) -> Any:
    if not (known := Catalogue(place.results).runs):
        raise UserError("left out")
    return [run.environment for run in known.values()]


def _sealed(pattern: str, place: Place) -> Any:
    (path,) = place.root.glob(pattern)
    return unsealed_json(path.read_bytes())


def _file(name: str, place: Place) -> bytes:
    return place.one.content(name)


def _bytes(columns: Any) -> Any:
    return {name: np.asarray(values).tobytes() for name, values in columns.items()}


_RUN = "results/runs/*/"
_CODE = "notes/code.json"
KINDS = (
    Kind("environment.json", _RUN + runs.LAST, _listed),
    *(Kind(name, _RUN + runs.TABLES, partial(_file, name)) for name in FILES),
    Kind("note of MLflow", f"results/{NOTE}", partial(_sealed, f"results/{NOTE}"), False),
    Kind("rows of a split", "results/splits/*.parquet", lambda at: at.one.predictions().to_csv()),
    Kind("people", "results/data/*.parquet", _people),
    Kind("cell", "results/cells/*/*.parquet", _cell),
    Kind("notes of code", _CODE, partial(_sealed, _CODE), False),
    Kind("labelling state", "state.json", lambda at: StateFile(at.root / "state.json").read(),
         False),
)  # fmt: skip


def main(number: int = 2000) -> bool:
    """Print what came of so many damages; return whether none was believed."""
    total = flips(number)
    for (name, what), count in sorted(total.items()):
        print(f"{name}, {what}: {count}")
    return whole(total)


def whole(total: Total) -> bool:
    """Say whether nothing was believed, and all that was found, and can be, was made again.

    A bit of a Parquet file's own notes may have no effect on anything that is read of it.
    """
    return all(
        not total[kind.name, "believed"]
        and total[kind.name, "made again"] >= total[kind.name, "found"] * kind.again
        for kind in KINDS
    )


def flips(number: int) -> Total:
    """Return for each kind of file how many were damaged, and what came of it."""
    total = Total()
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        whole = Place(Path(name) / "whole")
        whole.make()
        expected = {kind.name: kind.read(whole) for kind in KINDS}
        for start in range(0, number, len(KINDS)):
            for kind, result in _round(whole, start, KINDS[: number - start], expected):
                total.update((kind.name, each) for each in ("damaged", *result))
    return total


def _round(
    whole: Place, seed: int, kinds: Sequence[Kind], expected: Mapping[str, Any]
) -> Iterator[tuple[Kind, list[str]]]:
    """Damage a file of each kind, and yield what came of it.

    Each is read while the others are whole; then the command is given with all of them damaged.
    Both are done in copies, since a process remembers what it has read of a folder.
    """
    draw = np.random.default_rng(seed)
    damages: dict[Kind, tuple[Path, bytes, str]] = {}
    with whole.copied(f"read{seed}") as place:
        for kind in kinds:
            path = Path(draw.choice(sorted(place.root.glob(kind.pattern))))
            content = path.read_bytes()
            path.write_bytes(odd := damaged(content, draw))
            verdict = _verdict(kind, place, expected[kind.name])
            damages[kind] = path.relative_to(place.root), odd, verdict
            path.write_bytes(content)
    with whole.copied(f"repaired{seed}") as place:
        for kind, (name, content, _) in damages.items():
            if kind.again:
                (place.root / name).write_bytes(content)
        if any(kind.name == "cell" for kind in kinds):
            # Missing and damaged cells are computed again, whose seconds are then others: the other
            # files tell of the first.
            run = prepare(place.configuration())
            ensure_all(run.cells, run.store)
            made = bool(_cell(place) == expected["cell"])
            shutil.copytree(whole.results / "cells", place.results / "cells", dirs_exist_ok=True)
        carry_out(place.configuration(), draw=draw_figures)
        for kind, (name, _, verdict) in damages.items():
            same = (place.root / name).read_bytes() == (whole.root / name).read_bytes()
            again = kind.again and (made if kind.name == "cell" else same)
            yield kind, [verdict, *["made again"] * again]


def damaged(content: bytes, draw: np.random.Generator) -> bytes:
    """Return a content with a bit flipped, or without its end."""
    position = int(draw.integers(len(content)))
    if draw.random() < 0.25:
        return content[:position]
    changed = bytearray(content)
    changed[position] ^= 1 << int(draw.integers(8))
    return bytes(changed)


def _verdict(kind: Kind, place: Place, expected: Any) -> str:
    try:
        result = kind.read(place)
    except (UserError, DamagedError, runs.CorruptCellError):
        return "found"
    return "no effect" if result == expected else "believed"
