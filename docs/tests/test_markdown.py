# SPDX-License-Identifier: Apache-2.0
"""What Markdown is read as."""

from weft_docs import markdown


def test_links_in_code_are_no_links() -> None:
    source = "[a](x.md) `[b](y.md)`\n\n    [c](z.md)\n\n```\n[d](w.md)\n```\n[e](v.md#there)\n"
    assert markdown.links(source) == [(1, "x.md"), (8, "v.md#there")]


def test_pictures_that_are_links_and_references_count() -> None:
    source = "[![loop](loop.svg)](design.md)\n\n[later]: figures.md\n"
    assert [target for _, target in markdown.links(source)] == ["design.md", "figures.md"]


def test_headings_have_the_anchors_that_readers_link_to() -> None:
    source = "# What `a_b` *is*?\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n"
    assert markdown.anchors(source) == {"what-a_b-is", "twice", "twice-1"}


def test_paths_below_known_folders_are_found_in_code() -> None:
    source = "`host/kernel/rb.c`, `rb.c` and `a/b`\n"
    assert markdown.paths(source, ["host"]) == [(1, "host/kernel/rb.c")]


def test_text_keeps_code_and_loses_markup() -> None:
    assert markdown.text("a*b of `x<y>` <z>") == "a\\*b of `x<y>` \\<z>"


def test_a_table_keeps_its_columns() -> None:
    assert markdown.table(["a"], [["x|y"]]).splitlines()[-1] == "| x\\|y |"
