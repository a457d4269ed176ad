"""The audits of numbers: predicted numbers or intervals, rankings, and times until an event.

Of predicted numbers: who is predicted too little, and whose errors are larger. Of intervals: whom
they cover less often, and for whom they are wider. Of a ranking: who is
among the first, and who gets the exposure. Of times until an event, of which some are censored:
whose risks are ordered worse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import special, stats

from fairbench.audits import question
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.question import Options
from fairbench.audits.report import OF_POPULATION, Audit, counted_by
from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.text import count
from fairbench.data.columns import ColumnRef, are_missing
from fairbench.data.dataset import Task
from fairbench.data.groups import codes_of, cross_columns, notes_on_groups, read_groups
from fairbench.evaluation import by_group, findings
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.findings import GAP, LEVEL, Finding, Measure, risk_of
from fairbench.evaluation.groups import GapInterval
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.regression import evaluate_regression
from fairbench.evaluation.table import MetricTable, records, values_of
from fairbench.inference import gaps as differences
from fairbench.inference.means import Moments, loss_limits
from fairbench.inference.rates import Limits, quantile
from fairbench.metrics.registry import label
from fairbench.reporting import group_tables as tables
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import Figure, Section, Table, TableCell

_said = partial(tables.sentence_of, "numbers")
_MINIMUM = 10  # rows of a group
_BINS = 10
COVERAGE = "coverage"
# What groups are compared in: all but coverage in the target's units.
COMPARED = ("mean_prediction", "mean_residual", "mae", COVERAGE)
WIDTH = "interval_width"
COMPARED_INTERVALS = (COVERAGE, WIDTH)  # where intervals alone are predicted


def _read_numbers(options: Options, frame: pd.DataFrame) -> tuple[Labelled, list[str]]:
    """Return the predictions that `options` describe, of rows whose target is known, with notes.

    Raises
    ------
    UserError : a value that is no number, ends of intervals that are the wrong way round, or
        targets that are surely not those of rows chosen at random within groups.
    """
    file = options.path.name
    percent = f"{100 * options.nominal:g}"
    known = ~are_missing(frame[options.target])
    if options.labelled:
        known &= ColumnRef(file, options.labelled).marks(frame[options.labelled])
    if not known.any():
        raise UserError(f"{file}: no row has a value of '{options.target}'")
    rows = frame[known]
    target = ColumnRef(file, options.target).numbers(rows)
    predicted = options.prediction or options.bounds[0]  # a column that rows without a target have
    of_all_rows = ColumnRef(file, predicted).numbers(frame)
    columns = {"prediction": of_all_rows[known]} if options.prediction else {}
    if options.bounds:
        lower, upper = (ColumnRef(file, name).numbers(rows) for name in options.bounds)
        first, second = options.bounds
        ColumnRef(file, first).refuse(rows[first], lower > upper, f"at most '{second}' of its row")
        columns |= {f"lower_{percent}": lower, f"upper_{percent}": upper}
    rows = rows.reset_index(drop=True)
    groups = read_groups(rows, file, options.group, options.reference)[0]
    if not options.weight:  # weights can correct for how rows were chosen
        check_labels_at_random(
            file,
            known,
            cross_columns(frame, options.group).astype("category"),
            advice=_said("drawn_by", options=options),
            values={f"'{predicted}'": of_all_rows},
            clusters=frame[options.cluster] if options.cluster else None,
        )
    design = options.design(rows)
    data = Labelled(target, pd.DataFrame(columns), groups, Task.REGRESSION, design=design)
    return data, notes_on_groups(rows, options.group)


def _evaluate_numbers(data: Labelled, options: Options, level: float = LEVEL) -> pd.DataFrame:
    """Return all metrics, in the columns that `fairbench.evaluate` returns."""
    table = MetricTable(level, minimum=_MINIMUM)
    evaluate_regression(table, data, ([options.nominal] if options.bounds else []))
    return table.frame()


def _unit_of(data: Labelled) -> float:
    """Return the standard deviation of the target, of which epsilon is a share."""
    return float(np.std(data.target)) or 1.0


def gap_findings(
    data: Labelled, options: Options, compared: Sequence[str] = COMPARED
) -> list[Finding]:
    """Return the findings on the gaps in what is compared, which share the error rate."""
    metrics = [name for name in compared if name != COVERAGE or options.bounds]
    risk = risk_of(len(metrics) * len(data.groups))

    @cache
    def at_level(level: float) -> pd.DataFrame:
        values = values_of(_evaluate_numbers(data, options, level))
        return values.set_index(["attribute", "group", "metric"])

    def interval(key: tuple[str, str, str], level: float) -> GapInterval:
        return GapInterval(*at_level(level).loc[key, ["lower", "upper"]])

    def of_groups(attribute: str, metric: str) -> pd.DataFrame:
        """Return the metric of each group, the highest first, with its limits."""
        groups = at_level(LEVEL).loc[attribute].xs(metric, level="metric")
        groups = groups[["value", "lower", "upper"]].astype(float).drop("", errors="ignore")
        return groups.dropna(subset="value").sort_values("value", ascending=False)

    found = []
    for attribute, metric in itertools.product(data.groups, metrics):
        key = (attribute, "", f"{metric}_gap")
        is_share = metric == COVERAGE
        gap = at_level(LEVEL).loc[key]
        bound = options.epsilon * (1 if is_share else _unit_of(data))
        scope, needs = _whom_left_out(gap)
        about: dict[str, Any] = {"bound": bound, "is_share": is_share, "n": len(data)}
        groups = of_groups(attribute, metric)
        measure = Measure(
            Finding(GAP, attribute, label(metric), scope=scope, needs=needs, **about),
            groups.index.tolist(),
            None if np.isnan(gap["value"]) else partial(interval, key),
            groups["value"].tolist(),
            tuple(gap[["value", "lower", "upper"]].astype(float)),
            may_be_small=gap["status"] == "ok",
            noise=differences.gap_of_noise(Limits(*groups.to_numpy().T)),
        )
        found += measure.answered(risk).conclude(needs=needs)
    return found


def _whom_left_out(gap: pd.Series) -> tuple[str, str]:
    """Return of which groups a gap is, unless it is of all, and why it has no more."""
    reason = str(gap["reason"])
    if np.isnan(gap["value"]) or not reason.startswith("without '"):
        return "", reason
    left_out, _, why = reason.partition("': ")
    return f"{left_out}'", why


def _audit_numbers(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of numbers, or of intervals in which they lie.

    Intervals may cover all groups alike and still be far wider for one of them, so that of
    intervals alone both coverage and width are compared.

    Raises
    ------
    UserError : no true numbers, or a value that is invalid.
    """
    alone = not options.prediction
    if not options.target:
        raise UserError(_said("no_target"))
    data, notes = _read_numbers(options, frame)
    metrics = _evaluate_numbers(data, options)
    found = gap_findings(data, options, COMPARED_INTERVALS if alone else COMPARED)
    singles = {name: data.groups[name] for name in options.group}
    distributions: dict[str, Sequence[Row]] = {}
    if not alone:
        prediction = data.column("prediction")
        distributions = {
            what: by_group.score_distributions(values, singles, data.design)
            for what, values in (("residual", data.target - prediction), ("prediction", prediction))
        }
    of_errors = COMPARED_INTERVALS if alone else ("mae", *[COVERAGE][: len(options.bounds)])
    said = partial(tables.sentence_of, "intervals" if alone else "numbers")
    gaps = [
        {
            **vars(gap),
            "measure": ", ".join(filter(None, [gap.measure, gap.scope])),
            "verdict": TableCell(gap.verdict, mark=gap.verdict),
        }
        for gap in found
    ]
    unknown = len(frame) - len(data)
    about = {"unknown": unknown, "bound": options.epsilon * _unit_of(data), "options": options}
    basis = {"rows": True, "left_out": unknown, "matters": True}
    return Audit(
        options,
        len(data),
        len(data),
        found,
        [
            *tables.sentences_of("numbers", basis, rows=len(data), **about),
            *counted_by(options),
            OF_POPULATION,
        ],
        [
            Section(
                "Gaps between groups",
                [tables.named_table("numbers", "gaps", gaps, caption=said("gaps"))],
            ),
            Section(
                "By group" if alone else "Errors by group",
                [_errors(metrics, name, options) for name in of_errors],
            ),
            *(
                Section(f"{what.capitalize()}s by group", [tables.score_table(scores, what)])
                for what, scores in distributions.items()
            ),
            Section("", [tables.where_all_is(metrics)]),
        ],
        {
            **{f"{what}s": scores for what, scores in distributions.items()},
            "metrics": records(metrics),
        },
        notes=notes,
        audited=[] if alone else [_said("matters", **about)],
        rates=said("rates"),
        pictures=[
            Section("Residuals by group", [_figure(name, data, distributions)])
            for name in singles
            if distributions
        ],
        unseen=[said("unseen")],
        todo_if_open="Read what stays open, and collect more rows for what matters most.",
    )


