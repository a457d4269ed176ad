"""Which way an outcome runs: what a score foretells, and which decision is good for a person.

A score is the probability of one of two labels. Whether it is good for a person to be decided for
that label (repaid) or for the other one (default) turns every sentence of an audit round, and no
statistic tells it. It is asked wherever the names of a file leave it open, with what either reading
says of its rows; from then on decisions have the names that their users give them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from fairbench.audits.question import PURPOSES, RATING, Options
from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import OpenQuestion, UserError, unknown_name
from fairbench.core.text import count, number, quoted, shortened
from fairbench.data.columns import Times
from fairbench.metrics.registry import BINARY, Rate, label, metrics_of
from fairbench.reporting.group_tables import sentence_of

_said = partial(sentence_of, "reading")
NEEDS_NO_LABELS = "statistical_parity"  # decisions, and their gap, are known without any
# The gaps that conclusions are drawn on, with the rate each is the gap of.
RATE_OF: Mapping[str, Rate] = {
    name: metric.rates[0]
    for name, metric in metrics_of(BINARY, "widest").items()
    if metric.is_gap and len(metric.rates) == 1
}
# What the rate of each is called.
RATE_NAMES: Mapping[str, str] = {name: label(rate.name) for name, rate in RATE_OF.items()}
EQUAL_OPPORTUNITY, FALSE_POSITIVES = "equal_opportunity", "false_positive_rate_gap"
PRECISION, ACCURACY = "predictive_parity", "accuracy_gap"
SELECTED = "selected"  # what somebody is with a decision that has no name, for a good label
_COUNTS_GRANTED = ("lending", "hiring")  # where it matters who is granted at all
EXTREME = 0.02  # of the rows: where fewer are granted, or refused, a warning says so
# Words, and beginnings of words, of outcomes that are bad for a person as such, or good only
# because help follows (readmitted). Whole words where a beginning would take in others.
_ADVERSE_WORDS = frozenset({
    "pd", "bad", "lgd", "arrest", "crime", "death", "died", "dead", "sick", "ill", "late", "loss",
    "churn", "risk", "fail", "failed", "denied", "denial", "risiko", "tod", "npl",
})  # fmt: skip
_ADVERSE_STEMS = (
    "default", "ausfall", "fraud", "betrug", "delinquen", "chargeoff", "charged", "recid",
    "reoffen", "rearrest", "violat", "violen", "mortal", "readmi", "complication", "dropout",
    "reject", "declin", "refus", "abgelehn", "abgebrochen", "kuendig", "kündig", "overdue",
    "arrear", "bankrupt", "insolven", "terminat", "high_risk", "relapse", "hospitali", "sepsis",
)  # fmt: skip


@dataclass(frozen=True)
class Direction:
    """What the two labels of a table and the decisions for them are called.

    Attributes
    ----------
    names : what label 0 and label 1 are called. A score is the probability of label 1.
    favourable : the label for which it is good for a person to be decided, 0 or 1; None where
        nobody said.
    decisions : what the good and the bad decision are called; empty where nobody said.
    predicts : whether decisions are called predictions, as other decisions, made earlier, have the
        names.
    """

    names: tuple[str, str]
    favourable: int | None = None
    decisions: tuple[str, ...] = ()
    predicts: bool = False

    @classmethod
    def of(cls, names: tuple[str, str], favourable: str, decision: str) -> Direction:
        """Return the direction of labels with these names, as the options tell it.

        Parameters
        ----------
        favourable : a label, or the good decision's name; may be empty.
        decision : ``GOOD/BAD``; may be empty.

        Raises
        ------
        UserError : `favourable` is neither a label nor a decision.
        """
        decisions = decisions_named(decision)
        if not favourable and {*decisions} == {*names}:
            favourable = decisions[0]  # decisions called as labels say which label is good
        if favourable in names:
            return cls(names, names.index(favourable), decisions)
        if favourable in ("", *decisions[:1]):
            return cls(names, None, decisions)
        raise unknown_name("favourable label", favourable, names)

    @property
    def good(self) -> int:
        """The label whose decisions are counted as granted: the positive one if nobody said."""
        return 1 if self.favourable is None else self.favourable

    @property
    def granted(self) -> str:
        """What somebody is who gets the good decision, as in "is approved"."""
        return self._decided(self.good)

    @property
    def refused(self) -> str:
        """What somebody is who gets the other decision."""
        return self._decided(1 - self.good)

    @property
    def rate_names(self) -> Mapping[str, str]:
        """The name of each gap's rate; all rates are about decisions for label 1.

        In the field's terms, unless decisions have names: then in these, such as ``share declined
        of those with 'repaid'``.
        """
        positive = self._decided(1)
        names = dict(RATE_NAMES)
        if positive != SELECTED:
            names[NEEDS_NO_LABELS] = f"share {positive}"
        if self.decisions and self.favourable is not None:
            names[EQUAL_OPPORTUNITY] = f"share {positive} of those with '{self.names[1]}'"
            names[FALSE_POSITIVES] = f"share {positive} of those with '{self.names[0]}'"
            names[PRECISION] = f"share with '{self.names[1]}' of those {positive}"
        return names

    @property
    def rates_explained(self) -> str:
        """What each rate is, by its name on the page."""
        names, shares = self.rate_names, dict(self.meanings)
        if names[PRECISION] != RATE_NAMES[PRECISION]:
            own = (EQUAL_OPPORTUNITY, FALSE_POSITIVES, PRECISION)
            shares |= {metric: f"also called {RATE_NAMES[metric]}" for metric in own}
        if names[NEEDS_NO_LABELS] != RATE_NAMES[NEEDS_NO_LABELS]:
            del shares[NEEDS_NO_LABELS]
        return ", ".join(f"{names[metric]} ({share})" for metric, share in shares.items())

    def rate_name(self, rate: str) -> str:
        """Return what a rate of the registry is called."""
        names = {RATE_OF[metric].name: name for metric, name in self.rate_names.items()}
        return names.get(rate) or label(rate)

    @property
    def wrongly_refused(self) -> str:
        """The gap of the error that hurts a person: refused in spite of the label granted for."""
        return EQUAL_OPPORTUNITY if self.good else FALSE_POSITIVES

    def as_predictions(self) -> Direction:
        """Return the direction with decisions called predictions, as others were made before."""
        return replace(self, decisions=(), predicts=True)

    @property
    def decided_names(self) -> tuple[str, str]:
        """What people are who are decided for label 0 and for label 1, such as ``declined``."""
        return self._decided(0), self._decided(1)

    def _decided(self, label: int) -> str:
        """Return what somebody is who is decided for a label."""
        if self.decisions:
            return self.decisions[label != self.good]
        if self.good == 1 and not self.predicts:
            return SELECTED if label else f"not {SELECTED}"
        return f"predicted '{self.names[label]}'"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Each gap's rate in plain words: a share, and the people it is a share of."""
        negative, positive = (f"'{name}'" for name in self.names)
        decided = self._decided(1)
        return {
            NEEDS_NO_LABELS: f"the share {decided}",
            EQUAL_OPPORTUNITY: f"of those with {positive}, the share {decided}",
            FALSE_POSITIVES: f"of those with {negative}, the share {decided}",
            PRECISION: f"of those {decided}, the share with {positive}",
            ACCURACY: "the share of decisions that agree with the label",
        }

    def on_purpose(self, purpose: str) -> Iterator[str]:
        """Yield which gaps come first, and whom the errors behind them hurt."""
        if self.favourable is None:
            return
        name, good = self.rate_names[self.wrongly_refused], self.names[self.good]
        hurt = f"{PURPOSES[purpose]} ('{good}')" if purpose else f"somebody with '{good}'"
        on_granted = ""
        if purpose in _COUNTS_GRANTED:
            on_granted = _said("on_granted", purpose=purpose, direction=self)
        yield _said("purpose", hurt=hurt, direction=self, name=name, on_granted=on_granted)

    def check_said(
        self,
        options: Options,
        predicted: Codes,
        *,
        times: Times | None = None,
        side: str = "",
    ) -> None:
        """Ask which decision is good for a person, where the names of a file leave it open.

        That is where a column or label 1 sounds adverse, or where decisions have names, or a
        purpose, which takes one that is good.

        Parameters
        ----------
        predicted : (n,) decisions, 1 for label 1.
        times : (n,) how often each row comes; once by default.
        side : what a decision for label 1 is; by default a score above the threshold.

        Raises
        ------
        UserError : it was not said; the message shows what either answer means for the rows.
        """
        columns = (options.score, options.target, options.prediction, self.names[1])
        adverse = [name for name in columns if _sounds_adverse(name)]
        if self.favourable is not None or not (adverse or self.decisions or options.purpose):
            return
        if not (side or options.prediction):
            side = f"{options.score} above {options.threshold:g}"
        good = self.decisions[0] if self.decisions else "granted"
        why = f"the decisions are for {options.purpose}"
        if adverse:
            why = f"{quoted(adverse[0], 30)} may be bad for a person"
        elif self.decisions:
            why = "decision= is given"
        shares = [_share_of(predicted == label, times) for label in (0, 1)]
        ways = [f"{percent_of(share)} of the rows as {good}" for share in shares]
        side = f" ({side})" if side else ""
        file, names = options.path.name, self.names
        question = _said("not_said", file=file, why=why, names=names, ways=ways, side=side)
        raise OpenQuestion(question, *(f"favourable={name}" for name in names))

    def which_foretold(self, score: Floats, label: Floats, column: str, start: str) -> OpenQuestion:
        """Return the question which of two labels a score stands for, with both readings.

        Parameters
        ----------
        start : what the question begins with.
        """
        means = [
            number(np.mean(scores)) if len(scores := score[label == value]) else "unknown"
            for value in (0, 1)
        ]
        area, _ = _score_area(score, label)
        ways = ["", ""]
        if not np.isnan(area):
            of_second = f" puts {percent_of(area)} of pairs in the right order"
            ways = [f" {percent_of(1 - area)}", of_second]
        column, *short = (shortened(name, 30) for name in (column, *self.names))
        question = _said("unclear", column=column, means=means, names=short, ways=ways)
        likely = self.names if np.isnan(area) else [self.names[area >= 0.5]]  # noqa: PLR2004 -- of two
        return OpenQuestion(f"{start}{question}", *(f"positive={name}" for name in likely))

    def reading(
        self, options: Options, granted: Mask | None = None, times: Times | None = None
    ) -> Iterator[str]:
        """Yield how a file was read: what its scores foretell, and who is granted.

        Parameters
        ----------
        options : the columns of scores and of decisions, and their threshold and scale.
        granted : (n,) who gets the good decision, where all rows are at hand.
        times : (n,) how often each row comes; once by default.
        """
        score, decided = options.score, options.prediction
        side = f"{score} {'above' if self.good else 'of at most'} {options.threshold:g}"
        who = f"{self.granted[:1].upper()}{self.granted[1:]}: "
        who += f"'{decided}' says so" if decided else side
        if granted is not None:
            rows = count(len(granted) if times is None else times.sum())
            who += f" ({percent_of(_share_of(granted, times))} of {rows} rows)"
        is_rating = options.scale == RATING
        means = "a rating, whose high values are for" if is_rating else "the probability of"
        foretells = f"'{score}' is read as {means} '{self.names[1]}'"
        if self.favourable is None:
            start = f"{foretells}. " if score else ""
            yield _said("open", start=start, who=who, names=self.names)
            return
        good = f"decision for '{self.names[self.good]}' is good for a person"
        yield f"{foretells}, and a {good}. {who}." if score else f"A {good}. {who}."


