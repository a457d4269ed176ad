"""The catalogue of a results folder: its finished runs, selected by their configuration.

Begin with :class:`Catalogue`. Runs are listed quickly by an index, a sealed cache, which any
process may write or remove at any time. It identifies a run's record by inode, size and times: one
that was changed or copied since is read again. All other data of a run are read from its own files.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError, check_choice, did_you_mean, warn
from fairbench.core.files import UNREADABLE, guard, read_bytes, unsealed_json, within, write_cache
from fairbench.core.text import count, counted, said, shortened, visible
from fairbench.results import record as records
from fairbench.results.runs import LAST, WRITTEN, Run, read_environment, read_metrics

if TYPE_CHECKING:
    import pandas as pd

KEYS = (*records.GROUPS, "protect", "seed", "purpose")


def add_differing_options(
    names: Sequence[str], runs: Sequence[Run], groups: Sequence[str]
) -> list[str]:
    """Add to each name the options of these groups in which runs of this name differ."""
    options = differing_options(names, runs, groups)
    return [", ".join([name, *differing]) for name, differing in zip(names, options, strict=True)]


def differing_options(
    names: Sequence[str], runs: Sequence[Run], groups: Sequence[str]
) -> list[list[str]]:
    """Return for each run ``option=value`` of the options that differ among runs of its name."""
    options_of_runs: list[dict[str, Any]] = [{} for _ in runs]
    for group in groups:
        # Runs share equal parts of their configurations as one object, so that few are compared.
        parts = [run.summarised["config"].get(group, _NOTHING) for run in runs]
        varying = {*_differing(list({id(part): part for part in parts}.values()))} - {"name"}
        for options, part in zip(options_of_runs, parts, strict=True):
            options.update((f"{group}.{name}", part[name]) for name in part if name in varying)
    namesakes: dict[str, list[dict[str, Any]]] = {}
    for name, options in zip(names, options_of_runs, strict=True):
        namesakes.setdefault(name, []).append(options)
    differing = {name: _differing(of_name) for name, of_name in namesakes.items()}
    return [
        [f"{key.rpartition('.')[2]}={options[key]}" for key in differing[name] if key in options]
        for name, options in zip(names, options_of_runs, strict=True)
    ]


_NOTHING: Mapping[str, Any] = {}


def _differing(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the options that are not equal in all of some parts."""
    names = dict.fromkeys(name for part in parts for name in part)
    return [name for name in names if any(part.get(name) != parts[0].get(name) for part in parts)]


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """The finished runs of a results folder, or those of them that were selected.

    Runs that are damaged or of earlier versions are left out, and named on the error stream.
    """

    folder: Path
    selected: Mapping[str, Run] | None = None

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The runs by id, in the order of their ids."""
        if self.selected is not None:
            return dict(self.selected)
        all_runs = _listed_runs(self.folder)
        if left_out := [run.id for run in all_runs if not run.summarised]:
            told = {"named": ", ".join(left_out[:5]), "count": len(left_out)}
            warn(said("results", "left_out", folder=self.folder / "runs", **told))
        return {run.id: run for run in all_runs if run.summarised}

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the runs."""
        return iter(self.runs.values())

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self.runs)

    def only(self, runs: Sequence[Run] | set[str]) -> Catalogue:
        """Return the catalogue of some of its runs, given themselves or by id."""
        ids = {run.id if isinstance(run, Run) else run for run in runs}
        chosen = {id_: run for id_, run in self.runs.items() if id_ in ids}
        return Catalogue(self.folder, chosen)

    def select(self, **options: Any) -> Catalogue:
        """Return the runs that have one of the wanted values of every option.

        Parameters
        ----------
        options : ``dataset="adult"``, ``method=["ensemble", "baseline"]``, ``seed=0``, and any
            option of a configuration, two underscores for the dot: ``learner__max_depth=6``.

        Raises
        ------
        UserError : a key or an option that no run has.
        """
        wanted = {name.replace("__", "."): _list_of(value) for name, value in options.items()}
        for name in wanted:
            self._check_option(name)
        for purpose in wanted.get("purpose", ()):
            check_choice("purpose", str(purpose), records.PURPOSES)
        selected = [
            run
            for run in self
            if all(_value(run, name) in values for name, values in wanted.items())
        ]
        return self.only(selected)

    def _check_option(self, name: str) -> None:
        """Refuse the name of an option that no run has, and name the nearest ones."""
        if "." not in name:
            check_choice("key", name, KEYS)
        elif self.runs and all(_value(run, name) is _NONE for run in self):
            names = {option for run in self for option in flat(run.summarised["config"])}
            hint = did_you_mean(name, names) or "fairbench store show RUN prints a run's options"
            raise UserError(f"no run has an option '{name}': {hint}")

    def counted(self, purposes: Sequence[str] = ()) -> tuple[Catalogue, str]:
        """Return the runs with one of these purposes, and a sentence on those left out.

        By default, demos and runs of tuning are left out: they are not meant to be compared with
        studies.
        """
        included = self.only([run for run in self if run.purpose in (purposes or records.COUNTED)])
        left_out = Counter(run.purpose for run in self if run.id not in included.runs)
        if not left_out:
            return included, ""
        listed = " and ".join(
            counted(left_out[purpose], f"{purpose} run")
            for purpose in records.PURPOSES
            if left_out[purpose]
        )
        wanted = {*left_out, *(purposes or records.COUNTED)}
        taken = ",".join(purpose for purpose in records.PURPOSES if purpose in wanted)
        are = "are" if left_out.total() > 1 else "is"
        return included, f"{listed} {are} left out: purpose=[{taken}] takes them in"

    def matching(self, words: Sequence[str]) -> Catalogue:
        """Return the runs that ``key=value,value`` words and beginnings of ids select."""
        pairs = [word.partition("=") for word in words if "=" in word]
        wanted = {key.replace(".", "__"): _read(values) for key, _, values in pairs}
        id_starts = tuple(word for word in words if "=" not in word)
        chosen = self.select(**wanted)
        return chosen.only(
            {id_ for id_ in chosen.runs if not id_starts or id_.startswith(id_starts)}
        )

    def why_none(self, words: Sequence[str]) -> str:
        """Return a sentence on why `words` select no run: the first word that no run matches."""
        if not self.runs:
            return f"{self.folder} has no finished run"
        for word in words:
            name, equals, text = word.partition("=")
            if self.matching([word]).runs:
                continue
            if not equals:
                return str(self._unknown_run(word))
            there = sorted({str(_value(run, name)) for run in self} - {str(_NONE)})
            wanted = text.strip("[]").split(",")
            hints = (did_you_mean(value.strip(), there, f"{name}={{}}") for value in wanted)
            hint = next(filter(None, hints), "")
            more = f" and {len(there) - _MOST_LISTED} more" if len(there) > _MOST_LISTED else ""
            values = f"values among the runs: {', '.join(there[:_MOST_LISTED])}{more}"
            ending = f": {hint} V{values[1:]}" if hint else f"; {values}"
            return f"no run has {shortened(word)}{ending}"
        return f"no run has {' and '.join(words)} at once: fairbench store ls lists all"

    def one(self, word: str) -> Run:
        """Return the run that `word` means: the beginning of its id, or its name.

        Raises
        ------
        UserError : no run, or several, of that id or name.
        """
        if not word:
            raise UserError(said("results", "no_name"))
        runs = [run for run in self if run.id.startswith(word)]
        runs = runs or [run for run in self if run.name == word]
        if not runs:
            raise self._unknown_run(word)
        if len(runs) > 1:
            ids = ", ".join(f"{run.id} ({run.name})" for run in runs[:5])
            raise UserError(f"'{word}' means {len(runs)} runs: {ids}; name one by its id")
        return runs[0]

    def _unknown_run(self, word: str) -> UserError:
        """Return the error of a word that means no run: it names the nearest, or the first ones."""
        hint = did_you_mean(word, {*self.runs, *(run.name for run in self)})
        runs = [f"{run.id} ({visible(run.name)})" for run in list(self)[:_MOST_LISTED]]
        if len(self.runs) > len(runs):
            runs.append(f"{count(len(self.runs) - len(runs))} more")
        finished = f"finished runs: {'; '.join(runs)}" if runs else "there is no finished run"
        place = visible(str(self.folder / "runs"))
        return UserError(f"unknown run '{shortened(word)}' in {place}: {hint or finished}")

    def comparable(self) -> list[Catalogue]:
        """Return the sets of two or more runs that predict the same rows for the same groups."""
        return [self.only(runs) for runs in comparable_sets(list(self)) if len(runs) > 1]

    def label(self) -> dict[str, str]:
        """Return a label for each run, by id: choices and options in which the runs differ.

        It has at least the run's method.
        """
        runs = list(self)
        varied = [part for part in records.GROUPS if len({run.choices[part] for run in runs}) > 1]
        names = [", ".join(run.choices[part] for part in varied or ["method"]) for run in runs]
        protected = {(run.choices["dataset"], run.protect) for run in runs}
        for name, values, varies in (
            ("protect", [run.protect for run in runs], len(protected) > len(dict(protected))),
            ("seed", [run.seed for run in runs], len({run.seed for run in runs}) > 1),
        ):
            if varies:
                names = [
                    f"{label}, {name}={value}" for label, value in zip(names, values, strict=True)
                ]
        return dict(zip(self.runs, add_differing_options(names, runs, records.GROUPS), strict=True))

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The metrics of all runs' own variants in one table, with the column ``run``."""
        return read_metrics(list(self))

    def __repr__(self) -> str:
        """Return the first few runs as a table of text, with the columns of a notebook's."""
        title, table = self._title_and_table()
        return f"{title}\n{table.to_string(index=False)}" if len(table) else title

    def _repr_html_(self) -> str:
        """Return the runs as a notebook shows them."""
        from fairbench.results.tables import titled_html

        return titled_html(*self._title_and_table())

    def _title_and_table(self) -> tuple[str, pd.DataFrame]:
        """Return a table of the first runs, and a title that says how many there are in all."""
        title = f"{counted(len(self), 'finished run')} in {self.folder}"
        if len(self) > _MOST:
            title += f", of which the first {_MOST} are shown; select(...) chooses others"
        return title, self.only(list(self)[:_MOST]).to_dataframe().reindex(columns=_SHOWN)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per run: id, name, choices, protected attributes, seed, every option."""
        import pandas as pd

        rows = [
            {"run": run.id, "name": run.name, "protect": run.protect, "seed": run.seed}
            | run.choices
            | {key: value for key, value in flat(run.config).items() if "." in key}
            for run in self
        ]
        return pd.DataFrame(rows)


_MOST_LISTED = 5  # finished runs, or values of an option, in an error


def comparable_sets(runs: Sequence[Run]) -> list[list[Run]]:
    """Return sets of runs that predict the same rows for the same groups."""
    sets: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        summary = run.summarised
        key = tuple(str(summary[name]) for name in ("data", "rows", "protect"))
        sets.setdefault(key, []).append(run)
    return list(sets.values())


def flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a configuration option by option: ``{"split.repeats": 3, "seed": 0, ...}``.

    An option whose value has names itself, such as ``learner.options``, is whole.
    """
    options: dict[str, Any] = {}
    for name, value in node.items():
        inner = isinstance(value, Mapping) and not prefix
        options |= flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return options


