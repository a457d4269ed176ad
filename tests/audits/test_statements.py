"""All that a page says of people: how often any of it is wrong, simulated, and whether it agrees.

The whole battery is ``make statements``; here are a few populations of each kind of audit.
"""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.pages import read_rows
from benchmarks.statements.kinds import KINDS, populations
from benchmarks.statements.page import TEXTS, parts, rows_of, write
from benchmarks.statements.simulate import (
    Result,
    Truth,
    is_wrong,
    of_findings,
    of_page,
    simulate,
)
from fairbench.audits.kinds import document_of
from fairbench.audits.table import read_frame
from fairbench.evaluation.findings import (
    COMPARISON,
    EXCESS,
    GAP,
    LARGE,
    LOWEST,
    OPEN,
    PAIR,
    RATIO,
    SHARE,
    SMALL,
    UNLIKE,
    Finding,
)

SHORT = {
    (population.kind, population.name): population
    for population in populations()
    if population.short
}


@pytest.mark.thorough
@pytest.mark.parametrize("key", SHORT, ids=": ".join)
def test_at_most_one_page_of_twenty_is_wrong(key):
    result = simulate(SHORT[key], short=True, pages=1)
    assert not result.failed, result
    assert not result.amiss


@pytest.mark.thorough
def test_a_quick_look_at_a_population_of_every_kind():
    first = {kind: population for (kind, _), population in reversed(SHORT.items())}
    assert set(first) == set(KINDS)
    results = [simulate(setting, replications=2, pages=1) for setting in first.values()]
    assert not [result.amiss for result in results if result.amiss]
    assert sum(result.wrong for result in results) <= 2
    assert all(f"| {kind} | 1 | 2 |" in parts(rows_of(results))["kinds"] for kind in KINDS)


def _finding(about, verdict, groups=(), **more):
    return Finding(about, "sex", "rate", verdict, groups, **{"bound": 0.05, **more})


RATES = {"G0": 0.5, "G1": 0.45, "G2": 0.3}


def _truth(about, values, **more):
    return Truth({(about, "sex", "rate", ""): values}, **more)


@pytest.mark.parametrize(
    ("finding", "values", "wrong"),
    [
        (_finding(GAP, LARGE, ("G0", "G2")), RATES, False),
        (_finding(GAP, LARGE, ("G2", "G0")), RATES, True),  # the other way round
        (_finding(GAP, LARGE, ("G0", "G1")), RATES, True),  # not by more than the bound
        (_finding(GAP, LARGE), RATES, False),
        (_finding(GAP, LARGE, bound=0.2), RATES, True),
        (_finding(GAP, SMALL), RATES, True),
        (_finding(GAP, SMALL, bound=0.21), RATES, False),
        (_finding(GAP, SMALL), {"G0": 0.5, "G1": 0.45}, False),  # "by more than 0.05"
        (_finding(GAP, LARGE, ("G0", "G1")), {"G0": 0.5, "G1": 0.45}, True),
        (_finding(GAP, SMALL), {"G0": 0.5, "G1": 0.4501}, False),
        (_finding(GAP, OPEN), RATES, False),
        (_finding(GAP, SMALL, given="if the scores are right"), RATES, False),
        (_finding(PAIR, LARGE, ("G1", "G2")), RATES, False),
        (_finding(PAIR, LARGE, ("G2", "G1")), RATES, True),
        (_finding(LOWEST, LARGE, ("G2",)), RATES, False),
        (_finding(LOWEST, LARGE, ("G1",)), RATES, True),
        (_finding(LOWEST, LARGE, ("G1",)), {"G1": 0.3, "G2": 0.3}, True),
        (_finding(RATIO, LARGE, ("G1",)), {"G1": 0.8}, True),
        (_finding(RATIO, SMALL, ("G1",)), {"G1": 0.8}, False),
        (_finding(RATIO, LARGE, ("G1",)), {"G1": 0.7}, False),
        (_finding(EXCESS, LARGE, ("G1",), value=0.1), {"G1": 0.0}, True),
        (_finding(EXCESS, LARGE, ("G1",), value=0.1), {"G1": 0.01}, False),
        (_finding(EXCESS, LARGE, ("G1",), value=0.1), {"G1": -0.01}, True),
        (_finding(SHARE, LARGE, ("G1",), value=0.9), {"G1": 0.95}, False),
        (_finding(SHARE, LARGE, ("G1",), value=1.1), {"G1": 0.95}, True),
        (_finding(UNLIKE, LARGE, ("G1",)), {"G1": 0.0}, True),
        (_finding(UNLIKE, LARGE, ("G1",)), {"G1": 0.1}, False),
        (_finding(COMPARISON, LARGE, ("a", "b"), value=-0.1), {"a": 0.2, "b": 0.1}, False),
        (_finding(COMPARISON, LARGE, ("a", "b"), value=0.1), {"a": 0.2, "b": 0.1}, True),
        (_finding(COMPARISON, SMALL, ("a", "b")), {"a": 0.2, "b": 0.1}, True),
        (_finding(COMPARISON, SMALL, ("a", "b")), {"a": 0.12, "b": 0.1}, False),
    ],
)
def test_findings_are_judged_by_the_truth(finding, values, wrong):
    about = GAP if finding.about in (PAIR, LOWEST) else finding.about
    assert is_wrong(finding, _truth(about, values)) == wrong


