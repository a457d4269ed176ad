"""The atlas: claims on tables of known truth, differences over data sets, and two seeds."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from scipy.optimize import linprog

from fairbench.components.papers.atlas import claims, page, thresholds
from fairbench.components.papers.atlas.multilevel import fit
from fairbench.components.papers.atlas.seeds import chance_apart, compared_seeds, lines_of
from fairbench.components.papers.atlas.thresholds import FAILS, HOLDS, OPEN
from fairbench.reporting.document.forms import to_markdown
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import to_html
from fairbench_rank.approaches import NEEDS_GROUP, ApproachValues, MeasuredDifferences
from fairbench_rank.leaderboard import BoardTable, board_findings, page_of, short_of
from fairbench_rank.standings import few_tasks_sentences, findings_of
from tests.extensions.rank import generated_atlas
from tests.harness import printed

pytestmark = pytest.mark.thorough  # studies of works, which take minutes together


def claimed(table, *metrics, draws=60, **options):
    """Return the findings of a table with the claims of the literature, and these by name."""
    findings = page.with_claims(findings_of(table, metrics=metrics), draws=draws, **options)
    return findings, {claim.name: claim for claim in findings.claims}


@pytest.fixture(scope="module")
def findings():
    return claimed(generated_atlas.table(), "error_rate")


def test_rules():
    larger, no_larger = claims.larger, claims.no_larger
    assert larger(0.001, 0.02, 0.01) == no_larger(-0.001, 0.005, 0.01) == HOLDS
    assert larger(0.001, 0.005, 0.01) == no_larger(0.001, 0.02, 0.01) == FAILS
    assert larger(-0.001, 0.02, 0.01) == OPEN
    every, some = thresholds.all_hold, claims.any_holds
    both, fails, alone = (HOLDS, HOLDS), (FAILS, FAILS), (OPEN, HOLDS)
    assert every([both, alone]) == some([both, fails]) == HOLDS
    assert every([alone, fails]) == some([fails]) == FAILS
    assert every([]) == some([fails, alone]) == OPEN


def test_claims_get_the_verdict_that_the_table_was_made_for(findings):
    whole, by_name = findings
    verdicts = {name: claim.verdict for name, claim in by_name.items()}
    assert verdicts["unprocessing_dominates"] == verdicts["binomial_nll_is_best"] == HOLDS
    assert verdicts["ensembles_are_uncalibrated"] == FAILS
    fresh = whole.standings[0].answer.fresh
    assert fresh["overall"] < 0.9 and fresh["within_task"] > 0.1


def test_a_claim_of_several_figures_cites_those_that_decide_it(findings):
    """A quarter of the strength lowers gaps by 0.0375 and surely raises the error by little."""
    whole, by_name = findings
    for name in ("interventions_help_at_equal_error", "fairness_costs_accuracy"):
        cited = by_name[name].evidence
        start = r"On 10 tasks, reweighing 0.25 changes the gap in [a-z ]+ by -0.03\d "
        assert re.match(start, cited), cited
        assert "and the error rate by +0.00" in cited and "each interval by itself. So" in cited
    said = page.docs_page(whole)
    assert by_name["interventions_help_at_equal_error"].evidence in said
    assert not re.search(r"\b1 (are|hold|fail)\b", said)


def test_a_difference_is_called_by_its_size_and_not_by_what_the_claim_says(findings):
    """Some claims say that a difference is above 0, and others that it is not."""
    whole, by_name = findings
    for part in (part for claim in whole.claims for part in claim.parts):
        word = claims.sign_in_words(part)
        assert (word == "open") == (part.verdict == OPEN)
        assert word != "above 0" or part.all_lower > 0
        assert word != "under 0.01" or part.all_upper < 0.01
    for name, word in (
        ("unprocessing_dominates", "under 0.01"), ("interventions_help_at_equal_error", "above 0"),
    ):  # fmt: skip
        holding = [part for part in by_name[name].parts if part.verdict == HOLDS]
        assert {claims.sign_in_words(part) for part in holding} == {word}


def test_the_docs_have_every_claim_and_say_who_needs_the_group(findings):
    whole, _ = findings
    first, *others = whole.approaches
    marked = [first | {"name": f"hardt ({NEEDS_GROUP})"}, *others]
    text = page.docs_page(replace(whole, approaches=marked, standings=[], explanations=[]))
    for claim in whole.claims:
        row = next(line for line in text.splitlines() if line.startswith(f"| {claim.statement}"))
        assert f"| {claim.verdict} |" in row
    assert f"| hardt ({NEEDS_GROUP}) |" in text
    assert "nan" not in page.docs_page(whole)
    text = json.dumps(whole.to_dict(), allow_nan=False)
    assert json.loads(text)["standings"][0]["metric"] == "error_rate"


def test_the_mixture_at_a_gap_solves_the_linear_programme():
    draw = np.random.default_rng(0)
    for _ in range(50):
        errors, gaps, gap = draw.random(5), draw.random(5), draw.random()
        weight, slope = thresholds.mixture_at_gap(errors, gaps, gap)
        if gaps.min() > gap:
            assert weight[gaps.argmin()] == 1
            continue
        exact = linprog(errors, [gaps], [gap], np.ones((1, 5)), [1])
        assert weight @ errors == pytest.approx(exact.fun, abs=1e-9)
        assert weight @ gaps <= gap + 1e-9
        assert slope == pytest.approx(exact.ineqlin.marginals[0], abs=1e-6)


def test_a_frontier_that_cannot_reach_a_gap_is_judged_by_what_it_reaches():
    table = generated_atlas.table(noise=0.002)
    values = ApproachValues.of(table[~table["setting"].str.endswith(("<=0", "<=0.05"))])
    strongest = [line for line in thresholds.margin_series(values) if line.gap < 0.07]
    assert strongest and min(effect.excess.mean() for effect in strongest) > 0.03


@pytest.mark.parametrize("worse", [0.0, -0.02])
def test_margins_hold_although_the_setting_was_chosen(worse):
    """Ten overlapping splits of one task; the bound lies three standard errors below 93 %."""
    draw = np.random.default_rng(5)
    limits = np.array([0, 0.02, 0.05, 0.1, 0.2])
    # Errors and gaps, of which the first has a gap of 0.1.
    truth = np.array([[0.21 + worse, *(0.22 - 0.1 * limits)], [0.1, *limits]])

    def splits(*shape):
        parts = np.sqrt(0.2) * draw.standard_normal((*shape, 1))
        return parts + np.sqrt(0.8) * draw.standard_normal((*shape, 10))

    held = 0
    for _ in range(250):
        noise = np.multiply.outer([0.02, 0.03], np.ones((6, 10))) * (
            splits(2, 1) + 0.3 * splits(2, 6)
        )
        errors, gaps = truth[:, :, None] + noise
        margins, _, _ = thresholds.compare_with_thresholds(np.stack([errors, abs(gaps)]))
        half = special.stdtrit(9, 0.975) * margins.std(ddof=1) * np.sqrt(0.1 + 0.25)
        held += abs(margins.mean() - worse) <= half
    assert held / 250 > 0.88


def test_it_is_part_of_claims_and_decides_none(findings):
    few, after = claimed(generated_atlas.with_few(generated_atlas.table()), "error_rate")
    before = {name: claim.verdict for name, claim in findings[1].items()}
    assert {name: claim.verdict for name, claim in after.items()} == before
    claim = after["unprocessing_dominates"]
    parts = [part for part in claim.parts if part.label.startswith("reductions")]
    assert claim.verdict == HOLDS
    assert parts and {part.verdict for part in parts} - {HOLDS}
    assert all(part.few_tasks and part.families == 4 for part in parts)
    assert len(claim.deciding_parts) == len(claim.parts) - len(parts)
    end = f" {len(parts)} differences, measured on few tasks, are not counted."
    assert page.evidence_text(claim).endswith(end)
    (said,) = few_tasks_sentences(few)
    text = page.docs_page(few)
    assert said in text
    assert not re.search(r"\b1 (are|hold|fail)\b", text)


def test_a_claim_of_few_tasks_alone_is_not_resolved():
    table = generated_atlas.with_few(generated_atlas.table(learners=("logistic_regression",)))
    _, alone = claimed(table[table["intervention"] != "reweighing"], draws=20)
    claim = alone["unprocessing_dominates"]
    assert claim.parts and not claim.deciding_parts
    assert claim.verdict == OPEN
    assert page.evidence_text(claim) == "nothing on enough tasks to tell"


CLAIM = (
    "Thresholds for each group on the unconstrained model, which need the group at prediction, do "
    "no worse than any intervention."
)


def lowered(table, families, by, noise=0.0):
    """Return a table in which the intervention's error is smaller on some families."""
    inside = table["intervention"].ne("none") & table["family"].isin(families)
    rough = np.where(table["repeat"] % 2, noise, -noise)  # of mean 0 over an even number of splits
    return table.assign(error_rate=table["error_rate"] - np.where(inside, by + rough, 0))


