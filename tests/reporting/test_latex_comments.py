"""Whatever a text holds, the comment that it stands in ends where its line does."""

from hypothesis import given
from hypothesis import strategies as st

from fairbench.core.text import latex_comment


@given(st.text(st.characters(categories=("L", "N", "P", "Z", "C")), max_size=60))
def test_a_comment_is_one_line_of_what_can_be_seen(text):
    comment = latex_comment(text + "\n\\input{x}\u2028\x85\r\x0b")
    assert comment.startswith("% ")
    assert comment.splitlines() == [comment[:-1]]
    assert comment.endswith("\n")
