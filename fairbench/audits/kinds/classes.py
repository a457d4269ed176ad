"""The audit of three classes and more: class by class and group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.class_table import (
    MulticlassTable,
    read_multiclass_table,
)
from fairbench.audits.findings import (
    GAP,
    LARGE,
    LOWEST,
    NOT_MEASURED,
    OPEN,
    ErrorBudget,
    Finding,
    GapAnswer,
    compare_groups,
    lowest_of,
)
from fairbench.audits.gaps import FEWEST_LABELS, TOO_FEW
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.sentences import listed
from fairbench.core.formats import count, interval, number
from fairbench.core.seeds import rng
from fairbench.inference.beta import Beta, uniform
from fairbench.inference.confusion_matrix import (
    confusion_posterior,
    cost_draws,
    expected_cost,
    uninformative_prior,
)
from fairbench.inference.confusion_matrix import score_prior as confusion_score_prior
from fairbench.inference.gaps import GroupLimits, leads
from fairbench.inference.posterior import FREQUENTIST, central_interval
from fairbench.inference.rates import rate_limits
from fairbench.inference.reliability import (
    ReliabilityDiagram,
    accuracy_posterior,
    ranks,
    reliability_diagram,
    score_prior,
)
from fairbench.reporting.document.model import (
    Bar,
    Column,
    Figure,
    Gallery,
    Section,
    Table,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

DRAWS = 4000
FEWEST_COMPARED = 10  # labels of a group that is compared with others
CLASSES = "predicted class"
ACCURACY = "accuracy"
_MOST = 12  # rows of a table on a terminal
_MOST_NAMED = 5


@dataclass(frozen=True)
class RankedEstimate:
    """A quantity of one class or group.

    Attributes
    ----------
    value, lower, upper : with its 95 % interval: of an accuracy that of the labels alone, unless
        scores are its prior; of other quantities, mean and interval of their posterior.
    extreme : of a posterior, the probability of being the worst of all.
    worst_rank, best_rank : 95 % interval of its rank, 1 being the worst; NaN of everyone together.
    """

    value: float
    lower: float
    upper: float
    extreme: float = float("nan")
    worst_rank: float = float("nan")
    best_rank: float = float("nan")


@dataclass(frozen=True)
class Part:
    """The rows predicted as a class, or of a group: accuracy, ECE, expected cost of a row."""

    name: str
    rows: int
    labels: int
    accuracy: RankedEstimate
    calibration: RankedEstimate
    cost: RankedEstimate | None = None


@dataclass(frozen=True)
class Mistake:
    """Labelled rows of one class predicted as another, and their share of those predicted so."""

    target: str
    prediction: str
    count: int
    share: RankedEstimate


@dataclass(frozen=True, eq=False)
class MulticlassAssessment:
    """What is known of a multi-class classifier; classes never predicted are left out."""

    options: Options
    table: MulticlassTable
    everyone: Part
    classes: Sequence[Part]
    groups: Mapping[str, Sequence[Part]]
    findings: Sequence[Finding]
    mistakes: Sequence[Mistake]
    diagram: ReliabilityDiagram

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return len(self.table.scores.labelled)


def audit_classes(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of three classes and more."""
    return audit_of(assess_multiclass(read_multiclass_table(options, frame), options))


def assess_multiclass(table: MulticlassTable, options: Options) -> MulticlassAssessment:
    """Assess multi-class predictions."""
    scores, generator = table.scores, rng(options.seed, "posterior")
    parts = _Parts(table, options, generator)
    nobody = np.zeros(len(scores), np.int64)
    (everyone,) = parts.of(nobody, ["everyone"])
    classes = parts.of(scores.prediction, scores.classes, by_class=True)
    groups: dict[str, list[Part]] = {}
    for attribute, labels in table.groups.items():
        names = [str(name) for name in labels.cat.categories]
        code = labels.cat.codes.to_numpy(np.int64)
        groups[attribute] = parts.of(code, names)
    diagram = reliability_diagram(scores.confidence, scores.correct, strength=options.strength)
    mistakes = list(_mistakes(table))
    return MulticlassAssessment(
        options,
        table,
        everyone,
        classes,
        groups,
        findings_of(table, options),
        mistakes,
        diagram,
    )


