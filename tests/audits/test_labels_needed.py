"""How many more labels are said to settle a question, against labels that are then really drawn."""

import numpy as np
import pytest

from benchmarks.plans import LEAST, MOST, MOST_OF_SEVERAL, populations, study
from fairbench.audits.assessment import assess
from fairbench.audits.direction import RATE_OF
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.labels_needed import ALIKE, _other_rate, _plan_risk, _planned_labels
from fairbench.audits.labels_needed import _least_number as least_number
from fairbench.audits.labels_needed import _supposed_gap as supposed_gap
from fairbench.audits.question import PlanOptions
from fairbench.audits.report import document_of
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import ERROR_RATE, OPEN
from fairbench.inference.gaps import GroupLimits, largest_gap
from tests.audits.tables import concluded, predictions, read, refusal, shown_by

POPULATIONS = {population.name: population for population in populations()}
LONG = [
    ("2 apart, 5,000 rows", 40),
    ("2 alike, 10:1, 7,000 rows", 50),
    ("3 attributes alike, 9,000 rows", 6),
    ("5 alike, 3,000 rows", 25),
    ("2 apart, 250 labels of 8,000", 20),
    ("Adult's groups alike, 250 labels of 4,000", 12),
]


def assessed(labels, group, *, rows=6000, bias=0.0):
    """Return an audit of decisions alone: no posterior stands beside it, which takes its time."""
    frame = predictions(rows, labels=labels, bias=bias)
    frame = frame.assign(decision=(frame["score"] > 0.5).astype(int))
    about = ["target=label", "prediction=decision", "labelled=is_labelled", group]
    return assess(*read(frame, *about))


def needed(result):
    return {(gap.attribute, gap.metric): gap.needed for gap in result.gaps if gap.needed}


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        pytest.param("2 alike, 4,000 rows", 20, marks=pytest.mark.thorough),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in LONG),
    ],
)
def test_a_number_settles_the_question_as_often_as_it_says(name, pages):
    """Of these pages, plans are neither surely kept too seldom nor too often."""
    result = study(POPULATIONS[name], pages)
    lower, upper = result.interval
    assert result.planned >= 20
    assert upper >= LEAST, result
    assert lower <= (MOST if name.startswith("2") else MOST_OF_SEVERAL), result


def test_it_is_planned_at_the_risk_of_the_whole_page():
    one, both = (
        needed(assessed(250, f"group={groups}"))["sex", "accuracy_gap"][ALIKE]
        for groups in ("[sex]", "[sex,race]")
    )
    assert both > 1.2 * one


def test_a_gap_is_named_that_the_interval_does_not_exclude():
    result = assessed(400, "group=[sex,race]", bias=0.3)
    numbers = needed(result)
    assert numbers
    for gap in result.gaps:
        named = numbers.get((gap.attribute, gap.metric), {})
        assert gap.verdict == OPEN or not named
        assert (ALIKE in named) <= (gap.lower <= 0 <= gap.upper)
        pairs = [supposed for supposed in named if supposed != ALIKE]
        assert not pairs or max(abs(gap.lower), gap.upper) >= 0.1
        for supposed in pairs:
            two, size = supposed.split(" differ by ")
            assert set(two.split(" and ")) <= set(gap.names)
            assert float(size) <= max(abs(gap.lower), gap.upper)


def test_what_takes_more_than_there_is_has_no_number_and_the_page_says_so():
    result = assessed(100, "group=[race]", rows=300)
    assert all(number is None for numbers in needed(result).values() for number in numbers.values())
    document = document_of(audit_of(result))
    assert any("These rows are too few for what is open" in said for said in document.summary.todo)
    assert "would settle it" not in " ".join(concluded(result).cannot)
    (table,) = (table for table in document.tables if table.columns[2].title == "supposed")
    assert {row[-1] for row in table.rows} == {">200"}


def test_the_least_number():
    assert least_number(lambda n: n / 100, 0.8, 1, 1000) in (80, 81)
    assert least_number(lambda n: n / 100, 0.8, 90, 1000) in (90, 91)
    assert least_number(lambda n: n / 100, 0.8, 1, 70) is None
    assert least_number(lambda n: 1.0, 0.8, 10, 5) is None


