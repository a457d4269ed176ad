"""What each dossier is asked for, and by which rule: one list a dossier, in the order it is told.

What is measured is answered from the predictions; everything else only people can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

MEASURED, GIVEN, MISSING = "measured", "given", "missing"


@dataclass(frozen=True)
class Fact:
    """One thing that is asked for.

    Attributes
    ----------
    key : its name in the JSON, and in a file of facts. what : what is asked for. source : where.
    status : whether the predictions answer it, somebody has, or nobody. answer : in words.
    """

    key: str
    what: str
    source: str
    status: str = MISSING
    answer: str = ""

    def answered(self, answer: str) -> Fact:
        """Return the fact with its answer, or without one where people have not said it."""
        status = self.status if self.status == MEASURED else GIVEN if answer else MISSING
        return replace(self, status=status, answer=answer)


def measured(key: str, what: str, source: str) -> Fact:
    """Return what the predictions answer."""
    return Fact(key, what, source, MEASURED)


# Mitchell et al. 2019, "Model Cards for Model Reporting", section 4.
CARD_FACTS: Sequence[Fact] = (
    Fact("developer", "who developed the model", "4.1 model details"),
    Fact("date", "when it was made", "4.1 model details"),
    Fact("version", "its version", "4.1 model details"),
    Fact("type", "what kind of model it is", "4.1 model details"),
    Fact("licence", "its licence", "4.1 model details"),
    Fact("contact", "where to send questions", "4.1 model details"),
    Fact("intended_use", "what it is meant to be used for", "4.2 intended use"),
    Fact("intended_users", "who is meant to use it", "4.2 intended use"),
    Fact("out_of_scope", "what it is not to be used for", "4.2 intended use"),
    Fact("evaluation_data", "which data it was evaluated on, and why these", "4.5 evaluation data"),
    Fact("preprocessing", "how these were prepared", "4.5 evaluation data"),
    Fact("training_data", "what it was trained on", "4.6 training data"),
    Fact(
        "ethical_considerations", "what harm it can do, and to whom", "4.8 ethical considerations"
    ),
    Fact("recommendations", "what its users should know besides", "4.9 caveats"),
    measured("factors", "the groups it was evaluated for", "4.3 factors"),
    measured("metrics", "the metrics, the threshold and how uncertain they are", "4.4 metrics"),
    measured("evaluated_rows", "how many people it was evaluated on", "4.5 evaluation data"),
    measured("unitary_results", "results for each group", "4.7 quantitative analyses"),
    measured(
        "intersectional_results", "results for combinations of groups", "4.7 quantitative analyses"
    ),
    measured("caveats", "what the figures cannot say", "4.9 caveats"),
)
# Regulation (EU) 2024/1689.
ACT_FACTS: Sequence[Fact] = (
    measured("quantity", "how many data there are, and whether that is enough", "article 10(2)(e)"),
    measured("biases", "possible biases that harm people or discriminate", "article 10(2)(f)"),
    measured("shortcomings", "gaps and shortcomings of the data", "article 10(2)(h)"),
    measured("representativeness", "how far the data represent the people", "article 10(3)"),
    measured("accuracy", "levels of accuracy, and the metrics of them", "article 15(1) and (3)"),
    Fact("design_choices", "the relevant choices of design", "article 10(2)(a)"),
    Fact("data_origin", "how data were collected, where from and what for", "article 10(2)(b)"),
    Fact("data_preparation", "how data were labelled, cleaned and prepared", "article 10(2)(c)"),
    Fact("assumptions", "what the data are assumed to measure", "article 10(2)(d)"),
    Fact("bias_measures", "what is done to find, prevent and reduce biases", "article 10(2)(g)"),
    Fact("setting", "for which places and people the data are meant", "article 10(4)"),
    Fact("special_categories", "why and how special categories are processed", "article 10(5)"),
    Fact("robustness", "how it takes errors, faults and inconsistencies", "article 15(4)"),
    Fact("feedback", "how its outputs coming back as inputs are dealt with", "article 15(4)"),
    Fact("cybersecurity", "how it is protected against attacks", "article 15(5)"),
)
# 6 RCNY 5-300 to 5-304. In braces stand the names of the columns, the rate, and which paragraphs
# ask for it, which depends on whether the tool selects or scores.
LL144_SOURCES: Mapping[str, Mapping[str, str]] = {
    "selection rate": {
        "rates": "6 RCNY 5-301(b)(1) and (b)(3)",
        "ratios": "6 RCNY 5-301(b)(2) and (b)(3)",
        "unknown": "6 RCNY 5-301(b)(5)",
    },
    "scoring rate": {
        "rates": "6 RCNY 5-301(c)(2) and (c)(4)",
        "ratios": "6 RCNY 5-301(c)(3) and (c)(4)",
        "unknown": "6 RCNY 5-301(c)(5)",
    },
}
LL144_FACTS: Sequence[Fact] = (
    measured("median", "the median score of everyone", "6 RCNY 5-301(c)(1)"),  # of scores alone
    measured("rate_by_sex", "the {rate} of each category of {sex}", "{rates}"),
    measured("impact_ratio_by_sex", "the impact ratio of each category of {sex}", "{ratios}"),
    measured("rate_by_race", "the {rate} of each category of {race}", "{rates}"),
    measured("impact_ratio_by_race", "the impact ratio of each category of {race}", "{ratios}"),
    measured("rate_by_sex_and_race", "the {rate} of each category of {both}", "{rates}"),
    measured(
        "impact_ratio_by_sex_and_race", "the impact ratio of each category of {both}", "{ratios}"
    ),
    measured("unknown", "how many people are left out as their category is unknown", "{unknown}"),
    measured(
        "left_out",
        "categories of under 2 % of the people, which are left out of impact ratios",
        "6 RCNY 5-301(d)",
    ),
    Fact("audit_date", "the date of the most recent audit for bias", "6 RCNY 5-303(a)(1)"),
    Fact("data_source", "the source of the data, and what they are", "6 RCNY 5-303(a)(1)"),
    Fact(
        "data_kind",
        "whether the data are historical, or why test data were used and how they were made",
        "6 RCNY 5-302",
    ),
    Fact("distribution_date", "the date from which the tool is in use", "6 RCNY 5-303(a)(2)"),
    Fact("exclusion_reason", "why small categories were left out", "6 RCNY 5-301(d)"),
    measured("people", "the number of applicants or candidates", "6 RCNY 5-303(a)(1)"),
)
# The Uniform Guidelines.
FOUR_FIFTHS_FACTS: Sequence[Fact] = (
    measured("rates", "the selection rate of each group", "29 CFR 1607.4(D)"),
    measured("highest", "the group with the highest rate", "29 CFR 1607.4(D)"),
    measured("ratios", "the ratio of each rate to the highest", "29 CFR 1607.4(D)"),
    measured("under_four_fifths", "groups of a ratio under four fifths", "29 CFR 1607.4(D)"),
    measured(
        "significance", "whether differences are statistically significant", "29 CFR 1607.4(D)"
    ),
    measured("small_numbers", "groups of under 2 % of the people", "29 CFR 1607.15(A)(2)(c)"),
    # The agencies' questions and answers on the guidelines.
    measured("shortfall", "how many more selections would reach four fifths", "44 FR 11996"),
    Fact("validity", "evidence that the procedure predicts what it is used for", "29 CFR 1607.5"),
    Fact("alternatives", "which less adverse procedures were looked for", "29 CFR 1607.3(B)"),
    Fact("period", "the time, place and job that the decisions are of", "29 CFR 1607.15"),
)
