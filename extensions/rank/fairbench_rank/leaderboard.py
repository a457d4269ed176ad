"""Write the leaderboard: which approach to use, on which data, and how sure that is.

An approach is a learner with an intervention and an uncertainty method, a task a data set with the
attribute whose groups are compared. The page has what holds across tasks (ranks with ties, the
trade-off of error against gaps), every task by itself, what each approach costs, and all of it for
download. It is one file that works without a server; the files beside it are its data. Nothing is
fitted: the runs of a results folder are read, or a table of approaches, such as the one that the
page of somebody else has beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairbench.cli.command import (
    PURPOSE,
    Results,
    check_folder,
    command,
    default_results,
    typed_command,
)
from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.files import write_bytes
from fairbench.core.options import option
from fairbench.core.text import count, counted, csv_text, digest, is_number
from fairbench.evaluation.table import COSTS
from fairbench.inference.repeats import REPEATS, Splits, mean_limits
from fairbench.metrics.registry import find, unknown_metric
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document import model
from fairbench.reporting.document.writing import write_document
from fairbench.reporting.group_tables import sentence_of
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import refuse_pack
from fairbench.results.runs import Run
from fairbench_rank import approaches, ranking, standings
from fairbench_rank.approaches import APPROACH, APPROACHES, ERROR, NONE, PARTS, TASK
from fairbench_rank.rank import declared_table, rank_table
from fairbench_rank.standings import Findings, MetricStandings, pluralise

MADE_FOR = "0.1"


@dataclass(frozen=True)
class _LeaderboardOptions(Results):
    """Of what the page is made, where it goes, and what it opens with.

    Attributes
    ----------
    results : The results folder of the runs, or a table of approaches.
    add : Further folders or tables of approaches, such as others' beside your own runs.
    out : Where the page is written; by default report/leaderboard in the results folder.
    metric : The gap between groups that the page opens with.
    """

    results: Path = option(default_results, shown="FOLDER|FILE.parquet")
    add: tuple[Path, ...] = option((), shown="[FOLDER|FILE.parquet,...]")
    out: Path = option(Path(), shown="FOLDER")
    metric: str = option("")
    purpose: tuple[str, ...] = PURPOSE


def leaderboard(options: _LeaderboardOptions) -> None:
    """Write the page, and print its summary and where it is.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.

    Examples
    --------
    fairbench leaderboard
    fairbench leaderboard add=[papers/atlas/approaches.parquet] out=board
    fairbench leaderboard metric=equalized_odds
    """
    from fairbench.reporting.document.terminal import print_document

    beside = default_results() if options.results.is_file() else options.results
    out = options.out if options.out != Path() else beside / "report" / "leaderboard"
    check_folder(out)
    how: dict[str, Any] = {"purposes": options.purpose, "metric": options.metric}
    folders = [options.results, *options.add]
    path, short = write_leaderboard(folders, out, command=typed_command(), **how)
    print_document(short)
    print(path)


COMMAND = command(leaderboard)


# The page, of what the approaches show.

_PAGE = "fairbench_rank:leaderboard"
_tell = partial(sentence_of, _PAGE)
_TITLES = ("What to use", "How sure this is", "What is not resolved", "")
_LINES = 10  # of a ranking on a terminal
# What adds to a page, given what it shows and the runs that it is of.
Further: TypeAlias = Callable[[model.Document, Findings, Sequence[Run]], model.Document]


def write_leaderboard(
    folders: Sequence[Path],
    out: Path,
    *,
    metric: str = "",
    purposes: Sequence[str] = (),
    command: str = "",
    further: Further | None = None,
) -> tuple[Path, model.Document]:
    """Write ``index.html`` of everything that results folders and tables of approaches have.

    Parameters
    ----------
    folders : results folders, and files of :func:`fairbench_rank.approaches.approaches_bytes`; a
        run that several have counts once, and of folders and files the folders come first.
    metric : the metric that the page opens with; the first gap between groups by default.
    purposes : the purposes of the runs that count; all but demos and tuning by default.
    command : the command that makes the page again.
    further : what adds sections to the page, and sentences to its summary.

    Returns
    -------
    The page's path, and the same in short for a terminal.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.
    """
    runs: dict[str, Run] = {}
    notes: list[str] = []
    for path in folders:
        refuse_pack(path)
    files = [path for path in folders if path.is_file()]
    for folder in [path for path in folders if path not in files]:
        kept, left_out = Catalogue(folder).counted(purposes)
        if not (finished := kept.runs):
            why = f" ({left_out})" if left_out else ""
            raise UserError(f"{folder} has no finished run{why}: name a results folder")
        notes += [f"Of the runs of {folder}, {left_out}."] if left_out else []
        runs = finished | runs
    tables = [approaches.approach_table([*runs.values()])] if runs else []
    tables += map(approaches.read_approaches, files)
    table, left_out_rows = approaches.approaches_together(tables)
    known = len({*runs}.union(*(each["run"] for each in tables)))
    board = comparable_board(table, " and ".join(map(str, folders)), metric)
    findings = board_findings(board, metric)
    notes += [*left_out_rows, *standings.left_out_sentences(findings, known)]
    findings = replace(findings, notes=tuple(notes))
    document = page_of(board, findings, metric, list(runs.values()), command, further)
    names = write_document(document, out, "index", ("html", "json"))
    write_bytes(out / APPROACHES, approaches.approaches_bytes(board.table))
    return out / names[0], short_of(document, findings, next(iter(board.gaps_from(metric)), ""))


def board_findings(board: BoardTable, metric: str = "") -> Findings:
    """Return the findings on a page's table, on the usual metrics and on the gaps that it shows."""
    metrics = dict.fromkeys([*standings.METRICS, *board.gaps_from(metric)])
    measured = [name for name in metrics if name in board.metrics]
    return standings.findings_of(board.table, metrics=measured)