def findings_of(table: MulticlassTable, options: Options) -> list[Finding]:
    """Return what labels say of the accuracies of groups, and of predicted classes."""
    parts, scores = _Parts(table, options, rng(options.seed, "posterior")), table.scores
    budget = ErrorBudget(len(table.groups) + 1)
    findings: list[Finding] = []
    for attribute, labels in table.groups.items():
        names = [str(name) for name in labels.cat.categories]
        code = labels.cat.codes.to_numpy(np.int64)
        findings += parts.compared(attribute, code, names, budget)
    by_class = parts.compared(CLASSES, scores.prediction, scores.classes, budget)
    return [*findings, *(finding for finding in by_class if finding.about == LOWEST)]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Assesses the parts that a choice of groups divides the rows into."""

    table: MulticlassTable
    options: Options
    generator: np.random.Generator

    def of(self, code: Codes, names: Sequence[str], *, by_class: bool = False) -> list[Part]:
        """Return the parts that have rows."""
        scores, n = self.table.scores, len(names)
        rows = np.bincount(code, minlength=n)
        labels = np.bincount(code[scores.labelled], minlength=n)
        kept = np.flatnonzero(rows)
        diagram = reliability_diagram(
            scores.confidence, scores.correct, code, n_groups=n, strength=self.options.strength
        )
        error = diagram.calibration_error_draws(DRAWS, self.generator)[:, kept]
        calibration = _estimates(error, diagram.expected_calibration_error()[kept])
        costs: Sequence[RankedEstimate | None] = [None] * len(kept)
        if by_class and self.table.costs is not None:
            costs = self._costs(kept)
        estimates = zip(self._accuracies(code, n), calibration, costs, strict=True)
        return [
            Part(names[k], int(rows[k]), int(labels[k]), *each)
            for k, each in zip(kept.tolist(), estimates, strict=True)
        ]

    def compared(
        self, attribute: str, code: Codes, names: Sequence[str], budget: ErrorBudget
    ) -> list[Finding]:
        """Return what labels alone say of the accuracies of groups, and which is the lowest."""
        right, size = self._counts(code, len(names))
        enough = size >= FEWEST_COMPARED
        named = [name for name, has in zip(names, enough, strict=True) if has]
        bound, labels = self.options.epsilon, int(size[enough].sum())
        if len(named) < 2:
            return [
                Finding(
                    about, attribute, ACCURACY, NOT_MEASURED, bound=bound, n=labels, needs=TOO_FEW
                )
                for about in (GAP, LOWEST)
            ]

        def at(level: float) -> GroupLimits:
            return GroupLimits.of(right[enough], size[enough], level=level)

        complete = len(self.table.scores.labelled) == len(self.table.scores)
        answer, findings = compare_groups(
            at,
            named,
            Finding(GAP, attribute, ACCURACY, OPEN, bound=bound, n=labels),
            budget.risk,
            may_be_small=complete or bool((size[size > 0] >= FEWEST_LABELS).all()),
        )
        lowest = self._lowest(findings[0], named, answer, right[enough] / size[enough], at(0.95))
        return [*findings, *lowest]

    def _lowest(
        self,
        gap: Finding,
        names: Sequence[str],
        answer: GapAnswer,
        rates: Floats,
        limits: GroupLimits,
    ) -> Iterator[Finding]:
        """Yield which group has the lowest accuracy, of more than two."""
        if len(names) > 2:
            candidates = lowest_of(names, answer)
            place = int(rates.argmin())
            ends = limits.single.at(place) if len(candidates) == 1 else (np.nan,) * 3
            yield replace(
                gap,
                about=LOWEST,
                verdict=LARGE if len(candidates) == 1 else OPEN,
                groups=tuple(candidates),
                value=float(ends[0]),
                lower=float(ends[1]),
                upper=float(ends[2]),
                values=(),
            )

    def _counts(self, code: Codes, n: int) -> tuple[Floats, Floats]:
        """Return how many labelled rows of each part are right, and how many there are."""
        scores = self.table.scores
        code = code[scores.labelled]
        right = np.bincount(code, scores.correct[scores.labelled], minlength=n)
        return right.astype(np.float64), np.bincount(code, minlength=n).astype(np.float64)

    def _accuracies(self, code: Codes, n: int) -> list[RankedEstimate]:
        """Return the accuracies of the parts that have rows, with ranks from the labels alone."""
        scores = self.table.scores
        kept = np.bincount(code, minlength=n) > 0
        right, size = (each[kept] for each in self._counts(code, n))
        if self.options.interval == FREQUENTIST and self.options.prior == "uniform":
            columns: tuple[Floats, ...] = tuple(rate_limits(right, size))
        else:
            posterior = accuracy_posterior(scores.correct, code, self._prior(code, n))
            draws = posterior.draws(DRAWS, self.generator)[:, kept]
            columns = (posterior.mean[kept], *central_interval(draws))
        estimates = [RankedEstimate(*map(float, each)) for each in zip(*columns, strict=True)]
        if len(estimates) < 2:
            return estimates
        above = leads(GroupLimits.of(right, size)) > 0
        first, last = 1 + above.sum(axis=1), len(size) - above.sum(axis=0)
        return [
            replace(estimate, worst_rank=float(low), best_rank=float(high))
            for estimate, low, high in zip(estimates, first, last, strict=True)
        ]

    def _prior(self, code: Codes, n: int) -> Beta:
        if self.options.prior == "uniform":
            return uniform(n, self.options.strength)
        return score_prior(self.table.scores.confidence, code, n, strength=self.options.strength)

    def _costs(self, kept: Codes) -> list[RankedEstimate]:
        scores, costs = self.table.scores, self.table.costs
        assert costs is not None
        n, strength = len(scores.classes), self.options.strength
        uninformed = uninformative_prior(n, strength=strength)
        informed = self.options.prior == "scores"
        prior = confusion_score_prior(scores, strength=strength) if informed else uninformed
        posterior = confusion_posterior(scores, prior)
        draws = cost_draws(posterior, costs, DRAWS, self.generator)[:, kept]
        return _estimates(draws, expected_cost(posterior, costs)[0][kept])


def _estimates(draws: Floats, mean: Floats) -> list[RankedEstimate]:
    """Return each column's estimate; the worst is the largest."""
    columns: tuple[Floats, ...] = (mean, *central_interval(draws))
    if len(mean) > 1:
        order = ranks(draws, largest=True)
        columns += (order.first, order.lower, order.upper)
    return [RankedEstimate(*map(float, each)) for each in zip(*columns, strict=True)]


