"""
Re-read a published audit
=========================

New York's Local Law 144 has employers publish how often their hiring tools select people of each
category, and the *impact ratio*: the rate of a category over that of the category selected most
often. What they publish are tables without intervals. This lesson takes three of them as they are,
and asks of each what could have been concluded from so many people.

The numbers are typed from the data set that Gerchick, Encarnación, Tanigawa-Lau, Armstrong,
Gutiérrez and Metaxa collected for "Auditing the Audits" (FAccT 2025,
`doi:10.1145/3715275.3732004 <https://doi.org/10.1145/3715275.3732004>`_; repository
``aclu-national/auditing-the-audits-facct-2025``, as of 9 May 2025), which links the documents they
were published in. The documents themselves were not read again here.
"""

# %%
# A table of counts
# -----------------
#
# An audit that Cigna published in 2023 (https://perma.cc/8FUT-SLLJ). It has one row per category, with the
# number of people and how many were selected: that is all that an audit of counts needs.

import pandas as pd

import fairbench

cigna = pd.DataFrame(
    [
        ("Hispanic or Latino", 200, 165),
        ("White", 434, 320),
        ("Black or African American", 305, 238),
        ("Asian", 133, 115),
        ("American Indian or Alaska Native", 4, 2),
        ("Two or More Races", 59, 43),
    ],
    columns=["race", "people", "selected"],
)
report = fairbench.audit(
    cigna, selected="selected", total="people", groups="race", name="Cigna"
)
report

# %%
# The published ratio of "Two or More Races" is 0.85, and that of "American Indian or Alaska Native"
# is 0.58, which sounds like a finding. It is 2 of 4 people. ``report.table`` has the ratio as the
# rule divides (``over_highest``), and ours with its 95 % interval (``ratio``, ``lower``,
# ``upper``): that one compares nobody with a category of under 10 people or 2 % of them, and allows
# for another category truly being the one selected most often.

columns = ["group", "rows", "rate", "over_highest", "ratio", "lower", "upper"]
report.table[columns].round(2)

# %%
# What can be said of the people whom this tool may be used on, if these are a sample of them? A
# ratio is *large*, here, if it is surely under four fifths, *small* if it is surely not, and *open*
# where so few people cannot tell. (The Local Law itself names no such limit.)

report.findings[["groups", "value", "lower", "upper", "n", "verdict"]].round(2)

# %%
# A table of rates
# ----------------
#
# Many audits publish rates and numbers of people only, such as that of The Hartford for one of its
# jobs (DCI Consulting Group, 2023, data of 2022, https://perma.cc/562P-52U4). ``rates=`` takes
# them. A rate is rounded, so that it stands for every number of people that rounds to it; which
# these are the page says, and the intervals allow for each.

hartford = pd.DataFrame(
    [
        ("Female", "", 119, 0.76),
        ("Male", "", 21, 0.71),
        ("Unknown", "", 7, None),
        ("", "Hispanic or Latino", 47, 0.74),
        ("", "White", 15, 0.60),
        ("", "Black or African American", 58, 0.76),
        ("", "Asian", 3, 0.67),
        ("", "American Indian or Alaska Native", 1, 1.00),
        ("", "Two or More Races", 14, 0.93),
        ("", "Unknown", 9, None),
    ],
    columns=["sex", "race", "people", "rate"],
)
report = fairbench.audit(
    hartford,
    rates="rate",
    total="people",
    groups=["sex", "race"],
    name="The Hartford",
)
report.table[["attribute", *columns]].round(2)

# %%
# One table has both attributes: a blank says that a row is of everyone in that column, whatever
# their sex, or race. People of unknown category are counted, and compared with nobody.
#
# White applicants have the lowest ratio, published as 0.65. That is 9 of 15 people, compared with
# 13 of 14. Chance alone makes such differences, and the verdict is open:

report.findings[["groups", "value", "lower", "upper", "n", "verdict"]].round(2)

# %%
# Many people
# -----------
#
# With 400,000 people nothing is open. BNP Paribas, a tool of pymetrics (BABL AI, 2023, data of
# 2022, https://perma.cc/9KAQ-QXC3):

bnp = pd.DataFrame(
    [
        ("Male", "", 197821, 0.561),
        ("Female", "", 250692, 0.547),
        ("", "American Indian or Alaska Native", 1376, 0.566),
        ("", "White", 161030, 0.554),
        ("", "Hispanic or Latino", 48690, 0.538),
        ("", "Native Hawaiian or Other Pacific Islander", 695, 0.537),
        ("", "Two or More Races", 8693, 0.533),
        ("", "Asian", 167715, 0.508),
        ("", "Black or African American", 55127, 0.507),
    ],
    columns=["sex", "race", "people", "rate"],
)
report = fairbench.audit(
    bnp, rates="rate", total="people", groups=["sex", "race"], name="BNP Paribas"
)
report.findings[["groups", "value", "lower", "upper", "n", "verdict"]].round(3)

# %%
# Every ratio is surely at least four fifths. That is no proof that the tool treats people alike:
# Black and Asian applicants are selected less often for sure, by five points in a hundred; and of
# people whose category is not known, 200,486 here, a table says nothing.
#
# From the command line
# ---------------------
#
# .. code-block:: sh
#
#    fairbench audit counts.csv selected=selected total=people group=race
#    fairbench audit counts.csv rates=rate total=people 'group=[sex,race]'
#
# Where to go next: with the rows themselves, ``fairbench dossier ll144`` makes the tables that are
# published, with their intervals.
