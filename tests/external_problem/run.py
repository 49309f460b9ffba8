#!/usr/bin/env python3
"""Adds a problem type to a copy of the source as docs/contributing/adding_parts.md describes: its header, and its name in the
list. Builds the copy and runs it.

    run.py BUILD COMPILER      BUILD/external_problem_test holds the copy and its build
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
work = Path(sys.argv[1]) / "external_problem_test"
source = work / "source"

shutil.rmtree(source, ignore_errors=True)
shutil.copytree(ROOT, source, ignore=lambda folder, names: [n for n in names if Path(folder) == ROOT and
                                                            n in ("build", "results", "tests", ".git")])
shutil.copy(HERE / "huber.h", source / "huber.h")
listed = source / "engine/problems/problem.h"
text, included = re.subn(r'#include "engine/problems/problem_type.h"\n', r'\g<0>#include "huber.h"\n', listed.read_text())
text, added = re.subn(r"(using ProblemType = std::variant<[^>]*)>", r"\1, Huber>", text)
if (included, added) != (1, 1):
    sys.exit(f"{listed} lacks the #include or the list that this script extends")
listed.write_text(text)
for command in [["cmake", "-S", HERE, "-B", work / "build", "-G", "Ninja", f"-DGRADWIRE={source}", f"-DCMAKE_CXX_COMPILER={sys.argv[2]}", "-DGRADWIRE_TESTS=OFF",
                 "-DGRADWIRE_MARCH=baseline", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"],
                ["cmake", "--build", work / "build"], [work / "build/external_problem"]]:
    if subprocess.run(command).returncode != 0:
        sys.exit(f"failed: {' '.join(str(word) for word in command)}")