def _mistakes(table: MulticlassTable, most: int = 10) -> Iterator[Mistake]:
    """Yield the most frequent mistakes."""
    scores, n = table.scores, len(table.scores.classes)
    posterior = confusion_posterior(scores, np.zeros((n, n)))
    wrong = posterior.alpha * (1 - np.eye(n))
    total = posterior.alpha.sum(axis=1)
    for cell in np.argsort(-wrong, axis=None, kind="stable")[:most]:
        k, j = divmod(int(cell), n)
        if count := wrong[k, j]:
            share = Beta(np.asarray(1 + count), np.asarray(1 + total[k] - count))
            lower, upper = map(float, share.interval())
            estimate = RankedEstimate(float(count / total[k]), lower, upper)
            yield Mistake(scores.classes[j], scores.classes[k], int(count), estimate)


def audit_of(assessment: MulticlassAssessment) -> Audit:
    """Return the audit that an assessment is of."""
    return Audit(
        assessment.options,
        len(assessment.table.scores),
        assessment.labels,
        assessment.findings,
        list(_basis(assessment)),
        list(_sections(assessment)),
        _data(assessment),
        warning=""
        if assessment.labels
        else "There are no labels: everything here is what was assumed before any was seen.",
        notes=list(_notes(assessment)),
        unseen=["Of groups only the accuracy was compared, not which classes they are given."],
        todo=["Label more rows for what stays open and matters most."]
        * any(finding.verdict == OPEN for finding in assessment.findings),
        figures=list(_figures(assessment)),
    )


def _figures(assessment: MulticlassAssessment) -> Iterator[dict[str, Any]]:
    """Yield every estimate of everyone, of groups and of predicted classes."""
    parts = {"": [assessment.everyone], **assessment.groups, CLASSES: assessment.classes}
    for attribute, of_attribute in parts.items():
        for part in of_attribute:
            estimates = {
                ACCURACY: part.accuracy,
                "expected_calibration_error": part.calibration,
                "expected_cost": part.cost,
            }
            for metric, estimate in estimates.items():
                if estimate is not None:
                    yield {
                        "metric": metric,
                        "attribute": attribute,
                        "group": part.name if attribute else "",
                        "value": estimate.value,
                        "lower": estimate.lower,
                        "upper": estimate.upper,
                        "n": part.labels,
                        "rows": part.rows,
                    }


