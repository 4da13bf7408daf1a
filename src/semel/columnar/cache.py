"""Where compiled kernels live: one directory of the user's cache per version of their sources.

Numba notices a change in the kernel's own file only, not in the helpers it calls from other files;
hashing all sources into the path makes a stale kernel impossible.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

_NAME = re.compile(r"kernels-[0-9a-f]{16}(-removed)?")
_SHARED = ("compiled.py", "primitives.py", "shapes.py")
_COMPLETE = "complete"
# Another installation of this user may still work with them; it would only compile again.
_UNUSED_DAYS = 7.0


def directory() -> Path:
    here = Path(__file__).parent
    sources = [*here.glob("*_kernels.py"), *(here / name for name in _SHARED)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources)))
    digest.update(f"numba {version('numba')} python {sys.version}".encode())
    return user_cache() / "semel" / f"kernels-{digest.hexdigest()[:16]}"


def is_complete() -> bool:
    """Whether loading compiles nothing."""
    return (directory() / _COMPLETE).exists()


def settle() -> None:
    """All kernels are there: says so, and removes those that nobody has used for long."""
    ours = directory()
    try:
        ours.mkdir(parents=True, exist_ok=True)
        (ours / _COMPLETE).touch()  # its time is the last use
        remove_outdated(_UNUSED_DAYS)
    except OSError:
        pass  # a cache that cannot be written is slow, not wrong


def remove_outdated(unused_days: float = 0.0) -> list[Path]:
    """Removes this user's directories of other versions, if not used for that long."""
    ours = directory()
    before = time.time() - unused_days * 86_400
    removed = []
    for other in ours.parent.glob("kernels-*"):
        if other == ours or not _NAME.fullmatch(other.name) or not _is_removable(other, before):
            continue
        # Renamed first: who looks for it meanwhile finds all of it or nothing.
        renamed = other.with_name(other.name.removesuffix("-removed") + "-removed")
        try:
            other.rename(renamed)
        except OSError:
            continue
        shutil.rmtree(renamed, ignore_errors=True)
        removed.append(other)
    return removed


def _is_removable(path: Path, before: float) -> bool:
    try:
        mark = path / _COMPLETE
        seen = (mark if mark.exists() else path).lstat()
        return (
            path.lstat().st_uid == os.getuid()
            and not path.is_symlink()
            and (seen.st_mtime <= before)
        )
    except OSError:
        return False


def user_cache() -> Path:
    chosen = os.environ.get("SEMEL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    home = Path(os.path.expanduser("~"))
    # A Spark executor may run as a user without a home.
    if not os.access(home, os.W_OK):
        return Path(tempfile.gettempdir()) / f"semel-{os.getuid()}"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")
