"""Choose the fairest of many finished runs, and say what its gap is after having been chosen.

The run with the smallest gap among the accurate ones was chosen for its luck as well: its gap looks
smaller than it is, the more so the more runs there were. choose prints the gap and the error of the
chosen run as they look and as they are corrected for the choice, and names the runs that cannot be
told from the best.

All runs must predict the same rows of one data set for the same groups. Demos and what was run
while tuning are left out, unless purpose= or ids name them. Words such as
dataset=adult, method=baseline,ensemble or learner.max_depth=6 select runs, as in
"fairbench store ls"; from=EXPERIMENT takes those of an experiment in conf/experiment. With one
hold-out split that has validation rows (split.repeats=1 split.validation=0.2), the validation rows
choose and the test rows judge, and nothing needs to be corrected. Over several hold-outs or folds,
the means over all of them are compared. Every row counts as one: runs that weigh their rows are
refused, and rows that belong together count as independent. A comparison needs quotes, or the
shell takes < for a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np

from fairbench.cli.command import Command, Results, components_folder, with_note
from fairbench.comparison.choice import Choice, choose_run
from fairbench.comparison.differences import CannotChooseError, selecting, works
from fairbench.comparison.settings import Bound, minimised
from fairbench.core.errors import UserError, check_share, unknown_name
from fairbench.core.formats import interval, number
from fairbench.core.options import option
from fairbench.evaluation.headlines import estimate
from fairbench.metrics.registry import Metric
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table
from fairbench.reporting.document.plain_text import to_latex, to_markdown
from fairbench.reporting.document.terminal import print_document
from fairbench.results.catalogue import KEYS, Catalogue

_FROM, _PURPOSE = "from", "purpose"

SECTION = "Compare finished runs"


@dataclass(frozen=True)
class ChooseOptions(Results):
    """Among which runs is chosen, and by what."""

    ids: tuple[str, ...] = option((), "Runs whose ids begin so; all by default.", argument="RUN")
    keys: tuple[tuple[str, str], ...] = option(
        (), "Runs with these values, such as dataset=adult; from=EXPERIMENT: those of it.",
        argument="KEY=VALUE", pairs=lambda name: True,
    )  # fmt: skip
    minimise: str = option(
        "equalized_odds", "What is to be small: a gap between groups, or a rate better low.",
        shown="METRIC",
    )  # fmt: skip
    where: tuple[str, ...] = option(
        (), "What a run must keep to: rates compared by <=, <, >= or > with a number, in quotes.",
        shown="'[RATE<=NUMBER,...]'",
    )  # fmt: skip
    level: float = option(0.95, "How sure the intervals are.")
    format: str = option(
        "text", "How the result is printed.", choices=("text", "json", "html", "markdown", "latex")
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, before any run is read."""
        check_share("level", self.level)
        for name, text in self.keys:
            if name.rstrip("<>") != name:
                raise UserError(f"'{name}={text}' is a comparison: write where='{name}={text}'")
            if name != _FROM and name not in KEYS and "." not in name:
                known = ("minimise", "where", "level", "format", "results", _FROM, *KEYS)
                raise unknown_name("option", name, known)


def choose(options: ChooseOptions) -> None:
    """Choose a run, and print what is known of it.

    Raises
    ------
    UserError : none can be chosen; the message has a command that chooses, if any does.
    """
    metric = minimised(options.minimise)
    bounds = tuple(Bound.read(text) for text in options.where)
    among = _candidates(options)
    catalogue = _selected(options, among)
    try:
        made = choose_run(list(catalogue), metric, bounds, level=options.level)
    except CannotChooseError as error:
        raise UserError(f"{error}; {_instead(options, among, catalogue)}") from error
    _print(choice_document(made, catalogue.only(list(made.runs)).label()), options.format)


def _candidates(options: ChooseOptions) -> Catalogue:
    """Return the runs from which words select: those of an experiment, where one is named."""
    from fairbench.experiments.presets import Presets

    catalogue = Catalogue(options.results)
    for name in (text for key, text in options.keys if key == _FROM):
        presets = Presets(components_folder() / "conf")
        catalogue = catalogue.only(presets.runs_of_all(name, catalogue.runs))
    return catalogue


def _selected(options: ChooseOptions, among: Catalogue) -> Catalogue:
    """Return the runs that the words select."""
    catalogue = among.matching([*options.ids, *_selection(options)])
    if not options.ids and _PURPOSE not in dict(options.keys):
        catalogue = with_note(*catalogue.counted())
    return catalogue


