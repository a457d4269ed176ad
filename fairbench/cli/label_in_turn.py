"""A person at a terminal labels one row after the other; every label is stored before the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairbench.audits.columns import read_frame
from fairbench.audits.labelling.answering import store
from fairbench.audits.labelling.questions import next_rows
from fairbench.audits.labelling.session import CANNOT_TELL, Session, check_labels, open_session
from fairbench.audits.labelling.state import StateFile
from fairbench.audits.pages.labelling import row_document
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError
from fairbench.reporting.document.terminal import print_document

Ask = Callable[[str], str]
STOP = ("q", "quit", "exit")


def label_in_turn(
    file: StateFile, session: Session, part: tuple[int, int], ask: Ask = input
) -> None:
    """Show rows and ask for their labels until the person stops or none is left.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people.
    ask : shows a prompt and returns a line; raises EOFError at the end of the input.
    """
    options = session.state.options
    frame = read_frame(options, every=True)
    # The score and the decision would sway a person.
    hidden = {options.target, options.score, options.prediction, options.labelled, *options.scores}
    visible_columns = frame[[name for name in frame if name not in hidden]]
    ended = "No row is left to label"
    while len(rows := next_rows(session, 1, part)):
        position = int(rows[0])
        row = {str(name): str(value) for name, value in visible_columns.iloc[position].items()}
        print()
        print_document(row_document(session, position, row))
        answered = _ask_until_stored(file, session, position + 1, ask)
        # As it is now, with the labels of others.
        session = open_session(replace(file.read(), options=options), frame)
        if not answered:
            ended = "Stopped"
            break
    print_line(f"{ended}: {session.progress}; all labels are stored in {file.path}.")


def _ask_until_stored(file: StateFile, session: Session, row: int, ask: Ask) -> bool:
    """Ask until there is an answer and it is stored; say whether to go on."""
    prompt = (
        f"label of {session.name(row)} ({session.expected}; {CANNOT_TELL} cannot tell; q stops): "
    )
    while True:
        try:
            text = ask(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        if text.lower() in STOP and text not in session.table.labels + session.classes:
            return False
        try:
            if not store(file, session, check_labels(session, {row: text})):
                print(f"Row {row} had this label by now, from another person: it counts once.")
        except UserError as error:
            stored_labels = file.read().labels
            if row not in stored_labels:
                print_line(str(error))
                continue
            print_line(
                f"Row {row} was given {stored_labels[row] or CANNOT_TELL} meanwhile, by another "
                "person, "
                f"which stays: your {text} was not stored. To replace it: fairbench label ask "
                f"state={file.path} {row}=LABEL overwrite=true"
            )
        return True
