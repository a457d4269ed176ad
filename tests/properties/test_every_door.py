"""Whatever way a table comes in, and however it is written: one answer, or a refusal in one line.

Forty tables are changed in ways that change nothing that they say (rows in another order, other
names, other types, other files, other units), or a cell of theirs is left empty or has a word. Each
goes through every door that takes it. What is said is what was said before, or what the same table
with the same cell says in another type; or there is a refusal.
"""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mlflow.data.evaluation_dataset import EvaluationDataset
from pyarrow import feather, parquet

import fairbench
from fairbench.audits.question import Options
from fairbench.components.datasets import table
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from fairbench.tracking.model_evaluator import _evaluate
from fairbench_label.questions import begin, next_rows
from fairbench_label.session import StateFile
from fairbench_watch.alarms import WatchFile, look
from fairbench_watch.state import WatchOptions
from tests.harness import quick

pytestmark = pytest.mark.filterwarnings("ignore")  # pandas, polars and MLflow warn of themselves

# Groups may be called as rows of totals are.
TOTALS = ("minority", "maximum", "Mittelschule", "mean", "Total", "Summe", "count", "Gesamt", "Min")
GROUPS = ("women", "men", "01", "1", "A+", "A-", "unknown", "über 60", *TOTALS)
# What may stand in place of a number.
WORDS = ("NA", "null", "?", "-", "13 %", "\u22121.5", "1'234", "12.5 kg", "1,234", "1\u202f234")
KINDS = ("scores", "decisions", "some labels", "classes", "numbers")


class People:
    """A table of one kind, with what its columns are: option -> column."""

    def __init__(self, seed):
        draw = np.random.default_rng(seed)
        self.kind = KINDS[seed % len(KINDS)]
        rows = int(draw.integers(60, 120))
        names = draw.choice(GROUPS, int(draw.integers(2, 5)), replace=False)
        score = draw.integers(1, 256, rows) / 256  # exact in half precision
        columns = {"group": draw.choice(names, rows), "x": np.arange(rows) % 7}
        self.options = {"groups": "group"}
        if self.kind == "decisions":
            columns["decision"] = (draw.random(rows) < 0.5).astype(int)
            self.options |= {"prediction": "decision"}
        elif self.kind == "numbers":
            columns["amount"] = draw.integers(0, 1000, rows) / 4
            columns["guess"] = columns["amount"] + draw.integers(-80, 80, rows) / 4
            self.options |= {"target": "amount", "prediction": "guess"}
        elif self.kind == "classes":
            columns["truth"] = draw.choice(["a", "b", "c"], rows)
            said = draw.choice(["a", "b", "c"], rows)
            columns["said"] = np.where(draw.random(rows) < 0.5, columns["truth"], said)
            columns["sure"] = score
            self.options |= {"target": "truth", "prediction": "said", "score": "sure"}
        else:
            columns["score"], columns["label"] = score, (draw.random(rows) < score).astype(int)
            self.options |= {"target": "label", "score": "score"}
        if self.kind not in ("classes", "some labels") and draw.random() < 0.4:
            columns["weight"] = draw.integers(1, 9, rows) / 4
            self.options["weight"] = "weight"
        self.frame = pd.DataFrame(columns)
        if self.kind == "some labels":
            self.frame["label"] = self.frame["label"].where(draw.random(rows) < 0.7)
        self.draw = draw


def audit(frame, options, folder):
    return rows_of(fairbench.audit(frame, **options).table)


def gate(frame, options, folder):
    judged = fairbench.gate(frame, fail_if="statistical_parity>0.3", **options)
    return {(row["attribute"], row["condition"]): [row["value"], row["lower"], row["upper"]]
            for row in judged.rows}  # fmt: skip


def evaluate(frame, options, folder):
    given = {NAMED.get(option, option): frame[name] for option, name in options.items()}
    task = task_of(options)
    if task == "multiclass":
        del given["score"]  # of the class that is predicted, where evaluate takes one of each
    if task == "binary":
        given["prediction"] = decisions(frame, options)
    return rows_of(fairbench.evaluate(**given, task=task))


