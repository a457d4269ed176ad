"""The dossier of a lender: decisions, odds, the best by score, segments, and means of prices.

Figures are those of lenders' practice, defined as the package solas-ai defines them: every group is
compared with one that is named, or is the largest. First comes the dossier, then the rows of its
tables, which are those of the JSON, the tables, and at the end the statistics that are not in
fairbench: odds ratios, and standardised differences between means.

Let ``m_g`` be the mean of a score or a price in group g, ``m_r`` that of the reference group, and S
the standard deviation of everyone's, with n - 1 in the denominator. Three differences are made:

- the standardised mean difference, ``(m_g - m_r) / S``;
- the residual one: the standardised mean difference of the residuals of a least-squares regression
  on the factors. The groups are not in the regression, so that a factor that differs between them
  explains a part of the difference;
- the adjusted one: the coefficient of the group in a least-squares regression on the groups and
  the factors, over S. It is the difference between people with the same factors.

**Limits.** Each estimate is linearised: its error is the mean of the rows' influences, through the
means, through the coefficients of the regression, and through S. The mean influences in the
group, in the reference group and among all others have limits that allow for skewness
(:func:`fairbench.inference.means.centred_limits`); the error of the groups' shares of the rows is
normal. They are combined by the method of variance estimates recovery. The residual of a row is
that of the regression without the row (HC3). A few rows of a group may contain none of the rare
large values that other groups have; so an unseen row may lie as far from its group's mean as any
row of any group. A group of fewer than 20 rows has no limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from functools import partial
from itertools import chain, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.arrays import Codes, Floats, Mask, divide
from fairbench.core.errors import UserError
from fairbench.core.text import listed, number
from fairbench.data.columns import ColumnRef, to_numbers
from fairbench.data.dataset import reference_first
from fairbench.data.groups import codes_of, notes_on_groups
from fairbench.evaluation.by_group import impact_ratios_at, impact_ratios_of
from fairbench.inference.gaps import FOUR_FIFTHS, StandardisedRates
from fairbench.inference.means import ROWS, Moments, centred_limits, loss_limits
from fairbench.inference.rates import Limits, difference_limits, quantile, rate_limits
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Document, ExecutiveSummary, Figure, Section
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench_dossiers.documents import dossier
from fairbench_dossiers.question import HIGH, LendingQuestion
from fairbench_dossiers.selection import refuse_weights, unknown_of

# Of a group: its difference, and the influence of each row, which is its contribution (n,) to the
# error, times n, with a mean of 0.
Estimate: TypeAlias = Callable[[int], tuple[float, Floats]]
Row: TypeAlias = Mapping[str, Any]  # what is said of a group, in plain values

_PAGE = "fairbench_dossiers:lending"
ALL_SEGMENTS = "all segments"
# The fields of a row that have an estimate and its limits.
_RATE = ("rate", "rate_lower", "rate_upper")
_REFUSED = ("refused", "refused_lower", "refused_upper")
_RATIO, _ODDS = ("ratio", "lower", "upper"), ("odds", "lower", "upper")
_UNKNOWN = (float("nan"),) * 3
# If factors leave at most this share of a group indicator's variance, they determine the group.
_DETERMINED = 1e-9
_HALF = 0.5  # a success and a failure added to each, as Haldane and Anscombe did
_MOST_LEVELS = 50  # of a factor that is no number
_said = partial(sentence_of, _PAGE)


def lending(
    options: LendingQuestion,
    frame: pd.DataFrame,
    human_answers: Mapping[str, str],
    day: date,
    *,
    unknown: Sequence[str] = (),
) -> Document:
    """Return the dossier of a lender's decisions, scores and prices.

    Parameters
    ----------
    unknown : further answers that mean that a group is not known.

    Raises
    ------
    UserError : if the options do not tell which decision, or which scores, are good for a person,
        or a value is invalid.
    """
    refuse_weights(options)
    plain = {field.name: getattr(options, field.name) for field in fields(Options)}
    without_score = {"score": ""} if options.prediction else {}  # scores may then be any numbers
    audit_options = Options(**plain | without_score | {"purpose": "lending"})
    table = read_audit_table(audit_options, frame=frame, decisions_alone=True)
    answered = unknown_of({name: table.groups[name] for name in options.group}, unknown)
    known = answered.of(table.groups)
    groups = {name: _known_groups(name, of, known[name]) for name, of in table.groups.items()}
    singles = {name: groups[name] for name in options.group}
    references = {name: str(of_name.cat.categories[0]) for name, of_name in groups.items()}
    ratios, odds, best = list[Row](), list[Row](), list[Row]()
    for name, of_name in groups.items():
        favoured = table.favoured[of_name.index]
        ratios += impact_ratios_of(name, of_name, favoured, reference=references[name])
        odds += _odds(name, of_name, favoured)
    values: dict[str, Floats] = {}
    sure = [*table.read_as]
    if options.score:
        values[options.score] = ColumnRef(options.path.name, options.score).numbers(frame)
        high = _good_side(options, table)
        sure.append(f"{'High' if high else 'Low'} '{options.score}' is good for a person.")
        best = list(_best(values[options.score], singles, options.quantiles, high=high))
    segments = list(_segments(singles, table))
    values |= {name: _prices(frame, ColumnRef(options.path.name, name)) for name in options.price}
    design = _factors(frame, options) if options.factors else None
    pairs = product(values.items(), singles.items())
    means = [*chain(*(_means(*of, *by, design) for of, by in pairs))]
    granted = table.granted if table.direction.decisions else "granted"
    data = {
        "people": len(frame),
        "granted": granted,
        "references": references,
        "unknown": {name: int((~rows).sum()) for name, rows in answered.known.items()},
        "ratios": ratios,
        "odds_ratios": odds,
        "by_quantile": best,
        "by_segment": segments,
        "means": means,
        "factors": list(options.factors),
    }
    compared_with = "; ".join(f"{name}: {references[name]}" for name in options.group)
    document = Document(
        "Fair lending: decisions, scores and prices by group",
        list(_sections(data, list(values), options)),
        summary=ExecutiveSummary(
            list(_in_short(ratios, means, granted, options)),
            [*sure, *answered.sentences, f"Compared with: {compared_with}.", _said("sure")],
            list(_unseen(options, len(table.known), values)),
        ),
        notes=[*answered.sentences, *notes_on_groups(frame, options.group)],
        data=data,
    )
    by_factors = f"given {listed(options.factors)}, by least-squares regression"
    asked_by_options = {
        "air_by_quantile": (best, f"at {len(options.quantiles)} cuts"),
        "air_by_segment": (segments, f"by {listed(options.within)}"),
        "mean_differences": (means, f"of {listed(list(values))}"),
        "mean_differences_given": (options.factors, by_factors),
        "factors_why": (options.factors, ""),
    }
    answers = {
        "rates": f"{len(ratios)} groups",
        "adverse_impact_ratio": "in the tables of decisions",
        "odds_ratio": "in the tables of decisions",
        **{name: answer for name, (_, answer) in asked_by_options.items()},
        **human_answers,
    }
    missing = [name for name, (rows, _) in asked_by_options.items() if not rows]
    return dossier("lending", document, options, answers, day, without=missing)


def _known_groups(name: str, groups: pd.Series, rows: Mask) -> pd.Series:
    """Return the groups of an attribute, or of a combination, of the people for whom it is known.

    Returns
    -------
    Categorical labels, the first of which is the group compared with; the index has their rows.

    Raises
    ------
    UserError : fewer than two groups are known.
    """
    reference = str(groups.cat.categories[0])
    groups = groups.reset_index(drop=True)[rows].cat.remove_unused_categories()
    names = list(map(str, groups.cat.categories))
    if len(names) < 2:
        raise UserError(f"{name}: fewer than two groups are known: name a column that has more")
    if reference not in names:  # it was an answer that says nothing
        groups = reference_first(groups, str(groups.value_counts().index[0]))
    return groups


def _good_side(options: LendingQuestion, table: AuditTable) -> bool:
    """Return whether high scores are good for a person; refuse options that do not tell."""
    if not options.prediction:
        return bool(table.direction.good)
    if not options.good_scores:
        raise UserError(_said("which_side", file=options.path.name, score=options.score))
    return options.good_scores == HIGH


def _prices(frame: pd.DataFrame, source: ColumnRef) -> Floats:
    """Return prices (n,), NaN where they are blank."""
    text = frame[source.name]
    prices: Floats = to_numbers(text)
    blank = text.isna().to_numpy() | (text.astype(str).str.strip() == "").to_numpy()
    source.refuse_as(text, ~np.isfinite(prices) & ~blank, "is no price: it has to be a number")
    if blank.all():
        raise source.fault("is blank in all rows: name a column of prices by price=")
    return prices


def _factors(frame: pd.DataFrame, options: LendingQuestion) -> Floats:
    """Return legitimate factors as columns (n, K): numbers, or a mark for each level but one."""
    parts = []
    for name in options.factors:
        source = ColumnRef(options.path.name, name)
        text = frame[name]
        source.refuse_blank(text, "a factor: every row needs one, or leave the column out")
        values = to_numbers(text)
        if np.isfinite(values).all():
            parts.append(values[:, None])
            continue
        if np.isfinite(values).mean() > 0.5:
            source.refuse_as(text, ~np.isfinite(values), "is no number, as most of this factor are")
        levels = pd.Categorical(text.astype(str))
        if len(levels.categories) > _MOST_LEVELS:
            counts = {"levels": len(levels.categories), "most": _MOST_LEVELS}
            raise source.fault(_said("many_levels", **counts))
        parts.append(np.eye(len(levels.categories))[levels.codes][:, 1:])
    return np.concatenate(parts, axis=1)


def _odds(attribute: str, groups: pd.Series, granted: Mask) -> Iterator[Row]:
    """Yield how often each group is refused, and the ratio of its odds to the reference's."""
    codes, names = codes_of(groups)
    n_people, n_granted = np.bincount(codes), np.bincount(codes, granted)
    refused = rate_limits(n_people - n_granted, n_people)
    odds = odds_ratios((n_granted, n_granted[0]), (n_people, n_people[0]))
    for group, name in enumerate(names):
        yield {
            "attribute": attribute,
            "group": name,
            "reference": names[0],
            "rows": int(n_people[group]),
            **dict(zip(_REFUSED, refused.at(group), strict=True)),
            **dict(zip(_ODDS, odds.at(group) if group else (1.0, np.nan, np.nan), strict=True)),
        }


