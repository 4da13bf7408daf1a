"""Where compiled kernels are kept, and what happens to old ones."""

import os
import subprocess
import sys
import time

import pytest

from semel.columnar import cache


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEL_CACHE", str(tmp_path))
    return tmp_path / "semel"


def make(home, name, days_unused):
    path = home / name
    path.mkdir(parents=True)
    (path / "kernel.nbi").write_bytes(b"x")
    mark = path / "complete"
    mark.touch()
    then = time.time() - days_unused * 86_400
    os.utime(mark, (then, then))
    return path


def test_kernels_that_nobody_used_for_long_are_removed(home):
    old = make(home, "kernels-0123456789abcdef", 30)
    recent = make(home, "kernels-0123456789abcde0", 1)
    half_removed = make(home, "kernels-0123456789abcde1-removed", 30)
    others = make(home, "spark-kafka-4.2.0", 90)
    foreign = make(home, "kernels-mine", 90)
    cache.settle()
    assert not old.exists()
    assert not half_removed.exists()
    assert recent.exists()
    assert others.exists()
    assert foreign.exists()
    assert cache.is_complete()


def test_a_link_out_of_the_cache_is_not_followed(home, tmp_path):
    elsewhere = make(tmp_path / "elsewhere", "precious", 30)
    home.mkdir()
    link = home / "kernels-0123456789abcdef"
    link.symlink_to(elsewhere)
    assert cache.remove_outdated() == []
    assert (elsewhere / "kernel.nbi").exists()


def test_all_versions_but_this_one_are_removed_on_request(home):
    cache.settle()
    other = make(home, "kernels-0123456789abcdef", 0)
    assert cache.remove_outdated() == [other]
    assert cache.is_complete()
    assert [path.name for path in home.iterdir()] == [cache.directory().name]


@pytest.mark.slow
def test_the_plain_kernels_serve_until_the_compiled_ones_are_ready(tmp_path):
    """In a process of its own, with a cache that is empty."""
    script = """
import time
from semel.columnar import cache, kernels
assert not cache.is_complete()
assert kernels.ready() is kernels.PLAIN
kernels._loading.join()
assert cache.is_complete()
assert kernels.ready() is not kernels.PLAIN
assert kernels.ready() is kernels.load()
"""
    environment = os.environ | {"SEMEL_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
