"""The audit of a ranking: counted by hand, and found where it is unfair."""

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.kinds.numbers import audit_ranking
from fairbench.audits.sentences import can_be_concluded
from fairbench.audits.table import read_frame
from fairbench.core.errors import UserError
from fairbench.evaluation.by_group import EXPOSURE, TOP
from tests.audits.tables import parse, written

WORDS = ("score=rating", "group=sex")


def candidates(lists=30, rows=20, *, shift=0.0, seed=0):
    """Return candidates of several vacancies; women's ratings are lower by `shift`."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], lists * rows, p=[0.6, 0.4])
    rating = 50 + 10 * generator.normal(size=len(sex)) - shift * (sex == "Female")
    vacancy = np.repeat(np.arange(lists), rows)
    return pd.DataFrame({"vacancy": vacancy, "sex": sex, "rating": rating})


def assessed(frame, folder, *more):
    options = parse([str(written(frame, folder)), *WORDS, *more])
    return audit_ranking(options, read_frame(options))


def places(audit):
    return pd.DataFrame(audit.data["ranking"])


def test_shares_are_those_counted_by_hand(tmp_path):
    frame = candidates()
    assessment = assessed(frame, tmp_path, "top=5", "lists=vacancy")
    place = frame.groupby("vacancy")["rating"].rank(ascending=False)
    women = frame["sex"] == "Female"
    by_hand = {
        TOP: women[place <= 5].mean(),
        EXPOSURE: (women / np.log2(1 + place)).sum() / (1 / np.log2(1 + place)).sum(),
    }
    mine = places(assessment).query("group == 'Female'").set_index("kind")
    assert mine["share"].to_dict() == pytest.approx(by_hand)
    assert mine["of_rows"].tolist() == pytest.approx([women.mean()] * 2)
    assert mine["ratio"].tolist() == pytest.approx(mine["share"] / women.mean())
    assert (mine["ratio_lower"] < mine["ratio"]).all()
    assert (mine["ratio"] < mine["ratio_upper"]).all()
    assert assessment.data["lists"] == 30


def test_a_shift_is_found(tmp_path):
    assessment = assessed(candidates(shift=8), tmp_path, "top=0.2")
    (women,) = places(assessment).query("group == 'Female' and kind == @TOP").itertuples()
    assert women.below > 0.95
    assert women.surely
    said = can_be_concluded(assessment.findings)
    assert any("Female gets less than its share" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("top=2.5",), "a whole number, or a share under 1"),
        (("lists=vacancy",), "say how many are the first by top="),
        (("top=5", "lists=one"), "has one mark in all rows"),
    ],
)
def test_what_is_no_ranking_is_refused(words, complaint, tmp_path):
    with pytest.raises(UserError, match=complaint):
        assessed(candidates(2).assign(one=1), tmp_path, *words)


def test_decisions_are_not_ranked(tmp_path):
    options = parse([str(written(candidates(2), tmp_path)), "prediction=vacancy", "group=sex",
                     "top=3"])  # fmt: skip
    with pytest.raises(UserError, match="name their column by score="):
        audit_ranking(options, read_frame(options))
