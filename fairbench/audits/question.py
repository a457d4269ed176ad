"""What an audit is asked for: one dataclass, from which `fairbench audit --help` is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from fairbench.core.errors import UserError, check_choice, check_share
from fairbench.core.options import broken_rules, check_declared, option
from fairbench.core.text import is_number, listed
from fairbench.data.columns import ColumnRef
from fairbench.data.groups import bands_apart, check_bands
from fairbench.data.tables import TablePart
from fairbench.evaluation.gate import REQUIRED, VERDICT, conditions_of
from fairbench.inference.posterior import FREQUENTIST, INTERVALS
from fairbench.inference.survey import Design
from fairbench.metrics import registry
from fairbench.reporting.group_tables import sentence_of

_said = partial(sentence_of, "options")

# The kinds of audits. An option that does not apply to all of them lists those it applies to.
BINARY = "an audit of two classes"
SELECTED = "an audit of labels of the selected (selected=)"
MANY = "an audit of many groups"
PROXY = "an audit of groups by their probabilities (proxy=)"
PAIR = "a comparison of two scores (against=)"
CLASSES = "an audit of several classes"
NUMBERS = "an audit of predicted numbers"
PREDICTED_INTERVALS = "an audit of predicted intervals (bounds=)"
RANKING = "an audit of a ranking (top=)"
SURVIVAL = "an audit of times until an event (event=)"
COUNTS = "an audit of counts (total=)"
OF_TWO = (BINARY, SELECTED, MANY, PROXY, PAIR)
OF_NUMBERS = (NUMBERS, PREDICTED_INTERVALS)
LABELLED = (*OF_TWO, CLASSES, *OF_NUMBERS, SURVIVAL)
BY_PAIRS = (BINARY, SELECTED, PAIR, CLASSES, *OF_NUMBERS, RANKING, SURVIVAL, COUNTS)
OF_SCORES = (*OF_TWO, CLASSES, RANKING, SURVIVAL)

# What decisions are for -> whom an error hurts, where somebody is refused.
PURPOSES: Mapping[str, str] = {
    "lending": "somebody who would have paid back",
    "hiring": "somebody who would have done well",
    "care": "somebody who needs care",
    "justice": "somebody who would not have done what is feared",
}
# Options that name columns, in the order in which these are read.
_COLUMNS = (
    *("target", "score_columns", "prediction", "labelled", "selected", "weight", "cluster", "id"),
    *("event", "group", "proxy", "within", "bounds", "lists", "total", "rates"),
)
# Options whose column must not be that of the labels.
_COMPARED = ("against", "prediction", "labelled", "selected", "weight")
PROBABILITY, PERCENT, RATING = "probability", "percent", "rating"
# What a rating, which is no probability, cannot be given for or with.
_NO_RATING = (
    *("scores", "prediction", "against", "constraint", "selected", "proxy", "event", "top"),
    "total",
)


# Options that leave an audit answerable from the number of each distinct row.
_OF_COUNTS = frozenset(
    {"path", "group", "reference", "target", "prediction", "positive", "favourable", "decision"}
    | {"purpose", "epsilon", "interval", "seed", "out", "threshold", "rows", "sheet"}
)


def column(**declared: Any) -> Any:
    """Declare an option that names a column, as :func:`fairbench.core.options.option` does."""
    return option("", shown="COLUMN", **declared)


def column_options(kind: type) -> list[str]:
    """Return the names of the options of a dataclass that name columns."""
    return [field.name for field in fields(kind) if field.metadata.get("shown") in _OF_COLUMNS]


_OF_COLUMNS = ("COLUMN", "[COLUMN,...]", "[LOWER,UPPER]")  # how options that name columns are shown


@dataclass(frozen=True)
class _People(TablePart):
    """What is in the file.

    Attributes
    ----------
    path : A file with one row per person: CSV, Excel, Parquet or Arrow, compressed or not.
    group : The columns of groups; combinations of two are compared too, or all together if they
        make more than 100 groups. For bands of a number write age:25,40,62 or age:quantiles(4).
    target : The column of labels, with empty cells where a label is not known; leave the option out
        if no label is. With event=: the column of times.
    score : The column of the predicted probability of the positive label. For three classes or
        more: the probability of the predicted class, or [COLUMN,...], one column for each class.
    prediction : The column of decisions, where they are not score > threshold. For three classes or
        more: of predicted classes; for a regression: of predicted numbers.
    labelled : A column of true and false: labels are used only in rows where it is true.
    id : The column that identifies the person in a row, such as a customer number. Messages show
        it, and labels can be given by it. A value may occur only once.
    weight : The column of survey weights: how many people each row stands for. Every row needs a
        label.
    cluster : The column that says which rows belong together, such as people of one household.
        Every row needs a label.
    scale : Whether scores (or the rates of rates=) are from 0 to 1 or from 0 to 100. rating: scores
        are no probabilities but ordered, such as deciles, and threshold= is in their units; how
        well they are calibrated is not judged.
    """

    title: ClassVar = "What is in the file"

    path: Path = option(Path, argument="PREDICTIONS")
    group: tuple[str, ...] = option((), shown="[COLUMN,...]", main=True)
    target: str = column(applies=LABELLED, main=True)
    score: str = column(several="scores", applies=OF_SCORES, main=True)
    prediction: str = column(applies=(BINARY, SELECTED, MANY, PROXY, CLASSES, NUMBERS), main=True)
    labelled: str = column(applies=(*OF_TWO, CLASSES, *OF_NUMBERS), needs=("target",))
    id: str = column()
    weight: str = column(applies=(BINARY, *OF_NUMBERS))
    cluster: str = column(applies=(BINARY, *OF_NUMBERS))
    scale: str = option(
        PROBABILITY,
        choices=(PROBABILITY, PERCENT, RATING),
        applies=(*OF_SCORES, COUNTS),
        needs=("score", "scores", "rates"),
    )
    cuts: tuple[str, ...] = ()  # bands that group= and within= have, such as age:25,40,62
    scores: tuple[str, ...] = ()  # the columns of score=, where it names several


@dataclass(frozen=True)
class _Decided:
    """Which decision is good for a person.

    Attributes
    ----------
    positive : The label whose probability the score is, where labels are not 0 and 1.
    favourable : The label that a person would like to be predicted to have: 'repaid', or 'no' where
        label 1 is default. You are asked for it where names leave it open.
    decision : The names of the two decisions, the one that is good for a person first, such as
        approved/declined. The column prediction= may contain these names.
    purpose : What decisions are for. The page then says which gaps matter most, and whom errors
        hurt.
    threshold : A score above it is a positive decision.
    """

    title: ClassVar = "Which decision is good for a person"

    positive: str = option("", shown="LABEL", applies=OF_TWO)
    favourable: str = option("", shown="LABEL", applies=OF_TWO, main=True)
    decision: str = option("", shown="GOOD/BAD", applies=OF_TWO)
    purpose: str = option("", choices=tuple(PURPOSES), applies=OF_TWO)
    threshold: float = option(0.5, applies=OF_TWO, main=True, excludes=("prediction",))


@dataclass(frozen=True)
class _Groups:
    """Which groups are compared.

    Attributes
    ----------
    reference : The group that the others of its column are compared with: LABEL, or COLUMN:LABEL
        where two columns have it. By default the largest group; for impact ratios, the group that
        is selected most often.
    rare : Groups with fewer rows than this are pooled into one, called 'other groups', if a column
        has two or more such.
    leave_out : Groups whose rows are left out, such as [race=Other].
    """

    title: ClassVar = "What is compared, and how"

    reference: tuple[str, ...] = option((), shown="[LABEL,...]", applies=BY_PAIRS, main=True)
    rare: int = option(0, least=0)
    leave_out: tuple[str, ...] = option((), shown="[COLUMN=GROUP,...]")


@dataclass(frozen=True)
class JudgedOptions(_Groups, _Decided, _People):
    """The options by which decisions of two classes are read: what a gate needs.

    Attributes
    ----------
    seed : The seed of all random draws.
    """

    seed: int = option(0, least=0)


@dataclass(frozen=True)
class _Comparison:
    """How groups are compared.

    Attributes
    ----------
    within : Also compare groups within strata: among people with the same value of these columns,
        such as [department] or age:25,40,62. The page has every stratum, and the average over
        strata, each weighted by its share of all people that the rate is about.
    epsilon : A gap smaller than this makes no practical difference. For predicted numbers: as a
        share of the standard deviation of the true ones.
    against : The column of another classifier's scores on the same rows. The page says whose gaps
        are smaller.
    constraint : Find the threshold nearest to threshold= at which a constraint holds, on half of
        the rows, and judge it on the other half. ratio:0.8: the smallest selection rate is at least
        0.8 of the largest. RATE:0.05: no two groups differ by more; RATE is selection_rate,
        true_positive_rate, false_positive_rate or false_negative_rate.
    interval : How intervals are made. frequentist: they hold in repeated samples, for few rows too.
        dirichlet: quantiles of the posterior that the papers use; of two classes, every row needs a
        label.
    """

    title: ClassVar = "What is compared, and how"

    within: tuple[str, ...] = option(
        (),
        shown="[COLUMN,...]",
        applies=(BINARY,),
        excludes=("weight", "cluster", "interval"),
        main=True,
    )
    epsilon: float = option(0.05, share=True, applies=LABELLED, main=True)
    against: str = column(applies=(PAIR,), needs=("score",), excludes=("prediction",))
    constraint: str = option(
        "",
        shown="RATIO|RATE:BOUND",
        applies=(BINARY, SELECTED),
        needs=("score",),
        excludes=("prediction",),
    )
    interval: str = option(
        FREQUENTIST,
        choices=INTERVALS,
        applies=(BINARY, SELECTED, CLASSES),
        excludes=("weight", "cluster"),
    )


@dataclass(frozen=True)
class _Unknown:
    """What is not known of each person.

    Attributes
    ----------
    selected : The column of true and false that says who was selected, where only these people have
        labels, such as applicants who got a loan. The page has bounds for everyone. With total=:
        the column of how many people were selected.
    odds : With selected=: the largest factor by which the odds of label 1 may differ between people
        who were not selected and similar people who were.
    proxy : Instead of group=, where nobody's group is recorded: for each group a column with the
        probability that a person belongs to it. The page has bounds for the gaps.
    total : For a table of counts, one row for each category, such as published audits have: the
        column of how many people there were. Give selected= or rates= with it. If group= names
        several columns, a row with a blank or Total in one of them counts all its categories. Of
        four rows or more, one whose numbers are the sums of the others' is a total, too.
    rates : With total=, instead of selected=: the column of the share of people who were selected.
    """

    title: ClassVar = (
        "Labels of the selected alone; groups known by probabilities; tables of counts"
    )

    selected: str = column(applies=(SELECTED, COUNTS), needs=("target", "total"))
    odds: float = option(2.0, least=1, applies=(SELECTED,))
    proxy: tuple[str, ...] = option((), shown="[COLUMN,...]", applies=(PROXY,), excludes=("group",))
    total: str = column(applies=(COUNTS,))
    rates: str = column(applies=(COUNTS,), needs=("total",))


@dataclass(frozen=True)
class _Kinds:
    """What is asked of predictions that are not of two classes.

    Attributes
    ----------
    cost : For three classes or more: a CSV file with the cost of each mistake, a row for each true
        class and a column for each predicted one.
    prior : For three classes or more: whether the prior is uniform or follows the scores.
    strength : For three classes or more: how many labels the prior counts as.
    bounds : For predicted numbers: the columns of the ends of prediction intervals. The page has
        their coverage by group. Without prediction=: an audit of the intervals alone, of their
        coverage and their width.
    nominal : With bounds=: the share of targets that the intervals promise to cover.
    top : Audit the ranking by score=, the highest first: who is among the first so many places
        (below 1: in that share of all places), and how exposure is distributed. Scores may be any
        numbers.
    lists : With top=: the column that says which rows are ranked together, such as one search.
    event : The column of true and false that says whether the event happened at the time in
        target=; otherwise the row is censored then. score= is the risk of the event by horizon=.
    horizon : With event=: the time by which scores are risks of the event.
    """

    title: ClassVar = "Several classes, predicted numbers, rankings, times until an event"

    cost: str = option("", shown="FILE", applies=(CLASSES,))
    prior: str = option("uniform", choices=("uniform", "scores"), applies=(CLASSES,))
    strength: float = option(2.0, least=0.1, applies=(CLASSES,))
    bounds: tuple[str, ...] = option((), shown="[LOWER,UPPER]", applies=OF_NUMBERS)
    nominal: float = option(0.9, share=True, applies=OF_NUMBERS, needs=("bounds",))
    top: float = option(0.0, shown="NUMBER", applies=(RANKING,))
    lists: str = column(applies=(RANKING,), needs=("top",))
    event: str = column(applies=(SURVIVAL,))
    horizon: float = option(0.0, least=0, applies=(SURVIVAL,))


@dataclass(frozen=True)
class Options(_Kinds, _Unknown, _Comparison, JudgedOptions):
    """The options of an audit, with all checks that do not need the file.

    Attributes
    ----------
    out : The folder for the page and the JSON; by default a new one next to the file.
    """

    out: str = option("", shown="FOLDER", main=True)

    def __post_init__(self) -> None:
        """Refuse options that no file could satisfy. The first fault is reported."""
        self._separate_bands()
        for fault in self._faults():
            raise UserError(fault)
        if self.scale != RATING:
            check_share("threshold", self.threshold, zero=True)
        check_declared(self)

    def _separate_bands(self) -> None:
        """Move the bands written in group= and within=, such as age:25,40,62, to `cuts`."""
        for name in ("group", "within"):
            columns, cuts = bands_apart(getattr(self, name))
            check_bands(cuts, name)
            object.__setattr__(self, name, columns)
            object.__setattr__(self, "cuts", tuple(dict.fromkeys([*self.cuts, *cuts])))
        check_bands(self.cuts)

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with options that need or exclude others, or name a column twice."""
        if not self._named("score", "scores", "prediction", "total", "bounds", "rates"):
            yield _said("no_counts" if self.selected else "no_scores")
        for name in ("group", "proxy", "within"):
            columns = getattr(self, name)
            if len(set(columns)) < len(columns):
                yield _said("twice", name=name, columns=",".join(columns))
        for name, other in broken_rules(self):
            value = self.interval if other == "interval" else ""
            yield _said(name, options=self, other=f"{other}={value}")
        yield from self._names_twice()
        if self.constraint:
            self.bound()
        if self.top < 0 or (self.top > 1 and self.top != int(self.top)):
            yield _said("top", options=self)
        if self.bounds and len(self.bounds) != 2:
            yield _said("bounds")
        if self.scale == RATING:
            others = [name for name in _NO_RATING if getattr(self, name)]
            if others or not self.score:
                mend = f"leave {others[0]}= out" if others else "name score="
                yield f"scale=rating is of scores and labels or groups alone: {mend}"
            if self.threshold is Options.threshold:  # the default itself: 0.5 may be given
                yield _said("rating")

    def _names_twice(self) -> Iterator[str]:
        """Yield which columns of labels have another role, and which of strata or groups have one.

        Strata of equal scores or decisions would condition on what is audited.
        """
        for name in (*_COMPARED, "score", "group", "proxy"):
            more = ("scores",) if name == "score" else ()
            columns = self._named(name, *more)
            if self.target and self.target in columns:
                yield _said("of_labels", name=name, column=self.target)
            if name in ("score", "against", "weight"):
                for column in {*self.group}.intersection(columns):
                    yield _said("of_groups", name=name, column=column)
        if self.against and self.against == self.score:
            yield _said("same_score", column=self.score)
        for role in ("group", "target", "score", "prediction"):
            of_role = self._named("score_columns" if role == "score" else role)
            for name in self.within:
                if name in of_role:
                    yield _said("of_strata", name=role, column=name)

    def _named(self, *options: str) -> list[str]:
        """Return the columns that options name, each once."""
        names: list[str] = []
        for name in options:
            value = getattr(self, name)
            names += [value] if isinstance(value, str) else value
        return [name for name in dict.fromkeys(names) if name]

    @property
    def counts_alone(self) -> bool:
        """Whether counts of the distinct rows suffice to answer the question.

        They do if only options in `_OF_COUNTS` differ from their defaults.
        """
        return bool(self.prediction) and all(
            getattr(self, field.name) == field.default
            for field in fields(self)
            if field.name not in _OF_COUNTS
        )

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The columns of scores that are named."""
        return tuple(self._named("score", "against", "scores"))

    @property
    def numeric_columns(self) -> list[str]:
        """The columns in which a comma is a decimal comma, besides labels, decisions and bands."""
        return self._named("score_columns", "proxy", "weight")

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        return self._named(*_COLUMNS)

    @property
    def shared_traits(self) -> str:
        """What people of one stratum have in common, such as ``band of age and department``."""
        banded = {cut.rpartition(":")[0] for cut in self.cuts}
        return listed([f"band of {name}" if name in banded else name for name in self.within])

    def bound(self) -> tuple[str, float]:
        """Return the name and the bound of the constraint, such as ``ratio:0.8``.

        Raises
        ------
        UserError : if the text is no constraint.
        """
        name, _, bound = self.constraint.partition(":")
        check_choice("constraint", name, CONSTRAINED)
        if not (is_number(bound) and 0 <= float(bound) <= 1):
            raise UserError(_said("bound", text=self.constraint))
        return name, float(bound)

    def design(self, frame: pd.DataFrame) -> Design | None:
        """Return how the rows of a table were sampled; None where nothing is said of it."""
        weight = clusters = None
        if self.weight:
            weight = ColumnRef(self.path.name, self.weight).weights(frame)
        if self.cluster:
            clusters = ColumnRef(self.path.name, self.cluster).clusters(frame)
        return Design.given(len(frame), weight, clusters)


def check_unchanged(
    state: Path, before: Any, options: Any, given: Collection[str], *, also: Collection[str] = ()
) -> None:
    """Refuse options of a command line that differ from those a state was started with.

    Parameters
    ----------
    state : the file of the state.
    before : the options that it was started with, a dataclass.
    options : the options of the command line, as they were written.
    given : the names of the options that the command line has.
    also : the names of further options that differ.

    Raises
    ------
    UserError : an option differs; the message names the first.
    """
    # Bands are taken from the names of columns, as when a new state is started.
    derived = {"group": "cuts", "score": "scores"}
    given_fields = {*given, *(derived[name] for name in derived if name in given)}
    values = {
        field.name: getattr(options if field.name in given_fields else before, field.name)
        for field in fields(before)
    }
    options_now = type(before)(**values | {"path": before.path})
    changed = [name for name in values if getattr(options_now, name) != getattr(before, name)]
    if names := sorted({"group" if name == "cuts" else name for name in [*changed, *also]}):
        raise UserError(_said("unlike", state=state, name=names[0]))


RATIO = "ratio"
# The names of constraints, and the rate of groups that each compares.
CONSTRAINED: Mapping[str, registry.Rate] = {
    RATIO: registry.selection_rate,
    "selection_rate": registry.selection_rate,
    "true_positive_rate": registry.true_positive_rate,
    "false_positive_rate": registry.false_positive_rate,
    "false_negative_rate": registry.false_negative_rate,
}


@dataclass(frozen=True)
class PlanOptions:
    """Assumptions about the groups, and the gap that an audit is to detect.

    Attributes
    ----------
    groups : Which share of the people each group is; the shares add up to 1.
    rate : The rate that is compared, as it may be in most groups.
    gap : The difference between groups that matters.
    among : The share of people whom the rate is about: 1 for accuracy, that of label 1 for the true
        positive rate.
    attributes : How many attributes are audited: more verdicts, each surer.
    seed : The seed of all random draws.
    """

    groups: tuple[float, ...] = option((0.5, 0.5), shown="[SHARE,...]")
    rate: float = option(0.5, share=True)
    gap: float = option(0.05, share=True)
    among: float = option(1.0)
    attributes: int = option(1, least=1)
    seed: int = option(0, least=0)

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if len(self.groups) < 2:
            raise UserError("groups= needs the shares of two groups or more, such as [0.8,0.2]")
        total = sum(self.groups)
        listed = ",".join(f"{share:g}" for share in self.groups)
        if min(self.groups) <= 0 or abs(total - 1) > 0.005:
            raise UserError(_said("plan_shares", listed=listed, total=total))
        check_declared(self)
        if not 0 < self.among <= 1:
            raise UserError(f"among is {self.among}; it must be above 0 and at most 1")
        if self.rate - self.gap < 0 and self.rate + self.gap > 1:
            raise UserError(f"no rate differs from {self.rate:g} by {self.gap:g}")


# The options of a gate: conditions, in addition to the options of an audit.


@dataclass(frozen=True)
class Gating:
    """The options that a gate adds to those of an audit.

    Attributes
    ----------
    fail_if : Conditions that must not hold, such as 'statistical_parity>0.1' or
        'sex:equal_opportunity>0.1' (of one attribute): the exit status is 0 if the data show that
        none holds, 1 if they show that one does, and 3 if they are too few to decide.
    require : With fail_if=: how an undecided gate ends: verdict gives it an exit status of its own,
        3; pass lets it fail (1).
    """

    title: ClassVar = "Conditions, for continuous integration"

    fail_if: tuple[str, ...] = option((), shown="[CONDITION,...]", applies=(BINARY,), main=True)
    require: str = option(VERDICT, choices=REQUIRED, applies=(BINARY,), needs=("fail_if",))


@dataclass(frozen=True)
class GatedOptions(Gating, Options):
    """What an audit is asked for that is also a gate; its page leaves the gate its error rate."""

    def __post_init__(self) -> None:
        """Refuse what no file could mend."""
        super().__post_init__()
        conditions_of(self.fail_if, self.require, self.interval)