def _errors(metrics: pd.DataFrame, metric: str, options: Options) -> Table:
    """Return a mean error of every group and its difference from the reference's."""
    group_values = values_of(metrics).query("group != ''")
    error, less = (
        group_values.query("metric == @name") for name in (metric, f"{metric}_difference")
    )
    rows = error.merge(less, "left", ["attribute", "group"], suffixes=("", "_less"))
    promised = f": its intervals promise {options.nominal:g}" if metric == COVERAGE else ""
    return tables.named_table(
        "numbers", "errors", rows.to_dict("records"), label=label(metric), promised=promised
    )


def _figure(attribute: str, data: Labelled, distributions: Mapping[str, Sequence[Row]]) -> Figure:
    """Draw mean residuals in bins of predictions, a tenth of all rows each, and distributions."""
    data = data.with_weight()
    prediction = data.column("prediction")
    codes, names = codes_of(data.groups[attribute])
    bin_limits = np.unique(np.quantile(prediction, np.arange(1, _BINS) / _BINS))
    bins = np.searchsorted(bin_limits, prediction, side="left")
    cells = pd.Series(pd.Categorical(codes * _BINS + bins))
    across, up = (
        by_group.group_means(values, cells, data.design)[0]
        for values in (prediction, data.target - prediction)
    )
    group = cells.cat.categories.to_numpy() // _BINS
    lines = [
        tables.group_line(
            name, index, across.value[group == index], up.take(group == index), marked=True
        )
        for index, name in enumerate(names[: tables.MOST_LINES])
    ]
    panels = [
        Panel(lines, "prediction", "mean residual", from_zero=""),
        *(tables.density_panel(of, attribute, what) for what, of in distributions.items()),
    ]
    caption = _said("figure", attribute=attribute)
    return Figure(f"residuals by {attribute}", chart(panels, key=lines), caption=caption)


