#!/usr/bin/env python3
"""Checks the links of the documents, and the documents that other files name.

    tools/check_links.py [ROOT]         prints FILE:LINE: message lines; exit code 1 if there is an error
    tools/check_links.py --self-test    plants one fault of each kind and expects each to be found

A relative link must lead to a file, its anchor to a heading (or an `<a id>`) of that file, with the anchors of GitHub. Links to
the Internet are not followed. A name docs/PAGE.md in a source, a message or a test must be a page. Each page must be in the
navigation of mkdocs.yml.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from notebook import markdown_lines

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED_PAGE = re.compile(r"(?<!\]\()(?<![\w.-])docs/[\w/-]+\.md")


def lines_of(text):
    """Yields (line number, line) outside of code blocks, without inline code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        if not code and not fence:
            yield number, line


def anchors_of(text):
    found = set()
    for _, line in lines_of(text):
        found.update(re.findall(r'<a id="([^"]+)"', line))
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            repeats = sum(1 for a in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", a))
            found.add(f"{slug}-{repeats}" if repeats else slug)
    return found


def check(root, files):
    errors = []
    texts = {name: (root / name).read_text(encoding="utf-8") for name in files if name.endswith((".md", ".ipynb"))}
    texts = {name: "\n".join(markdown_lines(text)) if name.endswith(".ipynb") else text for name, text in texts.items()}
    anchors = {name: anchors_of(text) for name, text in texts.items()}
    for name, text in texts.items():
        for number, line in lines_of(text):
            for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
                path, _, anchor = target.partition("#")
                if "://" in path:
                    continue
                file = (root / name).parent / path if path else root / name
                if not file.exists():
                    errors.append(f"{name}:{number}: links to {path}, which does not exist")
                    continue
                page = file.resolve().relative_to(root.resolve()).as_posix()
                if anchor and anchor not in anchors.get(page, ()):
                    errors.append(f"{name}:{number}: links to {target}, but {page} has no heading for #{anchor}")
    navigation = (root / "mkdocs.yml").read_text(encoding="utf-8")
    for page in texts:
        if page.startswith("docs/") and f" {page[5:]}\n" not in navigation:
            errors.append(f"mkdocs.yml:1: the navigation lacks {page}")
    for name in files:
        if name.startswith(("data/", "tests/fuzz/corpus/", "tools/check_")) or not (root / name).is_file():
            continue
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines() if "docs/" in text else [], 1):
            for page in NAMED_PAGE.findall(line):
                if not (root / page).exists():
                    errors.append(f"{name}:{number}: names {page}, which does not exist")
    return errors


def self_test():
    planted = {
        "README.md": "[none](docs/none.md)\n[anchor](docs/a.md#nothing)\n[good](docs/a.md#the-word-b)\n```\n[code](x.md)\n```\n",
        "docs/a.md": "# A\n\n## The word `b`\n\n[own](#missing)\n",
        "docs/lost.md": "# Lost\n",
        "a.h": "// docs/old.md says more.\n",
        "mkdocs.yml": "nav:\n  - A: a.md\n",
    }
    expected = ["README.md:1: links to docs/none.md", "README.md:2: links to docs/a.md#nothing", "docs/a.md:5: links to #missing",
                "mkdocs.yml:1: the navigation lacks docs/lost.md", "a.h:1: names docs/old.md"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in planted.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        errors = check(root, list(planted))
    missed = [e for e in expected if not any(error.startswith(e) for error in errors)]
    if missed or len(errors) != len(expected):
        print(*errors, sep="\n")
        return f"check_links: missed {missed}, or more than the {len(expected)} planted faults found"
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    if shutil.which("git") is None:
        print("SKIPPED: no git, which lists the files")
        return 77
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True,
                           text=True, check=True).stdout.splitlines()
    files = [name for name in names if (root / name).exists()]
    errors = check(root, files)
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"check_links: {sum(name.endswith('.md') for name in files)} documents, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
