"""What the commands of papers/ take."""

from importlib import import_module
from typing import get_type_hints

from fairbench.components.papers import NoOptions


def options_class(command):
    """Return what a command's main function gets, which `papers.run_main` reads the words into."""
    kinds = get_type_hints(import_module(command).main)
    return next((kind for name, kind in kinds.items() if name != "return"), NoOptions)
