"""How much memory a file and a process may take.

A file that would unfold to more memory than a machine has to spare is refused before it is read, by
its footer or its size. The process itself is limited too, where the environment says so.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Collection, Sequence
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING

from fairbench.core.errors import DataError, UserError
from fairbench.core.text import is_number, said

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

MEMORY = "FAIRBENCH_MAX_MEMORY"


def check_memory(needed: float, file: str) -> None:
    """Refuse a file that would take more memory than a quarter of the machine's.

    A few megabytes can be made to unfold to any size, so this is asked before a file is unpacked.

    Parameters
    ----------
    needed : bytes that its content will take, or more.

    Raises
    ------
    UserError : it is more than is allowed, or the variable that says what is allowed is no number.
    """
    allowed = most_memory()
    if needed > allowed:
        about = {"variable": MEMORY, "needed": needed / _GB, "allowed": allowed / _GB}
        raise UserError(said("core", "memory", file=file, enough=ceil(needed / _GB), **about))


# Bytes that a field of text takes beside its letters, and a column beside its fields.
FIELD, COLUMN = 24, 20_000


def check_parquet(
    file: ParquetFile, name: str, columns: Collection[str] | None, groups: Sequence[int] | None
) -> list[str]:
    """Refuse a Parquet file whose columns would take more memory than is allowed, by its footer.

    Parameters
    ----------
    file : the open file.
    name : what messages call the file.
    columns : the columns that are read; None for all.
    groups : the row groups that are read; None for all.

    Returns
    -------
    list of str
        The columns of texts that may still take more than is allowed, if every text is as long as
        all together.

    Raises
    ------
    UserError : they would; see :func:`check_memory`.
    """
    from pyarrow import types

    about = file.metadata
    fields = [field for field in file.schema_arrow if columns is None or field.name in columns]
    kinds = {field.name: getattr(field.type, "storage_type", field.type) for field in fields}
    if lists := next((field for field in fields if types.is_nested(kinds[field.name])), None):
        raise DataError(said("core", "lists", file=name, field=lists))
    places: dict[str, list[int]] = {}  # of a name: those of the columns that have it
    for place in range(about.num_columns):
        places.setdefault(file.schema.column(place).path, []).append(place)
    rows = [
        about.row_group(group)
        for group in (range(about.num_row_groups) if groups is None else groups)
    ]
    total, long = about.num_columns * COLUMN, []
    share = most_memory() / max(sum(map(is_text, fields)), 1)
    for field in {field.name: field for field in fields}.values():
        chunks = [group.column(place) for group in rows for place in places.get(field.name, [])]
        values = sum(abs(chunk.num_values) for chunk in chunks)
        unfolded = sum(abs(chunk.total_uncompressed_size) for chunk in chunks)
        # What a field takes, without the letters of a text.
        is_fixed = "fixed_size_binary" in str(kind := kinds[field.name])
        width = FIELD + (getattr(kind, "byte_width", 0) if is_fixed else 0)
        total += unfolded + values * width
        if is_text(field) and values * unfolded > share:
            long.append(field.name)
    check_memory(total, name)
    return long


_GB = 2.0**30


def most_memory() -> int:
    """Return how many bytes a file may take: by the environment (in GB), or a quarter of all."""
    setting = os.environ.get(MEMORY, "")
    if setting:
        if not is_number(setting) or not 0 < float(setting) < float("inf"):
            raise UserError(f"{MEMORY} is '{setting}'; it must be a number of GB above 0")
        return int(float(setting) * _GB)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def is_text(field: pa.Field | pa.ChunkedArray) -> bool:
    """Say whether a column has texts, or dictionaries of them."""
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    kind = getattr(kind, "storage_type", kind)
    return str(kind).removeprefix("large_") in ("string", "binary", "string_view", "binary_view")


def written_out(column: pa.DictionaryArray) -> int:
    """Return how many bytes a column of dictionaries takes where each text is written out."""
    from pyarrow import compute

    lengths = compute.binary_length(column.dictionary)
    return compute.sum(lengths.take(column.indices.drop_null())).as_py() or 0


_LARGE_JSON = 1 << 24  # bytes of a text from which on its values are counted
_VALUE_BYTES = 120  # bytes of a value with its place in a list


def check_json(content: bytes) -> None:
    """Refuse a text in JSON whose values would take more memory than is allowed.

    Raises
    ------
    UserError : they would; see :func:`check_memory`.
    """
    if len(content) > _LARGE_JSON:
        values = sum(map(content.count, (b",", b"[", b"{", b":")))
        check_memory(3 * len(content) + values * _VALUE_BYTES, "a text in JSON")


_OTHERS = 208 << 20  # bytes that the interpreter and imported packages take, beside their code
_LEAST = 768 << 20  # bytes of address space with which packages can be imported
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # which Arrow reads as it is imported

# Of glibc's malloc.h: the free memory from which some is given back, and the size of arrays that
# get pages of their own.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGE = 2**30, 2**25  # bytes; glibc takes no larger second one


def keep_freed_memory() -> bool:
    """Let the process keep memory that is freed, up to 1 GiB; return whether it will.

    Arrays of a million rows come and go. If each is given back to the system and asked for anew,
    the system fills every page of it with zeros, which takes longer than much that is computed with
    it. Only glibc can be asked (mallopt(3)); elsewhere nothing changes but the time.
    """
    import ctypes  # slow to import: listing runs does without

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no such function: macOS, musl
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGE))


def limit_memory(*, fits: bool) -> None:
    """Limit the memory of the process to what the environment allows, if that sets a limit.

    Files are measured before they are read. This limit also covers what such a measure overlooks,
    and what is computed from a file: whatever needs more memory fails, with a message of one line.

    With less address space than importing takes, as by ``ulimit -v``, nothing begins: OpenBLAS, for
    one, asks again and again for what it is not given, and so waits for ever.

    Parameters
    ----------
    fits : whether the process fits models: what they take is their configuration's.

    Raises
    ------
    UserError : there is too little address space, or the variable is no number of GB.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        # Arrow's own allocator reserves a GB where it can, and leaves the others too little.
        os.environ.setdefault(_ARROW_POOL, "system")
        if soft < _LEAST:
            raise UserError(said("core", "address_space", limit=soft >> 20, least=_LEAST >> 20))
    if fits or not os.environ.get(MEMORY):
        return
    most = most_memory() + _OTHERS
    os.environ.setdefault(_ARROW_POOL, "system")
    with suppress(OSError, ValueError):  # macOS does not heed it
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = [limit for limit in (soft, hard, most) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
