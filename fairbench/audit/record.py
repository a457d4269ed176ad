"""The audit as JSON: everything the page shows, and every metric."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from fairbench.audit.assessment import Assessment
from fairbench.audit.conclusions import Conclusions
from fairbench.core.version import VERSION


def record(assessment: Assessment, conclusions: Conclusions) -> str:
    """Return an assessment as JSON; numbers that do not exist are null."""
    negative, positive = assessment.table.labels
    content = {
        "version": VERSION,
        "options": {**asdict(assessment.options), "path": str(assessment.options.path)},
        "rows": len(assessment.table),
        "labels": assessment.labels,
        "label_names": {"0": negative, "1": positive},
        "completion": type(assessment.completion).__name__.lower(),
        "conclusions": asdict(conclusions),
        "gaps": [asdict(gap) for gap in assessment.gaps],
        "labels_needed": [
            {
                "attribute": each.gap.attribute,
                "metric": each.gap.metric,
                "labels": each.labels,
                "settled": each.settled,
                "enough": each.enough,
                "remaining": each.remaining,
            }
            for each in assessment.needed
        ],
        "checks": [
            {
                "attribute": each.gap.attribute,
                "metric": each.gap.metric,
                "method": each.method,
                "value": each.value,
                "lower": each.lower,
                "upper": each.upper,
                "agrees": each.agrees,
            }
            for each in assessment.checks
        ],
        "sizes": [asdict(each) for each in assessment.sizes],
        "calibration": [asdict(each) for each in assessment.calibrations],
        "metrics": assessment.metrics.to_dict("records"),
    }
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def finite(value: Any) -> Any:
    """Return a value with null for every number that is none."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
