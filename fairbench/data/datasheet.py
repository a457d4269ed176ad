"""What a person should know about a data set before using it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Datasheet:
    """A data set's documentation, next to its loader; ``docs/datasets.md`` is made of these.

    Attributes
    ----------
    title : what the data set is, with its authors and year.
    source : where it comes from, with a citation or a link.
    licence : under which terms it may be used, or that none are stated.
    paper_differences : what the papers did with it, and where this loader differs.
    criticism : what is known to be wrong with it, or with how it is used.
    """

    title: str
    source: str
    licence: str
    paper_differences: str
    criticism: str
