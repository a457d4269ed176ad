"""Conditions under which a gate fails, such as ``sex:impact_ratio<0.8``, read and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from fairbench.core.errors import UserError, check_choice, unknown_name
from fairbench.core.formats import is_number, shortened
from fairbench.inference.posterior import FREQUENTIST
from fairbench.metrics.registry import BINARY, Metric, find, metrics_of

IMPACT_RATIO = "impact_ratio"
BELOW, ABOVE = "<", ">"
VERDICT, PASS = "verdict", "pass"
REQUIRED = (VERDICT, PASS)  # what a gate may require; an open one never passes
_FORM = re.compile(
    r"(?:(?P<attribute>.+):)?(?P<metric>[^:<>=!]+)(?P<sign>[<>=!]+)(?P<bound>.*)", re.DOTALL
)
_EXAMPLE = "such as impact_ratio<0.8 or sex:equal_opportunity>0.1"


@dataclass(frozen=True)
class Condition:
    """What must not hold for any group.

    Attributes
    ----------
    attribute : the column, or combination of columns, whose groups it is about; empty of all.
    metric : `IMPACT_RATIO`, or the name of a declared gap or rate.
    sign : `BELOW` or `ABOVE`, the side of the bound that is a failure.
    """

    attribute: str
    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        """Return the condition as it is written."""
        whose = f"{self.attribute}:" if self.attribute else ""
        return f"{whose}{self.metric}{self.sign}{self.bound:g}"

    @property
    def declared(self) -> Metric | None:
        """The declared gap or rate; None of an impact ratio."""
        return judged_metrics().get(self.metric)

    @property
    def needs_labels(self) -> bool:
        """Whether decisions alone do not tell."""
        rates = () if self.declared is None else self.declared.rates
        return any(rate.name != "selection_rate" for rate in rates)

    @property
    def good(self) -> str:
        """Which values are cleared, in words."""
        return f"{'at least' if self.sign == BELOW else 'at most'} {self.bound:g}"

    @property
    def bad(self) -> str:
        """Which values are failures, in words."""
        return f"{'below' if self.sign == BELOW else 'above'} {self.bound:g}"

    @property
    def label(self) -> str:
        """The name of the measure, with the attribute whose groups it compares."""
        metric = self.declared
        if metric is None:
            name = "impact ratio"
        elif metric.is_gap:
            name = metric.label
        else:
            name = f"{'lowest' if self.sign == BELOW else 'highest'} {metric.label}"
        return f"{name} by {self.attribute}" if self.attribute else name


@lru_cache(maxsize=1)
def judged_metrics() -> Mapping[str, Metric]:
    """Return the declared gaps and rates that a condition may be about."""
    gaps = {name: metric for name, metric in metrics_of(BINARY, "widest").items() if metric.is_gap}
    return MappingProxyType({**gaps, **metrics_of(BINARY, "rate")})


def conditions_of(texts: Sequence[str]) -> list[Condition]:
    """Return the conditions that texts mean.

    Raises
    ------
    UserError : one that cannot be read, of an unknown measure, with the failing side on the wrong
        side of its bound, or with a bound that decides nothing; or the same condition twice.
    """
    conditions = [_read(text.strip()) for text in texts]
    for i, condition in enumerate(conditions):
        if condition in conditions[:i]:
            raise UserError(f"fail_if= names {condition} twice: leave one of them out")
    return conditions


def check_gate(require: str, interval: str = FREQUENTIST) -> None:
    """Refuse what no gate can be made of.

    Raises
    ------
    UserError : an unknown requirement, or intervals that do not hold in repeated samples.
    """
    check_choice("require", require, REQUIRED)
    if interval != FREQUENTIST:
        raise UserError(
            f"fail_if= needs intervals that hold in repeated samples: leave interval={interval} out"
        )


def by_attribute(
    conditions: Sequence[Condition], default: Sequence[str], valid: Sequence[str]
) -> list[Condition]:
    """Return every condition for each attribute that it is about, once.

    Parameters
    ----------
    default : the attributes of a condition that names none.
    valid : those that can be named.

    Raises
    ------
    UserError : no condition, or one that names another attribute.
    """
    if not conditions:
        raise UserError("a gate needs a condition: name one, such as fail_if='impact_ratio<0.8'")
    per_attribute = []
    for condition in conditions:
        if condition.attribute and condition.attribute not in valid:
            raise unknown_name("attribute of fail_if", condition.attribute, valid)
        attributes = [condition.attribute] if condition.attribute else default
        per_attribute += [replace(condition, attribute=name) for name in attributes]
    return list(dict.fromkeys(per_attribute))


def _read(text: str) -> Condition:
    """Return the condition that a text means, such as ``sex:impact_ratio<0.8``."""
    condition_text = shortened(text)
    match = _FORM.fullmatch(text)
    if match is None:
        raise UserError(
            f"fail_if={condition_text} is no condition: write a measure, < or >, and a number, "
            f"{_EXAMPLE}"
        )
    sign = match["sign"]
    bound = match["bound"].strip()
    attribute = (match["attribute"] or "").strip()
    whose = f"{attribute}:" if attribute else ""
    metric = _metric_name(match["metric"].strip(), whose, bound)
    failing = _failing_signs(metric)
    if sign.rstrip("=") not in (BELOW, ABOVE) or sign != sign.rstrip("="):
        ways = " or ".join(f"{whose}{metric}{right}{bound}" for right in failing)
        raise UserError(
            f"fail_if={condition_text}: a condition has < or >, not {sign}; write {ways}"
        )
    right_sign = sign if sign in failing else failing[0]
    number = _bound(condition_text, f"{whose}{metric}{right_sign}", bound)
    condition = Condition(attribute, metric, sign, number)
    if sign not in failing:
        (other,) = failing
        side = "smaller" if sign == BELOW else "larger"
        raise UserError(
            f"fail_if={condition_text} would fail good models, of which {metric} is {side}; "
            f"write {replace(condition, sign=other)}"
        )
    return condition


def _metric_name(name: str, whose: str, bound: str) -> str:
    """Return the name of a measure, which may be given as tables call it.

    Parameters
    ----------
    whose, bound : what is written before the measure, and after the sign, in the condition that an
        error proposes.
    """
    plain = "_".join(name.lower().split())
    by_label = {"_".join(one.label.split()): key for key, one in judged_metrics().items()}
    of_gap = f"gap_in_{plain.removesuffix('_gap')}"
    names = {**by_label, **{key: key for key in (*judged_metrics(), IMPACT_RATIO)}}
    if called := names.get(plain) or (names.get(of_gap) if plain.endswith("_gap") else None):
        return called
    other = find(plain)
    if instead := _ELSEWHERE.get(plain):
        raise UserError(f"fail_if= takes no {plain}: that is {instead} here")
    if other is not None and other.interval in ("difference", "ratio", "widest"):
        same = [key for key, one in judged_metrics().items() if one.rates == other.rates]
        instead = IMPACT_RATIO if plain == "disparate_impact" else same[0]
        raise UserError(
            f"fail_if= takes no {plain}, which compares with the first group alone: use {instead}, "
            "which is about all groups"
        )
    if match := _OF_GAP.fullmatch(plain):
        gap = _gap_of(match["of"] or match["whose"])
        raise UserError(
            f"unknown measure of fail_if '{shortened(name)}': for the gap between groups write "
            f"{whose}{gap.name}>{bound} or '{whose}{gap.label}>{bound}'"
        )
    raise unknown_name("measure of fail_if", name, [*judged_metrics(), IMPACT_RATIO])


# How people write the gap in a rate: gap.selection_rate, gap(selection_rate), selection_rate_gap.
_OF_GAP = re.compile(r"gap[._( -]++(?:(?:in|of)_)?(?P<of>.+?)\)?|(?P<whose>.+?)[._ -]gap")
# Rates whose gap is that of another: the rate itself under another name, or 1 less the rate.
_SAME_GAP = {
    "error_rate": "accuracy",
    "recall": "true_positive_rate",
    "false_negative_rate": "true_positive_rate",
    "specificity": "false_positive_rate",
    "true_negative_rate": "false_positive_rate",
}


def _gap_of(rate: str) -> Metric:
    """Return the gap in a rate, which is given by its own name or label, or by that of the gap.

    Raises
    ------
    UserError : no gap is declared in such a rate; names the gaps.
    """
    gaps = [metric for metric in judged_metrics().values() if metric.is_gap]
    for gap in gaps:
        names = {gap.name, "_".join(gap.label.removeprefix("gap in ").split())}
        names |= {gap.rates[0].name} if len(gap.rates) == 1 else set()
        if _SAME_GAP.get(rate, rate) in names:
            return gap
    raise unknown_name("gap of fail_if", rate, [gap.name for gap in gaps])


# What other libraries call the same.
_ELSEWHERE = {
    "demographic_parity_difference": "statistical_parity",
    "demographic_parity_ratio": IMPACT_RATIO,
    "adverse_impact_ratio": IMPACT_RATIO,
    "equalized_odds_difference": "equalized_odds",
}


def _failing_signs(metric: str) -> tuple[str, ...]:
    """Return the signs that a condition on a measure may have."""
    declared = judged_metrics().get(metric)
    better = "higher" if declared is None else declared.better
    return {"higher": (BELOW,), "lower": (ABOVE,)}.get(str(better), (BELOW, ABOVE))


def _bound(condition_text: str, start: str, text: str) -> float:
    """Return the bound of a condition, a number between 0 and 1."""
    percent = text.removesuffix("%").strip()
    if not (is_number(percent) and math.isfinite(float(percent))):
        problem = f"'{shortened(text)}' is no number" if text else "the number is missing"
        raise UserError(
            f"fail_if={condition_text}: {problem}; write one between 0 and 1, {_EXAMPLE}"
        )
    number = float(percent)
    if 0 < number < 100 and (text.endswith("%") or number > 1):
        share = f"{start}{number / 100:g}"
        raise UserError(f"fail_if={condition_text}: shares are from 0 to 1; write {share}")
    if not 0 < number < 1:
        raise UserError(
            f"fail_if={condition_text}: a bound of {number:g} decides nothing; it must be between "
            f"0 and 1, {_EXAMPLE}"
        )
    return number
