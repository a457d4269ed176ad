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
from dataclasses import dataclass

from fairbench.cli.command import Selection, command, components_folder, with_note
from fairbench.cli.output import print_as
from fairbench.comparison import choice as comparison
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option
from fairbench.reporting.comparisons import choice_document
from fairbench.results.catalogue import KEYS, Catalogue

_FROM, _PURPOSE = "from", "purpose"

SECTION = "Compare finished runs"


@dataclass(frozen=True)
class ChooseOptions(Selection):
    """Among which runs is chosen, and by what."""

    minimise: str = option(
        "equalized_odds", "What is to be small: a gap between groups, or a rate better low.",
        shown="METRIC",
    )  # fmt: skip
    where: tuple[str, ...] = option(
        (), "What a run must keep to: rates compared by <=, <, >= or > with a number, in quotes.",
        shown="'[RATE<=NUMBER,...]'",
    )  # fmt: skip
    level: float = option(0.95, "How sure the intervals are.", share=True)
    format: str = option(
        "text", "How the result is printed.", choices=("text", "json", "html", "markdown", "latex")
    )

    def __post_init__(self) -> None:
        """Refuse unknown keys, before any run is read."""
        for name, text in self.keys:
            if name.rstrip("<>") != name:
                raise UserError(f"'{name}={text}' is a comparison: write where='{name}={text}'")
            if name != _FROM and name not in KEYS and "." not in name:
                available = ("minimise", "where", "level", "format", "results", _FROM, *KEYS)
                raise unknown_name("option", name, available)


def choose(options: ChooseOptions) -> None:
    """Choose a run, and print what is known of it.

    Raises
    ------
    UserError : none can be chosen; the message has a command that chooses, if any does.

    Examples
    --------
    fairbench choose dataset=adult where='error_rate<=0.15' minimise=equalized_odds
    fairbench choose from=fairlyuncertain/table8_13 dataset=german minimise=equalized_odds
    fairbench choose 3f2a b71c 90cd where='[error_rate<=0.2,true_positive_rate>=0.6]'
    """
    metric = comparison.minimised_metric(options.minimise)
    bounds = tuple(comparison.Bound.read(text) for text in options.where)
    among = _candidates(options)
    catalogue = among.matching([*options.ids, *_selection(options)])
    if not options.ids and _PURPOSE not in dict(options.keys):
        catalogue = with_note(*catalogue.counted())
    try:
        read = comparison.read_shared(list(catalogue))
        choice = comparison.choose_among(read, metric, bounds, level=options.level)
    except comparison.CannotChooseError as error:
        raise UserError(f"{error}; {_instead(options, among, catalogue)}") from error
    print_as(choice_document(choice, catalogue.only(list(choice.runs)).label()), options.format)


def _candidates(options: ChooseOptions) -> Catalogue:
    """Return the runs from which words select: those of an experiment, where one is named."""
    from fairbench.experiments.configuration import Presets

    catalogue = Catalogue(options.results)
    for name in (text for key, text in options.keys if key == _FROM):
        presets = Presets(components_folder() / "conf")
        catalogue = catalogue.only(presets.runs_of_all(name, catalogue.runs))
    return catalogue


def _selection(options: ChooseOptions) -> list[str]:
    return [f"{name}={text}" for name, text in options.keys if name != _FROM]


def _instead(options: ChooseOptions, among: Catalogue, catalogue: Catalogue) -> str:
    """Return the command that chooses from the most of these runs that can be, or of all."""
    if _PURPOSE not in dict(options.keys):
        among = among.counted()[0]
    chosen = comparison.works(catalogue.runs, list(among))
    if len(chosen) < 2:
        return f"no two finished runs of {options.results} can be; run another on the same splits"
    words = _selection(options) if {run.id for run in chosen} <= {*catalogue.runs} else []
    typed = [f"{_FROM}={text}" for name, text in options.keys if name == _FROM]
    typed += [f"where=[{','.join(options.where)}]"] * bool(options.where)
    defaults = vars(ChooseOptions())
    stated = {name: getattr(options, name) for name in ("minimise", "level", "results")}
    typed += [f"{name}={value}" for name, value in stated.items() if value != defaults[name]]
    line = shlex.join(
        ["fairbench", "choose", *comparison.selection_words(chosen, among, words), *typed]
    )
    return f"{len(chosen)} runs can be chosen from: {line}"


COMMAND = command(choose)
