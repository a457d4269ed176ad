"""What an audit is asked for on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from fairbench.core.checks import check_choice, check_minimum, check_share
from fairbench.core.errors import UserError, unknown_name

USAGE = """\
python audit.py PREDICTIONS target=COLUMN score=COLUMN group=[COLUMN,...] [OPTION=VALUE ...]

PREDICTIONS         a CSV, TSV or Parquet file with one row a person
target=label        column of labels, empty where unknown; leave it out if there are none
score=score         column of the predicted probability of the positive label
group=[sex,race]    columns of groups; their combinations are assessed too
prediction=column   column of decisions, where they are not score > threshold
against=score_b     another classifier's score: its gaps less score='s, on the same labels
threshold=0.5       a score above it is a positive decision
labelled=column     column of true / false; a label counts only where it is true
positive=yes        the label that the score is the probability of, where labels are not 0 and 1
favourable=yes      the label that is good for a person, if not the positive one
epsilon=0.05        a gap under this makes no practical difference
out=folder          where the page and the JSON go
seed=0              of all draws

Of three classes and more, groups can be left out, and
prediction=column   is the predicted class, score= the probability given to it, or instead
score=[cat,dog,emu] columns of the probabilities of all classes
cost=costs.csv      a row for each true class, a column for each predicted one: what it costs
prior=scores        start from the scores; uniform (the default) starts from knowing nothing
strength=2          how many labels the prior is worth
"""


@dataclass(frozen=True)
class Options:
    """The words of the command line, checked as far as they can be without the file.

    Attributes
    ----------
    path : the file of predictions; the other attributes are described in `USAGE`.
    """

    path: Path
    group: tuple[str, ...]
    target: str = ""
    score: str = ""
    prediction: str = ""
    labelled: str = ""
    positive: str = ""
    favourable: str = ""
    threshold: float = 0.5
    epsilon: float = 0.05
    seed: int = 0
    out: str = ""
    against: str = ""
    scores: tuple[str, ...] = ()
    cost: str = ""
    prior: str = "uniform"
    strength: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what no file could mend."""
        if not (self.score or self.scores or self.prediction):
            raise UserError("neither score= nor prediction= is given: name a column of either")
        if len(set(self.group)) < len(self.group):
            raise UserError(f"group=[{','.join(self.group)}] names a column twice")
        if self.labelled and not self.target:
            raise UserError("labelled= is given without target=: name the column of labels")
        if self.against and (self.prediction or not self.score):
            raise UserError("against= compares two scores by one threshold: give score= alone")
        check_share("threshold", self.threshold, zero=True)
        check_share("epsilon", self.epsilon)
        check_minimum("seed", self.seed, 0)
        check_choice("prior", self.prior, ("uniform", "scores"))
        check_minimum("strength", self.strength, 0.1)

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        scores = (self.score, self.against, *self.scores)
        named = (self.target, *scores, self.prediction, self.labelled, *self.group)
        return list(dict.fromkeys(name for name in named if name))


def parse(words: Sequence[str]) -> Options:
    """Return the options that the words of a command line mean.

    Raises
    ------
    UserError : no file or several, an option that does not exist, or a value that cannot be.
    """
    paths = [word for word in words if "=" not in word or Path(word).is_file()]
    if len(paths) != 1:
        raise UserError(f"give one file of predictions, not {len(paths)}: {' '.join(words)}")
    given = dict(word.split("=", 1) for word in words if word not in paths)
    valid = [field.name for field in fields(Options) if field.name not in ("path", "scores")]
    for name in given:
        if name not in valid:
            raise unknown_name("option", name, valid)
    numbers = {"threshold": float, "epsilon": float, "seed": int, "strength": float}
    values = {name: _number(name, text, numbers[name]) for name, text in given.items()
              if name in numbers}  # fmt: skip
    texts = {name: text for name, text in given.items() if name not in (*numbers, "group", "score")}
    group, scores = (_listed(given.get(name, "")) for name in ("group", "score"))
    texts["score"], scores = (scores[0], ()) if len(scores) == 1 else ("", scores)
    return Options(Path(paths[0]), group, **texts, **values, scores=scores)  # type: ignore[arg-type]


def _number(name: str, text: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(text)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise UserError(f"{name} is '{text}'; it must be {expected}") from error


def _listed(text: str) -> tuple[str, ...]:
    names = text.removeprefix("[").removesuffix("]").split(",")
    return tuple(name.strip() for name in names if name.strip())