def _selection(options: ChooseOptions) -> list[str]:
    return [f"{name}={text}" for name, text in options.keys if name != _FROM]


def _instead(options: ChooseOptions, among: Catalogue, catalogue: Catalogue) -> str:
    """Return a command that chooses among comparable runs, most of them from these."""
    if _PURPOSE not in dict(options.keys):
        among = among.counted()[0]
    chosen = works(catalogue.runs, list(among))
    if len(chosen) < 2:
        return f"no two finished runs of {options.results} can be; run another on the same splits"
    words = _selection(options) if {run.id for run in chosen} <= {*catalogue.runs} else []
    other_words = [f"{_FROM}={text}" for name, text in options.keys if name == _FROM]
    defaults = ChooseOptions()
    if options.minimise != defaults.minimise:
        other_words.append(f"minimise={options.minimise}")
    if options.where:
        other_words.append(f"where=[{','.join(options.where)}]")
    if options.level != defaults.level:
        other_words.append(f"level={options.level:g}")
    if options.results != defaults.results:
        other_words.append(f"results={options.results}")
    line = shlex.join(["fairbench", "choose", *selecting(chosen, among, words), *other_words])
    return f"{len(chosen)} runs can be chosen from: {line}"


def _print(document: Document, kind: str) -> None:
    if kind == "text":
        print_document(document)
        return
    writers = {"json": to_json, "html": to_html, "markdown": to_markdown, "latex": to_latex}
    print(writers[kind](document))


def choice_document(choice: Choice, names: Mapping[str, str]) -> Document:
    """Return what is known of the run that was chosen out of many.

    Parameters
    ----------
    names : a label for each run, by id.
    """
    attribute, data = choice.runs[0].protect, choice.runs[0].choices["dataset"]
    title = f"The best of {len(choice.runs)} runs of {data} by {attribute}"
    lead = [Paragraph(_sentences(choice, names))]
    tables = [_judged_table(choice), _runs_table(choice, names)]
    notes = [*choice.notes, *_notes_on_table(choice)]
    return Document(title, [Section("", tables)], lead=lead, notes=notes)


def _notes_on_table(choice: Choice) -> Iterator[str]:
    """Yield a note if the chosen run's own table has another number for the objective."""
    run, objective = choice.runs[choice.place], choice.judged[0]
    shown = estimate(run.summary(), objective.metric.name, run.protect)[0]
    if isnan(shown) or number(shown) == number(objective.value):
        return
    yield (
        f"fairbench table {run.id} shows {number(shown)} as the {_name(objective.metric)}, the "
        f"mean of the gaps of all splits. Here it is {number(objective.value)}, the gap of the "
        "mean rates: luck makes the gap of a single split larger, and evens out in the mean "
        "rates. The interval by itself is the same in both."
    )


def _sentences(choice: Choice, names: Mapping[str, str]) -> str:
    """Return sentences on the chosen run, its intervals, and runs it cannot be told from."""
    objective, *other_metrics = choice.judged
    best, k, level = choice.runs[choice.place], len(choice.runs), f"{choice.level:.0%}"
    rows = "validation rows" if choice.apart else "test rows"
    rows += f", as means over {choice.repeats} repeats," if choice.repeats > 1 else ""
    words = " and ".join(_bound_text(bound) for bound in choice.bounds)
    within = f"{choice.eligible.sum()} of {k} runs have {words} on the {rows}".rstrip(",")
    which = f"{within}. Of these, " if words else f"Of {k} runs, judged on the {rows} "
    text = [f"{which}{names[best.id]} ({best.id}) has the smallest {_name(objective.metric)}."]
    seems = ", ".join(
        f"{_name(judgement.metric)} {number(judgement.value)} ({interval(*judgement.naive)})"
        for judgement in choice.judged
    )
    if choice.apart:
        text.append(f"On the test rows, which did not choose, with {level} intervals: {seems}.")
        text.append("These need no correction for the choice.")
    else:
        text.append(f"By itself, with {level} intervals: {seems}.")
        text.append("It was chosen because it looks so, which is partly luck. Corrected for the")
        corrected = [
            f"{_name(judgement.metric)} {interval(*judgement.corrected)}"
            for judgement in choice.judged
        ]
        text[-1] += f" choice among {k}: {', '.join(corrected)}."
    if len(other_metrics) == 1 and other_metrics[0].metric.better == "lower":
        ends = [number(end) for end in choice.together]
        text.append(
            f"Both at once, at {level}: {_name(objective.metric)} at most {ends[0]} and "
            f"{_name(other_metrics[0].metric)} at most {ends[1]}."
        )
    return " ".join([*text, _near_text(choice, names)])


