"""How the labelling of an audit is started, and how it is taken up again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from fairbench.audit.labelling.next_rows import DEFAULT_STRATEGY, ONE_AT_A_TIME
from fairbench.audit.labelling.questions import DEFAULT_QUESTION, QUESTIONS
from fairbench.audit.labelling.session import Session, open_session
from fairbench.audit.labelling.state import State, StateFile, sha256
from fairbench.audit.options import Options
from fairbench.audit.reading import read_audit_table
from fairbench.core.checks import check_choice
from fairbench.core.errors import UserError, unknown_name


@dataclass(frozen=True)
class Asking:
    """What labels are to find out.

    Attributes
    ----------
    question, strategy : None for those of the state, or the usual ones of a new state.
    by : the columns whose groups rows are chosen among, empty for all columns of groups.
    """

    question: str | None = None
    strategy: str | None = None
    by: tuple[str, ...] = ()


def begin(file: StateFile, options: Options, asking: Asking) -> Session:
    """Write the first state of an audit, and open it.

    Raises
    ------
    UserError : the options describe no audit, or the file of predictions is not as they say.
    """
    if options.path == Path():
        raise UserError(
            f"{file.path} does not exist yet: to start it, give a file of predictions, and "
            "its columns as score=, target= and group="
        )
    if options.scores:
        raise UserError("labels are chosen for predictions of two classes: name one score column")
    digest = sha256(options.path) if options.path.is_file() else ""
    table = read_audit_table(options)
    by = _by(asking.by, options)
    state = State(options, digest, len(table), by, DEFAULT_QUESTION, DEFAULT_STRATEGY)
    session = _asked(Session(state, table), asking)
    file.create(session.state)
    return session


def go_on(file: StateFile, options: Options, given: Collection[str], asking: Asking) -> Session:
    """Open the state there is, with another question or strategy where one is asked for.

    Parameters
    ----------
    given : the names of the options that the command line gave; the others are the state's.

    Raises
    ------
    UserError : what was given is another audit, or the predictions have changed.
    """
    session = _asked(resume(file, options.path), asking)
    _check_same(file, session.state, options, given, asking.by)
    question, strategy = session.state.question, session.state.strategy
    found = session.state.options
    file.change(lambda state: replace(state, options=found, question=question, strategy=strategy))
    return session


def resume(file: StateFile, path: Path) -> Session:
    """Open the state there is; its predictions are in `path` by now, unless that is empty."""
    state = file.read()
    if path != Path():
        state = replace(state, options=replace(state.options, path=path))
    return open_session(state)


def _asked(session: Session, asking: Asking) -> Session:
    """Return the session with the question and strategy that are asked for."""
    state = session.state
    question = asking.question or state.question
    strategy = asking.strategy or state.strategy
    check_choice("question", question, QUESTIONS)
    check_choice("strategy", strategy, ONE_AT_A_TIME)
    asked = replace(session, state=replace(state, question=question, strategy=strategy))
    QUESTIONS[question].reward(asked)  # refuses a question that this table cannot answer
    return asked


def _by(names: Sequence[str], options: Options) -> str:
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    return " x ".join(name for name in options.group if name in names or not names)


def _check_same(
    file: StateFile, state: State, options: Options, given: Collection[str], by: Sequence[str]
) -> None:
    mine = {each.name for each in fields(Options)} & {*given} - {"path"}
    mine |= {"scores"} if "score" in given else set()
    changed = {name for name in mine if getattr(options, name) != getattr(state.options, name)}
    if by and _by(by, state.options) != state.by:
        changed.add("by")
    if changed:
        name = min(changed)
        raise UserError(
            f"{file.path} was started with another {name}: leave {name}= out, or start "
            "another state"
        )
