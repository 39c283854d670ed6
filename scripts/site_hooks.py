"""Hooks of the documentation site: pages, tables and sections that are made where it is built.

ARCHITECTURE.md and its neighbours stay where readers of a source tree expect them. Each becomes a
page of the site here, with its relative links rewritten to the page's place. The dated notes and
the pages of the papers are listed in the navigation without naming each in mkdocs.yml. The tables
of the wire format are made from the declarations of the frames and put behind their marks.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
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

# Written by `cargo run -p ncmesh-tests --example frames`: tables of frames, each behind its mark.
TABLES = ROOT / "target" / "wire-format-tables.md"
MARK = re.compile(r"^<!-- frame: .* -->$", re.MULTILINE)

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
    """Puts tables into the wire format, and leads links of the papers' notes to the papers' pages.

    The site has these pages in `papers`.
    """
    if page.file.src_uri == "reference/wire-format.md":
        return with_tables(markdown)
    if page.file.src_uri.startswith("results/notes/"):
        return markdown.replace("](../pages/", "](../papers/")
    return markdown


def with_tables(markdown: str) -> str:
    """Returns a page with the table of each mark behind it."""
    if not TABLES.exists():
        message = f"{TABLES} is missing; run: cargo run -p ncmesh-tests --example frames"
        raise PluginError(message)
    text = TABLES.read_text(encoding="utf-8")
    tables = dict(zip(MARK.findall(text), MARK.split(text)[1:], strict=True))
    for mark in MARK.findall(markdown):
        if mark not in tables:
            raise PluginError(f"{TABLES} has no table for {mark}")
    return MARK.sub(lambda match: match.group() + tables[match.group()], markdown)


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
