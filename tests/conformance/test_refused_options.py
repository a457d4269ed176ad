"""Options of components that cannot be are refused in a sentence that names the option."""

import re
from pathlib import Path

import pytest
import yaml

from fairbench.components import class_named, options_in
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from tests.datasets.raw_files import FOLDER

REFUSED = yaml.safe_load(Path(__file__).with_name("refused_options.yaml").read_text())
CASES = [(component, row) for component, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("component", "row"), CASES, ids=str)
def test_an_option_that_cannot_be_is_refused_by_its_name(component, row, tmp_path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    group, _, name = component.partition("/")
    archive = Archive([FOLDER], store=tmp_path, verify=False, download=False)  # of made-up rows
    archives = [archive] if group == "dataset" else []
    config = options_in(group, name) | {option: row[option] for option in row if option != "says"}
    with pytest.raises(UserError) as refused:
        class_named(config.pop("_target_"))(*archives, **config)
    option, value = next(iter(row.items()))
    last = value[-1] if isinstance(value, list) and value else value
    names = f"{re.escape(f'{group}.{option}')}.*{re.escape(str(last))}"
    assert re.search(row.get("says", names), str(refused.value))