# Rankings by scores.

TOP, EXPOSURE = "top", "exposure"
_LENGTHS = 40  # of the first places


def _audit_ranking(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit the ranking of a table by its scores.

    Raises
    ------
    UserError : no scores, or a value that is none.
    """
    if not options.score:
        raise UserError("top= is of a ranking by scores: name their column by score=")
    file = options.path.name
    score = ColumnRef(file, options.score).numbers(frame)
    groups = read_groups(frame, file, options.group, options.reference)[0]
    singles = {name: groups[name] for name in options.group}
    lists = None
    in_lists = ""
    what = "people"
    if options.lists:
        marks, place = frame[options.lists], ColumnRef(file, options.lists)
        place.refuse_blank(marks, "a mark of rows that are ranked together")
        lists = pd.factorize(marks)[0].astype(np.intp)
        if lists.max() == 0:
            raise UserError(f"'{options.lists}' has one mark in all rows: leave out lists=")
        in_lists = f", in {count(lists.max() + 1)} lists"
        what = "lists"
    shares = shares_of_places(score, groups, lists, options.top)
    scores = by_group.score_distributions(score, singles)
    first = first_places(options.top, of_each=lists is not None)
    rows = {kind: of_kind.to_dict("records") for kind, of_kind in shares.groupby("kind")}
    curves = [_curve(score, name, labels, lists, scores) for name, labels in singles.items()]
    return Audit(
        options,
        len(score),
        0,
        places_findings(shares, first),
        [
            f"{count(len(score))} rows ranked by '{options.score}', the highest first{in_lists}.",
            _said("exposure"),
            f"Intervals say how far off it may be if other {what} like these were ranked.",
        ],
        [
            *(
                Section(title, [tables.named_table("numbers", "places", of_kind, places=places)])
                for title, places, of_kind in (
                    (f"Among the {first}", "first places", rows[TOP]),
                    ("Exposure", "exposure", rows[EXPOSURE]),
                )
            ),
            Section("Scores by group", [tables.score_table(scores, "score")]),
        ],
        {
            "lists": 1 if lists is None else int(lists.max()) + 1,
            "ranking": shares.to_dict("records"),
            "scores": scores,
        },
        notes=notes_on_groups(frame, options.group),
        pictures=[Section("Who is first", curves)],
        unseen=["Whether scores are right was not looked at, only who stands where."],
        todo_if_open="Read what stays open, and rank more rows for what matters most.",
        figures=shares.to_dict("records"),
    )


def shares_of_places(
    score: Floats, groups: Mapping[str, pd.Series], lists: Codes | None, top: float
) -> pd.DataFrame:
    """Return the share of a ranking's positions that each group of each attribute gets.

    Parameters
    ----------
    score : (n,) scores; the highest comes first.
    groups : attribute -> (n,) categorical labels.
    lists : (n,) the list that each row is in, if there are several.
    top : how many positions count as the top, or which share of all positions.

    Returns
    -------
    A row for each attribute, kind and group. kind : `TOP`, the top positions, or `EXPOSURE`, all
    positions weighted by how much they are seen. of_rows : the group's share of all rows. share :
    its share of the positions. ratio : share over of_rows, 1 if they are equal. below : the
    probability that the ratio is under four fifths. surely : whether the ratio differs from 1,
    simultaneously for all rows of the table.
    """
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {
        TOP: differences.top_weights(score, list_codes, top),
        EXPOSURE: differences.exposure_weights(score, list_codes),
    }
    questions = len(kinds) * sum(len(labels.cat.categories) for labels in groups.values())
    tables_of_kinds = []
    for (attribute, labels), (kind, weight) in itertools.product(groups.items(), kinds.items()):
        codes, names = codes_of(labels)
        measure = partial(differences.weighted_shares, weight, codes, len(names), lists=lists)
        shares, of_rows, ratios, below = measure()
        _, _, wider, _ = measure(level=1 - findings.ERROR_RATE / questions)
        # The errors' correlation depends on the level a little, and so does what is wider.
        lower = np.minimum(ratios.lower, wider.lower)
        upper = np.maximum(ratios.upper, wider.upper)
        about = {"attribute": attribute, "group": names, "kind": kind}
        counts = {"rows": np.bincount(codes), "of_rows": of_rows.value}
        share = dict(zip(("share", "share_lower", "share_upper"), shares, strict=True))
        ratio = dict(zip(("ratio", "ratio_lower", "ratio_upper"), ratios, strict=True))
        sure = {"below": below, "surely": (lower > 1) | (upper < 1)}
        tables_of_kinds.append(pd.DataFrame(about | counts | share | ratio | sure))
    return pd.concat(tables_of_kinds, ignore_index=True)


def first_places(top: float, *, of_each: bool) -> str:
    """Return which places are the first, of each list where there are several, in words."""
    return f"first {f'{100 * top:g} %' if top < 1 else f'{top:g}'}{' of each list' * of_each}"


def places_findings(shares: pd.DataFrame, first: str) -> list[Finding]:
    """Return which groups get more or less of the places than their share of the rows.

    Parameters
    ----------
    first : which places are the first, in words.
    """
    return [
        Finding(
            findings.SHARE,
            row.attribute,
            f"the {first}" if row.kind == TOP else "the exposure",
            findings.LARGE if row.surely else findings.OPEN,
            (row.group,),
            row.ratio,
            row.ratio_lower,
            row.ratio_upper,
            values=(row.share, row.of_rows),
            bound=1.0,
            n=row.rows,
        )
        for row in shares.itertuples()
    ]


def _curve(
    score: Floats,
    attribute: str,
    labels: pd.Series,
    lists: Codes | None,
    scores: Sequence[Row],
) -> Figure:
    """Return the groups' shares of the first places, at so many lengths of the top."""
    codes, names = codes_of(labels)
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    spread = np.round(np.geomspace(1, np.bincount(list_codes).max(), _LENGTHS))
    lengths = np.unique(np.asarray(spread, np.float64))
    tops = (differences.top_weights(score, list_codes, length) for length in lengths)
    of_lengths = [
        differences.weighted_shares(top, codes, len(names), lists=lists)[0] for top in tops
    ]
    shares = Limits(*np.stack(of_lengths, axis=1))
    row_shares = np.bincount(codes) / len(codes)
    log_lengths = np.log10(lengths)
    lines = []
    level_lines = []
    for index, name in enumerate(names[: tables.MOST_LINES]):
        lines.append(tables.group_line(name, index, log_lengths, shares.take(index)))
        colour = COLOURS[index % len(COLOURS)]
        level_lines.append(
            Series("", log_lengths[[0, -1]], row_shares[[index, index]], colour, marked=False)
        )
    title = "log10 of how many places are the first"
    panels = [
        Panel([*lines, *level_lines], title, "share of the first places", from_zero="y"),
        tables.density_panel(scores, attribute, "score"),
    ]
    caption = _said("first", attribute=attribute)
    return Figure(f"who is first, by {attribute}", chart(panels, key=lines), caption=caption)


# Times until an event, or the end of observation.

LimitsAt: TypeAlias = Callable[[float], differences.GroupLimits]
CONCORDANCE, BRIER = "concordance", "Brier score at the horizon"
_FEWEST_EVENTS = 20  # of a group whose concordance has an interval
_FEW_EVENTS = "there are too few rows or events of all but one of them"
_BLOCK = 1000  # rows that are compared with all others at once


def concordance(time: Floats, event: Mask, risk: Floats) -> tuple[float, float]:
    """Return Harrell's concordance of risks with times, and its standard error.

    It is the share of comparable pairs, those whose earlier time is that of an event, of which the
    earlier has the higher risk; equal risks count half (Harrell, Lee and Mark 1996). The standard
    error is that of the infinitesimal jackknife: each row's part in the pairs that it is in.

    Parameters
    ----------
    time : (n,) the time of the event, or until which the row was observed.
    event : (n,) whether the event was seen; otherwise the row is censored at its time.
    risk : (n,) the predicted risk.

    Notes
    -----
    Let p_i be the number of comparable pairs that row i is in, and w_i the number of them that are
    in the right order. With P = sum p_i / 2 pairs, the concordance is C = sum w_i / 2 / P, and its
    standard error sqrt(sum (w_i - C p_i)^2) / P.
    """
    right = np.zeros(len(time))  # w_i
    pairs = np.zeros(len(time))  # p_i
    for start in range(0, len(time), _BLOCK):
        block = slice(start, start + _BLOCK)
        ends, had_event, risks = (column[block, None] for column in (time, event, risk))
        later = (time > ends) | ((time == ends) & ~event)
        comparable = had_event & later
        wins = comparable * ((risks > risk) + 0.5 * (risks == risk))
        for total, counted in ((right, wins), (pairs, comparable)):
            total[block] += counted.sum(axis=1)
            total += counted.sum(axis=0)
    n_pairs = pairs.sum() / 2
    if not n_pairs:
        return float("nan"), float("nan")
    share = float(right.sum() / 2 / n_pairs)
    return share, float(np.sqrt(((right - share * pairs) ** 2).sum()) / n_pairs)


def _brier_losses(time: Floats, event: Mask, risk: Floats, horizon: float) -> Floats:
    """Return each row's part (n,) in the Brier score of the risk of an event by a horizon.

    Rows that are censored before it count through those that were observed as long, by the inverse
    probability of not being censored (Graf et al. 1999). NaN where no row is observed that long.
    """
    if _is_unobserved(time, event, horizon):
        return np.full(len(time), np.nan)
    had_event = event & (time <= horizon)
    control = time > horizon
    observed = _uncensored(time, event, np.minimum(time, horizon))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses: Floats = np.where(had_event | control, (had_event - risk) ** 2 / observed, 0.0)
    return losses


def _is_unobserved(time: Floats, event: Mask, horizon: float) -> bool:
    """Say whether no row is observed beyond a horizon, although not all had the event by then."""
    return not (event.all() or (time > horizon).any())


def _uncensored(time: Floats, event: Mask, times: Floats) -> Floats:
    """Return the probability of not being censored up to times (k,), by Kaplan and Meier.

    At equal times events come first.
    """
    if event.all():
        return np.ones(len(times))
    events = np.nextafter(time[event], -np.inf)
    sample = stats.CensoredData(time[~event], right=events)
    return np.asarray(stats.ecdf(sample).sf.evaluate(times), float)


def _audit_survival(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predicted risks of an event by group.

    Raises
    ------
    UserError : if a time is under 0, a risk is no probability, or no horizon is given, or one that
        nobody was observed to.
    """
    if not options.horizon:
        raise UserError("event= needs horizon=: by which time the score is the risk of an event")
    file = options.path.name
    time_column = ColumnRef(file, options.target)
    time = time_column.numbers(frame)
    time_column.refuse(frame[options.target], time < 0, "a time of 0 or more")
    event = ColumnRef(file, options.event).marks(frame[options.event])
    if _is_unobserved(time, event, options.horizon):
        raise UserError(_said("horizon", options=options, last=time.max()))
    rows = (time, event, ColumnRef(file, options.score).scores(frame))
    groups = read_groups(frame, file, options.group, options.reference)[0]
    risk = risk_of(2 * len(groups))
    found: list[Finding] = []
    measured: list[pd.DataFrame] = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        of_groups = ((group, codes == code) for code, group in enumerate(names))
        unobserved = [
            group
            for group, rows_of in of_groups
            if _is_unobserved(time[rows_of], event[rows_of], options.horizon)
        ]
        for name, at in _measures(rows, codes, len(names), options.horizon).items():
            about: dict[str, Any] = {"n": len(time), "bound": options.epsilon, "is_share": False}
            asked = Finding(GAP, attribute, name, needs=_FEW_EVENTS, **about)
            concluded = Measure.of_limits(asked, names, at).answered(risk).conclude()
            if name == BRIER and unobserved and concluded[0].needs:
                why = _said("unobserved", names=unobserved, options=options)
                concluded[0] = replace(concluded[0], needs=why)
            found += concluded
            columns = {"metric": name, "attribute": attribute, "group": names}
            limits, n = at(LEVEL).pointwise._asdict(), np.bincount(codes)
            measured.append(pd.DataFrame({**columns, **limits, "n": n}))
    figures = pd.concat(measured).to_dict("records")
    return Audit(
        options,
        len(time),
        len(time),
        found,
        [
            _said("events", rows=len(time), events=event.sum()),
            "This assumes that who is censored when does not depend, within a group, on the risk.",
        ],
        [Section("By group", [tables.named_table("numbers", "survival", figures)])],
        {},
        notes=notes_on_groups(frame, options.group),
        counted=_said("counted", rows=len(time), events=event.sum(), censored=(~event).sum()),
        figures=figures,
    )


def _measures(
    rows: tuple[Floats, Mask, Floats], codes: Codes, groups: int, horizon: float
) -> Mapping[str, LimitsAt]:
    """Return measure -> the function of a level that makes the limits of its groups."""
    shares, errors, losses = np.empty(groups), np.empty(groups), np.empty(len(codes))
    for group in range(groups):
        time, event, risk = (column[codes == group] for column in rows)
        shares[group], errors[group] = concordance(time, event, risk)
        if event.sum() < _FEWEST_EVENTS:
            errors[group] = np.nan
        losses[codes == group] = _brier_losses(time, event, risk, horizon)
    moments = Moments.of_groups(losses, codes, groups)

    def concordance_limits(level: float) -> Limits:
        """Return the concordances with intervals that are symmetric on the scale of log odds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = quantile(level) * errors / (shares * (1 - shares))
            limits = (special.expit(special.logit(shares) + side * reach) for side in (-1, 1))
            return Limits(shares, *(np.where(np.isfinite(reach), end, np.nan) for end in limits))

    def brier_limits(level: float) -> Limits:
        return loss_limits(moments, level=level, least=0.0)

    return {
        CONCORDANCE: partial(differences.GroupLimits.at, concordance_limits),
        BRIER: partial(differences.GroupLimits.at, brier_limits),
    }


AUDITS = {
    **dict.fromkeys(question.OF_NUMBERS, _audit_numbers),
    question.RANKING: _audit_ranking,
    question.SURVIVAL: _audit_survival,
}
