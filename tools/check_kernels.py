#!/usr/bin/env python3
"""Checks that object files compiled for one instruction set share nothing with the rest of the program.

    tools/check_kernels.py OBJECT...

The linker may take a function from any of several object files, for example an inline function of the standard library. That
object file may be compiled for another processor than the program runs on. So every such symbol of a kernel object must be in
the namespace of its own instruction set.
"""
import re
import subprocess
import sys

SHARED = re.compile(r"^[0-9a-f]* +[WVu] (.*)$")


def main():
    wrong = 0
    for path in sys.argv[1:]:
        isa = re.search(r"gradwire_kernels_([a-z0-9]+)_", path)
        if isa is None:
            sys.exit(f"{path}: its name has no instruction set; expected gradwire_kernels_ISA_")
        symbols = subprocess.run(["nm", "-C", path], check=True, capture_output=True, text=True).stdout
        for line in symbols.splitlines():
            found = SHARED.match(line.strip())
            if found and f"gradwire::{isa[1]}::" not in found[1] and not found[1].startswith(("__", "DW.ref.")):
                print(f"{path}: shares {found[1]} with other objects; use the functions of engine/kernels instead")
                wrong += 1
    print(f"check_kernels: {len(sys.argv) - 1} objects, {wrong} shared symbols")
    return 1 if wrong else 0


sys.exit(main())
