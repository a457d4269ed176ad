"""Pages in a browser: nothing off the screen of a phone, no empty sheet of paper."""

import re
import shutil
import subprocess

import pytest

from fairbench.audits.kinds import document_of
from fairbench.reporting.document.writing import to_html
from tests.audits.tables import parse, predictions

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OFF_SCREEN = """<script>addEventListener("load", () => {
  const seen = [...document.querySelectorAll("body *")].filter(each => !each.closest("thead, svg"));
  const off = seen.filter(each => each.getBoundingClientRect().right > innerWidth + 1);
  document.title = `${innerWidth} wide, ${off.length} off`;
});</script></body>"""
# A headless window is at least 500 wide: a frame is as wide as it is told to be.
FRAME = """<body style="margin:0"><iframe id="page" src="page.html" width="400" height="800"
  style="border:0"></iframe><script>setTimeout(() => {
  document.title = document.getElementById("page").contentDocument.title }, 1500)</script></body>"""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


def chromium(*words):
    start = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    done = subprocess.run([*start, *words], capture_output=True, timeout=120, check=True)
    return done.stdout.decode()


@pytest.fixture(scope="module")
def page():
    frame = predictions(800, bias=0.2).astype(str)
    options = parse(["p.csv", "target=label", "score=score", "group=[sex,race]"])
    return to_html(document_of(options, frame))


def test_no_column_is_off_the_screen_of_a_phone(page, tmp_path):
    page = re.sub(r"<meta http-equiv[^>]*>", "", page)
    (tmp_path / "page.html").write_text(page.replace("</body>", OFF_SCREEN))
    (tmp_path / "frame.html").write_text(FRAME)
    result = chromium(
        "--allow-file-access-from-files", "--virtual-time-budget=4000", "--dump-dom",
        f"file://{tmp_path / 'frame.html'}",
    )  # fmt: skip
    assert "<title>400 wide, 0 off</title>" in result


def test_it_prints_on_a_few_sheets_and_none_is_empty(page, tmp_path):
    (tmp_path / "page.html").write_text(page)
    paper = tmp_path / "page.pdf"
    chromium("--no-pdf-header-footer", f"--print-to-pdf={paper}", f"file://{tmp_path}/page.html")
    content = paper.read_bytes()
    sheets = len(re.findall(rb"/Type\s*/Page\b", content))
    assert 2 <= sheets <= 12
    lengths = [int(length) for length in re.findall(rb"/Length (\d+)", content)]
    assert len([length for length in lengths if length > 200]) >= sheets
