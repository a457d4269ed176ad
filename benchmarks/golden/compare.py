"""What is compared of two trees' answers, where they differ, and the answers that are committed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.golden.frozen import ROOT
from fairbench.metrics.registry import BINARY, metrics_of

# Neither a result nor the same twice: the version, where files were, when and by what it was made.
# And what the frozen tree said of scores that are wrong in one group, which pages no longer say,
# and limits that do not hold as labelling stopped.
IGNORED = frozenset({"version", "path", "out", "made", "stress", "fixed", "whenever"})
# Metrics that labels are completed for. What scores are worth is of the known labels, and today the
# same as among an audit's metrics, which are compared; the frozen tree had normal intervals there,
# which of 20 to 40 labels a group cover 85 to 94 %.
_ALIKE = "if_calibrated_alike"
# Of a trade-off: the frozen tree took variances of a posterior that has none with few repeats, and
# did not say which groups and repeats are left out.
_OF_TRADEOFF = frozenset(
    {"error_variance", "gap_variance", "covariance", "left_out", "without_group"}
)
_COMPLETED = metrics_of(BINARY, "rate", "difference", "ratio", "widest")


def comparable(value: Any) -> Any:
    """Return an answer without what is not compared."""
    if isinstance(value, dict):
        if _ALIKE in value:
            completed = [row for row in value[_ALIKE] if row["metric"] in _COMPLETED]
            value = {**value, _ALIKE: completed}
        ignored = IGNORED | (_OF_TRADEOFF if "error_variance" in value else frozenset())
        return {key: comparable(part) for key, part in value.items() if key not in ignored}
    if isinstance(value, list):
        return [comparable(part) for part in value]
    return value


# Comparing two collections of answers, and saying in words where they differ.

Same = Callable[[Any, Any], bool]
Columns = dict[str, list[Any]]


def same_bits(one: Any, other: Any) -> bool:
    """Say whether two values are of one type and the same to the last bit; NaN is NaN."""
    return type(one) is type(other) and repr(one) == repr(other)


def same_to_ten_digits(one: Any, other: Any) -> bool:
    """Say whether two numbers agree as far as ten digits tell; texts are the same or not."""
    return _same(one, other, 1e-9)


def same_but_for_sums(one: Any, other: Any) -> bool:
    """Say whether two numbers agree to twelve digits: as far as the order of a sum allows."""
    return type(one) is type(other) and _same(one, other, 1e-12)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in (one, other)):
        return same_bits(one, other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def differences(was: Any, found: Any, same: Same, where: str = "") -> Iterator[str]:
    """Yield a sentence for every place where two answers differ.

    Parameters
    ----------
    was, found : what is expected, and what there is: nested dicts and lists of plain values.
    same : when two plain values are the same.
    where : what is compared, for the sentences.
    """
    if isinstance(was, dict) and isinstance(found, dict):
        yield from _of_keys(was, found, same, where)
    elif where.endswith(", printed"):
        # The frozen terminal also shows how it was computed: what is shown today is in what was
        # shown then, in the same order.
        rest = iter(was)
        if wrong := [number for number in found if number not in rest]:
            yield f"{where}: {wrong[0]!r} was not printed, or in another place"
    elif not (isinstance(was, list) and isinstance(found, list)):
        if not same(was, found):
            yield f"{where}: was {was!r}, is {found!r}"
    elif len(was) != len(found):
        yield f"{where}: had {len(was)} items, has {len(found)}"
    else:
        for place, (one, other) in enumerate(zip(was, found, strict=True), start=1):
            yield from differences(one, other, same, f"{where}, item {place}")


def _of_keys(was: dict[str, Any], found: dict[str, Any], same: Same, where: str) -> Iterator[str]:
    for key in was.keys() - found.keys():
        yield f"{where}: '{key}' is missing"
    if not where.endswith(", options"):  # one that has come since has its default, and no effect
        yield from (f"{where}: '{key}' is new" for key in found.keys() - was.keys())
    if is_table(was) and is_table(found):
        yield from _of_cells(was, found, same, where)
        return
    for key in was:
        if key in found:
            yield from differences(was[key], found[key], same, f"{where}, {key}" if where else key)


def _of_cells(was: Columns, found: Columns, same: Same, where: str) -> Iterator[str]:
    """Compare two tables, and name a row by the texts in it.

    Metrics, and statistics of them, that the first does not know are new, and nothing to compare.
    """
    found = _in_order_of(was, _known_metrics(was, found))
    rows, now = (len(next(iter(each.values()), [])) for each in (was, found))
    if rows != now:
        yield f"{where}: had {rows} rows, has {now}"
        return
    for row in range(rows):
        for column in was.keys() & found.keys():
            one, other = was[column][row], found[column][row]
            if not same(one, other):
                texts = [each[row] for each in was.values() if isinstance(each[row], str)]
                name = ", ".join(filter(None, texts))
                yield f"{where}, row {row + 1} ({name}): {column} was {one!r}, is {other!r}"


# What a row of a table of metrics is about; the rest is what it says.
_SUBJECT = ("repeat", "fold", "variant", "metric", "statistic", "attribute", "group", "setting")


def _in_order_of(was: Columns, found: Columns) -> Columns:
    """Return a table of metrics with its rows in the order of another's, where both are alike.

    A table may be put together in another order, in which it says the same.
    """
    names = [name for name in _SUBJECT if name in was and name in found]
    subjects, now = _rows(was, names), _rows(found, names)
    if "metric" not in names or Counter(subjects) != Counter(now):
        return found
    places: dict[tuple[Any, ...], list[int]] = {}
    for row, subject in enumerate(now):
        places.setdefault(subject, []).append(row)
    order = [places[subject].pop(0) for subject in subjects]
    return {column: [values[row] for row in order] for column, values in found.items()}


def _known_metrics(was: Columns, found: Columns) -> Columns:
    names = [name for name in ("metric", "statistic") if name in was and name in found]
    known = {*_rows(was, names)}
    kept = [row for row, key in enumerate(_rows(found, names)) if key in known]
    some = {column: [values[row] for row in kept] for column, values in found.items()}
    return some if names else found


def _rows(table: Columns, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name] for name in names), strict=True))


def is_table(value: Any) -> bool:
    """Say whether a value is columns of equal length that hold no columns themselves."""
    if not (isinstance(value, dict) and value):
        return False
    columns = list(value.values())
    if not all(isinstance(column, list) for column in columns):
        return False
    plain = not any(isinstance(item, dict | list) for column in columns for item in column)
    return plain and len({len(column) for column in columns}) == 1


# The committed golden files: the frozen tree's answers, at ten digits.

FOLDER = ROOT / "tests" / "golden" / "expected"


def write_committed(answers: dict[str, Any]) -> None:
    """Write a file for every kind of answer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, of_kind in answers.items():
        text = _text_at_ten_digits(of_kind)
        (FOLDER / f"{kind}.json").write_text(f"{text}\n", encoding="utf-8")


def read_committed(kind: str) -> dict[str, Any]:
    """Return the answers of one kind by the names of their cases."""
    return dict(json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8")))


def _text_at_ten_digits(value: Any) -> str:
    """Return JSON with a line for every list or dict that holds plain values alone."""
    if not isinstance(value, dict | list):
        rounded = float(f"{value:.10g}") if isinstance(value, float) else value
        return json.dumps(rounded, ensure_ascii=False)
    parts = list(value.values()) if isinstance(value, dict) else value
    texts = list(map(_text_at_ten_digits, parts))
    if isinstance(value, dict):
        texts = [f"{json.dumps(key)}:{text}" for key, text in zip(value, texts, strict=True)]
    line = "\n" * any(isinstance(part, dict | list) for part in parts)
    first, last = "{}" if isinstance(value, dict) else "[]"
    return first + line + f",{line}".join(texts) + line + last
