"""Packages that are not installed, and the command that installs them here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_CHECKOUT = Path(__file__).resolve().parents[2] / "requirements.lock"
# Of which extra of pyproject.toml a package is, by what is imported of it; else of `benchmark`.
_EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("rich", "jinja2", "pyarrow", "openpyxl", "zstandard", "docx", "matplotlib", "yaml"),
            "audit",
        ),
        **dict.fromkeys(
            ("torch", "tabm", "rtdl_num_embeddings", "rtdl_revisiting_models"), "networks"
        ),
        "mcgrad": "mcgrad",
    }
)


def missing_package(error: ModuleNotFoundError) -> str:
    """Return which package is missing and what installs it; nothing if it is one of this project.

    The command is that of this very installation: of a checkout, or of the package.
    """
    name = (error.name or "").partition(".")[0]
    if name in ("", "fairbench"):
        return ""
    extra = _EXTRAS.get(name, "benchmark")
    command = f"pip install 'fairbench-harness[{extra}]'"
    if _CHECKOUT.is_file():
        command = "make setup" if extra != "mcgrad" else "pip install '.[mcgrad]'"
    return f"the package {name} is not installed: {command}"
