"""The state of a watch: what is watched, what was seen of the file, and what was found so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairbench.audits.direction import Direction, decisions_named
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF
from fairbench.audits.question import PERCENT, PROBABILITY, Options, column
from fairbench.audits.watching.appended_file import Period
from fairbench.core.errors import UserError, check_choice
from fairbench.core.options import hidden, option
from fairbench.data.bands import bands_apart
from fairbench.data.groups import CROSSED
from fairbench.data.periods import period_asked
from fairbench.data.tabular import plain_pair, spelled

# Options that an audit has, too.
_OF_AUDITS = (
    "path", "target", "score", "prediction", "positive", "favourable", "decision", "scale",
    "threshold", "epsilon", "cuts",
)  # fmt: skip


@dataclass(frozen=True)
class WatchOptions:
    """What is watched, and of which columns."""

    path: Path = option(
        Path,
        "A file with one row per person (CSV, Excel, Parquet or Arrow, compressed or not): one "
        "file that grows, or with time= a new file each week.",
        argument="PREDICTIONS",
    )
    group: tuple[str, ...] = option(
        (),
        "The columns of groups; 'sex x race' stands for the combinations of two or more of them.",
        shown="[COLUMN,...]",
    )
    target: str = column("The column of labels, empty where they are not known yet.")
    score: str = column("The column of the predicted probability of the positive label.")
    prediction: str = column("The column of decisions, where they are not score > threshold.")
    positive: str = option(
        "", "The label that the score is the probability of, where labels are not 0 and 1.",
        shown="LABEL",
    )  # fmt: skip
    favourable: str = option(
        "",
        "The label for which it is good for a person to be decided: 'repaid', or with scores of "
        "default the label 'no'. It is asked where names leave it open.",
        shown="LABEL",
    )
    decision: str = option(
        "",
        "What the two decisions are called, the one that is good for a person first, such as "
        "approved/declined; also in the column prediction= names.",
        shown="GOOD/BAD",
    )
    scale: str = option(
        PROBABILITY,
        "What scores are: probabilities from 0 to 1, or percents from 0 to 100.",
        choices=(PROBABILITY, PERCENT),
    )
    time: str = column(
        "The column of periods, such as weeks: a file may then hold new periods alone, and charts "
        "have a point for each. Dates become periods as date:month (day, week, month, quarter, "
        "year)."
    )
    id: str = column(
        "The column that says which person or decision a row is of: rows whose identifier was seen "
        "before are counted once."
    )
    metrics: tuple[str, ...] = option(
        (),
        f"The gaps that are watched, of {', '.join(RATE_OF)}; all of them by default. The fewer "
        "there are, the sooner each is found.",
        shown="[METRIC,...]",
    )
    cuts: tuple[str, ...] = hidden(())
    threshold: float = option(0.5, "A score above it is a positive decision.")
    epsilon: float = option(0.05, "A gap under this makes no practical difference.")

    def __post_init__(self) -> None:
        """Refuse what no file could mend."""
        group, cuts = bands_apart(self.group)
        cuts = tuple(cut.rpartition(CROSSED)[2] for cut in cuts)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "cuts", tuple(dict.fromkeys([*self.cuts, *cuts])))
        if any("quantiles" in bands.rpartition(":")[2] for bands in self.cuts):
            raise UserError(
                "a watch needs bands that stay: write their limits, such as group=age:25,40,62"
            )
        period_asked(self.time)
        if not self.group:
            raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
        for name, what in (("group", "column"), ("metrics", "metric")):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"{name}=[{','.join(values)}] names a {what} twice")
        for metric in self.metrics:
            check_choice("metric", metric, RATE_OF)
            if not self.target and metric != NEEDS_NO_LABELS:
                raise UserError(f"{metric} needs labels: name their column as target=")
        self.audit  # refuses the rest  # noqa: B018

    @property
    def audit(self) -> Options:
        """The options of an audit of the same columns, with which files are read."""
        columns = dict.fromkeys(column for name in self.group for column in name.split(CROSSED))
        return Options(group=tuple(columns), **{name: getattr(self, name) for name in _OF_AUDITS})

    @property
    def rate_names(self) -> Mapping[str, str]:
        """What the rate of each gap is called, from the first look on: labels may come later."""
        positive = spelled(self.positive)
        favourable = spelled(self.favourable)
        label = None
        if favourable:
            positive_label = positive or (plain_pair([favourable]) or ("", favourable))[1]
            label = int(favourable == positive_label)
        direction = Direction(("", positive or "1"), label, decisions_named(self.decision))
        return {**RATE_NAMES, NEEDS_NO_LABELS: direction.rate_names[NEEDS_NO_LABELS]}

    @property
    def watched(self) -> tuple[str, ...]:
        """The metrics that are watched: without labels only that of decisions."""
        return self.metrics or (tuple(RATE_OF) if self.target else (NEEDS_NO_LABELS,))


@dataclass(frozen=True)
class Milestone:
    """What was counted up to some row: a point of the charts, and a start of new comparisons.

    Attributes
    ----------
    row : the number of rows so far.
    labels : the number of labels so far.
    period, look : the period of the last row, and the time of the look that it came in.
    counts : attribute -> group -> sums, as `fairbench.audits.watching.counting` has them.
    limits : name of a gap -> its value and interval of all rows so far; None where undefined.
    """

    row: int
    labels: int
    period: str
    look: str
    counts: Mapping[str, Sequence[Sequence[float]]]
    limits: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Alarm:
    """What was found, once.

    Attributes
    ----------
    kind : ``passed`` (a gap is beyond epsilon), ``changed`` (a gap is another than it was) or
        ``drifted`` (scores of a group are off by another amount than they were).
    about : the name of the gap or of the group's scores.
    row : the number of rows when it was found.
    since : the number of rows after which the evidence was counted, 0 for all rows.
    lower, upper : the interval of the rows since then.
    before : the interval of the rows up to there; None with ``passed``.
    """

    kind: str
    about: str
    row: int
    period: str
    look: str
    since: int
    lower: float
    upper: float
    before: tuple[float, float] | None = None


@dataclass(frozen=True)
class WatchState:
    """Everything that the next look depends on.

    Attributes
    ----------
    names : the names of labels 0 and 1; empty until both were seen.
    groups : attribute -> names of the groups that are watched: those of the first look.
    shares : name of a gap -> share of its rows that the first group had at the first look.
    unwatched : groups that came after the first look -> their rows; they are counted nowhere.
    repeats : how many rows came again; each is counted once.
    once : whether, without identifiers, identical rows are counted once, because there are more of
        them than chance explains.
    seen : how often each distinct row came, as :mod:`fairbench.data.tallies` keeps it.
    """

    options: WatchOptions
    names: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    periods: tuple[Period, ...] = ()
    marks: tuple[Milestone, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    unwatched: Mapping[str, int] = field(default_factory=dict)
    repeats: int = 0
    once: bool = False
    seen: str = ""

    @property
    def rows(self) -> int:
        """The rows seen so far."""
        return sum(part.rows for period in self.periods for part in period.parts)

    @property
    def labels(self) -> int:
        """The labels counted so far."""
        return self.marks[-1].labels if self.marks else 0
