"""The audit of a multi-class classifier as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.multiclass.assessment import MulticlassAssessment
from fairbench.audit.multiclass.terminal import by_accuracy
from fairbench.audit.page import environment, stylesheet
from fairbench.core.version import VERSION


def render_multiclass(assessment: MulticlassAssessment, conclusions: Conclusions) -> str:
    """Return the page; every text of the user's file is escaped."""
    return (
        environment()
        .get_template("multiclass.html.jinja")
        .render(
            options=assessment.options,
            conclusions=conclusions,
            everyone=assessment.everyone,
            classes=by_accuracy(assessment.classes),
            groups={kind: by_accuracy(parts) for kind, parts in assessment.groups.items()},
            gaps=assessment.gaps,
            mistakes=assessment.mistakes,
            bins=list(_bins(assessment)),
            version=VERSION,
            css=stylesheet(),
        )
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
