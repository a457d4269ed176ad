"""Packages that are not installed, and the command that installs them here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import MappingProxyType

_OWN = "fairbench-harness"
_CHECKOUT = Path(__file__).resolve().parents[2] / "requirements.lock"
# Distributions whose modules have another name.
_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "docx": "python-docx",
        "hydra": "hydra-core",
        "resvg_py": "resvg-py",
        "sklearn": "scikit-learn",
        "yaml": "pyyaml",
    }
)


def missing_package(error: ModuleNotFoundError) -> str:
    """Return which package is missing and what installs it; nothing if it is one of this project.

    The command is that of this very installation: of a checkout, or of the package.
    """
    name = (error.name or "").partition(".")[0]
    if name in ("", "fairbench"):
        return ""
    extra = _extra_of(_MODULES.get(name, name))
    command = f"pip install '{_OWN}[{extra}]'"
    if _CHECKOUT.is_file():
        command = f"pip install '.[{extra}]'" if extra == name else "make setup"
    return f"the package {name} is not installed: {command}"


def _extra_of(distribution: str) -> str:
    """Return the first extra of this package that needs a distribution; `benchmark` of none."""
    try:
        needed = requires(_OWN) or []
    except PackageNotFoundError:
        needed = []
    for text in needed:
        match = re.match(r"([\w.-]++).*extra == ['\"]([\w-]+)", text)
        if match and match[1].lower().replace("_", "-") == distribution.lower().replace("_", "-"):
            return match[2]
    return "benchmark"
