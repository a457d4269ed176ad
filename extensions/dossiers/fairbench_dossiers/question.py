"""What a dossier is asked for: the options of an audit, and those of each law or format.

Options that only one question has are those of the command; :class:`LendingQuestion` also has the
columns that are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairbench.audits.question import Options, column
from fairbench.core.options import option

HIGH, LOW = "high", "low"  # which scores are good for a person


def _day(verb: str) -> Any:
    """Declare the day as of which rules are taken."""
    sentence = f"{verb} the rules as they are on this day, such as 2026-11-23; by default today."
    return option("", sentence, shown="DAY", main=True)


@dataclass(frozen=True)
class RuleListOptions:
    """The day as of which rule packs are listed."""

    as_of: str = _day("List")


@dataclass(frozen=True)
class DossierOptions:
    """What people say of the model.

    Attributes
    ----------
    facts : A file of what no prediction can tell, in lines such as 'contact: us@example.org'. The
        dossier names what is missing.
    """

    facts: str = option("", shown="FILE", main=True)
    as_of: str = _day("Take")


@dataclass(frozen=True)
class SelectionOptions:
    """What rules on categories of people ask for.

    Attributes
    ----------
    unknown : Answers that mean that a category is not known, beside those that usually do, such as
        'Prefer not to say' and 'N/A'. Such people are counted, and in no category.
    """

    unknown: tuple[str, ...] = option((), shown="[LABEL,...]")


@dataclass(frozen=True)
class HiringOptions:
    """What New York's rules ask for, with the columns that they are about.

    Attributes
    ----------
    sex : The column of sex.
    race : The column of race or ethnicity.
    keep_small : Categories of under 2 % of the people of the file have impact ratios as all others.
        With false they are excluded, as an independent auditor may decide and has to justify.
    """

    sex: str = column(main=True)
    race: str = column(main=True)
    keep_small: bool = option(True)


@dataclass(frozen=True)
class LendingQuestion(Options):
    """What is asked of a lender: an audit's options, and its own.

    Attributes
    ----------
    price : Columns of prices, such as the APR; blank where none was made. High is bad for a person.
    factors : Columns of legitimate factors, numbers or categories: differences of scores and prices
        are also given among people of the same factors, by least-squares regression.
    quantiles : Which shares of all, the best by score, are looked at: who would be granted at that
        cut.
    good_scores : With score= and prediction=: which scores are good for a person. Without
        prediction=, favourable= says it.
    score : The column of scores: with prediction= any numbers, without it the probability of the
        positive label, by which decisions are made at threshold=.
    """

    price: tuple[str, ...] = option((), shown="[COLUMN,...]", main=True)
    factors: tuple[str, ...] = option((), shown="[COLUMN,...]")
    quantiles: tuple[float, ...] = option((0.1, 0.25, 0.5), shown="[SHARE,...]")
    good_scores: str = option("", choices=(HIGH, LOW))
    score: str = column()

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with options that no file could satisfy."""
        yield from super()._faults()
        for option_name in ("price", "factors"):
            names = getattr(self, option_name)
            if len(set(names)) < len(names):
                yield f"{option_name}=[{','.join(names)}] names a column twice"
            earlier = ("score", "prediction", "target", "group", "price")
            for role in earlier if option_name == "factors" else earlier[:-1]:
                for name in {*names}.intersection(self._named(role)):
                    yield f"{option_name}= names '{name}', which {role}= names: leave one out"
        if self.factors and not (self.score or self.price):
            instead = "name score= or price= as well"
            yield f"factors= are for differences of scores and prices: {instead}"
        shares = self.quantiles
        if not all(0 < share < 1 for share in shares) or len(set(shares)) < len(shares):
            listed = ",".join(f"{share:g}" for share in shares)
            wanted = "different shares above 0 and under 1, such as [0.1,0.25,0.5]"
            yield f"quantiles=[{listed}]: they are {wanted}"
        if self.good_scores and not (self.score and self.prediction):
            instead = "without prediction=, favourable= says which scores are good"
            yield f"good_scores= is for scores beside decisions (score= and prediction=): {instead}"

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys([*super().columns, *self.price, *self.factors]))

    @property
    def numeric_columns(self) -> list[str]:
        """The columns in which a comma is a decimal one."""
        return [*super().numeric_columns, *self.price, *self.factors]
