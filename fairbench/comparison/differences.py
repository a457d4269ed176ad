"""Why none of some runs can be chosen, and the words that select others of which one can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import yaml

from fairbench.core.errors import UserError
from fairbench.results.catalogue import Catalogue, comparable_sets, flat
from fairbench.results.runs import Run

_PARTS = ("dataset", "split", "evaluator")  # of which the options say which rows count, and how
_MOST = 4  # values that are listed


class CannotChooseError(UserError):
    """Runs from which none can be chosen; others may be."""


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs that do not predict the same rows for the same groups.

    Raises
    ------
    CannotChooseError : they do not; the message says in what they differ.
    """
    if len(comparable_sets(runs)) > 1:
        raise CannotChooseError(
            f"these {len(runs)} runs do not all predict the same rows for the same groups: they "
            f"differ in {_differing(runs)}"
        )


def _differing(runs: Sequence[Run]) -> str:
    """Return in what runs of several sets differ, with the values and how many runs have each."""
    facts = [_facts(run) for run in runs]
    sets = [[_facts(run) for run in of_set] for of_set in comparable_sets(runs)]
    parts = []
    for name in dict.fromkeys(name for fact in facts for name in fact):
        values = [{fact.get(name, "none") for fact in of_set} for of_set in sets]
        telling = all(len(of_set) == 1 for of_set in values) and len(set.union(*values)) > 1
        if telling and name.partition(".")[0] != "evaluator":
            counts = Counter(fact.get(name, "none") for fact in facts)
            listed = ", ".join(f"{value} in {n}" for value, n in counts.most_common(_MOST))
            parts.append(f"{name} ({listed}{', ...' * (len(counts) > _MOST)})")
    if parts:
        return ", ".join(parts[:3])
    different = len({run.summarised["data"] for run in runs}) > 1
    return "the data, whose files have changed" if different else "the rows that were drawn"


def _facts(run: Run) -> dict[str, str]:
    """Return what selects runs by the rows that they predict, and how these count, as typed."""
    options = flat({part: run.summarised["config"].get(part, {}) for part in _PARTS})
    facts = {part: run.choices[part] for part in _PARTS}
    facts |= {"protect": run.protect.replace(" ", ""), "seed": str(run.seed)}
    for name, value in options.items():
        if not name.endswith(".name") and (text := _typed(value)):
            facts[name] = text
    return facts


def _typed(value: Any) -> str:
    """Return a value as it is typed; nothing of one that a word cannot select by."""
    if not isinstance(value, str | int | float | None):
        return ""
    text = str(yaml.safe_dump(value, default_flow_style=True)).partition("\n")[0].strip("'\"")
    return "" if "," in text or not text else text


def works(wanted: Collection[str], among: Sequence[Run]) -> list[Run]:
    """Return runs that can be chosen from together: as many wanted ones, by id, as there can be.

    Where two wanted ones can be, they alone are; otherwise those that can be beside one, or else
    the most runs, of most splits. They are fewer than two where none can be.
    """
    fit = [run for run in among if not is_weighted(run) and _may_be_binary(run)]
    sets = [
        ([run for run in runs if run.id in wanted], runs)
        for runs in comparable_sets(fit)
        if len(runs) > 1
    ]
    asked, runs = max(
        sets, key=lambda of: (len(of[0]), len(of[1]), _repeats(of[1][0])), default=([], [])
    )
    return asked if len(asked) > 1 else runs


def _repeats(run: Run) -> int:
    return int(run.summarised["config"]["split"].get("repeats", 1))


def is_weighted(run: Run) -> bool:
    """Say whether a run's tables are of weighted rows."""
    return bool(run.config["evaluator"].get("weights"))


def _may_be_binary(run: Run) -> bool:
    """Say whether a run's labels are of two kinds, as far as its record says."""
    return run.environment.get("task", {}).get("positive_share", 0) is not None


def selecting(chosen: Sequence[Run], among: Catalogue, words: Sequence[str]) -> list[str]:
    """Return words that select runs, those that are given kept where they can be.

    Parameters
    ----------
    chosen : the runs that are to be selected, all of them of `among`.
    words : ``name=value`` that are given, and select more.
    """
    ids, kept = {run.id for run in chosen}, list(words)
    others = [run for run in among.matching(kept) if run.id not in ids]
    shared = dict(set.intersection(*(set(_facts(run).items()) for run in chosen)))
    names = [name for name in _facts(chosen[0]) if name in shared]
    while others:
        left = {name: _without(others, name, shared[name]) for name in names}
        best = min(left, key=lambda name: len(left[name]))
        if len(left[best]) == len(others):
            return [run.id for run in chosen]
        kept = [word for word in kept if word.partition("=")[0] != best]
        kept.append(f"{best}={shared[best]}")
        others = left[best]
    selected = {run.id for run in among.matching(kept)}
    return kept if selected == ids else [run.id for run in chosen]


def _without(others: Sequence[Run], name: str, value: str) -> list[Run]:
    return [run for run in others if _facts(run).get(name) == value]