@pytest.mark.parametrize("size", [15, 40, 300, 20_000])
def test_the_fast_limits_settle_what_the_exact_ones_settle(size):
    random = np.random.default_rng(0)
    rates = random.uniform(0.02, 0.4, (500, 1)) + random.uniform(0, 0.12, (500, 4))
    nothing, luck = np.zeros(4), np.zeros((500, 4))
    counts, rows = size * rates, np.full(4, float(size))
    for epsilon, level in ((0.05, 0.98), (0.1, 0.998)):
        quick = supposed_gap(nothing, nothing, rates, luck, rows, level)
        exact = largest_gap(GroupLimits.of(counts, rows, level=level))
        for bound in (epsilon, 0.0):
            shares = ((quick.lower > bound).mean(), (exact.lower > bound).mean())
            assert shares[0] == pytest.approx(shares[1], abs=0.005)
        shares = ((quick.upper < epsilon).mean(), (exact.upper < epsilon).mean())
        assert shares[0] == pytest.approx(shares[1], abs=0.005)


# A plan before there are data, against audits that are really simulated.

RISK = ERROR_RATE / len(RATE_OF)


def planned(*, no_difference=False, equally=False, **options):
    """Return how many labels a plan with these options takes."""
    return _planned_labels(PlanOptions(**options), no_difference=no_difference, equally=equally)


def shown(labels, shares, rates, gap=None, *, equally=False, repeats=4000):
    """Return how often labels that are drawn one by one show a small gap, or that there is one."""
    generator = np.random.default_rng(1)
    sizes = generator.multinomial(labels, shares, repeats)
    if equally:
        sizes = np.full((repeats, len(shares)), labels // len(shares))
    result = generator.binomial(sizes, rates)
    if gap is not None:
        return (largest_gap(GroupLimits.of(result, sizes, level=1 - 2 * RISK)).upper < gap).mean()
    level = 1 - RISK / (2 if len(shares) > 2 else 1)  # pairs of several are named at half of it
    return (largest_gap(GroupLimits.of(result, sizes, level=level)).lower > 0).mean()


@pytest.mark.thorough
@pytest.mark.parametrize("equally", [False, True])
@pytest.mark.parametrize(("shares", "rate"), [((0.5, 0.5), 0.9), ((0.8, 0.15, 0.05), 0.3)])
def test_a_simulation_needs_as_many_labels_within_ten_percent(shares, rate, equally):
    plan = {"groups": shares, "rate": rate, "gap": 0.05}
    rates = np.full(len(shares), rate)
    is_smallest = np.arange(len(shares)) == np.argmin(shares)
    other = np.where(is_smallest, _other_rate(PlanOptions(**plan)), rate)
    few, alike = planned(no_difference=True, equally=equally, **plan)
    _, apart = planned(equally=equally, **plan)
    assert few < alike
    for needed, truth, gap in ((alike, rates, 0.05), (apart, other, None)):
        fewer, more = (
            shown(round(times * needed), shares, truth, gap, equally=equally)
            for times in (0.9, 1.1)
        )
        assert fewer < 0.8 < more


def test_of_a_rate_about_few_people_many_more_labels_are_needed():
    plan = {"groups": (0.5, 0.5), "rate": 0.7, "gap": 0.1}
    assert planned(**plan, among=0.2)[1] == pytest.approx(5 * planned(**plan)[1], rel=0.02)


def test_the_risk_is_that_of_every_attribute_and_every_two():
    assert _plan_risk(PlanOptions(attributes=1)) == pytest.approx(RISK)
    assert _plan_risk(PlanOptions(attributes=3)) == pytest.approx(RISK / 6)


def test_what_takes_too_many_labels_has_no_number():
    plan = {"groups": (0.999999, 0.000001), "rate": 0.5, "gap": 0.001}
    assert planned(no_difference=True, **plan)[1] is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"groups": (1.0,)}, "needs the shares of two groups or more"),
        ({"groups": (0.5, 0.6)}, "add up to 1, these to 1.1"),
        ({"groups": (1.0, 0.0)}, "shares are above 0"),
        ({"groups": (0.5, 0.5), "rate": 1.2}, "rate is 1.2; it must be between 0 and 1"),
        ({"groups": (0.5, 0.5), "gap": 0.0}, "gap is 0.0; it must be between 0 and 1"),
        ({"groups": (0.5, 0.5), "among": 0.0}, "among is 0.0"),
        ({"groups": (0.5, 0.5), "attributes": 0}, "attributes is 0"),
        ({"groups": (0.5, 0.5), "rate": 0.5, "gap": 0.6}, "no rate differs from 0.5 by 0.6"),
    ],
)
def test_what_cannot_be_is_refused(given, sentence):
    with pytest.raises(UserError, match=sentence):
        PlanOptions(**given)


def test_it_is_printed_and_a_file_of_that_name_is_audited_by_its_path(capsys, tmp_path):
    printed = shown_by(["plan", "groups=[0.9,0.1]", "rate=0.8", "gap=0.1"], capsys)
    assert "groups of 90 % : 10 %, a rate of 0.8 and a gap of 0.1." in printed
    assert "plan is not a file" in refusal(["./plan"], capsys)
