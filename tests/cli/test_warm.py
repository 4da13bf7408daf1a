"""`semel warm`: once it compiles, then it has nothing to do."""

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_warm_compiles_once_and_removes_kernels_of_other_versions(tmp_path):
    old = tmp_path / "semel" / "kernels-0123456789abcdef"
    old.mkdir(parents=True)

    def warm(*flags):
        return subprocess.run(
            [sys.executable, "-m", "semel.cli", "warm", *flags],
            env=os.environ | {"SEMEL_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )

    first = warm("--keep")
    assert "Kernels compiled in" in first.stdout
    assert {"assign lanes", "scatter", "decode records"} <= {
        line.strip() for line in first.stderr.splitlines()
    }
    assert old.exists()
    second = warm()
    assert "were compiled before" in second.stdout
    assert "Removed kernels-0123456789abcdef" in second.stdout
    assert not old.exists()
