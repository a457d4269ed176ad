"""A file of texts with names: ``name: text`` on each line, or one object of them in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from fairbench.core.errors import UserError, refused


def read_named_texts(path: str, option: str) -> dict[str, str]:
    """Return name -> text; blank lines, and those that begin with ``#``, are left out.

    Parameters
    ----------
    option : the option that names the file, for messages.

    Raises
    ------
    UserError : no such file, a line without a name, or JSON that is not one object of texts.
    """
    where = f"{option}={path}"
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = refused(error) if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UserError(f"{where} cannot be read: {reason}") from error
    return (
        _read_json(text, where) if Path(path).suffix == ".json" else dict(_read_lines(text, where))
    )


def _read_json(text: str, where: str) -> dict[str, str]:
    """Return the texts of a JSON object; `where` names the file in messages."""
    try:
        texts = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON: {error}") from error
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise UserError(f'{where}: what is needed is one object of texts, {{"name": "text"}}')
    return texts


def _read_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each line ``name: text``; `where` names the file in messages."""
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon:
            raise UserError(f"{where}, line {number}: what is needed is 'name: text'")
        yield name.strip(), value.strip()
