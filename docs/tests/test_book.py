# SPDX-License-Identifier: Apache-2.0
"""Links that lead nowhere are found, in the repository and in the book."""

from pathlib import Path

import pytest
from weft_docs import book
from weft_docs.errors import DocsError

FILES = {
    "README.md": "# Top\n\n[a](p4/README.md#tables) [b](https://x.example/y) [l](p4/leaf.p4)\n",
    "p4/README.md": "# P4\n\n## Tables\n\n[up](../README.md#top) [here](#tables) `docs/x.p4`\n",
    "p4/docs/x.p4": "",
    "p4/leaf.p4": "",
}


def written(root: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return [Path(name) for name in files]


def test_links_that_resolve_are_no_complaint(tmp_path: Path) -> None:
    assert book.broken_links(tmp_path, written(tmp_path, FILES)) == []


@pytest.mark.parametrize(
    ("page", "what"),
    [
        ("[a](p4/READ.md)", "p4/READ.md: no such file"),
        ("[a](p4/README.md#table)", "p4/README.md#table: no such heading"),
        ("[a](#bottom)", "#bottom: no such heading"),
        ("[a](../README.md)", "../README.md: no such file"),
        ("![a](p4/loop.svg)", "p4/loop.svg: no such file"),
        ("`p4/spine.p4`", "`p4/spine.p4`: no such file"),
    ],
)
def test_broken_links_are_reported_with_their_line(tmp_path: Path, page: str, what: str) -> None:
    files = written(tmp_path, FILES | {"README.md": f"# Top\n\n{page}\n"})
    assert book.broken_links(tmp_path, files) == [f"README.md:3: {what}"]


def test_pages_keep_their_places_in_the_book(tmp_path: Path) -> None:
    summary = "# Summary\n\n[Top](../../README.md)\n\n- [P4](../../p4/README.md)\n"
    files = FILES | {"docs/src/SUMMARY.md": summary, "docs/book.toml": ""}
    book.assemble(tmp_path, written(tmp_path, files), tmp_path / "out")
    assert "- [P4](p4/README.md)" in (tmp_path / "out/src/SUMMARY.md").read_text()
    assert (tmp_path / "out/src/p4/leaf.p4").exists()


def test_a_page_that_the_summary_forgets_is_named(tmp_path: Path) -> None:
    summary = "[Top](../../README.md) [P4](../../p4/README.md)\n"
    top = "# Top\n\n[c](CHANGELOG.md)\n"
    files = FILES | {"README.md": top, "CHANGELOG.md": "", "docs/src/SUMMARY.md": summary}
    with pytest.raises(DocsError, match=r"README\.md:3: CHANGELOG\.md is no page"):
        book.assemble(tmp_path, written(tmp_path, files), tmp_path / "out")


def test_every_readme_is_a_page(tmp_path: Path) -> None:
    files = FILES | {"docs/src/SUMMARY.md": "[Top](../../README.md)\n"}
    with pytest.raises(DocsError, match=r"^p4/README\.md: no page of the book"):
        book.assemble(tmp_path, written(tmp_path, files), tmp_path / "out")


def test_links_of_the_built_book_are_followed(tmp_path: Path) -> None:
    pages = {
        "index.html": '<a href="a.html#x">1</a><a href="a.html#y">2</a><img src="no.svg">',
        "a.html": '<h1 id="x">x</h1>',
    }
    written(tmp_path, pages)
    assert book.broken_pages(tmp_path) == [
        "index.html: a.html#y: no such heading",
        "index.html: no.svg: no such file",
    ]


def test_a_book_without_pages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocsError, match="has no pages"):
        book.broken_pages(tmp_path)
