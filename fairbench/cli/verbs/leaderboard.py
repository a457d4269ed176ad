"""Write the leaderboard: which approach to use, on which data, and how sure that is.

An approach is a learner with an intervention and an uncertainty method, a task a data set with the
attribute whose groups are compared. The page has what holds across tasks (ranks with ties, the
trade-off of error against gaps, what becomes of the literature's claims), every task by itself,
what each approach costs, and all of it for download. It is one file that works without a server;
the files beside it are its data. Nothing is fitted: the runs of a results folder, or of a pack
that somebody else made, are read. A page of which nothing has changed is not made again.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from fairbench.cli.command import Command, Results, check_folder, default_results, purposes
from fairbench.components import HOME
from fairbench.core.options import option

SECTION = "Compare finished runs"


@dataclass(frozen=True)
class LeaderboardOptions(Results):
    """Of what the page is made, where it goes, and what it opens with."""

    results: Path = option(
        default_results, "The results folder, or the pack, of the runs.", shown="FOLDER"
    )
    add: tuple[Path, ...] = option(
        (), "Further folders or packs, such as your own runs beside a pack of others.",
        shown="[FOLDER,...]",
    )  # fmt: skip
    out: Path = option(
        Path(), "Where the page is written; by default report/leaderboard in it, or beside a pack.",
        shown="FOLDER",
    )  # fmt: skip
    metric: str = option("", "The gap between groups that the page opens with.")
    purpose: tuple[str, ...] = purposes()


def leaderboard(options: LeaderboardOptions) -> None:
    """Write the page, and print its summary and where it is.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.
    """
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.leaderboard.cached_page import open_leaderboard

    out = options.out if options.out != Path() else _out(options.results)
    check_folder(out)
    conf = HOME / "conf"
    written = open_leaderboard(
        [options.results, *options.add],
        out,
        metric=options.metric,
        purposes=options.purpose,
        conf=conf if conf.is_dir() else None,
        command=_command(options),
    )
    print_document(written.short)
    if written.unchanged:
        print("the page is as it was: neither runs nor code have changed since it was written")
    print(written.path)


def _out(results: Path) -> Path:
    """Return where a page is written by default: a pack stays as it is."""
    from fairbench.results.packs import is_pack

    folder = results.parent if is_pack(results) else results
    return folder / "report" / "leaderboard"


def _command(options: LeaderboardOptions) -> str:
    """Return the line that makes the page again."""
    words = ["fairbench", "leaderboard", f"results={options.results}"]
    if options.add:
        words.append(f"add=[{','.join(map(str, options.add))}]")
    if options.metric:
        words.append(f"metric={options.metric}")
    if options.purpose:
        words.append(f"purpose=[{','.join(options.purpose)}]")
    return shlex.join(words)


COMMAND = Command(
    LeaderboardOptions,
    leaderboard,
    examples=(
        "fairbench leaderboard",
        "fairbench leaderboard results=results/atlas add=results out=board",
        "fairbench leaderboard metric=equalized_odds",
    ),
)