def _best(
    score: Floats, singles: Mapping[str, pd.Series], shares: Sequence[float], *, high: bool
) -> Iterator[Row]:
    """Yield the ratios among the best of everyone by score, at each cut."""
    for attribute, groups in singles.items():
        for share in sorted(shares):
            best, cut = among_best(score, share, high=high)
            part = {"attribute": attribute, "part": f"best {100 * share:g} %", "cut": float(cut)}
            yield from _part_ratios(part, groups, best)


def _part_ratios(part: Row, groups: pd.Series, selected: Mask) -> Iterator[Row]:
    """Yield the impact ratios of those of some groups who are among the selected (n,).

    Parameters
    ----------
    part : the attribute, which part of the people it is, and the score that separates them from
        the others; NaN for a segment.
    """
    codes, names = codes_of(groups)
    reference = str(groups.cat.categories[0])
    if reference not in names:
        return
    rows = np.bincount(codes)
    rates = rate_limits(np.bincount(codes, selected[groups.index]), rows)
    ratios = impact_ratios_at("", names, rows, lambda _: rates, reference=reference)
    for row in ratios:
        kept = {key: row[key] for key in ("group", "reference", "rows", *_RATE, *_RATIO)}
        yield {**part, **kept}


def _segments(singles: Mapping[str, pd.Series], table: AuditTable) -> Iterator[Row]:
    """Yield the ratios in each segment, and those over all of them.

    Over all segments, a group's rate is compared with the reference group's rate standardised to
    the group's mix of segments. Segments without people of both groups are left out.
    """
    if table.strata is None:
        return
    for attribute, groups in singles.items():
        segment_codes, segments = codes_of(table.strata.iloc[groups.index])
        for index, segment in enumerate(segments):
            part = {"attribute": attribute, "part": segment, "cut": np.nan}
            yield from _part_ratios(part, groups[segment_codes == index], table.favoured)
        part = {"attribute": attribute, "part": ALL_SEGMENTS, "cut": np.nan}
        codes, names = codes_of(groups)
        n_people, n_granted = (np.zeros((len(names), len(segments))) for _ in range(2))
        np.add.at(n_people, (codes, segment_codes), 1)
        np.add.at(n_granted, (codes, segment_codes), table.favoured[groups.index])
        for group, name in enumerate(names[1:], start=1):
            both, mix = [group, 0], n_people[group]
            pair = StandardisedRates.of(n_granted[both], n_people[both], mix=mix)
            # At (0, 1): the group's rate in the segments shared with the reference group, and its
            # ratio to the reference group's standardised rate.
            ends = [float(of[0, 1]) for of in (*pair.limits(), *pair.ratios())]
            about = {"group": name, "reference": names[0], "rows": int(pair.rows[0, 1])}
            yield {**part, **about, **dict(zip((*_RATE, *_RATIO), ends, strict=True))}