def test_the_printed_verdict_changes_when_the_family_means_do():
    """In the docs and on the leaderboard."""
    table = generated_atlas.table(learners=("xgboost",), repeats=4)
    families = sorted(set(table["family"]))
    for changed, verdict in (
        (table, HOLDS),
        (lowered(table, families[:3], 0.05), OPEN),
        (lowered(table, families, 0.03), FAILS),
    ):
        whole, by_name = claimed(changed, draws=30)
        assert by_name["unprocessing_dominates"].verdict == verdict
        board = to_markdown(Document("", [page.claims_section(whole)]))
        for text in (page.docs_page(whole), board):
            (row,) = (s for s in text.splitlines() if s.startswith(f"| {CLAIM}"))
            assert f"{verdict} |" in row


def test_imprecise_families_count_as_much_as_precise_ones():
    """On three of nine families thresholds err 0.1 more, in splits that differ by far more."""
    table = generated_atlas.table(learners=("xgboost",), noise=0.002)
    rough = lowered(table, sorted(set(table["family"]))[:3], 0.1, noise=0.3)
    claim = claimed(rough)[1]["unprocessing_dominates"]
    for part in claim.deciding_parts:
        assert part.mean > 0.015
        assert part.all_lower <= part.lower < part.mean < part.upper <= part.all_upper
    assert claim.verdict == OPEN


