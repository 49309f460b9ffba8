#!/usr/bin/env python3
"""Prints how many lines of some source files a run has executed.

    line_coverage.py ROOT STEM...       run it in the build folder; a STEM is a path without its suffix, as in proto/wire/frame

Reads the output of gcov for each object file. A line counts if any object has executed it.
"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys


def ranges(numbers):
    """Returns numbers as ranges: 3 4 5 9 become "3-5 9"."""
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def main(root, stems):
    root = pathlib.Path(root)
    wanted = {f"{stem}{end}" for stem in stems for end in (".cpp", ".h")}
    lines = collections.defaultdict(dict)
    for data in sorted(pathlib.Path.cwd().rglob("*.gcda")):
        gcov = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, check=False)
        told = gcov.stdout
        if b"mismatch" in gcov.stderr:  # gcov then reports that no line was executed
            sys.exit(f"{data} is not from the last compilation; remove {pathlib.Path.cwd()} and repeat")
        for text in (gzip.decompress(told) if told[:2] == b"\x1f\x8b" else told).splitlines():
            for file in json.loads(text)["files"]:
                path = pathlib.Path(file["file"])
                name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
                if name in wanted:
                    for line in file["lines"]:
                        number = line["line_number"]
                        lines[name][number] = lines[name].get(number, 0) + line["count"]
    all_lines = all_done = 0
    for name in sorted(lines):
        done = sum(count > 0 for count in lines[name].values())
        missed = [number for number, count in sorted(lines[name].items()) if count == 0]
        print(f"{name:40} {100 * done / len(lines[name]):5.1f} % of {len(lines[name])} lines" +
              (f"   not: {ranges(missed)}" if missed else ""))
        all_lines += len(lines[name])
        all_done += done
    print(f"{'all':40} {100 * all_done / max(all_lines, 1):5.1f} % of {all_lines} lines")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
