"""An index of the runs of a folder, for listing and choosing them quickly.

The index is a sealed cache, which any process may write or remove at any time. It identifies a
run's record by inode, size and times: one that was changed or copied since is read again. All other
data of a run are read from its own files.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairbench.core.files import UNREADABLE, unsealed_json, write_cache
from fairbench.core.safe_open import guard, read_bytes, within
from fairbench.results.packs import Pack, is_pack, open_pack
from fairbench.results.record import CONFIG, NEEDED, SUMMARY, Parts, summary_of
from fairbench.results.runs import LAST, WRITTEN, Run, read_environment

INDEX = "index.json"
_PAYS = 1000  # records to read, a tenth of a second, from which on an index is written anew
_SLOW = 10_000  # if more records must be read, the user gets a message
_EACH = 0.15  # milliseconds to read a record
_RECENT = 2.0  # seconds in which a file could change once more and bear the same time
_PER_RUN = 10_000  # bytes of an index that are read at most, for each run
_LEAST = 1 << 20  # bytes of an index that are read in any case
_PLAIN, _NESTED = tuple(SUMMARY), "config"  # of which runs share the parts
Stamp = tuple[int, int, int, int]  # of a file: inode, bytes, when changed, when anything did (ns)
Listed = dict[str, Any]  # the entries SUMMARY and WRITTEN; nothing of a run whose record is damaged


def listed_runs(results: Path) -> list[Run]:
    """Return the runs of a folder by id, with the entries they are listed by, empty if damaged."""
    guard(results)
    if is_pack(results):
        return list(_packed_runs(open_pack(results)))
    folder = results / "runs"
    stamps = _stamps(folder)
    parts = Parts()
    listed = _indexed(results / INDEX, stamps, parts)
    unread = [name for name in stamps if name not in listed]
    if len(unread) >= _SLOW:
        seconds = len(unread) * _EACH / 1000
        print(f"reading {len(unread)} runs for the first time: {seconds:.0f} s", file=sys.stderr)
    listed |= {name: _summary(folder / name, stamps[name], parts) for name in unread}
    if len(unread) >= _PAYS:
        _write(results / INDEX, listed, stamps)
    return [Run(folder / name, listed[name]) for name in stamps]


def _packed_runs(pack: Pack) -> Iterator[Run]:
    """Yield the runs of a pack, by id."""
    parts = Parts()
    for name, summary in pack.summaries.items():
        listed: Listed = {}
        with contextlib.suppress(*UNREADABLE):
            listed = {**summary, **summary_of(summary, name, parts)}
        yield Run(pack.path / "runs" / name, listed, pack)


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
                stamps[entry.name] = (
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                )
    return dict(sorted(stamps.items()))


def _summary(path: Path, stamp: Stamp, parts: Parts) -> Listed:
    """Return the entries of a run's record for the index; empty if it is damaged."""
    if not (record := read_environment(path, parts)):
        return {}
    return {**{name: record.get(name) for name in (*_PLAIN, _NESTED)}, WRITTEN: stamp[2] / 1e9}


def _indexed(path: Path, stamps: Mapping[str, Stamp], parts: Parts) -> dict[str, Listed]:
    """Return the index's entries of the runs whose records have not changed since."""
    try:
        index = unsealed_json(read_bytes(path, _LEAST + _PER_RUN * len(stamps)))
        values, runs = index["values"], index["runs"]
        columns = zip(*(positions for _, positions, _ in runs.values()), strict=True)
        plain = [
            {
                position: parts.shared(name, values[position], SUMMARY[name])[0]
                for position in set(at)
            }
            for name, at in zip(_PLAIN, columns, strict=True)
        ]
        configs = [config for _, _, config in runs.values()]
        if not all(config.keys() >= NEEDED for config in configs):
            return {}
        nested = {
            part: parts.shared(part[0], values[part[1]], CONFIG[part[0]])[0]
            for part in {part for config in configs for part in config.items()}
        }
        return {
            run: {
                **{
                    name: of_runs[position]
                    for name, of_runs, position in zip(_PLAIN, plain, positions, strict=True)
                },
                _NESTED: {part[0]: nested[part] for part in config.items()},
                WRITTEN: stamp[2] / 1e9,
            }
            for run, (stamp, positions, config) in runs.items()
            if tuple(stamp) == stamps.get(run)
        }
    except UNREADABLE:
        return {}


def _write(path: Path, listed: Mapping[str, Listed], stamps: Mapping[str, Stamp]) -> None:
    """Write each distinct value once, and for each run its stamp and its values' positions."""
    positions: dict[int, int] = {}  # by identity: equal values are the same object
    before = 1e9 * (time.time() - _RECENT)
    settled = {run: entry for run, entry in listed.items() if entry and stamps[run][2] < before}
    values = list(_distinct_values(settled.values(), positions))
    runs = {
        run: (
            stamps[run],
            [positions[id(entry[name])] for name in _PLAIN],
            {name: positions[id(value)] for name, value in entry[_NESTED].items()},
        )
        for run, entry in settled.items()
    }
    write_cache(path, {"values": values, "runs": runs})


def _distinct_values(listed: Iterable[Listed], positions: dict[int, int]) -> Iterator[Any]:
    """Yield each distinct value once, and put its position into `positions`."""
    for entry in listed:
        of_run = [entry[name] for name in _PLAIN]
        for value in (*of_run, *entry[_NESTED].values()):
            if id(value) not in positions:
                positions[id(value)] = len(positions)
                yield value
