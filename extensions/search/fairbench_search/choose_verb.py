"""Choose the fairest of many finished runs; its gap is corrected for the choice.

The run with the smallest gap among the accurate ones was chosen for its luck as well: its gap
looks smaller than it is, the more so the more runs there were. choose prints the gap and the
error of the chosen run as they look and as they are corrected for the choice, and names the
runs that cannot be told from the best.

All runs must predict the same rows of one data set for the same groups. Demos and what was run
while tuning are left out, unless purpose= or ids name them. Words such as dataset=adult,
method=baseline,ensemble or learner.max_depth=6 select runs, as in "fairbench store ls";
from=EXPERIMENT takes those of an experiment in conf/experiment. With one hold-out split that
has validation rows (split.repeats=1 split.validation=0.2), the validation rows choose and the
test rows judge, and nothing needs to be corrected. Over several hold-outs or folds, the means
over all of them are compared. Every row counts as one: runs that weigh their rows are refused,
and rows that belong together count as independent. A run that is another again, under another
id, is left out. A comparison needs quotes, or the shell takes < for a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli import command as cli
from fairbench.cli.command import command
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option
from fairbench.experiments.configuration import Presets
from fairbench.results.catalogue import KEYS, Catalogue
from fairbench_search import choice as choosing
from fairbench_search.goals import FORMATS
from fairbench_search.pages import choice_document, print_as

MADE_FOR = "0.1"
_FROM = "from"


@dataclass(frozen=True)
class _ChooseOptions(cli.Selection):
    """Among which runs is chosen, and by what.

    Attributes
    ----------
    objective : What the run is to be best in, any metric that runs store: their headline gap by
        default.
    where : What a run must keep to: metrics compared by <=, <, >= or > with a number, in quotes.
        A ratio is judged as the smaller of it and its reciprocal, as it is where it is the
        objective: disparate_impact>=0.8 keeps it from 0.8 to 1.25.
    level : How sure the intervals are.
    format : How the result is printed.
    """

    objective: str = option("", shown="METRIC")
    where: tuple[str, ...] = option((), shown="'[METRIC<=NUMBER,...]'")
    level: float = option(0.95, share=True)
    format: str = option("text", choices=FORMATS)

    def __post_init__(self) -> None:
        """Refuse unknown keys, before any run is read."""
        for name, text in self.keys:
            if name.rstrip("<>") != name:
                raise UserError(f"'{name}={text}' is a comparison: write where='{name}={text}'")
            if name != _FROM and name not in KEYS and "." not in name:
                available = ("objective", "where", "level", "format", "results", _FROM, *KEYS)
                raise unknown_name("option", name, available)


def _choose(options: _ChooseOptions) -> None:
    """Choose a run, and print what is known of it.

    Raises
    ------
    UserError : none can be chosen.

    Examples
    --------
    fairbench choose dataset=adult where='error_rate<=0.15' objective=equalized_odds
    fairbench choose from=fairlyuncertain/table8_13 dataset=german objective=equalized_odds
    fairbench choose 3f2a b71c 90cd where='[error_rate<=0.2,true_positive_rate>=0.6]'
    """
    among = Catalogue(options.results)
    for name in (text for key, text in options.keys if key == _FROM):
        among = among.only(Presets().runs_of_all(name, among.runs))
    words = [f"{name}={text}" for name, text in options.keys if name != _FROM]
    catalogue = cli.counted_runs(among, [*options.ids, *words])
    choice = choosing.choose(list(catalogue), options.objective, options.where, options.level)
    names = catalogue.only(list(choice.runs)).label()
    print_as(choice_document(choice, names), options.format)


COMMAND = command(_choose)
