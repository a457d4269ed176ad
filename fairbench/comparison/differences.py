"""Which runs can be compared for a choice, and the words that select such runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import yaml

from fairbench.core.errors import UserError
from fairbench.results.catalogue import Catalogue, comparable_sets, flat
from fairbench.results.runs import Run

_PARTS = ("dataset", "split", "evaluator")  # their options decide which rows count, and how
_MOST = 4  # values that a message lists


class CannotChooseError(UserError):
    """Runs among which there can be no choice; other runs may allow one."""


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs that do not predict the same rows for the same groups.

    Raises
    ------
    CannotChooseError : they do not; the message says in what they differ.
    """
    if len(comparable_sets(runs)) > 1:
        raise CannotChooseError(
            f"these {len(runs)} runs do not all predict the same rows for the same groups: they "
            f"differ in {_differing_options(runs)}"
        )


def without_copies(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return runs without those that are one of the others again, and a sentence on each of these.

    Runs of different ids are one where they computed the same from the same data, such as from a
    file by two paths.
    """
    first: dict[str, Run] = {}
    notes = []
    for run in runs:
        original = first.setdefault(run.environment["fingerprint"], run)
        if original is not run:
            notes.append(
                f"run {run.id} is run {original.id} again ({run.name}): the same models on the "
                "same data, under another id"
            )
    return list(first.values()), notes


def _differing_options(runs: Sequence[Run]) -> str:
    """Return the options in which runs of several sets differ, with a count of runs per value."""
    facts = [_facts(run) for run in runs]
    sets = [[_facts(run) for run in members] for members in comparable_sets(runs)]
    parts = []
    for name in dict.fromkeys(name for fact in facts for name in fact):
        values = [{fact.get(name, "none") for fact in members} for members in sets]
        is_constant_in_sets = (
            all(len(members) == 1 for members in values) and len(set.union(*values)) > 1
        )
        if is_constant_in_sets and name.partition(".")[0] != "evaluator":
            counts = Counter(fact.get(name, "none") for fact in facts)
            listed = ", ".join(
                f"{value} in {runs_with_value}"
                for value, runs_with_value in counts.most_common(_MOST)
            )
            ending = ", ..." if len(counts) > _MOST else ""
            parts.append(f"{name} ({listed}{ending})")
    if parts:
        return ", ".join(parts[:3])
    different = len({run.summarised["data"] for run in runs}) > 1
    return "the data, whose files have changed" if different else "the rows that were drawn"


def _facts(run: Run) -> dict[str, str]:
    """Return the words, option -> value as typed, that decide which rows a run predicts."""
    options = flat({part: run.summarised["config"].get(part, {}) for part in _PARTS})
    facts = {part: run.choices[part] for part in _PARTS}
    facts |= {"protect": run.protect.replace(" ", ""), "seed": str(run.seed)}
    for name, value in options.items():
        if not name.endswith(".name") and (text := _as_word(value)):
            facts[name] = text
    return facts


def _as_word(value: Any) -> str:
    """Return a value as it is typed; "" if no word can select by it."""
    if not isinstance(value, str | int | float | None):
        return ""
    text = str(yaml.safe_dump(value, default_flow_style=True)).partition("\n")[0].strip("'\"")
    return "" if "," in text or not text else text


def works(wanted: Collection[str], among: Sequence[Run]) -> list[Run]:
    """Return runs of one comparable set: that with most of the wanted runs, given by id.

    If it has two or more wanted runs, only these are returned; otherwise all of the set. Ties go to
    the set with most runs, then with most repeats. The list is empty if no set has two runs.
    """
    usable = [run for run in among if not is_weighted(run) and _may_be_binary(run)]
    sets = [
        ([run for run in runs if run.id in wanted], runs)
        for runs in comparable_sets(usable)
        if len(runs) > 1
    ]
    wanted_runs, runs = max(
        sets,
        key=lambda wanted_and_all: (
            len(wanted_and_all[0]),
            len(wanted_and_all[1]),
            _repeats(wanted_and_all[1][0]),
        ),
        default=([], []),
    )
    return wanted_runs if len(wanted_runs) > 1 else runs


def _repeats(run: Run) -> int:
    return int(run.summarised["config"]["split"].get("repeats", 1))


def is_weighted(run: Run) -> bool:
    """Return whether a run's tables are of weighted rows."""
    return bool(run.config["evaluator"].get("weights"))


def _may_be_binary(run: Run) -> bool:
    """Return whether a run's labels are of two kinds, as far as its record says."""
    return run.environment.get("task", {}).get("positive_share", 0) is not None


def selection_words(chosen: Sequence[Run], among: Catalogue, words: Sequence[str]) -> list[str]:
    """Return words that select exactly the chosen runs, keeping the given words where possible.

    Parameters
    ----------
    chosen : the runs that are to be selected, all of them of `among`.
    words : ``name=value`` that are given, and select more.
    """
    ids = {run.id for run in chosen}
    kept_words = list(words)
    unwanted = [run for run in among.matching(kept_words) if run.id not in ids]
    shared = dict(set.intersection(*(set(_facts(run).items()) for run in chosen)))
    names = [name for name in _facts(chosen[0]) if name in shared]
    while unwanted:
        left_by = {name: _runs_with(unwanted, name, shared[name]) for name in names}
        best = min(left_by, key=lambda name: len(left_by[name]))
        if len(left_by[best]) == len(unwanted):
            return [run.id for run in chosen]
        kept_words = [word for word in kept_words if word.partition("=")[0] != best]
        kept_words.append(f"{best}={shared[best]}")
        unwanted = left_by[best]
    selected = {run.id for run in among.matching(kept_words)}
    return kept_words if selected == ids else [run.id for run in chosen]


def _runs_with(runs: Sequence[Run], name: str, value: str) -> list[Run]:
    return [run for run in runs if _facts(run).get(name) == value]
