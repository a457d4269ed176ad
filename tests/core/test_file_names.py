"""No stored name leads out of the folder that files are written into."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fairbench.core.escaping import file_name


@given(st.text() | st.sampled_from(["/", "..", "../../x", "/etc/x", "a/b", ".", "", "x" * 300]))
def test_a_name_is_one_part_of_a_path(name):
    made = file_name(name)
    assert Path("folder", made).parent == Path("folder")
    assert made not in (".", "..") and not made.startswith(".") and len(made) < 120


def test_plain_names_stay_and_others_are_told_apart():
    assert [file_name(name) for name in ("german", "adult-2", "acs_income")] == [
        "german", "adult-2", "acs_income",
    ]  # fmt: skip
    assert len({file_name(name) for name in ("a/b", "a_b", "a\\b")}) == 3