def test_the_size_of_the_data_is_told_apart():
    table = generated_atlas.table(families=(1,) * 6 + (2,), learners=("xgboost",), noise=0.003)
    sizes = dict(zip(sorted(set(table["dataset"])), [100, 300, 500, 1000, 2000, 5000, 9000, 9000],
                     strict=True))  # fmt: skip
    table = table.assign(rows=table["dataset"].map(sizes).astype(float))
    values = ApproachValues.of(lowered(table, set(table.query("rows < 1001")["family"]), 0.04))
    series = list(thresholds.margin_series(values))
    result = thresholds.margins_by_size(values, series)
    few, many = result["classes"]
    assert (few["tasks"], few["families"], few["positive"]) == (4, 4, 4)
    assert (many["tasks"], many["families"]) == (4, 3)
    assert few["lower"] < few["difference"] < few["upper"]
    assert few["above"] == few["compared"] == 8
    mean = [
        np.mean([-line.margins.mean() for line in series if line.task == task])
        for task in range(len(values.tasks))
    ]
    told = {task["dataset"]: task["difference"] for task in result["tasks"]}
    assert told == pytest.approx(dict(zip(values.tasks["dataset"], mean, strict=True)))
    assert few["difference"] == pytest.approx(np.mean(mean[:4]))
    assert many["difference"] == pytest.approx(np.mean([*mean[4:6], np.mean(mean[6:])]))
    said = page.size_sentence(result)
    assert f"{few['difference']:.3f} more" in said and "err more on 4 of 4 and on " in said