def comparable_board(table: pd.DataFrame, folder_names: str, metric: str) -> BoardTable:
    """Return the table of a page, if there is something to compare.

    Raises
    ------
    UserError : one task only, or a metric that nothing has.
    """
    if ERROR not in table or table[ERROR].isna().all():
        raise UserError(_tell("no_errors", folders=folder_names, error=ERROR))
    judged = table.groupby([*TASK])[ERROR].transform("count") > 0
    board = BoardTable(table[judged].reset_index(drop=True))
    if len(board.tasks) < 2:
        raise UserError(_tell("one_task", folders=folder_names, task=board.tasks[0].title))
    if metric and metric not in board.metrics:
        raise unknown_metric("metric", metric, board.metrics)
    return board


def page_of(
    board: BoardTable,
    findings: Findings,
    metric: str = "",
    runs: Sequence[Run] = (),
    command: str = "",
    further: Further | None = None,
) -> model.Document:
    """Return the page; the parameters are those of :func:`write_leaderboard`."""
    style_of = _styles_of(board)
    gap = next(iter(board.gaps_from(metric)), "")
    points = list(map(_with_names, findings.mean_frontiers))
    points.sort(key=lambda point: point["gap_metric"] != gap)
    picture = _frontier_figure(points, style_of)
    tags = [{"metric": point["gap_metric"], **point["tags"]} for point in points]
    table = declared_table(_PAGE, "frontier", points, tags=tags)
    numbers = model.Details("The numbers of the picture", [table])
    lead: list[model.Block] = [picture, numbers] if picture else []
    ranked = pluralise(len(findings.approaches), "approach", "approaches")
    tasks: list[model.Block] = [model.Paragraph(_tell("task")), _facts(board)]
    tasks += [_details(task, board, style_of) for task in board.tasks]
    document = model.Document(
        f"Leaderboard: {ranked} on {pluralise(len(board.tasks), 'task', 'tasks')}",
        [
            ranks_section(findings, gap),
            _cost_section(findings),
            model.Section("Data sets", tasks, name="data-sets"),
        ],
        lead=[*lead, model.Paragraph(_tell("next"))],
        tabs=True,
        summary=summary_of(findings, gap),
        filters=board.filters,
        data=findings.to_dict(),
    )
    if further:
        document = further(document, findings, runs)
    sections = [*document.sections, _origin_section(board, command)]
    return replace(document, sections=sections, files={MEANS: _means(board)})