def task_of(options):
    """Return the task, by the name of the target."""
    tasks = {"amount": "regression", "truth": "multiclass", "label": "binary"}
    return next(task for name, task in tasks.items() if options["target"].startswith(name))


def decisions(frame, options):
    values = [getattr(value, "as_py", lambda value=value: value)()
              for value in frame[options["score"]]]  # fmt: skip
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    return (numbers > 0.5).astype(int).to_numpy()


NAMED = {"groups": "sensitive_features", "weight": "sample_weight"}


def mlflow(frame, options, folder):
    config = {NAMED[name]: frame[options[name]] for name in NAMED.keys() & options.keys()}
    if "score" in options:
        frame = frame.assign(predicted=decisions(frame, options))
        config["score"] = options["score"]
    predictions = options.get("prediction", "predicted")
    data = EvaluationDataset(frame, targets=options["target"], predictions=predictions)
    kind = "regressor" if task_of(options) == "regression" else "classifier"
    return rows_of(_evaluate(kind, data, config, None, None))


def run(path, options, folder):
    archive = Archive(search_path=(folder,), store=folder, verify=False, download=False)
    task = "multiclass" if task_of(options) == "multiclass" else None
    named = {"target": options["target"], "sensitive": [options["groups"]]}
    named["drop"] = [options[name] for name in ("score", "prediction") if name in options]
    named["weight"] = options.get("weight", "")
    data = table.load(archive, path=str(path), task=task, **named)
    groups = data.sensitive[options["groups"]].astype(str).tolist()
    others = data.features.drop(columns=options["groups"], errors="ignore")
    features = [column.astype(str).tolist() for _, column in sorted(others.items())]
    weights = None if data.weight is None else data.weight.tolist()
    return {tuple(groups): (data.target.tolist(), features, weights)}


def label(path, options, folder):
    state = StateFile(folder / f"label-{len([*folder.iterdir()])}.json")
    session = begin(state, Options(path=path, **as_options(options)), {})
    return {"": (next_rows(session, 3).tolist(), len(session.table), session.state.answers)}


def watch(path, options, folder):
    state = WatchFile(folder / f"watch-{len([*folder.iterdir()])}.json")
    watched = look(state, WatchOptions(path=path, **as_options(options)), set())[1]
    return {name: watched.rows for group in watched.groups.values() for name in group} | {
        (): (watched.labels, [sorted(map(str, mark.counts.values())) for mark in watched.marks])
    }


def as_options(options):
    """Return options as a command line has them."""
    rest = {option: name for option, name in options.items() if option != "groups"}
    return {"group": (options["groups"],), **rest}


# A way in for some kinds: a function of a table or file, its options and a folder.
DOORS = {
    "audit": (audit, KINDS),
    "page": (audit, KINDS),
    "gate": (gate, ("scores", "decisions")),
    "evaluate": (evaluate, ("scores", "classes", "numbers")),
    "mlflow": (mlflow, ("scores", "numbers")),
    "run": (run, ("scores", "classes", "numbers")),
    "label": (label, ("scores", "some labels")),
    "watch": (watch, ("scores", "some labels", "decisions")),
}
OF_FILES = ("page", "run", "label", "watch")


def rows_of(frame):
    """Return the numbers of a table of results, by what they are of."""
    keys = [name for name in ("attribute", "group", "metric", "statistic") if name in frame]
    numbers = frame[["value", "lower", "upper", "n"]].to_numpy(float)
    names = frame[keys].astype(str).itertuples(index=False, name=None)
    return dict(zip(names, numbers.tolist(), strict=True))


def answer(way, given, options, folder, *, rename=str):
    """Return what a door says, by the names before the change; or its refusal."""
    try:
        said = DOORS[way][0](given, options, folder)
    except UserError as refusal:
        line = str(refusal)
        assert line and "\n" not in line and len(line) < 400, line
        return line
    return {
        tuple(map(rename, key)) if isinstance(key, tuple) else rename(key): values
        for key, values in said.items()
    }