def test_what_is_unlevel_is_said_of_runs_that_have_it(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(
        "unlevel:\n  - {intervention: hardt, options: {objective: balanced}, says: It is so.}\n"
    )

    def run(**intervention):
        return SimpleNamespace(config={"intervention": intervention})

    balanced, other = run(name="hardt", objective="balanced"), run(name="hardt", objective="error")
    assert claims.unequal_terms_remarks([other, balanced], path) == ["It is so."]
    assert claims.unequal_terms_remarks([other, run(name="none")], path) == []


def test_thresholds_of_the_same_rows_are_set_beside_the_claim():
    """The only intervention is one that chooses thresholds, and needs the group."""
    table = generated_atlas.table(learners=("xgboost",), repeats=4, worse=0.02)
    table.loc[table["intervention"] != "none", "group_at_prediction"] = True
    table["intervention"] = table["intervention"].replace("reweighing", "threshold_optimizer")
    whole, by_name = claimed(table, draws=20, remarks=["The rule is another one."])
    claim, (first, *_) = by_name["unprocessing_dominates"], by_name["unprocessing_dominates"].parts
    on_validation, fairest, *rest = claim.remarks
    assert on_validation.startswith("The thresholds are chosen on validation rows")
    assert "0 do not need it" in on_validation
    assert fairest.startswith(
        "The fairest comparison is with threshold_optimizer, which needs the group as well, but "
        "chooses its thresholds on the training rows."
    )
    assert "The rule is another one." in rest and rest[-1] in page.docs_page(whole)
    assert (
        first.label
        == f"threshold_optimizer 0.25 ({NEEDS_GROUP}), at the same gap in equalized odds"
    )


def test_the_page_of_a_board_gets_the_claims_and_opens_with_the_sizes():
    whole = generated_atlas.table(families=(1, 1, 1, 2), learners=("xgboost",), repeats=3)
    left = ["log_loss", "multicalibration_error", "expected_calibration_error"]
    board, gap = BoardTable(whole.drop(columns=[*left, "statistical_parity"])), "equalized_odds"
    findings = page.with_claims(board_findings(board, gap), draws=40)
    document = page_of(
        board, findings, gap, further=lambda made, *_: page.add_claims(made, findings, gap)
    )
    by_size, best, *_ = document.summary.found
    asked = "At the same gap, thresholds for each group, which need the group at prediction, err"
    assert by_size.startswith(asked) and "rows" in by_size
    assert "error rate" in best
    assert [drawn.name for drawn in document.lead[:2]] == ["by-size", "frontier"]
    titles = [section.title for section in document.sections]
    assert titles[:4] == ["Ranks", "Claims", "Cost and benefit", "What explains it"]
    written = to_html(document)
    for claim in findings.claims:
        assert claim.source in written and f">{claim.verdict}</span>" in written
    assert "claims of the literature" in printed(short_of(document, findings, gap), 80)


SIZES = (1,) * 12 + (2,) * 4 + (3, 3, 4, 6)  # of twenty families


def measured(means, variances, *, family=None, facts=None):
    means = np.atleast_2d(means)
    tasks = means.shape[1]
    count, share = np.where(np.isfinite(means), 10.0, 0), np.full(tasks, 0.2)
    family = np.arange(tasks) if family is None else family
    variances = np.broadcast_to(variances, means.shape)
    return MeasuredDifferences(means, variances, count, share, family, facts)


def simulated(count, draw, of):
    """Return differences of which the mean is 0, on data sets of heterogeneous noise.

    Half of their variance is that of families; `of` draws effects of variance 1 of a shape.
    """
    family, share = np.repeat(np.arange(len(SIZES)), SIZES), 0.2
    truth = (of((count, len(SIZES)))[:, family] + of((count, len(family)))) / np.sqrt(2)
    sd = np.exp(draw.standard_normal((count, len(family), 1)))
    of_splits = np.sqrt(1 - share) * draw.standard_normal((count, len(family), 10))
    of_splits += np.sqrt(share) * draw.standard_normal((count, len(family), 1))
    values = truth[:, :, None] + sd * of_splits
    return measured(values.mean(2), values.var(2, ddof=1), family=family)


def test_balanced_and_measured_without_noise_it_is_the_t_interval_of_the_means():
    draw = np.random.default_rng(0)
    means = draw.normal([[0.3], [-2.0]], [[1.0], [0.1]], (2, 24))
    posterior = fit(measured(means, 1e-12), generator=draw, draws=400)
    half = stats.t(23).ppf(0.975) * stats.sem(means, axis=1)
    lower, upper = posterior.interval()
    assert posterior.estimate() == pytest.approx(means.mean(axis=1), abs=0.2 * half.max())
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.12)
    for end, share in zip(posterior.interval(0.01), (0.01, 0.99), strict=True):
        assert posterior.below(end) == pytest.approx([share, share], abs=1e-6)