def _list_of(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, list | tuple | set) else [value]
    return [*values, *(text.replace(" ", "") for text in values if isinstance(text, str))]


def _value(run: Run, name: str) -> Any:
    """Return a run's value of a key or of an option such as ``learner.max_depth``."""
    if "." in name:
        node = run.summarised["config"]
        for key in name.split("."):
            node = node.get(key, _NONE) if isinstance(node, Mapping) else _NONE
        return _NONE if isinstance(node, Mapping) else node
    if name == "protect":
        return run.protect.replace(" ", "")
    if name == "purpose":
        return run.purpose
    return run.seed if name == "seed" else run.choices[name]


_NONE = object()  # the value of an option that a run does not have: it equals no other


def _read(texts: str) -> list[Any]:
    """Return the values that a word of the command line lists, in brackets or not."""
    import yaml  # here: most lists of runs name no option, and it takes a tenth of their time

    if texts.startswith("[") and texts.endswith("]"):
        texts = texts[1:-1]
    try:
        values = [yaml.safe_load(text) for text in texts.split(",")]
    except yaml.YAMLError:
        raise UserError(f"'{texts}' cannot be read as the value of an option") from None
    return [*values, *texts.split(",")]


_MOST = 20  # runs in one table
_SHOWN = ("run", "dataset", "learner", "intervention", "method", "protect", "seed")


