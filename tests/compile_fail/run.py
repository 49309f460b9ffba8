#!/usr/bin/env python3
"""Compiles each file of this folder. If its first line is "// error: TEXT", the first error of the compiler must contain TEXT.
The other files must compile.

    run.py BUILD COMPILER
"""
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "// error: "

refused = 0
for file in sorted(HERE.glob("*.cpp")):
    first = file.read_text().splitlines()[0]
    said = subprocess.run([sys.argv[2], "-std=c++20", "-fsyntax-only", f"-I{HERE.parent.parent}", f"-I{HERE.parent.parent}/include", file],
                          capture_output=True, text=True)
    if not first.startswith(MARK):
        if said.returncode != 0:
            sys.exit(f"{file} does not compile:\n{said.stderr}")
        continue
    text = first[len(MARK):]
    if said.returncode == 0:
        sys.exit(f"{file} compiles; expected the error: {text}")
    error = next((line for line in said.stderr.splitlines() if "error:" in line), "")
    if text not in error:
        sys.exit(f"{file}: the first error is\n  {error}\nexpected: {text}")
    refused += 1
if refused < 4:
    sys.exit(f"only {refused} files were refused")
