#!/usr/bin/env python3
"""Counts faults of English in comments, messages, documents and test names.

    tools/check_prose.py [ROOT]          prints FILE:LINE: FAULT: text for each fault that is more frequent than its goal
    tools/check_prose.py --all [ROOT]    prints every fault
    tools/check_prose.py --self-test     plants one fault of each kind and expects each to be found

Exit code 1 if a fault is above its goal. CONTRIBUTING.md, "English", has the rules.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from notebook import markdown_lines

# A fault: its name, the places to search (c comments, m messages, d documents, t test names), the allowed number in 1,000 lines
# of each, and its pattern.
FAULTS = [
    ("opens with a genitive", "c", 6, r"^[Oo]f [a-z`A-Z]"),
    ("opens without a verb", "c", 6, r"^([Ww]hat|[Ww]ho|[Ww]hom|[Ww]hose|[Ww]here|[Ww]hether|[Hh]ow|[Ww]hatever|[Ww]hoever) "),
    ("a person", "cmd", 1.5, r"\b([Ww]hom|[Ww]hoever|[Ss]omebody|[Nn]obody|[Ss]trangers?|[Cc]ulprits?|honest)\b"),
    ("behind or beside", "cmd", 2, r"\b([Bb]ehind|[Bb]esides?)\b"),
    ("go on", "cmd", 0.5, r"\b(go|goes|went|going|gone) on\b"),
    ("is no", "cmd", 8, r"\b(is|are|was|were) (no|none)\b"),
    ("a banned word", "cmd", 0, r"\b(but for|anew|in vain|lent|lends?|bears?|mend(s|ed|ing)?|for ever|as (it|they) (lies?|stands?))\b"),
    ("a sentinel without a verb", "c", 0, r"(^|[.;(] ?)([Ee]mpty|[Nn]one|[Nn]ull(ptr|opt)?|[Zz]ero|0|-1|`\w+` empty): "),
    ("a trailing too", "cmd", 0, r", too\b"),
    ("a name that is not a clause", "t", 0, r"^(Of|That|Who|Whose|Whom|Where|What|Which|How)[A-Z]"),
]
WHERE = {"c": "comments", "m": "messages", "d": "lines of documents", "t": "test names"}
SOURCES = (".h", ".cpp", ".py", ".sh", ".cmake", ".toml", ".txt", ".proto", "")


def texts(path, name):
    """Yields (place, line number, text) of a file."""
    suffix = path.suffix
    text = path.read_text(errors="replace")
    lines = markdown_lines(text) if suffix == ".ipynb" else text.splitlines()
    if suffix in (".md", ".ipynb"):
        code = False
        for number, line in enumerate(lines, 1):
            code ^= line.startswith("```")
            if not code and line.strip():
                yield "d", number, re.sub(r"`[^`]*`", "``", line)
        return
    marker = r"(?:^|\s)//+<? ?(.*)" if suffix in (".h", ".cpp", ".proto") else r"(?:^|\s)#+ (.*)"
    for number, line in enumerate(lines, 1):
        comment = re.search(marker, line)
        if comment:
            yield "c", number, comment[1]
            line = line[: comment.start()]
        if suffix not in (".h", ".cpp"):
            continue
        test = re.match(r"(?:TYPED_)?TEST(?:_F|_P)?\(\w+, *(\w+)", line)
        if test:
            yield "t", number, test[1]
        if not name.startswith("tests/"):
            for literal in re.findall(r'"((?:\\.|[^"\\])*)"', line):
                if literal.count(" ") >= 2:
                    yield "m", number, literal


def check(root, files, everything):
    found, lines = {}, dict.fromkeys(WHERE, 0)
    for name in files:
        path = root / name
        if path.suffix not in (*SOURCES, ".md", ".ipynb") or name.startswith(("data/", "tests/fuzz/corpus/")) or not path.is_file():
            continue
        if name in ("CHANGELOG.md", "tools/check_prose.py"):
            continue
        for place, number, text in texts(path, name):
            lines[place] += 1
            for fault, places, _, pattern in FAULTS:
                if place in places and re.search(pattern, text):
                    found.setdefault((fault, place), []).append(f"{name}:{number}: {fault}: {text.strip()}")
    failed = False
    for fault, places, goal, _ in FAULTS:
        for place in places:
            hits = found.get((fault, place), [])
            above = len(hits) * 1000 > goal * lines[place]
            if above or everything:
                print(*hits, sep="\n", end="\n" if hits else "")
            if above:
                print(f"{fault}: {len(hits) * 1000 / lines[place]:.1f} in 1,000 {WHERE[place]}; the goal is {goal}")
            failed |= above
    return failed


def tracked(root):
    return subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


def self_test():
    planted = {
        "a.h": "// Of a client.\n// Whom it asks.\n// Empty: there is none.\nint x;  // how it goes on behind, too\n",
        "b.cpp": 'TEST(Suite, OfANetwork) {\n  f("this is no file, mend it");\n',
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in planted.items():
            (root / name).write_text(text)
        return check(root, planted, everything=False)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    if "--self-test" in sys.argv:
        sys.exit(0 if self_test() else "check_prose.py: the planted faults are not found")
    if shutil.which("git") is None:  # it lists the files
        sys.exit(77)
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    sys.exit(check(root, tracked(root), "--all" in sys.argv))


if __name__ == "__main__":
    main()