INDEX = "index.json"
_PAYS = 1000  # records to read, a tenth of a second, from which on an index is written anew
_SLOW = 10_000  # if more records must be read, the user gets a message
_EACH = 0.15  # milliseconds to read a record
_RECENT = 2.0  # seconds in which a file could change once more and bear the same time
_PER_RUN = 10_000  # bytes of an index that are read at most, for each run
_LEAST = 1 << 20  # bytes of an index that are read in any case
_PLAIN, _NESTED = tuple(records.SUMMARY), "config"  # of which runs share the parts
Stamp = tuple[int, int, int, int]  # of a file: inode, bytes, when changed, when anything did (ns)
# What `described_by` returns, SUMMARY, the configuration and WRITTEN; nothing of a damaged record.
Listed = dict[str, Any]


def _listed_runs(results: Path) -> list[Run]:
    """Return the runs of a folder by id, with the entries they are listed by, empty if damaged."""
    records.refuse_pack(results)
    guard(results)
    folder = results / "runs"
    stamps = _stamps(folder)
    parts = records.Parts()
    listed = _indexed(results / INDEX, stamps, parts)
    unread = [name for name in stamps if name not in listed]
    if len(unread) >= _SLOW:
        seconds = len(unread) * _EACH / 1000
        print(f"reading {len(unread)} runs for the first time: {seconds:.0f} s", file=sys.stderr)
    listed |= {name: _summary(folder / name, stamps[name], parts) for name in unread}
    if len(unread) >= _PAYS:
        _write(results / INDEX, listed, stamps)
    return [Run(folder / name, listed[name]) for name in stamps]