def test_a_finding_is_wrong_only_beyond_the_error_of_the_truth():
    finding = _finding(GAP, SMALL)
    assert is_wrong(finding, _truth(GAP, {"a": 0.3, "b": 0.351}))
    assert not is_wrong(finding, _truth(GAP, {"a": 0.3, "b": 0.351}, error=0.002))
    given = replace(finding, given="if the scores are right")
    assert is_wrong(given, _truth(GAP, {"a": 0.3, "b": 0.4}, scores_are_right=True))


def test_verdicts_that_contradict_their_intervals_are_seen():
    assert list(of_findings([_finding(GAP, LARGE, lower=0.01, upper=0.04)]))
    assert list(of_findings([_finding(GAP, SMALL, lower=-0.09, upper=-0.06)]))
    assert not list(of_findings([_finding(GAP, SMALL, lower=-0.03, upper=0.02)]))
    assert list(of_findings([_finding(EXCESS, LARGE, value=0.1, lower=-0.01, upper=0.2)]))
    assert not list(of_findings([_finding(EXCESS, LARGE, value=0.1, lower=0.01, upper=0.2)]))


def test_sentences_that_word_no_finding_are_seen():
    population = SHORT["binary", "2 apart, 1,000 rows"]
    sample = population.draw(np.random.default_rng(0))
    document = document_of(sample.options, read_frame(sample.options, source=sample.frame()))
    assert not list(of_page(document))
    summary = replace(document.summary, found=["Groups differ.", *document.summary.found])
    assert list(of_page(replace(document, summary=summary)))
    summary = replace(document.summary, todo=["Favour G001."])
    assert list(of_page(replace(document, summary=summary)))


def test_a_population_fails_where_too_many_pages_are_surely_wrong():
    def result(audits, wrong):
        return Result("binary", "p", audits, wrong, {}, 0, 0, 0, 0, 0)

    assert result(400, 60).failed
    assert not result(400, 24).failed
    assert result(400, 24).unsettled  # 6 %, and its interval ends above 6.5 %
    assert not result(2000, 40).unsettled
    assert result(400, 0).interval[0] == 0


def test_a_population_keeps_its_row_until_it_is_audited_again(tmp_path):
    path, first, second = tmp_path / "statements.md", *list(populations("pair"))[:2]
    found = {"there": 10, "found": 5}
    write(path, [Result("pair", each.name, 150, 0, **found) for each in (second, first)])
    write(path, [Result("pair", second.name, 4800, 300)])
    rows = read_rows(path.with_suffix(".csv"), TEXTS)
    assert rows["population"].tolist() == [first.name, second.name]
    assert rows["wrong_pages"].tolist() == [0, 300]
    text = path.read_text()
    assert "| pair | 2 | 4,950 | 6.1 % | 1 | 0 | 6.2 % (5.0-7.7 %)" in text
    assert f"- pair, {second.name}: failed, 6.2 % (5.0-7.7 %) of 4,800 pages" in text