def short_of(document: model.Document, findings: Findings, gap: str) -> model.Document:
    """Return the short form for a terminal: the best by the error rate and by a gap."""
    own = [of for of in findings.standings if of.metric in (ERROR, gap)]
    tables = [_ranks_table(of, findings, most=_LINES, title=metric_label(of.metric)) for of in own]
    return model.Document(document.title, [model.Section("", tables)], summary=document.summary)


def summary_of(findings: Findings, gap: str) -> model.ExecutiveSummary:
    """Return the answer in plain words; `gap` is the metric that the page opens with."""
    by_name = {standing.metric: standing for standing in findings.standings}
    ranked = [by_name[name] for name in (ERROR, gap, "log_loss") if name in by_name]
    found = []
    for standing in ranked:
        if near := [row for row in standing.rows if row["near_best_on_new"] >= 0]:  # not NaN
            best = max(near, key=lambda row: row["near_best_on_new"])
            name, epsilon = metric_label(standing.metric), standing.answer.epsilon
            found.append(_tell("near", metric=name, best=best, epsilon=epsilon))
    for standing in ranked[:1]:
        tied = [row for row in findings.approaches if row["name"] in standing.answer.best]
        if len(tied) > 1:
            least = min(tied, key=lambda row: (row["fit_seconds"], row["name"]))
            name = metric_label(standing.metric)
            found.append(_tell("cheapest", tied=len(tied), metric=name, least=least))
    unseen = list(_open_sentences(findings, ranked))
    return model.ExecutiveSummary(found, _basis_sentences(findings), unseen, titles=_TITLES)


def _counts(findings: Findings) -> dict[str, str]:
    """Return in words of what the findings are."""
    return {
        "approaches": pluralise(len(findings.approaches), "approach", "approaches"),
        "tasks": pluralise(len(findings.values.tasks), "task", "tasks"),
        "families": pluralise(findings.families, "family", "families"),
        "splits": pluralise(findings.repeats, "split", "splits"),
    }


def _basis_sentences(findings: Findings) -> list[str]:
    """Return the basis of the answer, and how it is to be read."""
    ranks, few = standings.ranks_sentences(findings), standings.few_tasks_sentences(findings)
    basis = _tell("basis", **_counts(findings))
    return [basis, *ranks, _tell("mean_over_families"), *few, *findings.notes]


def _open_sentences(findings: Findings, ranked: Sequence[MetricStandings]) -> Iterator[str]:
    """Yield the questions that the runs leave open."""
    fewest = approaches.FEWEST_FAMILIES
    if not any(standing.metric == ERROR for standing in findings.standings):
        yield _tell("not_ranked", findings=findings, fewest=fewest, **_counts(findings))
    for standing in ranked:
        if (best := len(standing.answer.best)) > 1:
            yield _tell("which", best=best, metric=metric_label(standing.metric))
    for standing in ranked[:1]:
        name = metric_label(standing.metric)
        for sentence in ranking.resolving_sentences(standing.answer):
            yield f"On the {name}: {sentence}"
    yield _tell("others")


_CORNERS = 24
Point: TypeAlias = Mapping[str, Any]


def _frontier_figure(points: Sequence[Point], style_of: Styles) -> model.Figure | None:
    """Return a panel for each gap: one line per intervention, from its weakest to its strongest."""
    panels = []
    for gap in dict.fromkeys(point["gap_of"] for point in points):
        own = [point for point in points if point["gap_of"] == gap]
        x, y = (span_of(np.array([point[of] for point in own])) for of in ("error", "gap"))
        about: dict[str, Any] = {"from_zero": "", "spans": {"x": x, "y": y}}
        lines = list(_lines(own, style_of))
        panels.append(Panel(lines, "error rate, change", f"{gap}, change", **about))
    if not panels:
        return None
    drawings = chart(panels, key=_key_of(style_of, {NONE, *(point["name"] for point in points)}))
    title = "Error against gap across data sets"
    return model.Figure(title, drawings, caption=_tell("frontier_caption"), name="frontier")