def _means(
    measure: str, values: Floats, attribute: str, groups: pd.Series, design: Floats | None
) -> Iterator[Row]:
    """Yield the means of the groups that have values, the reference group's first.

    Each is a mean with limits, as are its differences to the reference's: itself (``less``),
    standardised (``smd``), and those given factors (``residual``, ``adjusted``), NaN without any.
    """
    groups = groups[np.isfinite(values[groups.index])]
    codes, names = codes_of(groups)
    reference_name = str(groups.cat.categories[0])
    if reference_name not in names or len(names) < 2:
        return
    values = values[groups.index]
    reference = names.index(reference_name)
    means = loss_limits(Moments.of_groups(values, codes, len(names)))
    differences = {"less": difference_limits(means, means.take([reference]))}
    differences["smd"] = mean_differences(values, codes, reference)
    if design is not None:
        of_rows = values, codes, reference, design[groups.index]
        differences["residual"] = mean_differences(*of_rows)
        differences["adjusted"] = adjusted_mean_differences(*of_rows)
    sizes = np.bincount(codes)
    for group, name in enumerate(names):
        known = {} if group == reference else differences
        yield {
            "measure": measure,
            "attribute": attribute,
            "group": name,
            "reference": reference_name,
            "rows": int(sizes[group]),
            "mean": means.at(group),
            **dict.fromkeys(("less", "smd", "residual", "adjusted"), _UNKNOWN),
            **{kind: limits.at(group) for kind, limits in known.items()},
        }