def decisions_named(decision: str) -> tuple[str, ...]:
    """Return the names of the good and the bad decision that ``decision=GOOD/BAD`` gives.

    Raises
    ------
    UserError : it does not give two.
    """
    if not decision:
        return ()
    names = tuple(part.strip() for part in decision.split("/"))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise UserError(_said("two_decisions", decision=decision))
    return names


def _sounds_adverse(text: str) -> bool:
    """Say whether a column or label is called like something that is bad for a person.

    Examples
    --------
    >>> _sounds_adverse("PD_12m"), _sounds_adverse("two_year_recid"), _sounds_adverse("repaid")
    (True, True, False)
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).casefold()
    words = re.split(r"[\W_]+", apart)
    return any(word in _ADVERSE_WORDS or word.startswith(_ADVERSE_STEMS) for word in words)


def _share_of(rows: Mask, times: Times | None = None) -> float:
    """Return the share of rows (n,) that are marked, each counted as often as it comes."""
    return float(rows.mean()) if times is None else float(times[rows].sum() / times.sum())


def _score_area(score: Floats, label: Floats, times: Times | None = None) -> tuple[float, float]:
    """Return the area under the ROC curve, and a bound of its standard error.

    The variance of the Mann-Whitney statistic is at most A (1 - A) / min(m, n), whatever the
    distributions (van Dantzig 1951; see Birnbaum and Klose 1957, "Bounds for the variance of the
    Mann-Whitney statistic"). NaN unless there are ten labels of either kind.
    """
    times = np.ones(len(label), np.int64) if times is None else times
    rows = pd.DataFrame({"all": times, "positive": times * (label == 1)})[np.isfinite(label)]
    at = rows.groupby(score[rows.index]).sum()  # of each score, the lowest first
    total, positives = at.sum()
    more, fewer = max(positives, total - positives), min(positives, total - positives)
    if fewer < _FEWEST:
        return np.nan, np.nan
    ranks = at["all"].cumsum() - (at["all"] - 1) / 2  # rows with equal scores share their mean rank
    area = (at["positive"] @ ranks - positives * (positives + 1) / 2) / (more * fewer)
    return float(area), float(np.sqrt(area * (1 - area) / fewer))


_FEWEST = 10  # labels of either kind, for a score to be judged by them
_SURE = 3.3  # standard errors: one file in two thousand is wrongly taken to run against its labels


def runs_against(score: Floats, label: Floats, times: Times | None = None) -> bool:
    """Say whether scores are surely lower where the label is 1."""
    area, error = _score_area(score, label, times)
    return bool(area + _SURE * error < 0.5)


def percent_of(share: float) -> str:
    """Return a share in percent; 0 % and 100 % are written only where the share is exactly that."""
    text = f"{100 * share:.1f}".removesuffix(".0")
    if text == "0" and share > 0:
        return "under 0.1 %"
    return "over 99.9 %" if text == "100" and share < 1 else f"{text} %"
