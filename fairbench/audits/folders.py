"""Where an audit is written: beside its file, or where one says, and never over another audit."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.core.safe_open import make_folder, read_bytes
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
    path, first = options.path, written_beside(results) / f"audit-{options.path.name}"
    if path.is_file():
        name = path.stem if path.suffix.lower() in _PACKED else path.name
        first = path.parent / f"{Path(name).stem}-audit"
    given = {name: value for name, value in asdict(options).items()
             if name not in ("path", "out") and (value or value == 0)}  # fmt: skip
    asked = {"file": str(path.resolve() if path.is_file() else path), "options": given}
    text = json.dumps(asked, indent=1) + "\n"
    place = Path(options.out) if options.out else first
    if options.out:
        before = _read(place).get("file", asked["file"])
        if before != asked["file"]:
            raise UserError(f"out={place} holds the audit of {before}: name another folder")
    numbers = count(2)
    while not options.out and place.exists() and _read(place) != json.loads(text):
        place = first.with_name(f"{first.name}-{next(numbers)}")
    make_folder(place, 0o700)
    write_text(place / _ASKED, text, mode=0o600, lasting=False)
    return place


def _read(place: Path) -> dict[str, Any]:
    """Return what the audit in a folder was asked for; nothing where there is none."""
    try:
        asked = json.loads(read_bytes(place / _ASKED))
    except (OSError, ValueError):
        return {}
    return asked if isinstance(asked, dict) else {}
