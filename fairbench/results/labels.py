"""What tells runs apart, in words: the choices in which they differ, then the options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairbench.results.runs import Run

_PARTS = ("dataset", "split", "learner", "intervention", "method", "evaluator")


def labels(runs: Sequence[Run]) -> list[str]:
    """Return a label for each run: what it chose where the runs differ, its method at least."""
    varied = [part for part in _PARTS if len({run.choices[part] for run in runs}) > 1]
    names = [", ".join(run.choices[part] for part in varied or ["method"]) for run in runs]
    for name, values in (
        ("protect", [run.protect for run in runs]),
        ("seed", [run.seed for run in runs]),
    ):
        if len(set(values)) > 1:
            names = [f"{label}, {name}={v}" for label, v in zip(names, values, strict=True)]
    return told_apart(names, runs, _PARTS)


def told_apart(names: Sequence[str], runs: Sequence[Run], groups: Sequence[str]) -> list[str]:
    """Add to each name the options of these groups in which its namesakes differ."""
    namesakes: dict[str, list[dict[str, Any]]] = {}
    flat = [dict(_options(run, groups)) for run in runs]
    for name, options in zip(names, flat, strict=True):
        namesakes.setdefault(name, []).append(options)
    differing = {name: _differing(of_name) for name, of_name in namesakes.items()}
    return [
        ", ".join(
            [name, *(f"{_last(key)}={options[key]}" for key in differing[name] if key in options)]
        )
        for name, options in zip(names, flat, strict=True)
    ]


def _last(option: str) -> str:
    return option.rpartition(".")[2]


def _options(run: Run, groups: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for group in groups:
        for name, value in run.config.get(group, {}).items():
            if name != "name":
                yield f"{group}.{name}", value


def _differing(options: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for each in options for name in each)
    return [
        name
        for name in names
        if any(each.get(name) != options[0].get(name) for each in options[1:])
    ]
