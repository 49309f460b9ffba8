"""Hooks of mkdocs.yml: adds the documents of the root to the site, and leaves out the files that are not for it."""
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
OF_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md")


def on_files(files, config):
    for file in [f for f in files if f.src_uri.endswith((".dox", "Doxyfile", ".csv"))]:
        files.remove(file)
    for name in OF_ROOT:
        files.append(File(name, str(ROOT), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_markdown(markdown, page, **_):
    """Moves links between docs/ and the root, as the site has both in one folder."""
    if page.file.src_uri in OF_ROOT:
        return re.sub(r"\]\(docs/", "](", markdown)
    return re.sub(rf"\]\(((?:\.\./)*)\.\./({'|'.join(OF_ROOT)})", r"](\1\2", markdown)
