"""Tune options on validation rows, and say what that truly gains.

Words such as dataset=german learner=xgboost choose what is tuned, as for a run. An option with an
interval or several values is searched: "learner.max_depth=interval(2,8)",
"learner.learning_rate=tag(log,interval(0.01,1))", learner.rounds=10,50,100. Quote them, or the
shell reads the brackets.

The split is split=tuning by default: one test part, and five draws of validation rows from the
others. Trials are judged on the validation rows alone. What is chosen, and the untuned default, are
then judged on the test rows, once, as ordinary runs. The best of many trials looks better than it
is; what is printed is corrected for that. A trial is stopped when another is better in every
objective by more than three standard errors on the rows that both have predicted. The same command
goes on where it was stopped, with more trials= as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, check_run_words, command, components_folder
from fairbench.cli.run import run
from fairbench.core.options import hydra_word, option
from fairbench.evaluation.tuning_goals import TuningOptions


@dataclass(frozen=True)
class _TuneOptions(Results, TuningOptions):
    """What is tuned, and how.

    Attributes
    ----------
    words : What is run and what is tuned, as for fairbench run.
    """

    words: tuple[tuple[str, str], ...] = option(
        (),
        argument="NAME=VALUE",
        pairs=lambda name: True,
        needed="nothing to tune is named, such as dataset=german learner=xgboost "
        "'learner.max_depth=interval(2,8)'",
    )


def _tune(options: _TuneOptions) -> int:
    """Tune: the same as ``run.py -m hydra/sweeper=tune``.

    Examples
    --------
    fairbench tune dataset=german learner=xgboost 'learner.max_depth=interval(2,8)'
    fairbench tune dataset=german intervention=reweighing 'intervention.strength=0,0.5,1'
    fairbench tune dataset=adult learner=lightgbm learner.rounds=20,50,100 cpu_seconds=600
    """
    root = components_folder()
    tuning_options = tuple(TuningOptions.__dataclass_fields__)
    check_run_words(dict(options.words), tuning_options, root / "conf")
    texts = {
        **{f"hydra.sweeper.{name}": hydra_word(getattr(options, name)) for name in tuning_options},
        "results": hydra_word(str(options.results)),
    }
    words = [f"{name}={text}" for name, text in (*options.words, *texts.items())]
    return run(["-m", "hydra/sweeper=tune", *words], root)


COMMAND = command(_tune)