def same(key, one, other):
    if not isinstance(other, list):
        return str(one) == str(other)
    atol = 0.08 if "below_epsilon" in key else 1e-9  # what is drawn at random is never the same
    return np.allclose(one, other, rtol=1e-6, atol=atol, equal_nan=True)


def differences(after, before):
    """Return two things that are said otherwise than before; of refusals, that only one is one."""
    if isinstance(after, str) or isinstance(before, str):
        return [f"{after}, not {before}"] * (type(after) is not type(before))
    if after.keys() != before.keys():
        return [f"of {sorted(map(str, after.keys() ^ before.keys()))[:4]}"]
    return [
        f"{key}: {after[key]}, not {values}"
        for key, values in before.items()
        if not same(key, after[key], values)
    ][:2]


TYPES = {
    "nullable": lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable"),
    "arrow-backed": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda frame: frame.astype(object),
    "categories": lambda frame: frame.apply(lambda column: column.astype("category")),
    "texts": lambda frame: frame.astype(object).where(frame.notna(), "").astype(str),
    "single": lambda frame: narrowed(frame, np.float32),
    "half": lambda frame: narrowed(frame, np.float16),
    "sparse": lambda frame: frame.apply(
        lambda column: column.astype(pd.SparseDtype(column.dtype))
        if column.dtype.kind in "if" else column
    ),
    "polars": lambda frame: pl.DataFrame(as_lists(frame)),
    "arrow": lambda frame: pa.table(as_lists(frame)),
    "lists": lambda frame: pd.DataFrame(as_lists(frame), dtype=object),
    "masked": lambda frame: pd.DataFrame({
        name: pd.Series(np.ma.array(column, mask=column.isna())) for name, column in frame.items()
    }),
}  # fmt: skip
FILES = ("csv", "tsv", "semicolon.csv", "xlsx", "parquet", "arrow")


def typed(frame, draw):
    """Return a table some of whose columns of numbers are numbers, as typed files have them."""

    def column(values):
        numbers = pd.to_numeric(values.where(values != ""), errors="coerce")
        is_number = numbers.notna().eq(values != "").all()
        return numbers if is_number and draw.random() < 0.5 else values

    return pd.concat([column(frame.iloc[:, i]) for i in range(frame.shape[1])], axis=1)


def write(frame, path, draw):
    """Write a table in the form that a file's name says."""
    if path.suffix == ".xlsx":
        typed(frame, draw).to_excel(path, index=False)
    elif path.suffix in (".parquet", ".arrow"):
        columns = [pa.array(column, from_pandas=True) for _, column in typed(frame, draw).items()]
        write_table = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
        write_table(pa.Table.from_arrays(columns, list(frame.columns)), path)
    else:
        sign = {"tsv": "\t", "semicolon.csv": ";"}.get(path.name.partition(".")[2], ",")
        frame.to_csv(path, index=False, sep=sign)


def narrowed(frame, kind):
    return frame.astype(dict.fromkeys(frame.select_dtypes("float").columns, kind))


def as_lists(frame):
    """Return columns as lists, with None where there is nothing; whole numbers as such."""
    return {name: [None if pd.isna(value) else value for value in column.astype(object)]
            for name, column in frame.items()}  # fmt: skip