def _basis(assessment: MulticlassAssessment) -> Iterator[str]:
    scores = assessment.table.scores
    rows, labels = len(scores), assessment.labels
    yield (
        f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%}), "
        f"{count(len(scores.classes))} classes."
    )
    if labels:
        accuracy = assessment.everyone.accuracy
        yield (
            f"The accuracy is {number(accuracy.value)} (95 % interval "
            f"{interval(accuracy.lower, accuracy.upper)})."
        )
    yield (
        "The accuracy of a predicted class is the share of right ones among the rows predicted so; "
        "its expected calibration error (ECE) is how far scores of such rows are from that share, "
        "over ten bins."
    )
    if labels < rows:
        yield (
            "This assumes that rows were chosen for labelling at random among all; by class, at "
            "random among the rows predicted as each class is enough."
        )


def _notes(assessment: MulticlassAssessment) -> Iterator[str]:
    yield from assessment.table.notes
    bare = [part.name for part in assessment.classes if not part.labels]
    if bare and assessment.labels:
        named = listed(bare, _MOST_NAMED)
        yield f"{count(len(bare))} predicted classes have no label at all: {named}."
    left = len(assessment.table.scores.classes) - len(assessment.classes)
    if left:
        yield f"{count(left)} classes were never predicted and are left out."
    for kind, parts in assessment.groups.items():
        few = [part.name for part in parts if part.labels < FEWEST_COMPARED]
        if few and assessment.labels:
            yield f"{kind}: not compared, with under {FEWEST_COMPARED} labels: {listed(few)}."
    prior = {"uniform": "knows nothing", "scores": "takes the scores at their word"}
    strength = f"{assessment.options.strength:g}"
    yield (
        "ECE, costs and their P(worst) are of a posterior, whose prior "
        f"{prior[assessment.options.prior]} and is worth {strength} labels; what is concluded "
        "rests on the labels alone."
    )


def _sections(assessment: MulticlassAssessment) -> Iterator[Section]:
    note = (
        "Share of right predictions among labelled rows of similar scores, with 95 % intervals; on "
        "the dashed line scores are probabilities. Bars: where the scores of all rows lie."
    )
    yield Section("Calibration", [Gallery([_diagram(assessment)], note)])
    for kind, parts in assessment.groups.items():
        yield Section(f"By {kind}", [_parts(kind, parts)])
    title = "By predicted class, the least accurate first"
    yield Section(title, [_parts("class", assessment.classes)])
    if assessment.mistakes:
        yield Section("Most frequent mistakes", [_mistake_table(assessment)])


def _parts(kind: str, parts: Sequence[Part]) -> Table:
    """Return groups or classes with the least accurate first."""
    ordered = sorted(parts, key=lambda part: part.accuracy.value)
    low = np.nanmin([0.99, *(part.accuracy.lower for part in parts)])
    columns = [Column(kind), Column("rows", "count"), Column("labels", "count")]
    columns += [Column("accuracy", "estimate"), Column("", "bar", narrow=True)]
    columns += [Column("rank", right=True, left_out=1)]
    columns += [Column("ECE", "estimate"), Column("P(worst)", "probability")]
    with_cost = parts[0].cost is not None
    if with_cost:
        columns += [Column("cost", "estimate"), Column("P(worst)", "probability")]
    rows = []
    for part in ordered:
        accuracy = part.accuracy
        places = f"{accuracy.worst_rank:.0f} to {accuracy.best_rank:.0f}"
        row: list[Any] = [part.name, part.rows, part.labels, _three(accuracy), _bar(accuracy, low)]
        row += [places, _three(part.calibration), part.calibration.extreme]
        if part.cost is not None:
            row += [_three(part.cost), part.cost.extreme]
        rows.append(row)
    caption = (
        "rank: 1 is the least accurate; the ranks of all rows hold together in 95 % of samples"
    )
    return Table(columns, rows, caption=caption, most=_MOST)


