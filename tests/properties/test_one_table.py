"""One table is one table: in files of five kinds and in memory, retyped, renamed and numbered.

A table is changed as people's files are, and read by an audit and by ``dataset=table`` in every
form. All forms give one answer, or a refusal in one line; and the answer is that of the table
before, or the change is told.
"""

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.components.datasets import table
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from tests.harness import quick

FILES = ("csv", "tsv", "semicolon.csv", "xlsx", "parquet", "arrow")
MISSING = ("", "NA", "N/A", "nan", "null", "None")
STRANGE = ("?", "-", "13 %", "$12", "\u22121.5", "1'234", "n. a.", "12.5 kg")
REFUSED = "refused"
MORE = 2  # forms of each table beside CSV and, for an audit, memory


def people(seed):
    """Return a table of texts, as a file has them; the last rows have no label yet."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(30, 60))
    score = draw.uniform(0.01, 0.99, rows).round(4)
    label = (draw.random(rows) < score).astype(int).astype(str)
    return pd.DataFrame({
        "sex": draw.choice(["f", "m", "d"], rows),
        "age": draw.integers(18, 80, rows).astype(str),
        "income": [str(each) for each in draw.normal(2000, 700, rows).round(2)],
        "home": draw.choice(["flat", "house", "NA"], rows),
        "score": [str(each) for each in score],
        "label": label,
    }), draw  # fmt: skip


def typed(frame, draw):
    """Return a table some of whose columns of numbers are numbers, as typed files have them."""
    numbers = {}
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        values = pd.to_numeric(column.where(column != ""), errors="coerce")
        if values.notna().eq(column != "").all() and draw.random() < 0.5:
            numbers[position] = values
    columns = [numbers.get(i, frame.iloc[:, i]) for i in range(frame.shape[1])]
    return pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)


def write(frame, path, draw):
    """Write a table in the form that a file's name says."""
    if path.suffix == ".xlsx":
        typed(frame, draw).to_excel(path, index=False)
    elif path.suffix in (".parquet", ".arrow"):
        import pyarrow as pa
        from pyarrow import feather, parquet

        columns = typed(frame, draw)
        arrays = [pa.array(columns.iloc[:, i], from_pandas=True) for i in range(columns.shape[1])]
        arrow = pa.Table.from_arrays(arrays, list(frame.columns))
        write_table = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
        write_table(arrow, path)
    else:
        sign = {"tsv": "\t", "semicolon.csv": ";"}.get(path.name.partition(".")[2], ",")
        frame.to_csv(path, index=False, sep=sign)


def refusal(error):
    line = str(error)
    assert "\n" not in line and len(line) < 400, line
    return REFUSED


def audited(path, source=None, score="score"):
    """Return the scores, labels and groups that an audit reads, or that it refuses."""
    options = Options(path=path, target="label", score=score, group=("sex",))
    try:
        read = read_audit_table(options, read_frame(options, source=source))
    except UserError as error:
        return refusal(error)
    labels = np.nan_to_num(read.label, nan=-1)
    return read.score.tolist(), labels.tolist(), read.groups["sex"].astype(str).tolist()


def loaded(path, **options):
    """Return the features, the target and the groups of a data set, or that it is refused."""
    archive = Archive(search_path=(path.parent,), store=path.parent, verify=False, download=False)
    asked = {"target": "label", "sensitive": ["sex"], "drop": ["score"]} | options
    try:
        data = table.load(archive, path=str(path), **asked)
    except UserError as error:
        return refusal(error)
    features = {
        name: (column.dtype.kind, column.astype(object).where(column.notna(), None).tolist())
        for name, column in data.features.items()
    }
    return features, data.target.tolist(), data.sensitive["sex"].astype(str).tolist()


def answers(frame, folder, draw, read, **options):
    """Return the different answers to a table in several forms, and whether one refuses it."""
    found = []
    for name in (FILES[0], *draw.choice(FILES[1:], MORE, replace=False)):
        path = folder / f"t.{name}"
        write(frame, path, draw)
        found.append(read(path, **options))
    if read is audited:
        memory = typed(frame, draw) if draw.random() < 0.5 else frame
        found.append(audited(folder / "t", source=memory.set_axis(range(5, len(frame) + 5))))
    different = [each for each in found if each != REFUSED]
    assert all(each == different[0] for each in different), folder
    return different[:1], REFUSED in found


SEEDS = [
    *quick(range(3), [0]),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8)),
]
pytestmark = pytest.mark.parametrize("seed", SEEDS)


@pytest.mark.thorough
def test_a_cell_that_is_no_number_is_missing_and_told_or_refused(seed, tmp_path, capsys):
    frame, draw = people(seed)
    [before], _ = answers(frame, tmp_path, draw, loaded)
    for word in (*draw.choice(MISSING, 3), *draw.choice(STRANGE, 4)):
        row = int(draw.integers(len(frame)))
        changed = frame.copy()
        changed.loc[row, "income"] = word
        capsys.readouterr()
        after, refused = answers(changed, tmp_path, draw, loaded)
        if word not in MISSING:
            assert not after
            continue
        assert not refused
        expected = before[0]["income"][1][:row] + [None] + before[0]["income"][1][row + 1 :]
        assert after[0][0] == before[0] | {"income": ("f", expected)}
        assert not word or capsys.readouterr().err.count(f"read as missing: income ({word})") > MORE
    for word in (*MISSING, *STRANGE, "1,234"):
        changed = frame.copy()
        changed.loc[int(draw.integers(len(frame))), "score"] = word
        assert answers(changed, tmp_path, draw, audited) == ([], True)


def test_thousands_and_decimal_commas(seed, tmp_path):
    frame, draw = people(seed)
    thousands = frame.assign(age=[f"1,{age}0" if int(age) % 3 else age for age in frame["age"]])
    assert answers(thousands, tmp_path, draw, loaded) == ([], True)
    commas = frame.assign(
        **{name: frame[name].str.replace(".", ",", regex=False) for name in ("income", "score")}
    )
    for read in (loaded, audited):
        assert answers(commas, tmp_path, draw, read) == answers(frame, tmp_path, draw, read)


@pytest.mark.thorough
def test_row_numbers_are_no_feature_and_a_repeated_column_can_be_left_out(seed, tmp_path, capsys):
    frame, draw = people(seed)
    of_run, of_audit = (answers(frame, tmp_path, draw, read)[0] for read in (loaded, audited))
    capsys.readouterr()
    for first in (0, 1):
        numbers = [str(first + row) for row in range(len(frame))]
        numbered = frame.copy()
        numbered.insert(0, draw.choice(["", "Unnamed: 0"]), numbers)
        assert answers(numbered, tmp_path, draw, loaded) == (of_run, False)
        assert capsys.readouterr().err.count("it has no name, and numbers the rows") > MORE
        assert answers(numbered, tmp_path, draw, audited)[0] == of_audit
    for name in frame:
        twice = pd.concat([frame, frame[[name]].iloc[::-1].reset_index(drop=True)], axis=1)
        after, _ = answers(twice, tmp_path, draw, audited)
        assert after == ([] if name in ("sex", "score", "label") else of_audit)
        left = answers(twice, tmp_path, draw, loaded, drop=["score", f"{name}.1"])
        assert left == (of_run, False)
        after, _ = answers(twice, tmp_path, draw, loaded)
        if name in ("sex", "label"):
            assert not after
        elif name != "score":  # all columns called so are left out
            assert after[0][0].keys() == {*of_run[0][0], f"{name}.1"}
