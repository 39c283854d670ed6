"""Hooks of the documentation site: root documents as pages, and sections that fill themselves.

ARCHITECTURE.md and its neighbours stay where readers of a source tree expect them. Each becomes a
page of the site here, with its relative links rewritten to the page's place. The dated notes and
the pages of the papers are listed in the navigation without naming each in mkdocs.yml.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

# Document at the root -> page of the site.
PAGES = {
    "ARCHITECTURE.md": "internals/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "PAPERS.md": "internals/papers.md",
    "RELEASE.md": "internals/release.md",
}

# Section of the navigation -> folders of docs/ whose pages it lists.
SECTIONS = {"Notes": ["notes", "results/notes"], "Papers reproduced": ["results/papers"]}

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fills the sections of the navigation that list a folder."""
    fill(config.nav or [], Path(config.docs_dir))
    return config


def fill(entries: list[Any], docs: Path) -> None:
    """Appends to each section of `SECTIONS` in `entries` the pages of its folders."""
    for entry in entries:
        for title, inner in entry.items() if isinstance(entry, dict) else ():
            if title in SECTIONS and isinstance(inner, list):
                listed = {item for item in inner if isinstance(item, str)}
                for folder in SECTIONS[title]:
                    pages = sorted(page.name for page in (docs / folder).glob("*.md"))
                    paths = (f"{folder}/{page}" for page in pages)
                    inner.extend(path for path in paths if path not in listed)
            elif isinstance(inner, list):
                fill(inner, docs)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the root documents as generated pages."""
    for document, page in PAGES.items():
        content = with_links_from(page, (ROOT / document).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Leads links of the papers' notes to the papers' pages, which the site has in `papers`."""
    if page.file.src_uri.startswith("results/notes/"):
        return markdown.replace("](../pages/", "](../papers/")
    return markdown


def with_links_from(page: str, text: str) -> str:
    """Returns `text` of a root document with relative links that hold on `page`.

    A link to another page of the site leads there; the text of a link to any other file stays.
    """
    folder = posixpath.dirname(page)

    def rewritten(match: re.Match[str]) -> str:
        target, anchor = match.group(1), match.group(2) or ""
        if target in PAGES:
            inside = PAGES[target]
        elif target.startswith("docs/"):
            inside = target.removeprefix("docs/")
        else:
            return f"](https://github.com/ncmesh/ncmesh/blob/main/{target}{anchor})"
        return f"]({posixpath.relpath(inside, folder or '.')}{anchor})"

    return LINK.sub(rewritten, text)
