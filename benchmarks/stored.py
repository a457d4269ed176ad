"""Records of runs with another configuration, each under its id, and packs of any files."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairbench.core.files import sealed, sha256
from fairbench.core.text import digest
from fairbench.results.record import FILES, GROUPS, described_by
from fairbench.results.runs import TABLES, seal_run, stored
from fairbench.results.upkeep import FORMAT, MANIFEST, VERSION


def configured(known: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with some of its configuration changed, and what follows from it.

    Parameters
    ----------
    changed : values by name: ``learner`` for the name of a component, or all of it if it is a
        mapping; ``learner.max_depth`` for an option; ``seed`` and ``protect``.
    """
    config = dict(known["config"])
    for name, value in changed.items():
        group, _, option = name.partition(".")
        if not option and group in GROUPS and isinstance(value, str):
            option = "name"
        config[group] = {**config[group], option: value} if option else value
    return {**known, **described_by(config), "config": config}


def run_of(record: Mapping[str, Any]) -> str:
    """Return the id of the run that a record is of."""
    return digest(record["config"], 12)


def laid_out(path: Path) -> Path:
    """Keep each file of a run by itself, as earlier versions did; return its folder."""
    for name in FILES:
        (path / name).write_bytes(stored(path, name))
    (path / TABLES).unlink()
    return path


def copied(path: Path, record: Mapping[str, Any]) -> Path:
    """Copy a run's folder to where a record belongs, seal that there and return the copy."""
    target = path.with_name(run_of(record))
    if target != path:
        shutil.copytree(path, target)
    seal_run(target, record)
    return target


def pack_of(
    files: Mapping[str, bytes] | Sequence[tuple[str | zipfile.ZipInfo, bytes]],
    manifest: object = None,
) -> bytes:
    """Return a sealed pack of files, whatever they are, with a manifest of them or another one."""
    entries = list(files.items() if isinstance(files, Mapping) else files)
    names = [entry if isinstance(entry, str) else entry.filename for entry, _ in entries]
    if manifest is None:
        listed = [
            {"path": name, "bytes": len(content), "sha256": sha256(content)}
            for name, (_, content) in zip(names, entries, strict=True)
        ]
        runs = {name.split("/")[1]: 0 for name in names if name.startswith("runs/")}
        manifest = {"format": FORMAT, "version": VERSION, "files": listed, "written": runs}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"fairbench-sha256:" + b"0" * 64
        for entry, content in entries:
            archive.writestr(entry, content)
        archive.writestr(MANIFEST, json.dumps(manifest))
    return sealed(made.getvalue())
