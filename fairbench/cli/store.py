"""``python -m fairbench.cli.store``: the words of its command read, its answers printed."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from fairbench.cli.results_folder import add_results, dashed
from fairbench.core.errors import UserError
from fairbench.results import garbage, listing
from fairbench.results.cells import Store
from fairbench.results.runs import reading

if TYPE_CHECKING:
    from fairbench.comparison.verification import Difference

_CONF = Path(__file__).resolve().parents[2] / "conf"
_console = Console(width=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; return 0, 1 where cells do not verify, or 2 for a mistaken word."""
    options = _parser().parse_args(dashed(sys.argv[1:] if arguments is None else arguments))
    try:
        status: int = options.command(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    add_results(shared)
    parser = argparse.ArgumentParser(prog="python -m fairbench.cli.store")
    commands = parser.add_subparsers(required=True, metavar="ls | show | export | gc | verify")
    ls = commands.add_parser("ls", parents=[shared], help="list finished runs")
    ls.add_argument(
        "words",
        nargs="*",
        metavar="key=value",
        help="dataset, method, learner.max_depth ...; or the beginning of an id",
    )
    ls.set_defaults(command=_ls)
    show = commands.add_parser("show", parents=[shared], help="show a run")
    show.add_argument("run", help="the beginning of its id")
    show.set_defaults(command=_show)
    export = commands.add_parser("export", parents=[shared], help="write a run's predictions")
    export.add_argument("run", help="the beginning of its id")
    export.add_argument("file", type=Path, help="a .csv or .parquet file, such as audit.py reads")
    export.add_argument("--repeat", type=int, default=0, help="which repeat of the split (0)")
    export.set_defaults(command=_export)
    gc = commands.add_parser("gc", parents=[shared], help="remove what no run refers to")
    gc.add_argument("--dry-run", action="store_true", help="only say what would go")
    gc.add_argument("--hours", type=float, default=garbage.DAY, help="spare what is younger (24)")
    gc.set_defaults(command=_gc)
    verify = commands.add_parser("verify", parents=[shared], help="compute cells again, compare")
    verify.add_argument("run", help="the beginning of its id")
    verify.add_argument("--cells", type=_count, default=3, help="how many to compute again (3)")
    verify.add_argument("--seed", type=int, default=0, help="which are drawn")
    verify.set_defaults(command=_verify)
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _ls(options: argparse.Namespace) -> int:
    runs = listing.list_runs(options.results, options.words)
    if runs:
        print("\n".join(listing.runs_lines(runs)))
    print(f"{len(runs)} finished runs of {options.results}")
    return 0


def _show(options: argparse.Namespace) -> int:
    import pandas as pd

    from fairbench.reporting.terminal import metrics_table

    folder = listing.one_run(options.run, options.results)
    environment = folder.environment()
    with reading(folder.path):
        config = (folder.path / "config.yaml").read_text()
        summary = pd.read_csv(folder.path / "summary.csv")
    print(config)
    _console.print(listing.where_from(folder, environment))
    summary = summary.fillna(dict.fromkeys(("variant", "attribute", "group", "setting"), ""))
    _console.print(metrics_table(summary, environment["name"], environment["protect"]))
    return 0


def _export(options: argparse.Namespace) -> int:
    from fairbench.comparison.export import export
    from fairbench.comparison.stored_runs import load_run

    run = load_run(listing.one_run(options.run, options.results), _CONF)
    frame = export(run, options.file, options.repeat)
    score = " score=score" if "score" in frame else ""
    print(f"{len(frame)} rows written to {options.file}; audit them with")
    print(
        f"python audit.py {options.file} target=target{score} prediction=prediction "
        f"group=[{','.join(run.dataset.sensitive.columns)}]"
    )
    return 0


def _gc(options: argparse.Namespace) -> int:
    store = Store(options.results)
    found = garbage.garbage(store, options.hours)
    if not options.dry_run:
        garbage.remove(found)
    table = Table("what", "number", "MB")
    for kind, number in Counter(each.kind for each in found).items():
        size = sum(each.bytes for each in found if each.kind == kind)
        table.add_row(kind, str(number), f"{size / 1e6:.2f}")
    if found:
        _console.print(table)
    size = sum(each.bytes for each in found)
    print(f"{'would free' if options.dry_run else 'freed'} {size / 1e6:.2f} MB")
    if garbage.computing(store):
        print("cells of no run were spared: a cell is being computed")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from fairbench.comparison import verification

    folder, store = listing.one_run(options.run, options.results), Store(options.results)
    damaged = verification.damaged(folder, store)
    for line in damaged:
        print(f"corrupt: {line}")
    if damaged:
        print("run it again: corrupt cells are computed anew")
        return 1
    cells = verification.sample(folder, _CONF, options.cells, options.seed)
    found = [each for cell in cells if (each := verification.difference(cell, store))]
    whole = len(folder.cells())
    print(f"{whole} of {whole} cells are as they were written")
    print(f"{len(cells) - len(found)} of {len(cells)} computed again are the same, bit for bit")
    return _verdict(found, verification.changes_since(folder, cells[0])) if found else 0


def _verdict(found: Sequence[Difference], changes: Mapping[str, str]) -> int:
    """Print the differences and what may explain them; return 0 where a CPU type does, else 1."""
    from fairbench.comparison.verification import TOLERANCE

    for each in found:
        print(f"differs: cell {each.cell}: {each.what}, by {each.largest:.2g} of the largest value")
    for name, change in changes.items():
        print(f"{name}: {change}")
    tolerated = max(each.largest for each in found) <= TOLERANCE
    if tolerated and set(changes) <= {"CPU", "commit"} and "CPU" in changes:
        print(f"within the tolerance of {TOLERANCE:g} between CPU types")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