def _stamps(folder: Path) -> dict[str, Stamp]:
    """Return the stamp of the record of each run that has one, in the order of their ids."""
    stamps: dict[str, Stamp] = {}
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        within(folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            if entry.is_symlink():
                continue
            with contextlib.suppress(OSError):
                status = os.stat(f"{entry.name}/{LAST}", dir_fd=handle, follow_symlinks=False)
                times = status.st_mtime_ns, status.st_ctime_ns
                stamps[entry.name] = status.st_ino, status.st_size, *times
    return dict(sorted(stamps.items()))


def _summary(path: Path, stamp: Stamp, parts: records.Parts) -> Listed:
    """Return the entries of a run's record for the index; empty if it is damaged."""
    record = read_environment(path, parts)
    return _entry({name: record.get(name) for name in (*_PLAIN, _NESTED)}, stamp) if record else {}


def _entry(parts: Mapping[str, Any], stamp: Stamp) -> Listed:
    """Return all by which a run is listed, of what is kept of it."""
    return {**records.described_by(parts[_NESTED]), **parts, WRITTEN: stamp[2] / 1e9}


def _indexed(path: Path, stamps: Mapping[str, Stamp], parts: records.Parts) -> dict[str, Listed]:
    """Return the index's entries of the runs whose records have not changed since."""
    try:
        index = unsealed_json(read_bytes(path, _LEAST + _PER_RUN * len(stamps)))
        values, runs = index["values"], index["runs"]

        @cache
        def part(name: str, place: int, check: records.Check) -> Any:
            return parts.shared(name, values[place], check)[0]

        listed = {}
        for run, (stamp, places, config) in runs.items():
            if not config.keys() >= records.NEEDED:
                return {}
            if tuple(stamp) == stamps.get(run):
                plain = zip(records.SUMMARY.items(), places, strict=True)
                kept = {name: part(name, place, check) for (name, check), place in plain}
                kept[_NESTED] = {
                    name: part(name, config[name], records.CONFIG[name]) for name in config
                }
                listed[run] = _entry(kept, stamp)
        return listed
    except UNREADABLE:
        return {}


def _write(path: Path, listed: Mapping[str, Listed], stamps: Mapping[str, Stamp]) -> None:
    """Write each distinct value once, and for each run its stamp and its values' positions."""
    positions: dict[int, int] = {}  # by identity: equal values are the same object
    values: list[Any] = []
    before = 1e9 * (time.time() - _RECENT)
    settled = {run: entry for run, entry in listed.items() if entry and stamps[run][2] < before}
    for entry in settled.values():
        for value in (*(entry[name] for name in _PLAIN), *entry[_NESTED].values()):
            if id(value) not in positions:
                positions[id(value)] = len(values)
                values.append(value)
    runs = {
        run: (
            stamps[run],
            [positions[id(entry[name])] for name in _PLAIN],
            {name: positions[id(value)] for name, value in entry[_NESTED].items()},
        )
        for run, entry in settled.items()
    }
    write_cache(path, {"values": values, "runs": runs})