def test_the_unit_does_not_matter_and_nothing_measured_says_nothing():
    draw = np.random.default_rng(1)
    means = draw.standard_normal((1, 12))
    means[0, 3] = np.nan
    rows = np.concatenate([means, 1000 * means, np.full((1, 12), np.nan), np.zeros((1, 12))])
    variances = np.array([[0.5], [0.5e6], [0.5], [0.0]])
    posterior = fit(measured(rows, variances), generator=draw, draws=300)
    one, thousand, none, _ = posterior.estimate()
    lower, upper = posterior.interval()
    assert thousand == pytest.approx(1000 * one, abs=80)
    assert np.isnan([none, lower[2]]).all()
    assert abs(upper[3]) < 1e-6
    assert posterior.families.tolist() == [11, 11, 0, 12]


def test_data_sets_of_one_family_count_together():
    """Twelve copies of one data set tell hardly more than one of them."""
    draw = np.random.default_rng(2)
    means = np.concatenate([np.full(12, 3.0), draw.normal(0, 0.3, 8)])
    family = np.concatenate([np.zeros(12, int), np.arange(1, 9)])
    posterior = fit(measured(means, 0.01, family=family), generator=draw, draws=300)
    assert posterior.estimate()[0] < 1.0 < means.mean()


def test_slopes_are_found_and_shrunk():
    draw = np.random.default_rng(5)
    fact = stats.zscore(draw.standard_normal((40, 2)))
    means = np.stack([0.5 * fact[:, 0], np.zeros(40)]) + draw.normal(0, 0.2, (2, 40))
    posterior = fit(measured(means, 0.01, facts=fact), generator=draw, draws=300)
    lower, upper = posterior.interval(0.025 / 4, coefficient=1)
    assert 0.2 < lower[0] < 0.5 < upper[0]
    assert lower[1] < 0 < upper[1]
    assert posterior.estimate(2) == pytest.approx([0, 0], abs=0.15)


@pytest.mark.parametrize("tails", ["heavy", "skewed"])
def test_intervals_hold(tails):
    """The bound lies three standard errors below 93 %."""
    draw = np.random.default_rng(3)
    shapes = {
        "heavy": lambda shape: draw.standard_t(3, shape) / np.sqrt(3),
        "skewed": lambda shape: draw.standard_exponential(shape) - 1,
    }
    simulation = simulated(150, draw, shapes[tails])
    lower, upper = fit(simulation, generator=np.random.default_rng(4), draws=150).interval()
    assert np.mean((lower <= 0) & (upper >= 0)) > 0.87


TASKS, APPROACHES, SHARE = 30, 21, 0.2


