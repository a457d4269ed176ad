"""The audit of a multi-class classifier as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.multiclass.assessment import MulticlassAssessment
from fairbench.audit.record import finite
from fairbench.core.version import VERSION


def record_multiclass(assessment: MulticlassAssessment, conclusions: Conclusions) -> str:
    """Return an assessment as JSON; numbers that do not exist are null."""
    diagram = assessment.diagram
    lower, upper = diagram.accuracy.interval()
    content = {
        "version": VERSION,
        "options": {**asdict(assessment.options), "path": str(assessment.options.path)},
        "rows": len(assessment.table.scores),
        "labels": assessment.labels,
        "class_names": list(assessment.table.scores.classes),
        "conclusions": asdict(conclusions),
        "everyone": asdict(assessment.everyone),
        "classes": [asdict(part) for part in assessment.classes],
        "groups": {k: [asdict(part) for part in v] for k, v in assessment.groups.items()},
        "accuracy_gaps": [asdict(gap) for gap in assessment.gaps],
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
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"
