"""Sentences on a ranking: which methods differ, what is open, and what would resolve it.

The page of ``fairbench rank``, the atlas and the leaderboard share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, isfinite, isnan

import numpy as np

from fairbench.comparison.rank.answer import WRONG, Ranking, ResolutionPlan, units_to_tell_anything
from fairbench.core.formats import count, percent, shortened, two_digits
from fairbench.inference.comparing.fresh_winners import SPLITS
from fairbench.inference.comparing.new_tasks import MOST_OF_FEW
from fairbench.inference.comparing.sign_flips import FEWEST

NAMED = 6  # methods that a sentence lists
_LENGTH = 110  # letters of a name in a sentence
PLURALS = {"family": "families", "task": "tasks", "question": "questions"}


def units_in_words(answer: Ranking, number: float | None = None) -> str:
    """Return a number of units (by default, all of the ranking) with the word for them."""
    number = answer.units if number is None else number
    return f"{count(number)} {answer.unit if number == 1 else PLURALS[answer.unit]}"


def short_name(name: str) -> str:
    """Return a name that is not too long for a sentence."""
    return shortened(name, _LENGTH)


def join_words(names: Sequence[str], word: str = "and") -> str:
    """Return a list in words; names that hold commas are divided by semicolons.

    Examples
    --------
    >>> join_words(["forest", "linear", "nearest"]), join_words(["forest, plain", "linear"], "or")
    ('forest, linear and nearest', 'forest, plain; or linear')
    """
    if len(names) == 1:
        return names[0]
    if any("," in name for name in names):
        return f"{'; '.join(names[:-1])}; {word} {names[-1]}"
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def first_names(names: Sequence[str], word: str = "and") -> str:
    """Return the first names of a list in words, and how many more there are."""
    listed = [short_name(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        mark = ";" if any("," in name for name in listed) else ","
        return f"{f'{mark} '.join(listed)} {word} {count(len(names) - NAMED)} more"
    return join_words(listed, word)


def found_sentences(answer: Ranking, methods: str = "methods") -> Iterator[str]:
    """Yield a sentence on which methods may be the best, and how many pairs surely differ.

    Parameters
    ----------
    methods : the plural word for the methods.
    """
    total = len(answer.methods)
    best = answer.best
    pairs = len(answer.paired.first)
    parts = [f"{count(answer.told_apart)} of {count(pairs)} pairs of {methods} surely differ"]
    if len(best) > 1 and (near := answer.surely_near):
        parts.insert(
            0, f"surely within {answer.epsilon:g} of the best on average: {first_names(near)}"
        )
    if len(best) == 1:
        parts.insert(0, f"{short_name(best[0])} is the best on average")
    elif len(best) < total:
        if len(best) > NAMED:
            one_of = f"one of {count(len(best))} of {count(total)} {methods}: {first_names(best)}"
        else:
            one_of = f"{first_names(best, 'or')} (of {count(total)} {methods})"
        parts.insert(0, f"the best on average is {one_of}")
    if len(parts) > 1 or answer.told_apart:
        first, *rest = parts
        if len(best) != 1:
            first = first[0].upper() + first[1:]
        yield "; ".join([first, *rest]) + "."


def new_task_sentences(answer: Ranking, method: str = "method") -> Iterator[str]:
    """Yield the largest probabilities to be near the best on a new task."""
    if answer.new is None:
        return
    order = np.argsort(-answer.new.near, kind="stable")[:3]
    listed = [
        f"{near_in_words(answer, int(method_index), ' % or more', ' %')} for "
        f"{short_name(answer.methods[method_index])}"
        for method_index in order
    ]
    remark = "" if len(listed) == len(answer.methods) else " (the table has all)"
    yield (
        f"On a new task, the estimated chance to score within {answer.epsilon:g} of whichever "
        f"{method} is best there is {join_words(listed)}{remark}."
    )


def near_in_words(answer: Ranking, method_index: int, at_least: str, otherwise: str) -> str:
    """Return the percentage of a method's chance to be near the best, with a text after it."""
    if answer.new is None:
        return ""
    near = float(answer.new.near[method_index])
    capped = answer.new.few and near >= MOST_OF_FEW
    return percent(near) + (at_least if capped else otherwise)


def fresh_sentences(answer: Ranking, methods: str = "methods") -> Iterator[str]:
    """Yield how often halves of the splits, or of the units, disagree on which mean is best."""
    fresh = answer.fresh
    if fresh is None:
        return
    halved = "splits" if fresh.halved == SPLITS else PLURALS[answer.unit]
    among = ""
    if fresh.methods < len(answer.methods):
        among = f" of the {count(fresh.methods)} {methods} that were run everywhere"
    on_single_task = ""
    if fresh.halved == SPLITS:
        on_single_task = f", and on a single task {percent(fresh.within_task)} % of the time"
    yield (
        f"Where the {halved} are divided in two at random, the halves disagree on which "
        f"mean{among} is best {percent(fresh.overall)} % of the time{on_single_task}."
    )


