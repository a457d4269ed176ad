"""The audit as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairbench.audit import words
from fairbench.audit.assessment import Assessment
from fairbench.audit.calibration import GroupCalibration
from fairbench.audit.conclusions import Conclusions, verdict_words
from fairbench.audit.labels_needed import WORLDS
from fairbench.audit.view import MAIN_RATES, group_rows, needed_words
from fairbench.core.version import VERSION

_FILTERS = {
    "number": words.number,
    "signed": words.signed,
    "chance": words.chance,
    "count": words.count,
    "verdict": verdict_words,
    "needed": needed_words,
}


@dataclass(frozen=True, eq=False)
class Interval:
    """An interval on the scale of the figure, in percent of its width.

    `band` are the ends of what makes no practical difference, around `zero`.
    """

    lower: float
    value: float
    upper: float
    band: tuple[float, float]
    zero: float


def environment() -> Environment:
    """Return where the audit's pages find their templates and filters."""
    pages = Environment(
        loader=ChoiceLoader(
            [PackageLoader("fairbench.audit"), PackageLoader("fairbench.reporting.page")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= _FILTERS
    pages.globals |= {"interval": words.interval}
    return pages


def stylesheet() -> Markup:
    """Return the style of the audit's pages."""
    pages = environment()
    source = pages.loader.get_source  # type: ignore[union-attr]
    return Markup("\n".join(source(pages, name)[0] for name in ("page.css", "audit.css")))


def render(assessment: Assessment, conclusions: Conclusions) -> str:
    """Return the page; every text of the user's file is escaped."""
    metrics = assessment.metrics[assessment.metrics["attribute"] != ""].to_dict("records")
    everyone = assessment.metrics[assessment.metrics["attribute"] == ""].to_dict("records")
    return (
        environment()
        .get_template("audit.html.jinja")
        .render(
            options=assessment.options,
            labels=assessment.table.labels,
            conclusions=conclusions,
            groups=group_rows(assessment),
            main_rates=MAIN_RATES,
            names=words.RATES,
            gaps=list(_placed(assessment)),
            needed={id(each.gap): each for each in assessment.needed},
            checks=assessment.checks,
            diagrams=_diagrams(assessment),
            worlds=WORLDS,
            metrics=[*everyone, *metrics],
            version=VERSION,
            css=stylesheet(),
        )
    )


def on_scale(
    ends: Sequence[tuple[float, float, float]], epsilon: float
) -> Iterator[Interval | None]:
    """Yield (lower, value, upper) placed on a scale that all share; None of what is undefined."""
    shown = [each for triple in ends for each in triple if not np.isnan(each)]
    low, high = min([-epsilon, *shown]), max([epsilon, *shown])

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 1)

    band, zero = (place(-epsilon), place(epsilon)), place(0)
    for lower, value, upper in ends:
        if np.isnan([lower, value, upper]).any():
            yield None
        else:
            yield Interval(place(lower), place(value), place(upper), band, zero)


def _placed(assessment: Assessment) -> Iterator[dict[str, object]]:
    """Yield the gaps with their places on the scale of the figure."""
    gaps = assessment.gaps
    ends = [(gap.lower, gap.value, gap.upper) for gap in gaps]
    for gap, bar in zip(gaps, on_scale(ends, assessment.options.epsilon), strict=True):
        yield {"gap": gap, "key": id(gap), "bar": bar}


def _diagrams(assessment: Assessment) -> Sequence[GroupCalibration]:
    """Return the groups whose calibration can be drawn: those of single attributes."""
    singles = assessment.options.group
    return [each for each in assessment.calibrations if each.attribute in singles and each.bins]
