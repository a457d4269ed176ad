"""Where an audit is written: beside its file, or where one says, and never over another audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any

from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.results.packs import written_beside

_ASKED = "asked.txt"  # what the audit in a folder was asked for
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def own_folder(options: Options, results: Path) -> Path:
    """Return the folder of an audit, made if need be, in which no other audit is.

    Without ``out=`` it is beside the file: ``loans-audit`` of ``loans.csv``. An audit of the same
    file that was asked for something else stays, and this one gets a number: ``loans-audit-2``.
    Asked for the same again, it takes the place of the former. Of a run it is in `results`.

    Raises
    ------
    UserError : ``out=`` holds the audit of another file.
    OSError : it cannot be made.
    """
    asked = _asked(options)
    if options.out:
        place = Path(options.out)
        before = _read(place)
        if before and before.get("file") != asked["file"]:
            raise UserError(
                f"out={place} holds the audit of {before.get('file')}: name another folder"
            )
    else:
        place = next(each for each in _places(options, results)
                     if not each.exists() or _read(each) == asked)  # fmt: skip
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / _ASKED, json.dumps(asked, indent=1) + "\n", lasting=False)
    return place


def _places(options: Options, results: Path) -> Iterator[Path]:
    path = options.path
    first = written_beside(results) / f"audit-{path.name}"
    if path.is_file():
        name = path.stem if path.suffix.lower() in _PACKED else path.name
        first = path.parent / f"{Path(name).stem}-audit"
    yield first
    yield from (first.with_name(f"{first.name}-{number}") for number in count(2))


def _asked(options: Options) -> dict[str, Any]:
    """Return what an audit was asked for, as plain values."""
    path = options.path
    plain = {each.name: getattr(options, each.name) for each in fields(options)
             if each.name not in ("path", "out")}  # fmt: skip
    given = {name: list(value) if isinstance(value, tuple) else value
             for name, value in plain.items() if value or value == 0}  # fmt: skip
    return {"file": str(path.resolve() if path.is_file() else path), "options": given}


def _read(place: Path) -> dict[str, Any]:
    """Return what the audit in a folder was asked for; nothing where there is none."""
    try:
        found = json.loads((place / _ASKED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