def open_sentences(answer: Ranking, methods: str = "methods") -> Iterator[str]:
    """Yield the questions that the scores leave open."""
    total, pairs = len(answer.methods), len(answer.paired.first)
    if len(answer.best) == total:
        yield f"Any of the {count(total)} {methods} may be the best on average."
    elif len(answer.best) > 1:
        best = first_names(answer.best, "or")
        yield f"Which of {count(len(answer.best))} {methods} is the best on average: {best}."
    open_ = pairs - answer.told_apart
    if open_:
        yield f"{count(open_)} of {count(pairs)} pairs: either of the two may be the better one."
    needed = units_to_tell_anything(answer)
    if answer.units < FEWEST:
        yield (f"With {units_in_words(answer)} nothing can be told apart; {FEWEST} are the fewest.")
    elif answer.units < needed:
        yield (
            f"With fewer than {needed} {PLURALS[answer.unit]} only very large differences are "
            "told apart, and only if they are normal."
        )


def resolving_sentences(answer: Ranking, cells: str = "splits") -> Iterator[str]:
    """Yield sentences on how many more units, or cells, would resolve the hardest pair.

    Parameters
    ----------
    cells : the plural word for the cells of a task: splits or questions.
    """
    plans = [plan for plan in answer.plans if not isnan(plan.units_needed)]
    if not plans:
        return
    hardest = max(plans, key=lambda plan: plan.units_needed)
    pair = f"{short_name(hardest.first)} and {short_name(hardest.rival)}"
    if hardest.units_needed <= hardest.units:
        yield (
            f"If {pair} truly differed by {answer.epsilon:g}, the "
            f"{units_in_words(answer, hardest.units)} there are would show it; a smaller "
            "difference needs more."
        )
        return
    if isfinite(hardest.units_needed):
        cost = f", at a cost of {two_digits(hardest.cost)}" if hardest.cost > 0 else ""
        yield (
            f"If {pair} truly differ by {answer.epsilon:g}, about "
            f"{two_digits(hardest.units_needed)} {PLURALS[answer.unit]} would show it (now "
            f"{count(hardest.units)}){cost}; a smaller difference needs more."
        )
    yield from _more_cells(hardest, answer, cells)


def _more_cells(plan: ResolutionPlan, answer: Ranking, cells: str) -> Iterator[str]:
    """Yield a sentence on how many more cells of the same tasks would resolve a pair."""
    if isnan(plan.times_as_many):
        return
    if not isfinite(plan.times_as_many):
        yield (
            f"More {cells} of the same tasks would not do: {percent(1 - plan.noise)} % of the "
            f"variance is between {PLURALS[answer.unit]}."
        )
    elif plan.times_as_many > 1:
        times = max(plan.times_as_many, 1.1)
        in_words = two_digits(times) if times >= 10 else f"{times:.2g}"
        yield f"Or {in_words} times as many {cells} of each task."


def limits_of_cells(answer: Ranking, cells: str = "splits") -> Iterator[str]:
    """Yield sentences on rivals that no number of cells can distinguish from the leader.

    The variance of paired differences between units remains, however many cells each unit has.
    Nothing is yielded if some number of cells is enough for all rivals.
    """
    if len(answer.best) < 2:
        return
    plans = [plan for plan in answer.plans if plan.noise >= 0]  # not NaN
    out_of_reach = sum(not isfinite(plan.times_as_many) for plan in plans)
    if not out_of_reach:
        return
    units = PLURALS[answer.unit]
    rivals = f"{count(out_of_reach)} of" if out_of_reach < len(plans) else "any of"
    yield (
        f"By these estimates, no number of {cells} of the same tasks would tell "
        f"{short_name(answer.leader)} from {rivals} its {count(len(plans))} rivals if their true "
        f"difference is {answer.epsilon:g}."
    )
    needed = np.sort([plan.units_needed for plan in plans])
    for_half, for_all = float(needed[(len(needed) - 1) // 2]), float(needed[-1])
    between = percent(1 - float(np.median([plan.noise for plan in plans])))
    parts = []
    if isfinite(for_half):
        parts.append(f"about {two_digits(for_half)} would do for half of the rivals")
    if isfinite(for_all):
        parts.append(f"{two_digits(for_all)} for all")
    enough = f": {' and '.join(parts)} (now {count(answer.units)})" if parts else ""
    yield (
        f"For half of the rivals, {between} % or more of the variance of the paired difference is "
        f"between {units}, which only more {units} average out{enough}."
    )


def unseen_in_words(answer: Ranking) -> tuple[float, str]:
    """Return the share of units that statements leave out, and a sentence that says so.

    They are 0 and empty if nothing is left out.
    """
    share = ceil(1000 * answer.unseen) / 10  # rounded up: it would not hold for less
    return answer.unseen, (
        f"Left out is what a method does on fewer than {share:g} % of {PLURALS[answer.unit]}, such "
        f"as failing badly: {units_in_words(answer)} may show none of it."
    ) * bool(share)


def simultaneous_sentences(
    scores: str = "", *, on_new_tasks: bool, unseen: Iterable[tuple[float, str]] = ()
) -> str:
    """Return the sentences on which statements are simultaneous.

    Parameters
    ----------
    scores : a phrase such as "all scores", if there are several; empty for one.
    on_new_tasks : whether there are probabilities on new tasks.
    unseen : what :func:`unseen_in_words` returns for each score; the largest share holds for all.
    """
    scores_text = f" of {scores}" if scores else ""
    sentences = [
        f"Ranks, who may be the best and all differences{scores_text} are valid simultaneously: "
        f"the chance that any of them is wrong is at most {100 * WRONG:.0f} %.",
        max(unseen, default=(0.0, ""))[1],
        "Probabilities on a new task are estimates." * on_new_tasks,
    ]
    return " ".join(filter(None, sentences))