def _in_short(
    ratios: Sequence[Row], means: Sequence[Row], granted: str, options: LendingQuestion
) -> Iterator[str]:
    """Yield the smallest ratio and the largest difference of each attribute, in sentences."""
    others = [row for row in ratios if row["group"] != row["reference"]]
    for attribute in options.group:
        of_attribute = [row for row in others if row["attribute"] == attribute]
        lowest = min(of_attribute, key=lambda row: np.nan_to_num(row["ratio"], nan=np.inf))
        reference, ratio, lower, upper = (lowest[key] for key in ("reference", *_RATIO))
        if np.isnan(ratio):
            yield f"By {attribute}, nobody of {reference} is {granted}: there is no ratio."
            continue
        ends = f"{number(lower, 2)} to {number(upper, 2)}"
        found = {"ratio": number(ratio, 2), "interval": ends, "reference": reference}
        yield _said("smallest", attribute=attribute, group=lowest["group"], **found)
    for measure in options.price:
        of_measure = (row for row in means if row["measure"] == measure)
        if of_price := [row for row in of_measure if np.isfinite(row["smd"][0])]:
            yield _largest_difference(max(of_price, key=lambda row: row["smd"][0]), options)


def _largest_difference(row: Row, options: LendingQuestion) -> str:
    """Return by how much a group's mean price differs, and how much of that factors leave."""
    smd, adjusted = row["smd"][0], row["adjusted"][0]
    sign = -1 if row["less"][0] < 0 else 1
    difference, *limits = (sign * end for end in row["less"])
    interval = given = ""
    if np.isfinite(limits[0]):
        interval = f" (95 % interval {number(min(limits))} to {number(max(limits))})"
    if options.factors and np.isfinite(adjusted):
        left = number(float(np.copysign(1.0, smd)) * adjusted, 2)
        given = f", and {left} among people of the same {listed(options.factors)}"
    side, deviations = "lower" if sign < 0 else "higher", number(abs(smd), 2)
    found = {"difference": difference, "interval": interval, "deviations": deviations}
    return _said("largest", row=row, side=side, given=given, **found)


