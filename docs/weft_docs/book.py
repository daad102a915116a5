# SPDX-License-Identifier: Apache-2.0
"""Assembles the pages of the book, and checks every link of the repository and of the book."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from weft_docs import markdown
from weft_docs.errors import DocsError

SUMMARY = Path("docs/src/SUMMARY.md")


def tracked(root: Path) -> list[Path]:
    """List the files of the repository, including new ones."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    names = (Path(name) for name in listed.stdout.split("\0") if name)
    return [name for name in names if (root / name).exists()]


def broken_links(root: Path, files: list[Path]) -> list[str]:
    """List broken links of Markdown files, and paths in them that do not exist."""
    known = {*files, *(folder for file in files for folder in file.parents)}
    tops = {file.parts[0] for file in files if len(file.parts) > 1}
    pages = {file: (root / file).read_text("utf-8") for file in files if file.suffix == ".md"}
    anchors = {file: markdown.anchors(text) for file, text in pages.items()}
    said = []
    for page, text in pages.items():
        for line, link in markdown.links(text):
            wrong = _wrong(page, link, known, anchors)
            if wrong:
                said.append(f"{page}:{line}: {link}: {wrong}")
        for line, name in markdown.paths(text, tops):
            places = {_within(Path(), name), _within(page.parent, name)}
            if places.isdisjoint(known) and not _is_made(name):
                said.append(f"{page}:{line}: `{name}`: no such file")
    return said


def _is_made(name: str) -> bool:
    """Whether a path is a build product or a result."""
    return name.startswith(("target/", "runs/"))


def _wrong(page: Path, link: str, known: set[Path], anchors: dict[Path, set[str]]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or link.startswith("//"):
        return None
    target = _within(page.parent, unquote(parts.path)) if parts.path else page
    if target not in known:
        return "no such file"
    if parts.fragment and parts.fragment not in anchors.get(target, set()):
        return "no such heading"
    return None


def _within(folder: Path, name: str) -> Path:
    """Resolve a relative path without looking at the disk."""
    parts: list[str] = []
    for part in (folder / name).parts:
        if part == "..":
            if not parts:
                return Path("..")
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def assemble(root: Path, files: list[Path], out: Path) -> None:
    """Copy the pages of the summary, and the files that they link to, to where mdBook reads them.

    A page keeps its path in the repository, so that the links of READMEs and of docs/src work in
    the book as they do in the repository.
    """
    source = out / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(out / "book", ignore_errors=True)
    source.mkdir(parents=True)
    summary = (root / SUMMARY).read_text(encoding="utf-8")
    pages = {_within(SUMMARY.parent, link) for _, link in markdown.links(summary)}
    forgotten = [str(file) for file in files if file.name == "README.md" and file not in pages]
    if forgotten:
        raise DocsError(f"{', '.join(forgotten)}: no page of the book, add to {SUMMARY}")
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        _write(source / page, text)
        for line, link in markdown.links(text):
            path = urlsplit(link).path
            target = _within(page.parent, unquote(path)) if path else page
            if urlsplit(link).scheme or target in pages:
                continue
            if target.suffix == ".md" or target not in files:
                raise DocsError(
                    f"{page}:{line}: {link} is no page of the book: add it to {SUMMARY}"
                )
            (source / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / target, source / target)
    shown = re.sub(r"\]\(([^)]+)\)", lambda link: f"]({_within(SUMMARY.parent, link[1])})", summary)
    _write(source / "SUMMARY.md", shown)
    shutil.copyfile(root / "docs/book.toml", out / "book.toml")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Page(HTMLParser):
    """The anchors and links of a page of the book."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken_pages(book: Path) -> list[str]:
    """List broken links of the built book."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in book.rglob("*.html")}
    if len(pages) < 2:
        raise DocsError(f"{book} has no pages")
    return list(_broken(book, pages))


def _broken(book: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        # Pages that other pages include, with links relative to the top; and the print page.
        if path.name in ("toc.html", "404.html", "print.html"):
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            said = f"{path.relative_to(book)}: {link}"
            if not target.exists():
                yield f"{said}: no such file"
            elif parts.fragment and target in pages and parts.fragment not in pages[target].ids:
                yield f"{said}: no such heading"