def changes(people):
    """Yield tables that say what a table says, their options, and the name of each name before."""
    frame, options, draw = people.frame, people.options, people.draw

    yield "rows", frame.iloc[draw.permutation(len(frame))], options, str
    yield "index", frame.set_axis(draw.permutation(len(frame)) * 3 + 5), options, str
    yield "twice the index", frame.set_axis(np.arange(len(frame)) // 2), options, str
    yield "columns", frame[draw.permutation(frame.columns)], options, str
    yield "a column more", frame.assign(**{"other ": "a,b", "1": np.nan}), options, str
    for name, times in (("a column twice", 2), ("a copy of a column", 1)):
        yield name, pd.concat([frame, frame[["x"]] * times], axis=1), options, str
    end = " % [é]"
    new = {option: name + end for option, name in options.items()}
    yield "names", frame.add_suffix(end), new, lambda name: name.replace(end, "")
    renamed = frame.assign(group=frame["group"] + " +")
    yield "groups", renamed, options, lambda name: name.replace(" +", "")
    if "weight" in options and people.kind != "numbers":
        yield "weights", frame.assign(weight=frame["weight"] * 8), options, str


def spoilt(people):
    """Yield tables with one cell empty in a column that is used, and with a word among numbers."""
    for name in people.options.values():
        column, row = people.frame[name], int(people.draw.integers(len(people.frame)))
        gap = people.frame.copy().astype({name: object})
        gap.loc[row, name] = None
        is_number = column.dtype.kind in "if"
        yield name, gap.astype({name: float}) if is_number else gap
        if is_number:
            word = people.draw.choice(WORDS)
            texts = column.astype(str).where(column.index != row, word)
            yield f"{name}: {word}", people.frame.assign(**{name: texts})


def ways(people):
    unweighted = ("label", "watch") if "weight" in people.options else ()
    return [
        way for way, (_, kinds) in DOORS.items() if people.kind in kinds and way not in unweighted
    ]


def through(way, frame, options, folder, form="csv", **keys):
    """Return a door's answer to a table, which is written to a file where the door is of files."""
    given = frame
    if way in OF_FILES:
        given = folder / f"t.{form}"
        write(frame.astype(str).where(frame.notna(), ""), given, np.random.default_rng(0))
    return answer(way, given, options, folder, **keys)


REFUSED = ("a column twice", "twice the index")  # may be: which is meant is unclear
# An answer that names rows, is in their order, or has weights; a column that is one more feature.
OTHERWISE = {("rows", "label"), ("rows", "run"), ("weights", "run")}
OTHERWISE |= {("a column more", "run"), ("a column twice", "run")}
OFTEN = (2,)  # seeds that any run of the tests has
SEEDS = quick(range(40), OFTEN, rest=pytest.mark.slow)


def said_in_all_forms(way, frame, options, folder):
    """Yield each form of a table that a door takes, and what it says of it."""
    for form in FILES if way in OF_FILES else TYPES:
        if way in OF_FILES:
            yield form, through(way, frame, options, folder, form)
        elif way != "mlflow" or form not in ("polars", "arrow"):
            yield form, answer(way, TYPES[form](frame), options, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_that_says_the_same_gets_the_same_answer(seed, tmp_path):
    people = People(seed)
    wrong, tried = [], 0
    for way in ways(people):
        before = through(way, people.frame, people.options, tmp_path)
        assert not isinstance(before, str), (way, before)
        said = [*said_in_all_forms(way, people.frame, people.options, tmp_path)]
        if way == "page":
            said.append(("memory", through("audit", people.frame, people.options, tmp_path)))
        for name, frame, options, rename in changes(people):
            if (name, way) not in OTHERWISE:
                said.append((name, through(way, frame, options, tmp_path, rename=rename)))
        for name, after in said:
            if name not in REFUSED or not isinstance(after, str):
                wrong += [(way, name, what) for what in differences(after, before)]
        tried += len(said)
    assert not wrong, "\n".join(map(str, wrong))
    assert tried >= 20


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_cell_or_a_word_is_one_thing_in_any_type_and_file(seed, tmp_path):
    people = People(seed)
    wrong = []
    for (name, frame), way in itertools.product(spoilt(people), ways(people)):
        first = through(way, frame, people.options, tmp_path)
        for form, after in said_in_all_forms(way, frame, people.options, tmp_path):
            wrong += [(way, name, form, what) for what in differences(after, first)]
    assert not wrong, "\n".join(map(str, wrong))