def span_of(ends: np.ndarray) -> tuple[float, float]:
    """Return an axis for points, 0, and all but the widest quarter of their ellipses, (n, 3)."""
    value, lower, upper = ends.T
    low = min(value.min(), 0.0, np.quantile(lower, 0.25))
    high = max(value.max(), 0.0, np.quantile(upper, 0.75))
    room = 0.05 * (high - low) or 0.01
    return float(low - room), float(high + room)


def _lines(points: Sequence[Point], style_of: Styles) -> Iterator[Series]:
    """Yield a line for each intervention, a marker with its ellipse for each of its strengths."""
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        words = [word for word in point["strength"].split() if not is_number(word)]
        lines.setdefault((point["name"], " ".join(words)), []).append(point)
    for (name, _), line in lines.items():
        line.sort(key=lambda p: [float(w) for w in p["strength"].split() if is_number(w)])
        tags = line[0]["tags"]
        x, y = ([point[axis][0] for point in line] for axis in ("error", "gap"))
        yield Series(name, x, y, style_of[name]["colour"], marked=False, tags=tags)
        for point in line:
            needs, strong = point["group_at_prediction"], f"{name} {point['strength']}"
            named = approaches.name_with_group_need(strong, needs_group=needs)
            yield Series(
                name, [point["error"][0]], [point["gap"][0]], **style_of[name], lined=False,
                outline=_ellipse(point), hint=_tell("hint", name=named, point=point), tags=tags,
            )  # fmt: skip
    yield Series(NONE, [0.0], [0.0], **style_of[NONE], lined=False)


