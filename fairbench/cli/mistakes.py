"""Sentences for what Hydra finds wrong with a command line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from fairbench.core.errors import unknown_name


def in_words(error: Exception, conf: Path) -> str:
    """Return one sentence for what Hydra found wrong with a command line."""
    text = str(error)
    missing = getattr(error, "missing_cfg_file", None)
    if missing:
        group, _, name = str(missing).rpartition("/")
        return str(unknown_name(group, name, _options(conf, group)))
    key = re.search(r"[Kk]ey '([^']+)' is not in struct\n\s+full_key: (\S+)", text)
    override = re.search(r"Could not override '([^']+)'", text)
    option = key.group(2) if key else override.group(1) if override else ""
    if option:
        return str(unknown_name("option", option, _valid_keys(conf, option)))
    return " ".join(text.split())


def _options(conf: Path, group: str) -> list[str]:
    return [path.stem for path in (conf / group).glob("*.yaml")]


def _valid_keys(conf: Path, name: str) -> set[str]:
    """Return option names of the part of the configuration that `name` seems to mean."""
    import yaml

    groups = sorted(path.name for path in conf.iterdir() if path.is_dir() and path.name != "hydra")
    config = yaml.safe_load((conf / "config.yaml").read_text())
    top = {key for key in config if key not in ("defaults", "hydra")} | set(groups)
    group = name.partition(".")[0]
    if "." not in name or group not in top:
        return top
    if group not in groups:
        return {f"{group}.{key}" for key in config[group]}
    defaults = {key: each for line in config["defaults"] for key, each in _items(line)}
    chosen = [word.partition("=")[2] for word in sys.argv if word.startswith(f"{group}=")]
    names = chosen[-1].split(",") if chosen else [defaults[group]]
    options = [yaml.safe_load((conf / group / f"{each}.yaml").read_text()) for each in names]
    return {f"{group}.{key}" for option in options for key in option if key != "_target_"}


def _items(line: Any) -> list[tuple[str, str]]:
    return list(line.items()) if isinstance(line, dict) else []