def _unseen(options: LendingQuestion, labels: int, values: Mapping[str, Floats]) -> Iterator[str]:
    """Yield what was not looked at."""
    said = {"outcomes": labels, "why": not options.factors, "justified": True}
    yield from sentences_of(_PAGE, said, target=options.target)
    for name in options.price:
        if blank := int(np.isnan(values[name]).sum()):
            yield _said("offers", name=name, blank=blank)


def _sections(
    data: Mapping[str, Any], measures: Sequence[str], options: LendingQuestion
) -> Iterator[Section]:
    """Yield the sections of tables, of the rows in the data; means are of scores and prices."""
    tell = {"granted": data["granted"], "score": options.score, "segments": ALL_SEGMENTS}
    shown = [of for of in ("ratios", "odds_ratios", "by_quantile", "by_segment") if data[of]]
    tables = {of: named_table(_PAGE, of, list(map(_compared, data[of])), **tell) for of in shown}
    decisions = [tables["ratios"], tables["odds_ratios"]]
    yield Section("Decisions by group", [*_ratio_figure(data["ratios"]), *decisions])
    for part in ("quantile of the score", "segment"):
        if table := tables.get(f"by_{part.partition(' ')[0]}"):
            yield Section(f"Adverse impact ratio by {part}", [table])
    for measure in measures:
        means = [row for row in data["means"] if row["measure"] == measure]
        blocks = [named_table(_PAGE, "means", list(map(_of_differences, means)), fewest=ROWS)]
        if options.factors:
            others = [_of_differences(row) for row in means if row["group"] != row["reference"]]
            blocks.append(named_table(_PAGE, "given", others, factors=options.factors))
        yield Section(f"Means of '{measure}' by group", blocks)


def _compared(row: Row) -> Row:
    """Return a row with the limits of its ratio, which the group compared with has none of."""
    if row["group"] == row["reference"]:
        return {**row, "ends": None, "below": None}
    return {**row, "ends": (row["lower"], row["upper"])}


def _ratio_figure(ratios: Sequence[Row]) -> Iterator[Figure]:
    """Yield a figure of the impact ratios, where there are any."""
    lines = [
        (f"{row['attribute']}: {row['group']}", row["ratio"], row["lower"], row["upper"])
        for row in ratios
        if row["group"] != row["reference"] and np.isfinite(row["ratio"])
    ]
    if lines:
        svg = forest("adverse impact ratio", [lines], span=(0.0, 1.5), mark=FOUR_FIFTHS)
        yield Figure("adverse impact ratios", [svg], caption=_said("figure"))


def _of_differences(row: Row) -> Row:
    """Return a row with each estimate's value, none where it is unknown, and its limits."""
    kinds = ("mean", "less", "smd", "residual", "adjusted")
    values = {f"{kind}_value": None if np.isnan(row[kind][0]) else row[kind][0] for kind in kinds}
    return {**row, **values, **{f"{kind}_ends": row[kind][1:] for kind in kinds}}


def among_best(score: Floats, share: float, *, high: bool) -> tuple[Mask, Floats]:
    """Return who (..., n) is in the best share by score, and the cuts (...) that they reach.

    The cut is the quantile of all scores, between two of them where it falls there; whoever has the
    cut itself is in, so that of scores with ties more may be in than the share.

    Parameters
    ----------
    score : (..., n) the scores of each row.
    high : whether high scores are good.
    """
    cut = np.quantile(score, 1 - share if high else share, axis=-1)
    edge = cut[..., None]
    return (score >= edge if high else score <= edge), cut


