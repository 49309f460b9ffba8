#!/usr/bin/env python3
"""Converts a fuzzer's corpus between a folder of files and one text file with an input per line, in hex.

    hex_corpus.py unpack FILE FOLDER
    hex_corpus.py pack FOLDER FILE
"""
import pathlib
import sys

MOST_BYTES = 150_000  # limit of a corpus; the shortest inputs are kept


def unpack(file, folder):
    for number, line in enumerate(file.read_text().split()):
        (folder / f"input-{number}").write_bytes(bytes.fromhex(line))


def pack(folder, file):
    inputs = sorted({path.read_bytes() for path in folder.iterdir()}, key=lambda each: (len(each), each))
    kept, size = [], 0
    for each in inputs:
        size += len(each)
        if size > MOST_BYTES:
            break
        if each:
            kept.append(each)
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(each.hex() + "\n" for each in kept))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