def _bound_text(bound: Bound) -> str:
    side = {"<=": "of at most", "<": "under", ">=": "of at least", ">": "over"}[bound.operator]
    article = "an" if bound.metric.label[0] in "aeiou" else "a"
    return f"{article} {bound.metric.label} {side} {bound.limit:g}"


def _name(metric: Metric) -> str:
    return f"{metric.label} gap" if metric.is_gap and "gap" not in metric.label else metric.label


def _near_text(choice: Choice, names: Mapping[str, str]) -> str:
    """Return which other runs cannot be told from the best, the first five by name."""
    order, best = np.argsort(choice.objectives, kind="stable"), choice.runs[choice.place]
    near = [choice.runs[i] for i in order if choice.near[i] and not choice.same[i]]
    same = [run for run, is_same in zip(choice.runs, choice.same, strict=True) if is_same]
    tied = ""
    if len(same) > 1:
        others = "; ".join(f"{names[run.id]} ({run.id})" for run in same if run.id != best.id)
        tied = f"It is a tie with {others}: their predictions of these rows are the same. "
    if not near:
        return f"{tied}No other run may be the best."
    listed = "; ".join(f"{names[run.id]} ({run.id})" for run in near[:5])
    rest = f" and {len(near) - 5} more" if len(near) > 5 else ""
    subject = "other runs cannot be" if len(near) > 1 else "other run cannot be"
    text = f"{tied}{len(near)} {subject} told from the best: {listed}{rest}."
    behind = int((choice.near & choice.larger).sum())
    if not behind:
        return text
    has = f"{behind} of them have" if behind > 1 else "One of them has"
    them = "they are" if behind > 1 else "it is"
    name = _name(choice.judged[0].metric)
    return (
        f"{text} {has} a surely larger {name} than the chosen run: {them} the best only if the "
        "chosen run, and any other with a smaller one, is truly beyond a bound."
    )


def _judged_table(choice: Choice) -> Table:
    """Return the table of the chosen run."""
    level = f"{choice.level:.0%}"
    columns = [Column("metric"), Column("value", "number"), Column(f"{level} interval", "interval")]
    rows: list[list[object]] = [
        [
            _name(judgement.metric),
            judgement.value,
            judgement.naive,
            judgement.corrected,
        ]
        for judgement in choice.judged
    ]
    scope = "of these fitted models, on new people like those of the test rows"
    if choice.apart:
        caption = f"{scope}; test rows did not choose, so that no correction is needed"
        return Table(columns, [row[:3] for row in rows], "the chosen run", caption)
    columns.append(Column("corrected for the choice", "interval"))
    caption = (
        f"{scope}; the first interval would hold for a run that was named before looking, the "
        "corrected one holds for whichever run is chosen"
    )
    return Table(columns, rows, "the chosen run", caption)


def _runs_table(choice: Choice, names: Mapping[str, str]) -> Table:
    """Return the table of all runs: those within the bounds by their objective, then the others."""
    metrics = [judgement.metric for judgement in choice.judged]
    columns = [Column("run"), Column("id")]
    columns += [Column(_name(metric), "number") for metric in metrics]
    columns.append(Column("standing"))
    order = np.lexsort((choice.objectives, ~choice.eligible))
    rows: list[list[object]] = []
    for i in order:
        run, values = choice.runs[i], [choice.objectives[i], *choice.values[i]]
        rows.append([names[run.id], run.id, *values, _standing(choice, int(i))])
    rule = int(choice.eligible.sum())
    rules = frozenset({rule} if 0 < rule < len(rows) else ())
    where = "validation" if choice.apart else "test"
    caption = f"on the {where} rows; under the line are runs beyond a bound" if rules else ""
    return Table(columns, rows, "all runs", caption, rules=rules, most=30)


def _standing(choice: Choice, i: int) -> str:
    if i == choice.place:
        return "chosen"
    if choice.same[i]:
        return "tied: the same predictions"
    if not choice.near[i]:
        return "not the best"
    return "best only if others miss a bound" if choice.larger[i] else "not told from the best"


COMMAND = Command(
    ChooseOptions,
    choose,
    examples=(
        "fairbench choose dataset=adult where='error_rate<=0.15' minimise=equalized_odds",
        "fairbench choose from=fairlyuncertain/binary dataset=german minimise=statistical_parity",
        "fairbench choose 3f2a b71c 90cd where='[error_rate<=0.2,true_positive_rate>=0.6]'",
    ),
)