def two_seeds(*, same_rows, planted=0.0):
    """Return the tables of two seeds, of ten and of five splits; the reference has no noise.

    Splits of one seed have a part of their noise in common; those of the other seed have the same
    part if it splits the same rows.
    """
    draw, result = np.random.default_rng(4), []
    truth, size, *shared = draw.standard_normal((4, APPROACHES, TASKS, 1))
    for seed, repeats in enumerate((10, 5)):
        own = draw.standard_normal((APPROACHES, TASKS, repeats))
        noise = np.sqrt(SHARE) * shared[0 if same_rows else seed] + np.sqrt(1 - SHARE) * own
        values = 0.02 * truth + 0.01 * np.exp(0.5 * size) * noise
        values[3, 2] += planted * seed
        values[:2] = 0  # the reference, and one that predicts as it does
        result.append(seed_table(0.2 + values, seed))
    return result


def seed_table(values, seed):
    approach, task, repeat = np.indices(values.shape).reshape(3, -1)
    alike = {"protect": "sex", "intervention": "none", "method": "baseline", "options": ""}
    return pd.DataFrame({
        "family": [f"family {t}" for t in task], "dataset": [f"data {t:02}" for t in task],
        "learner": [f"learner {a:02}" for a in approach], "setting": "", "seed": seed,
        "run": [f"{seed} {a} {t}" for a, t in zip(approach, task, strict=True)], "repeat": repeat,
        "test_share": SHARE, "fit_seconds": 1.0 + approach, "error_rate": values.ravel(), **alike,
    })  # fmt: skip


@pytest.mark.parametrize("same_rows", [True, False])
def test_as_many_agree_as_are_expected(same_rows):
    """Of 570 differences; three standard errors are 2.8 points."""
    result = compared_seeds(*two_seeds(same_rows=same_rows), ("error_rate",))
    assert len(result.table) == (APPROACHES - 2) * TASKS
    assert (result.reference, result.repeats) == ("learner 00, baseline", (10, 5))
    if same_rows:
        assert result.share > 0.97
    else:
        assert abs(result.share - 0.95) < 0.03
    assert result.surely_apart.empty


def test_a_planted_disagreement_is_found_and_told():
    result = compared_seeds(*two_seeds(same_rows=True, planted=0.4), ("error_rate",))
    (row,) = result.surely_apart.itertuples()
    assert (row.approach, row.task) == ("learner 03, baseline", "data 02 by sex")
    assert row.second - row.first == pytest.approx(0.4, abs=0.05)
    text = "\n".join(lines_of(result))
    assert "on 1 of them: learner 03, baseline on data 02 by sex, error rate" in text
    assert "nan" not in text


def test_tasks_and_approaches_of_one_seed_alone_are_left_out():
    first, second = two_seeds(same_rows=True)
    part = second[(second["dataset"] < "data 04") & (second["learner"] != "learner 05")]
    result = compared_seeds(first, part, ("error_rate", "log_loss"))
    assert set(result.table["task"]) == {f"data {task:02} by sex" for task in range(4)}
    assert len(result.table) == 4 * (APPROACHES - 3)
    assert "4 tasks for 18 approaches" in "\n".join(lines_of(result))
    other = second.assign(dataset="another")
    (said,) = lines_of(compared_seeds(first, other, ("error_rate",)))
    assert said.startswith("Seed 1 has no difference in common")


def test_the_chance_is_welchs():
    draw = np.random.default_rng(0)
    first, second = draw.standard_normal(8), 0.5 + 2 * draw.standard_normal(5)
    errors = [(sample.var(ddof=1) / len(sample), len(sample) - 1.0) for sample in (first, second)]
    exact = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert chance_apart(first.mean() - second.mean(), *errors) == pytest.approx(exact)
    sure = (np.zeros(2), np.ones(2))
    assert chance_apart(np.array([0.0, 0.1]), sure, sure).tolist() == [1, 0]
