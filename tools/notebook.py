"""Jupyter notebooks as text, for the checks and for the site of the documents."""
import json
import re


def markdown_lines(text):
    """The lines of the file that are Markdown, without JSON. All other lines are empty, so line numbers stay."""
    lines, is_markdown, is_source = [], False, False
    for line in text.splitlines():
        kind = re.match(r'\s*"cell_type": "(\w+)"', line)
        if kind:
            is_markdown = kind[1] == "markdown"
        content = re.fullmatch(r'\s*(".*"),?', line) if is_source and is_markdown else None
        lines.append(json.loads(content[1]).rstrip("\n") if content else "")
        if line.strip() in ("]", "],"):
            is_source = False
        elif line.strip().startswith('"source": ['):
            is_source = True
    return lines


def page(text):
    """The notebook as a page of Markdown, with its code in blocks."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"
