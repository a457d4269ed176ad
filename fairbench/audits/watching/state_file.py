"""The file of a watch's state: written whole, and checked when it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from fairbench.audits.watching.counting import quantities
from fairbench.audits.watching.state import WatchState
from fairbench.core.files import unsealed_json
from fairbench.core.formats import shortened
from fairbench.core.from_plain import from_plain
from fairbench.core.state_file import JsonFile
from fairbench.data.tallies import check_tallies

SCHEMA = 1


def _check_shape(state: WatchState) -> None:
    """Refuse a state with a single label, or with shares and limits of gaps not watched."""
    if len(state.names) not in (0, 2) or any(
        len(ends) != 3 for mark in state.marks for ends in mark.limits.values()
    ):
        raise ValueError("it is of another shape")
    for mark in state.marks:
        for sums in mark.counts.values():
            np.asarray(sums, float)  # ValueError where they are no numbers
    named = [state.shares, *[mark.limits for mark in state.marks[-1:]]]
    if any(named) and any(
        {*names} != {gap.name for gap in quantities(state)[0]} for names in named
    ):
        raise ValueError("it holds other gaps than are watched")


class WatchFile(JsonFile[WatchState]):
    """The file of a watch's state."""

    of = "a watch"
    start = "fairbench watch PREDICTIONS"
    otherwise = "or start another state"

    def parse(self, content: bytes) -> WatchState:
        """Return the state that a file's content describes."""
        # States of earlier versions counted every row, and kept nothing that tells them.
        values = {"repeats": 0, "once": False, "seen": "", **unsealed_json(content)}
        if values["schema"] != SCHEMA:
            shown = shortened(str(values["schema"]))
            raise ValueError(f"its schema is {shown}; this version reads {SCHEMA}")
        plain = {part.name: values[part.name] for part in fields(WatchState)}
        check_tallies(plain["seen"])
        options = {**plain["options"], "path": self.folder / plain["options"]["path"]}
        state: WatchState = from_plain(WatchState, {**plain, "options": options})
        _check_shape(state)
        return state

    def values(self, state: WatchState) -> Mapping[str, Any]:
        """Return a state as plain values; the path of the predictions is seen from its folder."""
        path = os.path.relpath(state.options.path.resolve(), self.folder.resolve())
        options = {**asdict(state.options), "path": Path(path).as_posix()}
        return {"schema": SCHEMA, **asdict(state), "options": options}
