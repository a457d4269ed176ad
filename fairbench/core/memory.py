"""Memory that is freed stays with the process, for what comes next."""

from __future__ import annotations

import ctypes

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
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no such library: Windows, macOS, musl
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGE))
