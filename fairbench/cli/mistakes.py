"""Sentences for what Hydra finds wrong with a command line."""

from __future__ import annotations

import re
from pathlib import Path

from fairbench.core.errors import unknown_name


def explained(error: Exception, conf: Path) -> str:
    """Return one sentence for what Hydra found wrong with a command line."""
    missing = getattr(error, "missing_cfg_file", None)
    if missing:
        group, name = _group_of(str(missing), conf)
        options = (conf / group).rglob("*.yaml")
        return str(
            unknown_name(
                group, name, (str(p.relative_to(conf / group).with_suffix("")) for p in options)
            )
        )
    word = getattr(error, "override", None)
    if word is not None:
        name, equals, _ = str(word).partition("=")
        quoted = f", and quote a value with signs twice, such as \"{name}='...'\"" if equals else ""
        return f"'{word}' was not understood: write name=value{quoted}"
    key = re.search(r"Could not override '([^']+)'", str(error))
    if key:
        return f"unknown option '{key.group(1)}'"
    return " ".join(str(error).split())


def _group_of(missing: str, conf: Path) -> tuple[str, str]:
    """Split ``group/option``, either of which may have a slash of its own."""
    parts = missing.split("/")
    depth = 1
    while depth < len(parts) - 1 and parts[0] == "hydra" and (conf / parts[0]).is_dir():
        depth += 1
    return "/".join(parts[:depth]), "/".join(parts[depth:])
