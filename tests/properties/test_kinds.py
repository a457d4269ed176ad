"""The kinds behind the cases of tests/cases: names, numbers, ids, zeros, units and copies.

Whatever people's files hold of a kind, it is read as what it is, or asked in one line.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairbench
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.core.errors import UserError
from fairbench.data.features import Encoder, Encoding
from fairbench.tracking.entries import values_of_evaluation
from tests.cases.test_cases import loaded

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]  # of labels alike
FEW = settings(max_examples=20, deadline=None, derandomize=True)
TOTALS = ("minimum", "Max", "std", "mean", "Mittel", "Summe", "Gesamt", "Total", "count", "n")
NAMES = st.one_of(
    st.sampled_from(TOTALS),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8),
)
ROWS = 30
LABELS = [str(i % 2) for i in range(ROWS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kinds")


@FEW
@given(names=st.lists(NAMES, min_size=2, max_size=3, unique=True), data=st.data())
def test_the_names_of_groups_never_decide_which_rows_are_read(folder, names, data):
    codes = data.draw(st.lists(st.sampled_from(range(len(names))), min_size=ROWS, max_size=ROWS))
    codes[:2] = 0, 1
    known = data.draw(st.lists(st.booleans(), min_size=ROWS, max_size=ROWS))
    known[-1] = any(known) and known[-1]
    labels = [label if is_known else "" for label, is_known in zip(LABELS, known, strict=True)]
    frame = pd.DataFrame({"g": [names[code] for code in codes], "d": LABELS, "y": labels})
    options = Options(path=folder / "t.csv", target="y", prediction="d", group=("g",), rows=":")
    if not any(labels):
        return
    frame.to_csv(options.path, index=False)
    in_memory = read_frame(Options(path=options.path, target="y", prediction="d", group=("g",)),
                           source=frame)  # fmt: skip
    for read in (read_frame(options), in_memory):
        assert read["g"].tolist() == frame["g"].tolist() and read["y"].tolist() == labels


def marked(number, sign):
    """Return a whole number with marks of thousands."""
    return f"{number:,}".replace(",", sign)


@FEW
@given(
    st.lists(st.integers(1000, 10**9), min_size=2, max_size=8),
    st.lists(st.integers(0, 999), max_size=4),
    st.sampled_from([",", "'", " ", "\u202f", "\u00a0", "\u2019"]),
)
def test_numbers_with_marks_of_thousands_are_read_or_asked_and_never_other_numbers(
    folder, large, small, sign
):
    texts = [marked(number, sign) for number in large] + [str(number) for number in small]
    frame = pd.DataFrame({"sex": ["f", "m"] * len(texts), "x": texts * 2, "y": [0, 1] * len(texts)})
    path = folder / "thousands.csv"
    frame.to_csv(path, index=False)
    options = Options(path=path, target="y", score="x", group=("sex",))
    for read in (loaded, lambda _: read_audit_table(options)):
        with pytest.raises(UserError, match="column 'x', row 1: ") as refusal:
            read(path)
        assert "\n" not in str(refusal.value)


@FEW
@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=4, max_size=9))
def test_decimal_commas_are_the_same_numbers_and_points_beside_them_are_asked(folder, numbers):
    numbers = [*numbers, 0.5]
    comma = [repr(number).replace(".", ",") for number in numbers]
    frame = pd.DataFrame({"x": comma, "sex": ["f", "m"] * 2 + ["f"] * (len(comma) - 4)})
    frame["y"] = [i % 2 for i in range(len(comma))]
    path = folder / "commas.csv"
    frame.to_csv(path, index=False, sep=";")
    assert loaded(path).features["x"].tolist() == numbers
    points = [marked(1000 + i, ".") for i in range(len(comma))]
    frame.assign(z=points).to_csv(path, index=False, sep=";")
    with pytest.raises(UserError, match=r"column 'z', row 1: '1.000' has a point that may be a"):
        loaded(path)


@FEW
@given(st.integers(2**53, 2**62), st.integers(1, 5), st.booleans())
def test_whole_numbers_beyond_floats_stay_different_groups(folder, first, apart, gap):
    ids = [first, first + apart] * (ROWS // 2)
    called = [str(number) for number in ids]
    site = pd.Series(ids, dtype="Int64").mask(pd.Series(range(ROWS)) < gap)
    frame = pd.DataFrame({"site": site, "d": LABELS, "y": LABELS[::-1]})
    path = folder / "ids.csv"
    frame.to_csv(path, index=False)
    frame.to_parquet(path.with_suffix(".parquet"))
    names = {*called, *["unknown"] * gap}
    labels = [int(label) for label in LABELS]
    found = fairbench.evaluate(labels, labels, sensitive_features={"site": site})
    assert {*found["group"]} - {""} == names
    for source in (path, path.with_suffix(".parquet"), frame):
        options = Options(path=path if source is frame else source, target="y", prediction="d",
                          group=("site",))  # fmt: skip
        read = read_frame(options, source=frame if source is frame else None)
        assert {*read_audit_table(options, read).groups["site"].cat.categories} == names
    for file in (path, path.with_suffix(".parquet")):
        assert {*loaded(file, sensitive=["site"]).sensitive["site"].cat.categories} == names


@FEW
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0]), min_size=ROWS, max_size=ROWS))
def test_zero_has_one_sign(folder, values):
    values = [0.0, -0.0, 1.0, *values[3:]]
    labels = [int(label) for label in LABELS]
    found = fairbench.evaluate(labels, labels, sensitive_features=np.array(values))
    assert {*found["group"]} == {"", "0", "1"}
    frame = pd.DataFrame({"g": values, "d": LABELS, "y": LABELS})
    options = Options(path=folder / "zeros.csv", target="y", prediction="d", group=("g",))
    read = read_audit_table(options, read_frame(options, source=frame))
    assert {*read.groups["g"].cat.categories} == {"0", "1"}


@FEW
@given(
    st.lists(st.integers(-1000, 1000), min_size=4, max_size=20, unique=True),
    st.sampled_from([0, 2**31, 1_700_000_000, -(2**40), 2**50]),
    st.sampled_from([2.0**-40, 0.25, 1.0, 2.0**60]),
)
def test_features_of_64_bits_keep_their_steps(values, origin, unit):
    # Sums and products of powers of two are exact, so both tables say the same.
    exact = pd.DataFrame({"x": (np.array(values, float) + origin) * unit})
    plain = pd.DataFrame({"x": np.array(values, float)})
    for encoding in (Encoding.STANDARD, Encoding.ONEHOT):
        encoded = [Encoder(encoding).fit(frame).transform(frame) for frame in (plain, exact)]
        dense = [np.asarray(each if encoding is Encoding.STANDARD else each.toarray()).ravel()
                 for each in encoded]  # fmt: skip
        assert (np.argsort(dense[0]) == np.argsort(dense[1])).all()
        assert len({*dense[1]}) == len(values)
        standard = [(each - each.mean()) / each.std() for each in map(np.float64, dense)]
        np.testing.assert_allclose(*standard, atol=1e-5)


@FEW
@given(st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_groups_with_different_names_are_logged_under_different_names(names):
    groups = names * (ROWS // len(names))
    labels = [int(i < len(groups) / 2) for i in range(len(groups))]
    found = fairbench.evaluate(labels, labels, sensitive_features={"g": groups})
    rates = found.query("metric == 'selection_rate' and statistic == 'value' and group != ''")
    values = values_of_evaluation(found)
    logged = [name for name in values if name.startswith("g/") and name.endswith("/selection_rate")]
    assert sorted(values[name] for name in logged) == sorted(rates["value"])


@FEW
@given(st.lists(st.sampled_from(["1", "2.5", "", "a"]), min_size=12, max_size=20), st.booleans())
def test_a_copy_of_a_column_changes_nothing_and_another_of_its_name_is_asked(folder, cells, alike):
    cells = ["a", "b", *cells]
    frame = pd.DataFrame({"g": cells, "d": (LABELS * 2)[: len(cells)]}).assign(y=1)
    frame.loc[0, "y"] = 0
    path = folder / "copies.csv"
    options = Options(path=path, target="y", prediction="d", group=("g",), rows=":")
    before = frame.to_csv(path, index=False) or read_frame(options)
    copy = frame[["g"]] if alike else frame[["g"]].iloc[::-1].reset_index(drop=True)
    is_equal = copy["g"].equals(frame["g"])
    twice = pd.concat([frame, copy], axis=1)
    twice.to_csv(path, index=False)
    for source in (None, twice):
        asked = options if source is None else Options(path=path, target="y", prediction="d",
                                                       group=("g",))  # fmt: skip
        if is_equal:
            pd.testing.assert_frame_equal(read_frame(asked, source=source)[[*before]], before)
        else:
            with pytest.raises(UserError, match="2 columns are named 'g', and row"):
                read_frame(asked, source=source)
