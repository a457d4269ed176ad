"""Small inputs that once came out wrong, each with the value that is right.

They were made from public reports of neighbouring projects and from trials by hand. A case is a
symptom, and here are those whose kind no other test holds: most are held by tests/properties.
"""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.components.datasets import table
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from fairbench.data.features import Encoder, Encoding

pytestmark = pytest.mark.filterwarnings("ignore")  # pandas and MLflow warn of themselves
DRAW = np.random.default_rng(0)


def loaded(path, **options):
    """Return a file as ``dataset=table`` loads it, to predict y."""
    archive = Archive(search_path=(path.parent,), store=path.parent, verify=False, download=False)
    return table.load(archive, path=str(path), **{"target": "y", "sensitive": ["sex"]} | options)


def written(folder, name, text):
    """Write a file, its rows separated by blanks, and return its path."""
    path = folder / name
    path.write_text("\n".join(text.split()) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("role", ["target", "weight"])
def test_02_a_comma_that_may_mark_thousands_is_asked(role, tmp_path):
    path = written(tmp_path, "price.csv", 'sex,x,y f,"1,065",0 m,950,1 f,"1,234",1 m,870,0')
    with pytest.raises(UserError, match="'x', row 1: '1,065' has a comma that may be a decimal"):
        loaded(path, **{role: "x"})


def test_10_seconds_since_1970_are_as_good_a_feature_as_seconds(tmp_path):
    seconds = DRAW.uniform(0, 60, 200).round(3)
    made = pd.DataFrame({"sex": ["f", "m"] * 100, "t": seconds, "y": [0, 1] * 100})
    standard = (seconds - seconds.mean())[:, None] / seconds.std()
    for origin in (0, 1_700_000_000):
        path = tmp_path / f"{origin}.csv"
        made.assign(t=seconds + origin).to_csv(path, index=False)
        features = loaded(path, keep_sensitive=False).features
        encoded = Encoder(Encoding.STANDARD).fit(features).transform(features)
        np.testing.assert_allclose(encoded, standard, atol=1e-4)


RISK = "age,decile,decile,empty,sex,y 67,9,9,,f,1 28,3,3,,m,0 35,5,{},,f,1 41,2,2,,m,0"


def test_16_equal_columns_of_one_name_are_one_and_others_are_named(tmp_path, capsys):
    path = written(tmp_path, "risk.csv", RISK.format(5))
    assert [*loaded(path).features] == ["age", "decile", "sex"]
    said = capsys.readouterr().err
    assert "risk.csv was read as: equal columns 'decile' as one" in said
    assert "'empty' left out: every cell is empty" in said
    assert [*loaded(path, drop=["decile.1", "empty"]).features] == ["age", "decile", "sex"]
    differ = written(tmp_path, "differ.csv", RISK.format(6))
    assert [*loaded(differ).features] == ["age", "decile", "decile.1", "sex"]
    way_on = r"2 columns are named 'decile', and row 3 tells them apart: .* as 'decile.1'"
    with pytest.raises(UserError, match=way_on):
        read_frame(Options(path=differ, target="y", score="decile", group=("sex",)))


def test_21_runs_and_audits_read_one_number_alike(tmp_path):
    text = "sex;score;y f;5,118E-01;1 m;9,505E-01;1 f;1,204E-01;0 m;0,4;0"
    path = written(tmp_path, "de.csv", text)
    options = Options(path=path, target="y", score="score", group=("sex",))
    right = [0.5118, 0.9505, 0.1204, 0.4]
    assert loaded(path).features["score"].tolist() == right
    assert read_audit_table(options).score.tolist() == right


def test_unknown_and_an_empty_cell_are_one_group(tmp_path):
    sex = ["f", "m", "Unknown", ""] * 3
    path = tmp_path / "t.csv"
    pd.DataFrame({"sex": sex, "y": [0, 1, 1] * 4, "x": [1, 0] * 6}).to_csv(path, index=False)
    assert sorted(loaded(path).sensitive["sex"].unique()) == ["Unknown", "f", "m"]
    options = Options(path=path, target="y", prediction="x", group=("sex",))
    assert [*read_audit_table(options).cells.cat.categories] == ["f", "Unknown", "m"]
    found = fairbench.evaluate([0, 1, 1] * 4, [1, 0] * 6, sensitive_features={"sex": sex})
    rate = found.query("metric == 'selection_rate' and statistic == 'value'").set_index("group")
    assert rate.loc["Unknown", "n"] == 6
