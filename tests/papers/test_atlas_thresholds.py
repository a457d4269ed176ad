"""Thresholds against interventions: verdicts follow plain family means; the size of the data."""

from types import SimpleNamespace

import numpy as np
import pytest

from fairbench.components.papers.atlas.claims import (
    ClaimRoles,
    fairest_differences,
    unequal_terms_remarks,
)
from fairbench.components.papers.atlas.page import (
    claims_section,
    docs_page,
    size_sentence,
    with_claims,
)
from fairbench.components.papers.atlas.thresholds import (
    FAILS,
    HOLDS,
    OPEN,
    margin_series,
    margins_by_size,
)
from fairbench.core.text import interval, signed
from fairbench.reporting.document.forms import to_markdown
from fairbench.reporting.document.model import Document
from fairbench_rank.approaches import NEEDS_GROUP, ApproachValues
from fairbench_rank.standings import findings_of
from tests.extensions.rank import generated_atlas

CLAIM = (
    "Thresholds for each group on the unconstrained model, which need the group at prediction, do "
    "no worse than any intervention."
)


def lowered(table, families, by, noise=0.0):
    """Return a table in which the intervention's error is smaller on some families."""
    inside = table["intervention"].ne("none") & table["family"].isin(families)
    rough = np.where(table["repeat"] % 2, noise, -noise)  # of mean 0 over an even number of splits
    return table.assign(error_rate=table["error_rate"] - np.where(inside, by + rough, 0))


def printed(table):
    """Return the verdicts of the claim on thresholds as docs and leaderboard print them."""
    findings = with_claims(findings_of(table, metrics=()), draws=30)
    docs = next(s for s in docs_page(findings).splitlines() if s.startswith(f"| {CLAIM}"))
    board = to_markdown(Document("", [claims_section(findings)]))
    (row,) = (line for line in board.splitlines() if CLAIM in line and "Cruz" in line)
    return findings.claims[0], docs, row


@pytest.mark.thorough
def test_the_printed_verdict_changes_when_the_family_means_do():
    table = generated_atlas.table(learners=("xgboost",), repeats=4)
    families = sorted(set(table["family"]))
    for changed, verdict in (
        (table, HOLDS),
        (lowered(table, families[:3], 0.05), OPEN),
        (lowered(table, families, 0.03), FAILS),
    ):
        claim, docs, row = printed(changed)
        assert claim.verdict == verdict
        assert f"| {verdict} |" in docs and verdict in row


def test_imprecise_families_count_as_much_as_precise_ones():
    """On three of nine families thresholds err 0.1 more, in splits that differ by far more."""
    table = generated_atlas.table(learners=("xgboost",), noise=0.002)
    families = sorted(set(table["family"]))
    rough = lowered(table, families[:3], 0.1, noise=0.3)
    (claim, *_) = with_claims(findings_of(rough, metrics=()), draws=60).claims
    for part in claim.deciding_parts:
        assert part.mean > 0.015
        assert part.lower < part.mean < part.upper
        assert part.all_lower <= part.lower and part.upper <= part.all_upper
    assert claim.verdict == OPEN


def test_a_wider_interval_never_says_the_opposite_of_a_narrower_one():
    """Surely above 0 and under 0.01 by itself; all at once it might be as large."""
    table = generated_atlas.table(learners=("xgboost",), noise=0.003)
    rng = np.random.default_rng(0)
    shift = dict(zip(sorted(set(table["family"])), 0.006 + 0.003 * rng.random(9), strict=True))
    inside = table["intervention"].ne("none")
    moved = table.assign(
        error_rate=table["error_rate"] - np.where(inside, table["family"].map(shift), 0)
    )
    parts = [
        part
        for claim in with_claims(findings_of(moved, metrics=()), draws=20).claims
        for part in claim.parts
    ]
    assert all(part.verdict in (part.alone, OPEN) for part in parts)


