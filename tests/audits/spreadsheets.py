"""Six spreadsheets of a bank, a court and a hospital, each with a wrong planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Sheet:
    """A spreadsheet, the words of an audit of it, and what its first page must say.

    Attributes
    ----------
    wronged : the groups that are treated worse, one of which every finding of a difference names;
        empty where the audit must ask instead.
    asks : parts of the question, both readings among them.
    answers : what is given to the question, which then makes an audit of it.
    """

    name: str
    make: Callable[[], pd.DataFrame]
    words: Sequence[str]
    wronged: Sequence[str] = ()
    asks: Sequence[str] = ()
    answers: Sequence[str] = ()


def _people(rows: int, seed: int, **groups: dict[str, float]):
    """Return a generator, the groups of people by attribute, and how likely the event is."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            name: generator.choice(list(shares), rows, p=list(shares.values()))
            for name, shares in groups.items()
        }
    )
    return generator, frame, generator.normal(-1.6, 1.2, rows)


def _logistic(values):
    return 1 / (1 + np.exp(-values))


def _loans(percent: bool = True) -> pd.DataFrame:
    """Return loans with probabilities of default, of Syrians too high."""
    nations = {"DE": 0.6, "IT": 0.15, "PL": 0.15, "SY": 0.1}
    draw, frame, logit = _people(6000, 1, nationality=nations, sex={"f": 0.5, "m": 0.5})
    default = draw.random(len(frame)) < _logistic(logit)
    risk = _logistic(logit + 1.4 * (frame["nationality"] == "SY"))
    decided = np.where(risk > 0.25, "Declined", "Approved")
    return frame.assign(
        customer=[f"C-{i}" for i in range(len(frame))],
        PD=np.round(100 * risk, 1) if percent else risk,
        Ausfall=np.where(default, "ja", "nein"),
        decision=decided,
    )


def _repayments() -> pd.DataFrame:
    """Return loans with scores of repayment, of women too low."""
    draw, frame, logit = _people(5000, 2, sex={"female": 0.45, "male": 0.55})
    repaid = draw.random(len(frame)) < _logistic(logit + 1.6)
    score = _logistic(logit + 1.6 - 1.2 * (frame["sex"] == "female"))
    return frame.assign(score=score, repaid=np.where(repaid, "yes", "no"))


def _defendants() -> pd.DataFrame:
    """Return defendants with probabilities of a new offence, of one race too high."""
    races = {"White": 0.5, "Black": 0.35, "Hispanic": 0.15}
    draw, frame, logit = _people(6000, 4, race=races)
    again = draw.random(len(frame)) < _logistic(logit + 0.8)
    score = _logistic(logit + 0.8 + 1.1 * (frame["race"] == "Black"))
    return frame.assign(risk=score, two_year_recid=again.astype(int))


def _referrals() -> pd.DataFrame:
    """Return who was referred, and who needed it; the uninsured are passed over."""
    draw, frame, logit = _people(5000, 6, insured={"private": 0.5, "public": 0.35, "none": 0.15})
    needs = draw.random(len(frame)) < _logistic(logit + 1.2)
    seen = _logistic(2 * (logit + 1.2) - 2.2 * (frame["insured"] == "none"))
    referred = draw.random(len(frame)) < seen
    return frame.assign(
        needed=np.where(needs, "yes", "no"), referred=np.where(referred, "yes", "no")
    )


_LOANS = (
    "target=Ausfall",
    "score=PD",
    "scale=percent",
    "group=[nationality,sex]",
    "threshold=0.25",
)
_SHEETS = (
    Sheet(
        "a bank's probabilities of default",
        _loans,
        (*_LOANS, "positive=ja", "favourable=nein", "decision=approved/declined",
         "purpose=lending"),
        ["SY"],
    ),
    Sheet(
        "the same, and nothing said of the labels",
        _loans,
        _LOANS,
        asks=["'ja'", "'nein'", "positive=nein puts", "positive=ja "],
        answers=("positive=ja", "favourable=nein"),
        wronged=["SY"],
    ),
    Sheet(
        "a bank's decisions alone",
        _loans,
        ("prediction=decision", "group=nationality"),
        asks=["decision=Approved/Declined or decision=Declined/Approved"],
        answers=("decision=Approved/Declined",),
        wronged=["SY"],
    ),
    Sheet(
        "scores of repayment",
        _repayments,
        ("target=repaid", "score=score", "group=sex", "favourable=yes", "purpose=lending"),
        ["female"],
    ),
    Sheet(
        "a court's scores of risk, and nothing said",
        _defendants,
        ("target=two_year_recid", "score=risk", "group=race"),
        asks=["'risk' may be bad", "favourable=0 reads", "favourable=1 turns it round"],
        answers=("favourable=0",),
        wronged=["Black"],
    ),
    Sheet(
        "a hospital's referrals",
        _referrals,
        ("target=needed", "prediction=referred", "group=insured", "favourable=yes",
         "purpose=care"),
        ["none"],
    ),
)  # fmt: skip
SHEETS = {sheet.name: sheet for sheet in _SHEETS}
