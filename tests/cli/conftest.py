"""What tests of commands share."""

import pytest

from fairbench.cli.main import main


@pytest.fixture
def refused(capsys):
    """Return a function that has words be refused in one line, and returns the line."""

    def line(*words, message="", by=main):
        assert by([*words]) == 2
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.startswith("error: ") and printed.err.count("\n") == 1
        assert message in printed.err
        return printed.err

    return line
