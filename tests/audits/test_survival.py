"""The audit of censored times: scikit-survival's numbers, truths that are known, and refusals."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds.numbers import _brier_losses, concordance
from fairbench.core.errors import UserError

WORDS = {"target": "months", "score": "risk", "event": "died", "horizon": 6.0}


def patients(rows=600, *, noise=0.0, seed=0, groups=2):
    """Return exponential times, censored at random; the last group's risks are noisy."""
    generator = np.random.default_rng(seed)
    ward = generator.integers(0, groups, rows)
    rate = np.exp(generator.normal(-2, 1, rows))
    time, end = generator.exponential(1 / rate), generator.exponential(15, rows)
    known = rate * np.exp(noise * (ward == groups - 1) * generator.normal(size=rows))
    return pd.DataFrame(
        {
            "ward": [f"w{code}" for code in ward],
            "months": np.minimum(time, end).round(2),
            "died": time <= end,
            "risk": 1 - np.exp(-6 * known),
        }
    )


# concordance_index_censored and brier_score of scikit-survival 0.28 on these rows.
ORACLE = {
    "w0": (0.7092971976105521, 0.18611151261327422),
    "w1": (0.6154745338157529, 0.26531073495207913),
}


def test_both_measures_are_those_of_scikit_survival():
    frame = patients(noise=1.0)
    for ward, (share, loss) in ORACLE.items():
        part = frame[frame["ward"] == ward]
        rows = [part[name].to_numpy() for name in ("months", "died", "risk")]
        assert concordance(*rows)[0] == pytest.approx(share, abs=1e-12)
        assert _brier_losses(*rows, 6.0).mean() == pytest.approx(loss, abs=1e-12)


def test_a_noisy_group_is_found_and_named():
    report = fairbench.audit(patients(6000, noise=2.0), groups="ward", **WORDS)
    gap = report.findings.query("about == 'gap' and measure == 'concordance'").iloc[0]
    assert (gap["verdict"], gap["groups"]) == ("large", "w0; w1")
    assert "the concordance of w0 is higher than that of w1" in gap["sentence"]
    assert set(report.table["metric"]) == {"concordance", "Brier score at the horizon"}


def test_a_group_of_few_events_is_not_measured():
    frame = patients(100)
    frame.loc[frame["ward"] == "w1", "died"] = False
    report = fairbench.audit(frame, groups="ward", **WORDS)
    assert report.findings["verdict"].iloc[0] == "not measured"
    assert "too few rows or events" in report.document.verdict.cannot[0]


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({}, {"horizon": 0.0}, "event= needs horizon="),
        ({"risk": 1.5}, {}, "column 'risk', row 1: '1.5' is not a probability"),
        ({"months": -1}, {}, "column 'months', row 1: '-1' is not a time of 0 or more"),
        ({}, {"threshold": 0.3}, "threshold= does not apply to an audit of times until an event"),
    ],
)
def test_what_is_no_survival_table_is_refused(change, options, complaint):
    with pytest.raises(UserError, match=complaint):
        fairbench.audit(patients(50).assign(**change), groups="ward", **{**WORDS, **options})
