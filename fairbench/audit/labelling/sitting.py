"""A sitting: rows shown one after the other, each label stored before the next row is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairbench.audit.labelling.answering import CANNOT_TELL, checked, store
from fairbench.audit.labelling.next_rows import next_rows
from fairbench.audit.labelling.session import Session, open_session
from fairbench.audit.labelling.show import cards, print_row, progress
from fairbench.audit.labelling.state_file import StateFile
from fairbench.audit.table_file import read_frame
from fairbench.core.errors import UserError

Ask = Callable[[str], str]
STOP = ("q", "quit", "exit")


def sit(file: StateFile, session: Session, part: tuple[int, int], *, ask: Ask = input) -> None:
    """Show rows and ask for their labels until the person stops or none is left.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people.
    ask : shows a prompt and returns a line; raises EOFError at the end of the input.
    """
    frame = read_frame(session.state.options, every=True)
    shown = cards(frame, session.state.options)
    asked = True
    while asked and len(rows := next_rows(session, 1, part).rows):
        position = int(rows[0])
        print_row(session, position, shown.iloc[position].to_dict())
        asked = _answered(file, session, position + 1, ask)
        # As it is now, with the labels of others.
        state = replace(file.read(), options=session.state.options)
        session = open_session(state, frame)
    said = "Stopped" if not asked else "No row is left to label"
    print(f"{said}: {progress(session)}; all labels are stored in {file.path}.")


def _answered(file: StateFile, session: Session, row: int, ask: Ask) -> bool:
    """Ask until there is an answer and it is stored; say whether to go on."""
    names = " or ".join(session.table.labels)
    while True:
        try:
            text = ask(
                f"label of row {row} ({names}; {CANNOT_TELL} cannot tell; q stops): "
            ).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        if text.lower() in STOP and text not in session.table.labels:
            return False
        try:
            store(file, session, checked(session, {row: text}))
        except UserError as error:
            print(error)
            if row in file.read().labels:  # somebody else was quicker, and says otherwise
                return True
        else:
            return True
