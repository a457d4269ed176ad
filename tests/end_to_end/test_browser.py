"""Pages in a real browser: of MLflow, after a sweep was synchronised, and of audits."""

import html
import re
import shutil
import subprocess

import pytest

from fairbench.audits.kinds import document_of
from fairbench.reporting.document.writing import to_html
from fairbench.tracking.entries import _opening_names
from tests.audits.tables import parse, predictions
from tests.harness import fairbench, ran, served

DOWN = "http://127.0.0.1:9"
METHODS = ("ensemble", "binomial_nll")
SWEEP = (f"method={','.join(METHODS)}", "split.repeats=2", "dataset.n_samples=300")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore:.*noload"),
]


def chromium(*words):
    start = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    done = subprocess.run([*start, *words], capture_output=True, timeout=120, check=True)
    return done.stdout.decode()


def page(address, expected, profile):
    """Return the document a browser makes of a page, as soon as it contains what is expected."""
    for _ in range(3):
        document = chromium(
            "--window-size=2600,4000", f"--user-data-dir={profile}",
            "--virtual-time-budget=30000", "--dump-dom", address,
        )  # fmt: skip
        if expected in document:
            return document
    raise AssertionError(f"'{expected}' is not on {address}")


@pytest.mark.slow
def test_experiment_shows_each_run_once(tmp_path):
    cwd, profile = tmp_path / "cwd", tmp_path / "profile"
    cwd.mkdir()
    assert "MLflow: not logged" in ran("-m", *SWEEP, cwd=cwd, MLFLOW_TRACKING_URI=DOWN).stdout
    for _ in range(2):
        fairbench("sync", cwd=cwd)
    with served(cwd, stdout=subprocess.PIPE) as (server, _):
        runs, latest = (server.stdout.readline().strip() for _ in range(2))
        document = page(runs.removeprefix("runs: "), "simulated, xgboost, ensemble", profile)
        charts = "the latest sweep: "
        assert latest.startswith(f"{charts}http://127.0.0.1:")
        page(latest.removeprefix(charts), "parity/equalized_odds", profile)
    plain = re.sub(r"<(style|script).*?</\1>", "", document, flags=re.DOTALL)
    shown = html.unescape(re.sub(r"(<[^>]*>\s*)+", "|", plain))
    for method in METHODS:
        assert shown.count(f"simulated, xgboost, {method}, n_samples=300, repeats=2") == 1
    # It opens on these, and on the data set.
    for column in (*_opening_names("binary"), "Dataset", "sweep"):
        assert f"|{column}|" in shown
    # As it was typed; its own words for the data set come first.
    assert shown.count(f"|[{SWEEP[2]} {SWEEP[1]} {SWEEP[0]}]|") == len(METHODS)


# Pages of audits: nothing off the screen of a phone, no empty sheet of paper.

OFF_SCREEN = """<script>addEventListener("load", () => {
  const seen = [...document.querySelectorAll("body *")].filter(each => !each.closest("thead, svg"));
  const off = seen.filter(each => each.getBoundingClientRect().right > innerWidth + 1);
  document.title = `${innerWidth} wide, ${off.length} off`;
});</script></body>"""
# A headless window is at least 500 wide: a frame is as wide as it is told to be.
FRAME = """<body style="margin:0"><iframe id="page" src="page.html" width="400" height="800"
  style="border:0"></iframe><script>setTimeout(() => {
  document.title = document.getElementById("page").contentDocument.title }, 1500)</script></body>"""


@pytest.fixture(scope="module")
def audited():
    frame = predictions(800, bias=0.2).astype(str)
    options = parse(["p.csv", "target=label", "score=score", "group=[sex,race]"])
    return to_html(document_of(options, frame))


def test_no_column_is_off_the_screen_of_a_phone(audited, tmp_path):
    page = re.sub(r"<meta http-equiv[^>]*>", "", audited)
    (tmp_path / "page.html").write_text(page.replace("</body>", OFF_SCREEN))
    (tmp_path / "frame.html").write_text(FRAME)
    result = chromium(
        "--allow-file-access-from-files", "--virtual-time-budget=4000", "--dump-dom",
        f"file://{tmp_path / 'frame.html'}",
    )  # fmt: skip
    assert "<title>400 wide, 0 off</title>" in result
