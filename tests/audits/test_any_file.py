"""Files of twenty kinds are read as their plain CSV is, or refused in one line."""

import numpy as np
import pytest

from benchmarks.faults.kinds import WORDS, kinds, text
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import OpenQuestions, UserError
from tests.audits.tables import parse

KINDS = kinds()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "plain.csv"
    path.write_text(text())
    return read_audit_table(parse([str(path), *WORDS]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}, {kind.name}")
def test_a_file_is_read_as_the_plain_one_or_refused(kind, plain, tmp_path, capsys):
    path = kind.write(tmp_path)
    options = parse([str(path), *WORDS, *kind.words])
    if kind.refused:
        with pytest.raises(UserError) as caught:
            read_audit_table(options)
        assert kind.refused in str(caught.value)
        lines = f"error: {caught.value}".splitlines()
        assert max(map(len, lines)) <= 300
        assert len(lines) == 1 or isinstance(caught.value, OpenQuestions)
        return
    table = read_audit_table(options)
    np.testing.assert_array_equal(table.label, plain.label)
    np.testing.assert_allclose(table.score, plain.score, rtol=0, atol=1e-12)
    for name, groups in plain.groups.items():
        assert table.groups[name].tolist() == groups.tolist()
    assert len(capsys.readouterr().err.splitlines()) <= 1
