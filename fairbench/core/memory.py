"""How much memory a process takes, and whether it keeps what is freed, for what comes next."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from fairbench.core.errors import UserError
from fairbench.core.files import MEMORY, most_memory

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
    except (OSError, TypeError, AttributeError):  # no such library: Windows, macOS, musl
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGE))


def check_address_space() -> None:
    """Refuse to begin with less address space than importing takes, and have Arrow spare it.

    OpenBLAS, for one, asks again and again for what it is not given, and so waits for ever.

    Raises
    ------
    UserError : it is less, as by ``ulimit -v``.
    """
    with suppress(ImportError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY:
            return
        # Arrow's own allocator reserves a GB where it can, and leaves the others too little.
        os.environ.setdefault(_ARROW_POOL, "system")
        if soft < _LEAST:
            raise UserError(
                f"the address space is limited to {soft >> 20} MB (ulimit -v), and fairbench needs "
                f"{_LEAST >> 20} MB at least"
            )


def limit_memory() -> None:
    """Limit the memory of the process to what the environment allows, if that sets a limit.

    Files are measured before they are read. This limit also covers what such a measure overlooks,
    and what is computed from a file: whatever needs more memory fails, with a message of one line.

    Raises
    ------
    UserError : the variable is no number of GB.
    """
    if not os.environ.get(MEMORY):
        return
    most = most_memory() + _OTHERS
    os.environ.setdefault(_ARROW_POOL, "system")  # as where the address space is limited
    with suppress(ImportError, OSError, ValueError):  # Windows has none, macOS does not heed it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = [limit for limit in (soft, hard, most) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def out_of_memory(error: BaseException) -> str:
    """Say in a line that memory ran out, where that is the reason of an error; "" if it is not."""
    if isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return f"a package could not be loaded, for lack of memory or else: {reason[:200]}"
    lacking = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if not (lacking or isinstance(error, MemoryError)):
        return ""
    setting = os.environ.get(MEMORY)
    allowed = f"{MEMORY}={setting} allows no more (GB)" if setting else "the system gives no more"
    return f"this takes more memory than there is: {allowed}"
