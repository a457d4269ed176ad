"""Packs that are damaged, or whose writers are killed: ``python -m benchmarks.faults packs 200``.

Three faults in four damage a file of a pack: a bit is flipped, its end is cut off, or it is gone.
The pack is then verified, read, unpacked and merged with another. Each damage must be found, and
nothing read that is not as it was written; what lies in other files must still be read.

One in four kills ``store pack``, ``merge`` or ``unpack`` at a random moment with -9, and, one time
in two, damages a file of the half pack. The same command must then end with the same bits.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.flips import damaged
from benchmarks.faults.packing import PARTS, Folders, contents, quietly, read
from benchmarks.measure import show
from fairbench.core.files import half_of
from fairbench.results.packs import KINDS, PACK

BOTH = "index and another"
FILES = (PACK, *KINDS, BOTH)
DAMAGES = ("damaged", "number", "found", "no effect", "lost beside it", "lost unsaid", "believed")
KILLS = ("killed", "number", "had begun", "then damaged", "not whole", "other bits", "left over")
Counts = Counter[str]


def main(number: int = 200) -> bool:
    """Print what came of so many faults; return whether all held."""
    with tempfile.TemporaryDirectory() as name:
        folders = Folders(Path(name))
        folders.make()
        damages = [of_damage(folders, i) for i in range(number - number // 4)]
        kills = list(of_kills(folders, number // 4))
    show(f"{len(damages)} damages of a pack", DAMAGES, _rows(damages, DAMAGES, FILES))
    show(f"{len(kills)} kills of its writers", KILLS, _rows(kills, KILLS, PARTS))
    return whole([*damages, *kills])


def whole(faults: Sequence[Counts]) -> bool:
    """Say whether every damage was found, and nothing else than that was lost."""
    total = sum(faults, Counts())
    damages = total["number"] - sum(total[part] for part in PARTS)
    return total["found"] == damages and not any(total[n] for n in (*DAMAGES[4:], *KILLS[4:]))


def _rows(faults: Sequence[Counts], header: Sequence[str], kinds: Sequence[str]) -> list[Any]:
    """Return a row for each kind, whose faults are counted under its name, and one for all."""
    rows: list[Any] = []
    for name in (*kinds, "all"):
        total = sum((fault for fault in faults if name == "all" or fault[name]), Counts())
        rows.append((name, *(total[each] for each in header[1:])))
    return rows


def of_damage(folders: Folders, seed: int) -> Counts:
    """Damage a copy of the pack, and return what came of it."""
    draw, kind = np.random.default_rng(seed), FILES[seed % len(FILES)]
    pack = Path(shutil.copytree(folders.root / "whole-pack", folders.root / f"{seed}"))
    hit = [pack / PACK] if kind in (PACK, BOTH) else []
    if kind != PACK:
        pattern = "*.parquet" if kind == BOTH else f"{kind}-*.parquet"
        hit.append(Path(draw.choice(sorted(pack.glob(pattern)))))
    for path in hit:
        _damage(path, draw)
    counts = Counts({"number": 1, kind: 1}) + _came_of(folders, pack, {path.name for path in hit})
    for path in folders.root.glob(f"{seed}*"):
        shutil.rmtree(path)
    return counts


def _damage(path: Path, draw: np.random.Generator) -> None:
    """Flip a bit of a file or cut off its end, as elsewhere; or, one time in five, remove it."""
    if draw.random() < 0.2 or not path.stat().st_size:
        path.unlink()
    else:
        path.write_bytes(damaged(path.read_bytes(), draw))


def _came_of(folders: Folders, pack: Path, hit: set[str]) -> Counts:
    expected = folders.expected["pack"]
    said, status = quietly(["store", "verify", str(pack)])
    believed = _called_whole(said, hit) or any(_made_of(folders, pack))
    result = read(pack, folders.cells)
    beside = {item for item in expected.keys() - result.keys() if not folders.places[item] & hit}
    return Counts(
        {
            "found": int(status == 1),
            "no effect": int(status == 0 and result == expected),
            "lost unsaid": int(status == 0 and result != expected),
            "lost beside it": int(bool(beside) and PACK not in hit),
            "believed": int(believed or _differs(result, expected)),
        }
    )


def _called_whole(said: str, hit: set[str]) -> bool:
    """Say whether `verify` called a damaged file whole, as it does where the index is damaged."""
    return any(line.endswith(f"/{name}: whole") for line in said.splitlines() for name in hit)


def _made_of(folders: Folders, pack: Path) -> Iterator[bool]:
    """Yield whether what is made of a damaged pack is wrong, or less without a word."""
    name = pack.name
    for part, words in (
        ("unpack", folders.words("unpack", name, f"out={name}-unpack")),
        ("merge", folders.words("merge", name, "theirs", f"out={name}-merge")),
    ):
        said, status = quietly(words)
        result = read(folders.root / f"{name}-{part}", folders.cells)
        expected = folders.expected[part]
        told = status or "left out" in said
        yield _differs(result, expected) or not (told or result.keys() == expected.keys())


def _differs(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> bool:
    return any(value != expected.get(item) for item, value in found.items())


def of_kills(folders: Folders, number: int) -> Iterator[Counts]:
    """Yield what came of each kill."""
    seconds: dict[str, float] = {}
    for name in ("first-", "timed-"):  # the first starts what later processes are forked from
        for part, words in folders.commands(name).items():
            started = time.monotonic()
            _killed(words, None)
            seconds[part] = time.monotonic() - started
    for seed in range(number):
        part = PARTS[seed % len(PARTS)]
        yield Counts({"number": 1, part: 1}) + _of_kill(folders, part, seed, seconds[part])


def _of_kill(folders: Folders, part: str, seed: int, seconds: float) -> Counts:
    """Kill a command somewhere in its `seconds`, look what it left, and give it again."""
    draw, name = np.random.default_rng(seed), f"kill{seed}-"
    out, words = folders.root / f"{name}{part}", folders.commands(name)[part]
    expected = contents(folders.root / f"whole-{part}")
    while not _killed(words, draw.random() * seconds):  # it had ended: another moment
        shutil.rmtree(out)
    left = contents(out)
    partly = part != "unpack" and left and left.keys() != expected.keys()
    half = sorted(map(str, out.with_name(f".{out.name}.half").glob("*")))
    if hit := draw.random() < 0.5 and half:
        _damage(Path(draw.choice(half)), draw)
    ended = 0 if left and part != "unpack" else quietly(words)[1]
    if part == "unpack":
        quietly(["store", "gc", f"results={out}", "hours=0"])
    stray = [
        *folders.root.glob(f".{name}*"),
        *filter(lambda path: half_of(path.name), out.rglob(".*")),
        *out.rglob("*.lock"),
    ]
    return Counts(
        {
            "had begun": int(bool(left or half)),
            "then damaged": int(bool(hit)),
            "not whole": int(bool(partly) or _differs(left, expected)),
            "other bits": int(bool(ended) or contents(out) != expected),
            "left over": int(bool(stray)),
        }
    )


def _killed(words: Sequence[str], seconds: float | None) -> bool:
    """Give a command in a process of its own; return whether it was at work when it was killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=partial(quietly, words))
    process.start()
    process.join(seconds)
    at_work = process.is_alive()
    process.kill()
    process.join()
    return at_work
