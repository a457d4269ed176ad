"""The folder of an audit: next to its file, or as asked for, and never that of another audit."""

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

_ASKED = "asked.txt"  # the file that says what the audit in a folder was asked for
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def own_folder(options: Options, results: Path) -> Path:
    """Return a folder that no other audit uses; it is created if it does not exist.

    Without ``out=`` it is next to the file: ``loans-audit`` for ``loans.csv``. If that has an
    audit of the same file with other options, this one gets a number: ``loans-audit-2``. An audit
    with the same options is replaced. The audit of a run goes into `results`.

    Raises
    ------
    UserError : ``out=`` holds the audit of another file.
    OSError : it cannot be made.
    """
    path = options.path
    default = written_beside(results) / f"audit-{path.name}"
    if path.is_file():
        name = path.stem if path.suffix.lower() in _PACKED else path.name
        default = path.parent / f"{Path(name).stem}-audit"
    set_options = {name: value for name, value in asdict(options).items()
                   if name not in ("path", "out") and (value or value == 0)}  # fmt: skip
    request = {"file": str(path.resolve() if path.is_file() else path), "options": set_options}
    text = json.dumps(request, indent=1) + "\n"
    folder = Path(options.out) if options.out else default
    if options.out:
        audited_file = _read_request(folder).get("file", request["file"])
        if audited_file != request["file"]:
            raise UserError(f"out={folder} holds the audit of {audited_file}: name another folder")
    numbers = count(2)
    while not options.out and folder.exists() and _read_request(folder) != json.loads(text):
        folder = default.with_name(f"{default.name}-{next(numbers)}")
    make_folder(folder, 0o700)
    write_text(folder / _ASKED, text, mode=0o600, lasting=False)
    return folder


def _read_request(folder: Path) -> dict[str, Any]:
    """Return the file and the options of the audit in a folder; empty if there is none."""
    try:
        request = json.loads(read_bytes(folder / _ASKED))
    except (OSError, ValueError):
        return {}
    return request if isinstance(request, dict) else {}
