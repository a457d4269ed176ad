"""How an audit's state begins, and how it is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from fairbench.audit.labelling.next_rows import DEFAULT_STRATEGY, ONE_AT_A_TIME
from fairbench.audit.labelling.questions import DEFAULT_QUESTION, QUESTIONS
from fairbench.audit.labelling.session import Session, open_session
from fairbench.audit.labelling.state import State
from fairbench.audit.labelling.state_file import sha256
from fairbench.audit.labelling.words import Words, as_words
from fairbench.audit.options import Options, parse
from fairbench.audit.reading import read_audit_table
from fairbench.core.checks import check_choice
from fairbench.core.errors import UserError, unknown_name


def begin(words: Words) -> Session:
    """Write the state that the words of next describe, and open it.

    Raises
    ------
    UserError : they do not describe one, or the file of predictions is not as they say.
    """
    if words.path is None:
        raise UserError(
            f"{words.file.path} does not exist yet: to start it, give a file of predictions, and "
            "its columns as score=, target= and group="
        )
    options = _parsed(words.path, words.of_audit)
    if options.scores:
        raise UserError("labels are chosen for predictions of two classes: name one score column")
    digest = sha256(options.path) if options.path.is_file() else ""
    table = read_audit_table(options)
    by = _by(words.given.get("by", ""), options)
    state = State(options, digest, len(table), by, DEFAULT_QUESTION, DEFAULT_STRATEGY)
    session = _asking(Session(state, table), words.given)
    words.file.create(session.state)
    return session


def go_on(words: Words) -> Session:
    """Open the state there is, with another question or strategy if the words name one.

    Raises
    ------
    UserError : the words name another audit, or the predictions have changed.
    """
    session = _asking(resume(words), words.given)
    _check_same(session.state, words)
    question, strategy = session.state.question, session.state.strategy
    options = session.state.options
    words.file.change(
        lambda state: replace(state, options=options, question=question, strategy=strategy)
    )
    return session


def resume(words: Words) -> Session:
    """Open the state there is; its predictions may be in another place by now."""
    state = words.file.read()
    if words.path is not None:
        state = replace(state, options=replace(state.options, path=words.path))
    return open_session(state)


def with_epsilon(options: Options, words: Words) -> Options:
    """Return the options of a report, which may have another epsilon and folder."""
    changed = {name: words.given[name] for name in ("epsilon", "out") if name in words.given}
    return _parsed(options.path, as_words(options) | changed)


def _asking(session: Session, given: Mapping[str, str]) -> Session:
    """Return the session with the question and strategy that are given, where they are."""
    state = session.state
    question = given.get("question", state.question)
    strategy = given.get("strategy", state.strategy)
    check_choice("question", question, QUESTIONS)
    check_choice("strategy", strategy, ONE_AT_A_TIME)
    asking = replace(session, state=replace(state, question=question, strategy=strategy))
    QUESTIONS[question].reward(asking)  # refuses a question that this table cannot answer
    return asking


def _by(text: str, options: Options) -> str:
    names = [name.strip() for name in text.strip("[]").split(",") if name.strip()]
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    return " x ".join(name for name in options.group if name in names or not names)


def _check_same(state: State, words: Words) -> None:
    new = _parsed(state.options.path, as_words(state.options) | dict(words.of_audit))
    wanted = {each.name: getattr(new, each.name) for each in fields(new)}
    changed = {k: v for k, v in wanted.items() if v != getattr(state.options, k)}
    by = _by(words.given.get("by", ""), state.options)
    if "by" in words.given and by != state.by:
        changed["by"] = by
    if changed:
        name = min(changed)
        raise UserError(
            f"{words.file.path} was started with another {name}: leave {name}= out, or start "
            "another state"
        )


def _parsed(path: Path, given: Mapping[str, str]) -> Options:
    return parse([str(path), *(f"{name}={text}" for name, text in given.items())])
