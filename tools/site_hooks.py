"""Hooks of mkdocs.yml: adds the documents of the root and the notebooks to the site, and leaves out the files that are not
for it."""
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from notebook import page as page_of_notebook  # noqa: E402

OF_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md")


class Notebook(File):
    def is_documentation_page(self):
        return True


def on_files(files, config):
    for file in [f for f in files if f.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(Notebook(file.src_uri, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    for file in [f for f in files if f.src_uri.endswith((".dox", "Doxyfile", ".csv"))]:
        files.remove(file)
    for name in OF_ROOT:
        files.append(File(name, str(ROOT), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, **_):
    if isinstance(page.file, Notebook):
        return page_of_notebook(Path(page.file.abs_src_path).read_text(encoding="utf-8"))
    return None


def on_page_markdown(markdown, page, **_):
    """Moves links between docs/ and the root, as the site has both in one folder."""
    if page.file.src_uri in OF_ROOT:
        return re.sub(r"\]\(docs/", "](", markdown)
    return re.sub(rf"\]\(((?:\.\./)*)\.\./({'|'.join(OF_ROOT)})", r"](\1\2", markdown)
