"""A page takes the place of a page of fairbench's, and of nothing else."""

import pytest

from fairbench.core.errors import UserError
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import check_page, write_document


def test_a_page_is_written_over_and_another_file_is_not(tmp_path):
    page = tmp_path / "index.html"
    check_page(page)
    write_document(Document("Title", []), tmp_path, "index")
    check_page(page)
    for content in ("", "<!doctype html>\n<html lang='en'>mine</html>"):
        page.write_text(content)
        with pytest.raises(UserError, match="no page of fairbench's: move it away"):
            check_page(page)
        assert page.read_text() == content
