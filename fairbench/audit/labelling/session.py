"""An audit in progress: the predictions, the labels so far, and the order rows are labelled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audit.group_sampling import GroupSampling
from fairbench.audit.labelling.state import State, sha256
from fairbench.audit.reading import AuditTable, read_audit_table
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.core.seeds import rng

Rows = NDArray[np.int64]
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class Session:
    """A state, with the table it is about.

    Attributes
    ----------
    table : with all labels so far, the file's and the person's.
    """

    state: State
    table: AuditTable

    @cached_property
    def arms(self) -> pd.Series:
        """The group of every row, as rows are chosen among groups."""
        return arms_of(self.table, self.state.by)

    @cached_property
    def names(self) -> list[str]:
        """The groups' names."""
        return [str(name) for name in self.arms.cat.categories]

    @cached_property
    def codes(self) -> Rows:
        """The position of every row's group."""
        codes: Rows = self.arms.cat.codes.to_numpy(np.int64)
        return codes

    @cached_property
    def sizes(self) -> Rows:
        """The rows of every group."""
        return np.bincount(self.codes, minlength=len(self.names))

    @cached_property
    def order(self) -> Rows:
        """All rows in the order they are labelled in, within each group: drawn once for all."""
        return rng(self.state.options.seed, "order of labelling").permutation(len(self.table))

    @cached_property
    def done(self) -> NDArray[np.bool_]:
        """Whether a row has a label, or was looked at and could not be given one."""
        done = ~np.isnan(self.table.label)
        done[[row - 1 for row in self.state.labels]] = True
        return done

    @cached_property
    def answered(self) -> Rows:
        """Each group's rows that a person has looked at."""
        rows = np.array(list(self.state.labels), np.int64) - 1
        return np.bincount(self.codes[rows], minlength=len(self.names))

    @property
    def progress(self) -> str:
        """How many rows have labels, as part of a sentence."""
        return f"{count(len(self.table.known))} of {count(len(self.table))} rows have labels"

    def waiting(self, part: tuple[int, int] = (1, 1)) -> Rows:
        """Return the rows still to be labelled, in their order.

        Parameters
        ----------
        part : (k, m): those of the k-th of m people, who label different rows.
        """
        mine = self.order[part[0] - 1 :: part[1]]
        return mine[~self.done[mine]]

    def left(self, waiting: Rows) -> Rows:
        """Return how many rows of each group are still to be labelled."""
        return np.bincount(self.codes[waiting], minlength=len(self.names))

    def audited(self) -> AuditTable:
        """Return the table with how its rows were chosen, for an assessment."""
        notes = tuple(self._notes())
        sampling = GroupSampling(self.state.by, self.arms, notes, whenever=self.state.whenever)
        return replace(self.table, sampling=sampling)

    def _notes(self) -> Sequence[str]:
        notes = []
        unknown = sum(label == "" for label in self.state.labels.values())
        if unknown:
            notes.append(
                f"Rows that were looked at and could not be labelled: {count(unknown)}. Figures "
                "hold as far as these are like the other rows of their groups."
            )
        if len(passed := self.passed_over()):
            rows = ", ".join(str(row + 1) for row in passed[:_MOST_NAMED])
            more = ", ..." if len(passed) > _MOST_NAMED else ""
            notes.append(
                f"Rows without a label that come before labelled ones of their group: "
                f"{count(len(passed))} ({rows}{more}). Figures hold if it was not for what they "
                "look like that they were passed over; next names them first."
            )
        return notes

    def passed_over(self) -> Rows:
        """Return the rows without an answer that come before an answered one of their group."""
        answered = np.zeros(len(self.table), bool)
        answered[[row - 1 for row in self.state.labels]] = True
        codes, found = self.codes[self.order], answered[self.order]
        places = np.arange(len(codes))
        last = np.full(len(self.names), -1)
        np.maximum.at(last, codes[found], places[found])
        return self.order[(places < last[codes]) & ~self.done[self.order]]


def open_session(state: State, frame: pd.DataFrame | None = None) -> Session:
    """Read the predictions that a state is about.

    Parameters
    ----------
    frame : the predictions, where they were read and compared before.

    Raises
    ------
    UserError : they are not there, or not what they were.
    """
    path = state.options.path
    if frame is None and path.is_file() and sha256(path) != state.sha256:
        raise UserError(
            f"{path} has changed since this audit began, so that labels may belong to other rows: "
            "put the old file back, or start another state"
        )
    answers = {row - 1: label for row, label in state.labels.items()}
    return Session(state, read_audit_table(state.options, answers, frame))


def arms_of(table: AuditTable, by: str) -> pd.Series:
    """Return the groups that rows are chosen among: of some attributes, or of all combined."""
    return table.groups.get(by, table.cells)