def test_the_size_of_the_data_is_told_apart():
    table = generated_atlas.table(families=(1,) * 6 + (2,), learners=("xgboost",), noise=0.003)
    sizes = dict(zip(sorted(set(table["dataset"])), [100, 300, 500, 1000, 2000, 5000, 9000, 9000],
                     strict=True))  # fmt: skip
    table = table.assign(rows=table["dataset"].map(sizes).astype(float))
    small = sorted(
        {f for f, rows in zip(table["family"], table["rows"], strict=True) if rows < 1001}
    )
    values = ApproachValues.of(lowered(table, small, 0.04))
    series = margin_series(values)
    result = margins_by_size(values, series)
    few, many = result["classes"]
    assert (few["tasks"], few["families"], few["positive"]) == (4, 4, 4)
    assert (many["tasks"], many["families"]) == (4, 3)
    assert few["lower"] < few["difference"] < few["upper"]
    assert few["above"] == few["compared"] == 8
    by_task = {
        task: np.mean([-line.margins.mean() for line in series if line.task == task])
        for task in range(len(values.tasks))
    }
    assert {(task["dataset"]): task["difference"] for task in result["tasks"]} == {
        values.tasks["dataset"][task]: pytest.approx(mean) for task, mean in by_task.items()
    }
    assert few["difference"] == pytest.approx(np.mean([by_task[task] for task in range(4)]))
    pair = (by_task[6] + by_task[7]) / 2
    assert many["difference"] == pytest.approx(np.mean([by_task[4], by_task[5], pair]))
    said = size_sentence(result)
    assert f"{few['difference']:.3f} more" in said and "err more on 4 of 4 and on " in said


def test_what_is_unlevel_is_said_of_runs_that_have_it(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(
        "unlevel:\n  - {intervention: hardt, options: {objective: balanced}, says: It is so.}\n"
    )

    def run(**intervention):
        return SimpleNamespace(config={"intervention": intervention})

    balanced, other = run(name="hardt", objective="balanced"), run(name="hardt", objective="error")
    assert unequal_terms_remarks([other, balanced], path) == ["It is so."]
    assert unequal_terms_remarks([other, run(name="none")], path) == []


def test_remarks_stand_beside_the_claim():
    table = generated_atlas.table(learners=("xgboost",), repeats=4)
    findings = with_claims(
        findings_of(table, metrics=()), draws=20, remarks=["The rule is another one."]
    )
    (claim, *_) = findings.claims
    assert claim.remarks[0].startswith("The thresholds are chosen on validation rows")
    assert "4 do not need it" in claim.remarks[0]
    assert claim.remarks[1:] == ("The rule is another one.",)
    assert "The rule is another one." in docs_page(findings)


def test_thresholds_of_the_same_rows_are_set_beside_the_claim():
    """The only intervention is taken for one that chooses thresholds, and needs the group."""
    table = generated_atlas.table(learners=("xgboost",), repeats=4, worse=0.02)
    table.loc[table["intervention"] != "none", "group_at_prediction"] = True
    roles = ClaimRoles(likelihood="binomial_nll", thresholds=("reweighing",))
    (claim, *_) = with_claims(findings_of(table, metrics=()), draws=20, roles=roles).claims
    assert "0 do not need it" in claim.remarks[0]
    first = claim.parts[0]
    assert first.label == f"reweighing 0.25 ({NEEDS_GROUP}), at the same gap in equalized odds"
    assert claim.remarks[1].startswith(
        "The fairest comparison is with reweighing, which needs the group as well, but chooses its "
        "thresholds on the training rows."
    )
    assert claim.fairest == claim.parts
    heads, (row, *_) = fairest_differences(claim)
    assert heads[:2] == ["compared with", "at the same gap in equalized odds"]
    assert row[:2] == [
        "reweighing 0.25", f"{signed(first.mean)} ({interval(first.lower, first.upper)})"
    ]  # fmt: skip
