"""Audits of published counts: as those of the rows they are counts of, and bad input."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import fairbench
from fairbench.audits.kinds.counts import _audit_counts
from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.inference.rates import rate_limits
from tests.audits.tables import why_not

TABLE = """sex,race,people,hired
Female,,2793,2440
Male,Total,5187,4425
,Asian,3543,3162
,Black,678,542
,Hispanic,937,759
,Two or more,264,235
,White,2274,1934
,Native,11,10
,Unknown,1075,
Female,Asian,1531,1396
Male,White,1682,1432
"""
COUNTS = {"selected": "s", "total": "n", "groups": "r"}
OF_RATES = {"selected": "", "rates": "s"}
HIRED = {"selected": "hired", "total": "people", "groups": ["sex", "race"]}


@pytest.fixture
def counted(tmp_path):
    """Return a function that writes a file of counts and returns what an audit of it finds."""

    def made(text, **options):
        (tmp_path / "counts.csv").write_text(text)
        return fairbench.audit(tmp_path / "counts.csv", **{**COUNTS, **options}).document.data

    return made


def rows_of(audit):
    return {(row["attribute"], row["group"]): row for row in audit["impact"]}


def test_ratios_of_counts_equal_those_of_the_rows_that_are_counted(counted):
    race = {"Asian": (3543, 3162), "Black": (678, 542), "Hispanic": (937, 759),
            "Two or more": (264, 235), "White": (2274, 1934), "Native": (11, 10)}  # fmt: skip
    frame = pd.DataFrame(
        [(name, int(k < hired)) for name, (n, hired) in race.items() for k in range(n)],
        columns=["race", "hired"],
    )
    report = fairbench.audit(frame, prediction="hired", favourable="1", groups="race")
    expected = {row["group"]: row for row in report.document.data["impact"]}
    rows = rows_of(counted(TABLE, **HIRED))
    for name in race:
        ours = rows["race", name]["ours"]
        for end in ("ratio", "lower", "upper", "below", "rate_lower"):
            assert ours[end] == pytest.approx(expected[name][end]), (name, end)
    assert rows["race", "Native"]["ratio"] == 1  # as the rules divide
    assert rows["race", "Black"]["ratio"] == pytest.approx(542 / 678 / (10 / 11))


def test_a_blank_or_total_is_of_all_levels_and_unknown_people_are_compared_with_nobody(counted):
    audit = counted(TABLE, **HIRED)
    rows = rows_of(audit)
    assert rows["sex", "Male"]["rows"] == 5187
    assert ("sex x race", "Female x Asian") in rows
    assert audit["unknown"] == {"race": 1075}
    assert ("race", "Unknown") not in rows
    said = " ".join(audit["conclusions"]["notes"])
    assert "race 8,782" in said and "sex 7,980" in said


WHOLES = "g,h,n,s\na,x,50,20\na,y,30,15\nb,x,40,10\nb,y,60,30\n"


def test_margins_that_are_not_published_are_summed(counted):
    result = rows_of(counted(WHOLES, groups=["g", "h"]))
    assert (result["g", "a"]["rows"], result["g", "a"]["selected"]) == (80, 35)
    assert (result["h", "y"]["rows"], result["h", "y"]["selected"]) == (90, 45)
    assert result["g x h", "b x y"]["selected"] == 30


def test_verdicts_share_the_error_rate_and_need_enough_people(counted):
    rows = "r,n,s\nWhite,4000,2000\nBlack,3000,900\nFew,5,0\nSome,100,42\nMore,90,80\n"
    audit = counted(rows)
    verdicts = {f["groups"][0]: f["verdict"] for f in audit["findings"]}
    assert verdicts == {"White": "small", "Black": "large", "Some": "open"}
    assert "less than four fifths" in " ".join(audit["conclusions"]["can"])


def test_a_rate_is_anything_that_rounds_to_it(counted):
    audit = counted("r,n,s\na,119,0.76\nb,1000,0.5\nc,13,.50\n", **OF_RATES)
    counts = {row["group"]: (row["fewest"], row["most"]) for row in audit["counts"]}
    assert (counts["a"], counts["b"]) == ((90, 91), (495, 505))
    ours = rows_of(audit)["r", "b"]["ours"]
    low, high = rate_limits(495, 1000).lower, rate_limits(505, 1000).upper
    assert (ours["rate_lower"], ours["rate_upper"]) == pytest.approx((float(low), float(high)))
    assert "row 3 (.50 of 13)" in " ".join(audit["conclusions"]["notes"])


@pytest.mark.parametrize(
    ("one", "two", "more"),
    [("76%", "50 %", {}), ("76", "50", {"scale": "percent"}), ('"0,76"', '"0,50"', {})],
)
def test_rates_are_read_as_they_are_published(counted, one, two, more):
    audit = counted(f"r,n,s\na,100,{one}\nb,200,{two}\n", **OF_RATES, **more)
    assert [row["selected"] for row in audit["counts"]] == pytest.approx([76, 100])
    assert [row["fewest"] for row in audit["counts"]] == [76, 99]


def test_a_named_category_is_what_others_are_compared_with(counted):
    ours = rows_of(counted(TABLE, **HIRED, reference=["White"]))["race", "Black"]["ours"]
    assert ours["given"] and ours["reference"] == "White"
    assert ours["ratio"] == pytest.approx(542 / 678 / (1934 / 2274))


def test_thousands_are_read_and_totals_are_left_out(counted):
    audit = counted('r,n,s\na,"1,010",300\nb,"2,000","1,500"\nTotal,"3,010","1,800"\n')
    assert {row["group"]: row["people"] for row in audit["counts"]} == {"a": 1010, "b": 2000}


TOTALS = [
    *((f"{name},300,120", "row 4") for name in
      ("Grand total", "Gesamt", "Sum", "All people", "total (all)", "Total applicants")),
    ("Subtotal,200,80", "row 4"),
    ("d,80,33\nThe company,380,153", "'The company' (row 5)"),
    ("d,80,33\nUnknown,7,2\nThe company,387,155", "'The company' (row 6)"),
    ("d,300,120", "'d' (row 4)"),
    ("d,80,33\ne,380,152", ""),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "left_out"), TOTALS)
def test_totals_are_left_out_whatever_they_are_called(counted, rows, left_out):
    audit = counted(f"r,n,s\na,100,50\nb,100,30\nc,100,40\n{rows}\n")
    notes = " ".join(audit["conclusions"]["notes"])
    assert f"{left_out}." in notes if left_out else "Left out" not in notes
    assert {"a", "b", "c"} <= (names := {row["group"] for row in audit["counts"]}) <= {*"abcde"}
    assert left_out or len(names) > 3


@pytest.mark.parametrize("total", ["x,90,31", "x,95,36", "x,90,29", "x,89,30", "Total,180,76"])
def test_a_total_that_its_parts_contradict_is_refused(counted, total):
    _, people, hired = total.split(",")
    said = f"row 5 counts {hired} selected of {people} people, but its parts by g x h (rows 1"
    with pytest.raises(UserError, match=re.escape(said)):
        counted(f"{WHOLES}Total,{total}\n", groups=["g", "h"])


def test_people_of_a_total_who_are_in_no_category_are_said(counted):
    audit = counted("r,n,s\na,100,50\nUnknown,60,10\nb,100,50\nTotal,400,130\n")
    said = "Row 4 counts 400 people, 200 of them in no row by r: these are in no"
    assert said in audit["conclusions"]["notes"][-1]
    audit = counted("r,n,s\na,120,0.333\nb,90,0.256\nTotal,210,0.300\n", **OF_RATES)
    assert audit["conclusions"]["notes"] == ["Left out as totals: row 3."]


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "0"])
@pytest.mark.parametrize(("options", "a", "b"), [({}, 40, 30), (OF_RATES, 0.4, 0.3)])
def test_of_nobody_there_is_no_rate(counted, cell, options, a, b):
    audit = counted(f"r,n,s\na,100,{a}\nb,100,{b}\nc,0,{cell}\n", **options)
    assert {row["group"]: row["selected"] for row in audit["counts"]} == {"a": 40, "b": 30}
    assert audit["conclusions"]["notes"] == ["Left out, as nobody was in them: r: c."]


REFUSED = yaml.safe_load(Path(__file__).with_name("refused_counts.yaml").read_text())
REFUSED[f"a,{'9' * 4301},3 b,20,3"] = "column 'n', row 1: '9999"


@pytest.mark.parametrize(("given", "said"), REFUSED.items())
def test_counts_that_cannot_be_are_refused_in_a_line(tmp_path, given, said):
    options = dict(word.split("=", 1) for word in given.split() if "=" in word)
    rows = "a,10,3 b,20,3" if options else given
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["r,n,s", *rows.split(), ""]))
    assert said in why_not(path, **COUNTS | options)


@pytest.mark.slow
def test_at_most_one_page_in_twenty_says_anything_wrong():
    """At ratios of four fifths, and just beside them, of few people and of many."""
    draw, wrong, said = np.random.default_rng(1), 0, 0
    options = Options(Path("counts.csv"), group=("r",), selected="s", total="n")
    pages = 300
    for page in range(pages):
        rates = np.array([0.5, 0.4 - 1e-9, 0.4, 0.41, 0.3 + 0.1 * (page % 3)])
        people = draw.permutation([100, 150, 400, 1000, 3000])
        frame = pd.DataFrame({"r": list("abcde"), "n": people, "s": draw.binomial(people, rates)})
        findings = _audit_counts(options, frame.astype(str)).findings
        truth = dict(zip("abcde", rates >= 0.4, strict=True))
        settled = [finding for finding in findings if finding.is_settled]
        said += len(settled)
        wrong += any(truth[f.groups[0]] != (f.verdict == "small") for f in settled)
    assert said > pages  # it says something
    assert wrong <= 0.05 * pages + 3 * np.sqrt(0.05 * 0.95 * pages)


@pytest.mark.parametrize("hired", range(118, 166, 3))
def test_no_ratio_is_judged_against_its_printed_interval(hired, counted):
    """One question alone has the whole error rate, and is answered by no less than 95 %."""
    audit = counted(f"r,n,s\nMale,300,200\nFemale,300,{hired}\n", reference="Male")
    (ratio,) = [finding for finding in audit["findings"] if finding["about"] == "impact ratio"]
    expected = "small" if ratio["lower"] >= 0.8 else "large" if ratio["upper"] < 0.8 else "open"
    assert ratio["verdict"] in (expected, "open")
