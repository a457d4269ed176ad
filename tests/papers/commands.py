"""What the commands of papers/ take."""

import re
from importlib import import_module

from fairbench.components.papers import options_of_study


def studies_of(text):
    """Return the words of a module's studies, by its source; "" for a single one."""
    given = re.search(r"run_main\(([^)]*)\)\n\Z", text)
    names = given[1].split(",") if given else []
    return [name.strip().removesuffix("main") for name in names]


def study_of(command):
    """Return the function of a command such as ``papers.PAPER.MODULE STUDY``."""
    module, _, study = command.partition(" ")
    return getattr(import_module(module), study or "main")


def options_class(command):
    """Return what a command's function gets, which `papers.run_main` reads the words into."""
    return options_of_study(study_of(command))