def _with_names(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with its ``name``, ``strength`` and ``tags``, and its ``need`` in words.

    The strength of thresholds is how large the gap may be.
    """
    name, _, strength = point["intervention"].partition(" ")
    tags = {"intervention": name}
    if point["setting"]:
        name, strength = THRESHOLDS, point["setting"].partition("<=")[2]
        tags = {"intervention": NONE}
    shown = {"name": name, "strength": strength, "gap_of": gap_label(point["gap_metric"])}
    return {**point, **shown, "tags": tags, "need": _need_text(point)}


def _ellipse(point: Point) -> np.ndarray:
    """Return the ends of both intervals as the axes of a curve, (m, 2)."""
    turn = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    centre, lower, upper = np.array([point["error"], point["gap"]]).T
    return np.asarray(centre + corners * np.where(corners > 0, upper - centre, centre - lower))


def ranks_section(findings: Findings, first: str) -> model.Section:
    """Return the ranking in every metric, that of `first` and of the error open."""
    about = [_tell("approach"), _tell("compared"), *standings.ranks_sentences(findings)]
    blocks: list[model.Block] = [model.Items(about)]
    for standing in findings.standings:
        direction = getattr(find(standing.metric), "direction", "")
        blocks.append(
            model.Details(
                metric_label(standing.metric),
                [model.Items(standing.sentences), _ranks_table(standing, findings)],
                remark=f"{direction}; {len(standing.answer.best)} may be the best",
                name=f"ranks-{standing.metric}",
                style="metric",
                is_open=standing.metric in (ERROR, first),
                tags={"metric": standing.metric},
            )
        )
    if few := findings.few:
        names = [f"{of['name']} ({pluralise(of['tasks'], 'task', 'tasks')})" for of in few]
        said = *standings.few_tasks_sentences(findings), f"{ranking.join_words(names)}."
        kind: dict[str, Any] = {"name": "ranks-few-tasks", "style": "metric"}
        why = [*map(model.Paragraph, said)]
        blocks.append(model.Details("Run on few tasks", why, remark="not ranked", **kind))
    return model.Section("Ranks", blocks, name="ranks")


def _ranks_table(standing: MetricStandings, findings: Findings, **about: Any) -> model.Table:
    """Return the ranking in one metric, with what each approach costs."""
    own = [findings.by_name[row["method"]] for row in standing.rows]
    ranked = zip(standing.rows, own, strict=True)
    rows = [{**row, "cost": of["relative_cost"], "need": _need_text(of)} for row, of in ranked]
    about = {"most": 0, "tags": [*map(tags_of, own)], **about}
    return rank_table(standing.answer, rows, reference=standing.reference, **about)


def _cost_section(findings: Findings) -> model.Section:
    """Return the section on cost: seconds of every approach."""
    costs = pd.DataFrame(findings.approaches).sort_values(["relative_cost", "name"])
    ordered = [findings.approaches[place] for place in costs.index]
    rows = [{**row, "need": _need_text(row)} for row in ordered]
    tags = [tags_of(row) for row in ordered]
    table = declared_table(_PAGE, "costs", rows, {"reference": findings.reference}, tags=tags)
    text = model.Paragraph(_tell("cost"))
    return model.Section("Cost and benefit", [text, table], name="cost")


# The single tasks: the means of every approach over the repeats.

_SHOWN_GAPS = 3
Styles: TypeAlias = Mapping[str, dict[str, Any]]
_LONGEST = 50  # letters of a task's name, each of up to four bytes of a file's 255
THRESHOLDS = "a threshold for each group"


@dataclass(frozen=True, eq=False)
class TaskMeans:
    """One task: a data set with a protected attribute.

    Attributes
    ----------
    first : a row of the task, for its facts.
    rows : one row per approach: the columns of `APPROACH`, ``group_at_prediction``, and of every
        metric the mean and the ends of its interval, ``name``, ``name lower`` and ``name upper``.
    """

    first: Mapping[str, Any]
    rows: pd.DataFrame
    repeats: int

    @property
    def title(self) -> str:
        """The data set and whom it is about."""
        return f"{self.first['dataset']} by {self.first['protect']}"

    @property
    def name(self) -> str:
        """The task as a part of a link or of a file's name."""
        letters = "-".join("".join(c if c.isalnum() else " " for c in self.title).split())
        return f"{letters[:_LONGEST]}-{digest(self.title, 6)}"


@dataclass(frozen=True, eq=False)
class BoardTable:
    """The table of approaches, and what is in it.

    Attributes
    ----------
    table : the result of :func:`fairbench_rank.approaches.approach_table`.
    """

    table: pd.DataFrame

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that have a value, those that are judged first, then by name."""
        names = [n for n in self.table if n not in (*approaches.ABOUT, *COSTS)]
        with_values = [str(n) for n in names if find(str(n)) and self.table[n].notna().any()]
        return sorted(with_values, key=lambda name: ([*_SHOWN, name].index(name), name))

    @cached_property
    def gaps(self) -> list[str]:
        """The metrics that compare groups and are shown: zero is fair."""
        return [n for n in self.metrics if getattr(find(n), "is_gap", False)][:_SHOWN_GAPS]

    def gaps_from(self, metric: str) -> list[str]:
        """Return the gaps, beginning with a metric if it is one of them."""
        return sorted(self.gaps, key=lambda name: name != metric)

    @cached_property
    def tasks(self) -> list[TaskMeans]:
        """Every task, in the order of the names."""
        return [_task(rows, self.metrics) for _, rows in self.table.groupby([*TASK], sort=True)]

    def shown(self, task: TaskMeans) -> pd.DataFrame:
        """Return the approaches that a task's picture and table show; the files have all.

        They abstain on nobody. Of thresholds for each group, those are shown that limit one of
        these gaps of an unconstrained model, read by the commonest method: others would be
        hundreds.
        """
        rows = task.rows
        plain = rows["setting"] == ""
        common = rows.loc[plain, "method"].mode().iloc[0] if plain.any() else ""
        limits = rows["setting"].str.partition("<=")[0].isin(self.gaps)
        relaxed = limits & (rows["intervention"] == NONE) & (rows["method"] == common)
        return rows[plain | relaxed]

    @cached_property
    def filters(self) -> list[model.PageFilter]:
        """The filters of the page: those with more than one value."""
        columns = {"family": "family of data", **{part: part for part in PARTS}}
        columns["method"] = "uncertainty method"
        filters: list[model.PageFilter] = [
            (name, label, [(value, value) for value in sorted(self.table[name].unique())])
            for name, label in columns.items()
        ]
        metrics = [(name, metric_label(name)) for name in self.metrics]
        filters.append(("metric", "metric", metrics))
        needs = [("no", "not needed"), ("yes", "needed")]
        filters.append(("group", "group at prediction", needs))
        return [filter_ for filter_ in filters if len(filter_[2]) > 1]


# The metrics of a task's table, and the first of all others.
_SHOWN = ("error_rate", "statistical_parity", "equalized_odds", "equal_opportunity", "log_loss")


def _task(task_rows: pd.DataFrame, metrics: Sequence[str]) -> TaskMeans:
    """Return the means of one task's approaches over its repeats."""
    keys = task_rows[[*APPROACH]]
    code = keys.groupby([*APPROACH], sort=True).ngroup().to_numpy()
    repeat, splits = pd.factorize(task_rows["repeat"], sort=True)
    names = [*metrics, *(cost for cost in COSTS if cost in task_rows)]
    values = np.full((code.max() + 1, len(names), len(splits)), np.nan)
    values[code, :, repeat] = task_rows[names].to_numpy(float)
    shared = Splits(REPEATS, len(splits), float(task_rows["test_share"].mean()))
    none = np.full_like(values, np.nan)
    mean, lower, upper = mean_limits(values, none, none, shared)
    least = np.array([_least(name) for name in names])
    first_rows = np.unique(code, return_index=True)[1]
    rows = task_rows.iloc[first_rows][[*APPROACH, "group_at_prediction"]].reset_index(drop=True)
    ends = {"": mean, " lower": np.maximum(lower, least), " upper": upper}
    columns = {f"{name}{end}": of[:, i] for end, of in ends.items() for i, name in enumerate(names)}
    facts = task_rows.iloc[0].to_dict()
    return TaskMeans(facts, pd.concat([rows, pd.DataFrame(columns)], axis=1), len(splits))


def _least(name: str) -> float:
    """Return the least value that a metric can have, where there is one."""
    metric = find(name)
    return 0.0 if metric is None or metric.is_gap else metric.least


def gap_label(name: str) -> str:
    """Return the name of a gap in a sentence and on an axis."""
    label = metric_label(name)
    return label if "gap" in label else f"{label} gap"


def tags_of(row: Mapping[str, Any]) -> model.Tags:
    """Return the tags by which the page's filters find an approach."""
    needs = "yes" if row["group_at_prediction"] else "no"
    return {**{part: str(row[part]) for part in PARTS}, "group": needs}


def _need_text(row: Mapping[str, Any]) -> str:
    """Return whether somebody's group must be known to predict, in words."""
    return "needed" if row["group_at_prediction"] else "not needed"


# The tasks of the leaderboard, one by one: the facts, the picture and the table of each.


def _facts(board: BoardTable) -> model.Table:
    """Return the table of facts about the tasks."""
    rows = [
        {
            "task": model.TableCell(task.title, link=f"#{task.name}"),
            "family": str(task.first["family"]),
            **{name: task.first[name] for name in approaches.FACTS},
            "approaches": int(board.shown(task)["setting"].eq("").sum()),
            "repeats": task.repeats,
        }
        for task in board.tasks
    ]
    return declared_table(_PAGE, "facts", rows, tags=[{"family": row["family"]} for row in rows])


def _details(task: TaskMeans, board: BoardTable, style_of: Styles) -> model.Details:
    """Return a task with its facts, its figure, and the tables of its approaches."""
    rows = board.shown(task).sort_values(ERROR, kind="stable")
    is_plain = rows["setting"] == ""
    plain, relaxed = rows[is_plain], rows[~is_plain]
    blocks: list[model.Block] = [*_task_figure(task, board, style_of), _table(plain, board)]
    if len(relaxed):
        title = f"The {len(relaxed)} with {THRESHOLDS}"
        blocks.append(model.Details(title, [_table(relaxed, board)]))
    remark = f"{len(plain)} approaches, fitted on {counted(task.repeats, 'split')} each"
    about: dict[str, Any] = {"name": task.name, "tags": {"family": str(task.first["family"])}}
    return model.Details(task.title, blocks, remark=remark, style="metric", **about)


def _table(rows: pd.DataFrame, board: BoardTable) -> model.Table:
    """Return the table of approaches on a task."""
    without = [n for n in _SHOWN if n not in board.metrics or rows[n].isna().all()]
    shown = []
    for row in rows.to_dict("records"):
        about = {"approach": approaches.approach_name(row), "need": _need_text(row)}
        shown.append({**row, **about, "seconds": sum(row.get(name, np.nan) for name in COSTS)})
    labels = {name: metric_label(name) for name in _SHOWN}
    tags = [tags_of(row) for row in shown]
    return declared_table(_PAGE, "task", shown, {"labels": labels}, without=without, tags=tags)


def _task_figure(task: TaskMeans, board: BoardTable, style_of: Styles) -> Iterator[model.Figure]:
    """Yield error against every gap: one point per approach, one style per intervention."""
    rows = board.shown(task)
    points = {gap: list(_points(rows, gap, style_of)) for gap in board.gaps}
    shown = {gap_label(gap): of_gap for gap, of_gap in points.items() if of_gap}
    panels = [Panel(of, "error rate", label, from_zero="y") for label, of in shown.items()]
    if panels:
        relaxed = [THRESHOLDS] if rows["setting"].ne("").any() else []
        drawings = chart(panels, key=_key_of(style_of, {*rows["intervention"], *relaxed}))
        title, caption = f"Error against gaps, {task.title}", _tell("task_caption", task=task.title)
        yield model.Figure(title, drawings, caption=caption, name=f"task-{task.name}")


def _points(rows: pd.DataFrame, gap: str, style_of: Styles) -> Iterator[Series]:
    """Yield the approaches as points; per-group thresholds only in the panel of their own gap."""
    points: list[dict[str, Any]] = rows.to_dict("records")
    for row in points:
        setting = str(row["setting"])
        if row[gap] != row[gap] or (setting and not setting.startswith(f"{gap}<=")):
            continue
        style = style_of[THRESHOLDS if setting else str(row["intervention"])]
        name, tags = approaches.approach_name(row), tags_of(row)
        yield Series(name, [row[ERROR]], [row[gap]], **style, lined=False, tags=tags)


def _key_of(style_of: Styles, shown: Collection[str]) -> list[Series]:
    """Return the key of a chart of what is shown."""
    return [Series(name, [], [], **style) for name, style in style_of.items() if name in shown]


def _styles_of(board: BoardTable) -> Styles:
    """Return the colour and the shape of every intervention, the same in all pictures of a page.

    Approaches without an intervention are black.
    """
    names = sorted(set(board.table["intervention"].unique()) - {NONE})
    style_of: dict[str, dict[str, Any]] = {NONE: {"colour": "black", "shape": 0, "filled": True}}
    for i, name in enumerate(names):
        style_of[name] = {"colour": COLOURS[i % (len(COLOURS) - 1)], "shape": 2 + i}
    return style_of | {THRESHOLDS: {"colour": "black", "shape": 1}}


# The origin of the leaderboard, and its files: fits, the command, downloads.

MEANS = "means.csv"
_DECIMALS = 6  # of numbers in files


def _origin_section(board: BoardTable, command: str) -> model.Section:
    """Return the section on how the page was made, and what can be downloaded."""
    means = sum(len(task.rows) for task in board.tasks)
    about = {
        APPROACHES: _tell("of_rows", rows=len(board.table), file=APPROACHES),
        MEANS: _tell("of_means", rows=means),
        "index.json": ": the findings of this page.",
    }
    files: list[model.Text] = [(model.Link(name, name), said) for name, said in about.items()]
    hours = float(board.table[[n for n in COSTS if n in board.table]].sum().sum()) / 3600
    time = f"{hours:.1f} hours" if hours >= 2 else f"{count(60 * hours)} minutes"
    made = _tell("making", runs=board.table["run"].nunique(), time=time, version=VERSION)
    making: list[model.Block] = [model.Paragraph(made), model.Paragraph((model.Code(command),))]
    blocks: list[model.Block] = [
        model.Paragraph(_tell("rests_on")),
        model.Items(files),
        model.Section("How it was made", making),
    ]
    return model.Section("Download and origin", blocks, name="origin")


def _means(board: BoardTable) -> str:
    """Return the means of all tasks as CSV."""
    facts = ("family", *TASK)
    of_tasks = [task.rows.assign(**{n: task.first[n] for n in facts}) for task in board.tasks]
    means = pd.concat(of_tasks, ignore_index=True).round(_DECIMALS)
    return csv_text(means[[*facts, *means.columns[: -len(facts)]]])
