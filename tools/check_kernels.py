#!/usr/bin/env python3
"""Checks that object files compiled for one instruction set share nothing with the rest of the program.

    tools/check_kernels.py OBJECT...

A function that the linker may take from any of several object files (an inline function or template of the standard
library, say) could be taken from one compiled for a processor that the program does not run on. So every such symbol of
a kernel object must lie in the namespace of its own instruction set.
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
            sys.exit(f"{path}: the name says no instruction set")
        symbols = subprocess.run(["nm", "-C", path], check=True, capture_output=True, text=True).stdout
        for line in symbols.splitlines():
            found = SHARED.match(line.strip())
            if found and f"gradwire::{isa[1]}::" not in found[1] and not found[1].startswith(("__", "DW.ref.")):
                print(f"{path}: shares {found[1]}; use what is in engine/kernels instead")
                wrong += 1
    print(f"check_kernels: {len(sys.argv) - 1} objects, {wrong} shared symbols")
    return 1 if wrong else 0


sys.exit(main())