def odds_ratios(
    successes: tuple[ArrayLike, ArrayLike],
    size: tuple[ArrayLike, ArrayLike],
    *,
    level: ArrayLike = 0.95,
) -> Limits:
    """Return the odds of success in one group over those in another, with intervals.

    Parameters
    ----------
    successes, size : counts of both groups, of any shapes that broadcast.

    Returns
    -------
    The ratio of the raw counts: 0 or infinite where one of them is 0, and NaN where the ratio is
    0 / 0. The interval is there all the same; its ends may be 0 and infinity.

    Notes
    -----
    The method of variance estimates recovery on the scale of log odds (Zou and Donner 2008), with
    the limits of :func:`fairbench.inference.rates.rate_limits`, around log odds of counts with one
    half added, which are finite. Enumerated over groups of 5 to 400 people and rates from 0.005 to
    0.995, the 95 % interval covers 93.9 % or more; Woolf's, with one half added, covers nothing in
    some cells, and that of Fagerland and Newcombe (2013) 81 %.

    Examples
    --------
    >>> [round(float(end), 3) for end in odds_ratios((62, 193), (107, 246))]
    [0.378, 0.232, 0.618]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        (x, y), (n, m) = ([np.asarray(part, float) for part in each] for each in (successes, size))
        between = difference_limits(_log_odds(x, n, level), _log_odds(y, m, level))
        value = x * (m - y) / (y * (n - x))
        lower, upper = np.exp(between.lower), np.exp(between.upper)
    nobody = (n == 0) | (m == 0)
    lower, upper = np.where(nobody, 0, lower), np.where(nobody, np.inf, upper)
    return Limits(np.where(nobody, np.nan, value), np.fmin(lower, value), np.fmax(upper, value))


def _log_odds(x: Floats, n: Floats, level: ArrayLike) -> Limits:
    """Return finite log odds with limits, which may be infinite."""
    rates = rate_limits(x, n, level=level)
    ends = (np.log(end / (1 - end)) for end in rates[1:])
    return Limits(np.log((x + _HALF) / (n - x + _HALF)), *ends)


def mean_differences(
    values: Floats,
    codes: Codes,
    reference: int,
    factors: Floats | None = None,
    *,
    level: float = 0.95,
) -> Limits:
    """Return the standardised mean differences (G,) of groups 0 .. G - 1 from one of them.

    Parameters
    ----------
    values : (n,) the values of rows.
    codes : (n,) their groups, 0 .. G - 1.
    reference : the group that others are compared with.
    factors : (n, K) legitimate factors: with them the differences are the residual ones, of what a
        least-squares regression on the factors leaves. The package solas-ai calls this the residual
        standardised mean difference, with the predictions of the regression.
    level : the level of the intervals.

    Returns
    -------
    The differences with limits. That of the reference group is 0, without an interval; NaN where
    nothing varies.
    """
    residuals, left_out = values, values
    if factors is not None:
        design = np.column_stack([np.ones(len(values)), factors])
        fit = _Regression(design)
        _, residuals, left_out = fit.of(values)
    means = _group_means(residuals, codes)
    spread = left_out - _group_means(left_out, codes)[codes]

    def estimate(g: int) -> tuple[float, Floats]:
        """Return the difference of group g, and the influence of each row.

        With values x, group means m and shares of rows p, the influence of row i on
        D = m_g - m_r is (x_i - m_g) / p_g in group g, -(x_i - m_r) / p_r in the reference group r
        and 0 elsewhere. Given factors, with rows z_i of the design Z, residuals e_i of rows left
        out, and the difference d between the two groups' means of z, it is that on the difference
        of the mean residuals, less that through the coefficients: d' (Z'Z / n)^-1 z_i e_i.
        """
        influence = np.zeros(len(values))
        for sign, group in ((1, g), (-1, reference)):
            members = codes == group
            influence[members] = sign * spread[members] / members.mean()
        if factors is not None:
            factor_gap = design[codes == g].mean(axis=0) - design[codes == reference].mean(axis=0)
            influence -= fit.influence(factor_gap, left_out)
        return float(means[g] - means[reference]), influence

    return _group_limits(estimate, spread, residuals, codes, reference, level)


def adjusted_mean_differences(
    values: Floats, codes: Codes, reference: int, factors: Floats, *, level: float = 0.95
) -> Limits:
    """Return the adjusted standardised mean differences (G,), given factors (n, K).

    NaN for a group whose members the factors determine.
    """
    others = [g for g in range(int(codes.max()) + 1) if g != reference and (codes == g).any()]
    members = np.column_stack([codes == g for g in others]).astype(float)
    covariates = np.column_stack([np.ones(len(values)), factors])
    design = np.column_stack([members, covariates])
    fit = _Regression(design)
    coefficients, _, left_out = fit.of(values)

    def estimate(g: int) -> tuple[float, Floats]:
        """Return the coefficient of group g, NaN if the other columns determine the group.

        With rows z_i of the design Z, residuals e_i of rows left out, and the unit vector u of the
        group's column, the influence of row i is u' (Z'Z / n)^-1 z_i e_i.
        """
        column = others.index(g)
        other_columns = np.delete(design, column, axis=1)
        _, unexplained, _ = _Regression(other_columns).of(design[:, column])
        determined = _DETERMINED * len(values) * members[:, column].var()
        value = np.nan if (unexplained**2).sum() <= determined else float(coefficients[column])
        return value, fit.influence(np.eye(design.shape[1])[column], left_out)

    return _group_limits(estimate, left_out, values, codes, reference, level)


class _Regression:
    """Least squares on columns (n, K), which may depend on each other."""

    def __init__(self, design: Floats) -> None:
        scale = np.sqrt((design**2).mean(axis=0))
        scale[scale == 0] = 1
        self._design = design
        self._inverse = np.linalg.pinv(design / scale, rcond=1e-9) / scale[:, None]

    def of(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return coefficients (K,), residuals (n,), and those of rows left out of the fit."""
        coefficients = self._inverse @ values
        residuals = values - self._design @ coefficients
        leverage = (self._design * self._inverse.T).sum(axis=1)
        return coefficients, residuals, residuals / np.maximum(1 - leverage, 1e-6)

    def influence(self, combination: Floats, residuals: Floats) -> Floats:
        """Return the influences of rows (n,) on a linear combination (K,) of the coefficients."""
        weights: Floats = len(residuals) * (combination @ self._inverse)
        return weights * residuals


def _group_means(values: Floats, codes: Codes) -> Floats:
    return divide(np.bincount(codes, values), np.bincount(codes))


def _group_limits(
    estimate: Estimate, spread: Floats, values: Floats, codes: Codes, reference: int, level: float
) -> Limits:
    """Return differences over the standard deviation of values, with limits (G,).

    Parameters
    ----------
    estimate : what returns the difference of a group, with the influences.
    spread : (n,) how far each row is from the mean of its group.
    values : (n,) what the standard deviation is of.

    Notes
    -----
    With the deviations d of the values and their standard deviation s, the ratio r = D / s has the
    influence of D over s, less r / 2 (d^2 / s^2 - mean(d^2) / s^2).
    """
    sizes = np.bincount(codes)
    limits = np.full((3, len(sizes)), np.nan)
    limits[0, reference] = 0.0
    deviation = values - values.mean()
    sd = float(deviation.std(ddof=1))
    if not sd > 1e-12 * np.abs(values).max(initial=0):
        return Limits(*limits)
    low, high = float(spread.min()) / sd, float(spread.max()) / sd
    for g in np.setdiff1d(np.flatnonzero(sizes), reference):
        difference, influence = estimate(int(g))
        limits[0, g] = ratio = difference / sd
        if np.isnan(ratio) or min(sizes[g], sizes[reference]) < ROWS:
            continue
        through_sd = ratio / 2 * ((deviation / sd) ** 2 - (deviation**2).mean() / sd**2)
        role = np.where(codes == g, 0, np.where(codes == reference, 1, 2))  # 2: all others
        if (role == 2).sum() < ROWS:
            role = np.minimum(role, 1)
        size = np.bincount(role)
        moments = Moments.of_groups(influence / sd - through_sd, role, len(size))
        # An unseen row of one group may lie as far out as any observed row of another.
        share = size / size.sum()
        least, most = np.full((2, len(size)), np.nan)
        least[:2] = moments.mean[:2] + np.array([low, -high]) / share[:2]
        most[:2] = moments.mean[:2] + np.array([high, -low]) / share[:2]
        means = centred_limits(moments.reaching(least, most), level=level)
        by_shares = quantile(level) ** 2 * (share * means.value**2).sum() / size.sum()
        half_widths = np.array([means.value - means.lower, means.upper - means.value])
        down, up = np.sqrt(((share * half_widths) ** 2).sum(axis=1) + by_shares)
        limits[1:, g] = ratio - down, ratio + up
    return Limits(*limits)
