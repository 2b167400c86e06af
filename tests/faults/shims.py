"""Small libraries that make the system's own functions fail, compiled when they are needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def compiled(source: str, folder: Path) -> Path:
    """Compile one of the sources beside this file; skips the test where that is impossible."""
    compiler = next(
        (found for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name
         and (found := shutil.which(name))),
        None,
    )  # fmt: skip
    if compiler is None:
        pytest.skip("there is no C++ compiler (set CXX, or install g++)")
    library = folder / Path(source).with_suffix(".so").name
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, HERE / source]
    done = subprocess.run([*command, "-ldl"], capture_output=True, text=True, check=False)
    if done.returncode:
        if "__libc_" in done.stderr:
            pytest.skip("the C library is not glibc, whose functions the shim stands in for")
        pytest.fail(f"{source} does not compile:\n{done.stderr}")
    return library