def _three(estimate: RankedEstimate) -> tuple[float, float, float]:
    return estimate.value, estimate.lower, estimate.upper


def _bar(estimate: RankedEstimate, low: float) -> Bar | None:
    """Return an interval on the scale from the lowest end of all to 1."""
    if np.isnan(estimate.value):
        return None
    ends = [100 * (value - low) / (1 - low) for value in _three(estimate)]
    return Bar(ends[1], ends[0], ends[2], band=(0, 100))


def _mistake_table(assessment: MulticlassAssessment) -> Table:
    columns = [Column("true class"), Column("predicted"), Column("labels", "count")]
    columns += [Column("share of those predicted so", "number")]
    columns += [Column("95 % interval", "interval")]
    rows = [
        [
            each.target,
            each.prediction,
            each.count,
            each.share.value,
            (each.share.lower, each.share.upper),
        ]
        for each in assessment.mistakes
    ]
    return Table(columns, rows, most=_MOST)


def _diagram(assessment: MulticlassAssessment) -> Figure:
    accuracy, error = assessment.everyone.accuracy, assessment.everyone.calibration
    caption = (
        f"Score across, accuracy up. ECE {number(error.value)} "
        f"({interval(error.lower, error.upper)}), accuracy {number(accuracy.value)} "
        f"({interval(accuracy.lower, accuracy.upper)})"
    )
    svg = _svg(list(_bins(assessment)))
    return Figure("reliability of all rows", svg=svg, caption=caption, style="large-diagram")


def _svg(bins: Sequence[Mapping[str, float]]) -> str:
    shares = "".join(
        f'<rect class="share" x="{100 * b["left"] + 1}" y="{100 - 40 * b["weight"]}" '
        f'width="{100 * b["width"] - 2}" height="{40 * b["weight"]}"/>'
        for b in bins
    )
    points = "".join(
        f'<line class="range" x1="{100 * b["score"]}" x2="{100 * b["score"]}" '
        f'y1="{100 - 100 * b["lower"]}" y2="{100 - 100 * b["upper"]}"/>'
        f'<circle cx="{100 * b["score"]}" cy="{100 - 100 * b["accuracy"]}" r="1.6">'
        f"<title>{b['labels']:.0f} labels</title></circle>"
        for b in bins
    )
    ticks = "".join(
        f'<text x="{tick}" y="107" text-anchor="middle">{tick / 100}</text>'
        f'<text x="-2" y="{102 - tick}" text-anchor="end">{tick / 100}</text>'
        for tick in (0, 50, 100)
    )
    return (
        '<svg viewBox="-12 -4 118 116" role="img" aria-label="reliability of all rows">'
        f'{shares}<rect class="frame" x="0" y="0" width="100" height="100"/>'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}{ticks}</svg>'
    )


def _bins(assessment: MulticlassAssessment) -> Iterator[dict[str, float]]:
    """Yield the bins of the reliability diagram that have rows."""
    diagram = assessment.diagram
    lower, upper = diagram.accuracy.interval()
    columns = (diagram.weight, diagram.score, diagram.accuracy.mean, lower, upper, diagram.labels)
    names = ("weight", "score", "accuracy", "lower", "upper", "labels")
    width = 1 / diagram.weight.shape[1]
    for b, each in enumerate(zip(*(column[0] for column in columns), strict=True)):
        if each[0] > 0:
            bin_values = dict(zip(names, map(float, each), strict=True))
            yield {**bin_values, "left": b * width, "width": width}


def _data(assessment: MulticlassAssessment) -> Mapping[str, Any]:
    diagram = assessment.diagram
    lower, upper = diagram.accuracy.interval()
    return {
        "class_names": list(assessment.table.scores.classes),
        "everyone": asdict(assessment.everyone),
        "classes": [asdict(part) for part in assessment.classes],
        "groups": {kind: [asdict(part) for part in v] for kind, v in assessment.groups.items()},
        "mistakes": [asdict(mistake) for mistake in assessment.mistakes],
        "reliability": {
            "share_of_rows": diagram.weight[0].tolist(),
            "score": diagram.score[0].tolist(),
            "labels": diagram.labels[0].tolist(),
            "accuracy": diagram.accuracy.mean[0].tolist(),
            "lower": lower[0].tolist(),
            "upper": upper[0].tolist(),
        },
    }
