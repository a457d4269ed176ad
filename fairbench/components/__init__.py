"""What plugs into the library: data sets, algorithms, papers, and configurations of them.

In a checkout these are links to the folders ``datasets/``, ``algorithms/``, ``papers/`` and
``conf/`` at its root, or, where the system has no links, these folders themselves; in an installed
package they lie here. Components of one's own are found beside them: in the folder that a command
is given in, and in installed packages that say so by an entry point `fairbench.components`. Nothing
is imported before a configuration names it.

Begin with `HOME`, the folder that has ours, and `folders`, which are all.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from fairbench.core.errors import UserError
from fairbench.core.text import said

_HERE = Path(__file__).resolve().parent
CHECKOUT = _HERE.parents[1]  # where it is one, the folder that has all of them and ``docs``
HOME = _HERE if (_HERE / "conf").is_dir() else CHECKOUT
CONF = HOME / "conf"  # our configurations
# Folders of modules that may be somebody's own; of `papers` there are ours alone.
_PLACES = (
    "datasets", "algorithms", "algorithms/learners", "algorithms/interventions",
    "algorithms/methods", "algorithms/fitters", "algorithms/estimators",
)  # fmt: skip
KINDS = ("datasets", "algorithms", "papers")
FOLDER = "FAIRBENCH_FOLDER"  # the variable that tells workers where the command was given

__path__ = [str(HOME)]


def is_installed() -> bool:
    """Say whether this is an installed package rather than a checkout."""
    return not (CHECKOUT / "requirements.lock").is_file()


@cache
def folders() -> tuple[Path, ...]:
    """Return the folders that have components, ours first, and have Python find all of them.

    Raises
    ------
    UserError : two folders have a module of the same name.
    """
    found = [HOME]
    for place in (*_installed(), Path(os.environ.get(FOLDER) or os.getcwd())):
        place = place.resolve()
        if place not in found and _has_components(place):
            _add(place, found)
            found.append(place)
    return tuple(found)


def _installed() -> list[Path]:
    """Return the folders of installed packages that declare components."""
    places = []
    for point in sorted(entry_points(group="fairbench.components"), key=lambda point: point.name):
        spec = find_spec(point.value)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(said("core", "no_package", point=point))
        places += [Path(location) for location in spec.submodule_search_locations]
    return places


def _has_components(folder: Path) -> bool:
    """Say whether a folder has components of its own, and is no checkout of this project."""
    conf = folder / "conf"
    groups = (group.name for group in CONF.iterdir() if group.is_dir())
    parts = [folder / place for place in _PLACES] + [conf / group for group in groups]
    own = conf.is_dir() and any(map(Path.is_dir, parts))
    return own and not (folder / "fairbench" / "components").is_dir()


def _add(folder: Path, others: list[Path]) -> None:
    """Have modules of a folder found after those of the others."""
    for place in _PLACES:
        own = folder / place
        if not own.is_dir() or any(own.resolve() == (other / place).resolve() for other in others):
            continue
        for path in own.glob("*.py"):
            for other in others:
                if path.stem != "__init__" and (other / place / path.name).exists():
                    namesake = other / place / path.name
                    raise UserError(said("core", "namesake", path=path, other=namesake))
        package = import_module(f"{__name__}.{place.replace('/', '.')}")
        package.__path__.append(str(own))


def files_of(group: str) -> dict[str, Path]:
    """Return the file of each choice of a group, by its name; of two of one name, ours."""
    paths: dict[Path, Path] = {}
    for folder in (top / "conf" / group for top in reversed(folders())):
        paths |= {path.relative_to(folder): path for path in folder.rglob("*.yaml")}
    return dict(sorted((str(name.with_suffix("")), path) for name, path in paths.items()))


def parts_of(group: str, choice: str) -> list[dict[str, Any]]:
    """Return what the files say that a choice builds on, and last its own; nothing without one.

    A name may be a stranger's: it is looked for among the files, and makes no path.
    """
    import yaml

    if (file := files_of(group).get(choice)) is None:
        return []
    own = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    bases = [name for name in own.pop("defaults", ()) if isinstance(name, str) and name != "_self_"]
    return [*(part for base in bases for part in parts_of(group, base)), own]


def options_in(group: str, choice: str) -> dict[str, Any]:
    """Return what the file of a choice sets, and those that it builds on; nothing without one."""
    return {name: value for part in parts_of(group, choice) for name, value in part.items()}


def module_named(name: str) -> str:
    """Return the full name of a module that a configuration calls ``algorithms...`` or the like."""
    kind = name.partition(".")[0]
    return f"{__name__}.{name}" if kind in KINDS else name


def imported(name: str) -> ModuleType:
    """Import a module by the name that configurations have for it.

    Raises
    ------
    UserError : there is none of that name.
    """
    folders()
    full = module_named(name)
    try:
        return import_module(full)
    except ModuleNotFoundError as error:
        if f"{full}.".startswith(f"{error.name}."):
            places = ", ".join(map(str, folders()))
            raise UserError(said("core", "no_module", name=name, folders=places)) from error
        raise


def class_named(target: str) -> Any:
    """Return what a configuration's ``_target_`` names.

    Raises
    ------
    UserError : its module does not have it, or there is no such module.
    """
    module, _, name = target.rpartition(".")
    found = imported(module)
    if not hasattr(found, name):
        raise UserError(f"a configuration names {target}, and {found.__file__} has no {name}")
    return getattr(found, name)
