# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/build: `generate`, `links`, `assemble` and `pages`."""

import argparse
import sys
from pathlib import Path

from weft_docs import api, book, files, flags, netlink, scenarios
from weft_docs.errors import DocsError

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/src/reference"


def _reference() -> dict[str, str]:
    return {
        "flags.md": flags.page(ROOT / "target/release"),
        "api.md": api.page(ROOT / "controller/proto/weft/v1/weft.proto"),
        "netlink.md": netlink.page(ROOT / "host/kernel/include/uapi/weft.h"),
        "files.md": files.page(ROOT),
        "scenarios.md": scenarios.page(ROOT / "workloads/scenarios", ROOT / "workloads/results"),
    }


def generate(is_check: bool) -> None:
    """Write the reference pages, or raise an error that lists stale ones."""
    stale = []
    for name, text in _reference().items():
        page = REFERENCE / name
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not is_check:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
    if is_check and stale:
        raise DocsError(f"out of date: {', '.join(stale)}; run docs/generate")
    print(f"docs: reference {'is up to date' if not stale else 'written: ' + ', '.join(stale)}")


def _refuse(broken: list[str], what: str) -> None:
    if broken:
        raise DocsError("\n".join([*broken, f"{len(broken)} {what} lead nowhere"]))
    print(f"docs: all {what} resolve")


def main() -> None:
    """Do one step."""
    parser = argparse.ArgumentParser(prog="docs", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("generate").add_argument("--check", action="store_true")
    steps.add_parser("links")
    steps.add_parser("assemble").add_argument("out", type=Path)
    steps.add_parser("pages").add_argument("book", type=Path)
    given = parser.parse_args()
    try:
        if given.step == "generate":
            generate(given.check)
        elif given.step == "links":
            _refuse(book.broken_links(ROOT, book.tracked(ROOT)), "links of Markdown files")
        elif given.step == "assemble":
            book.assemble(ROOT, book.tracked(ROOT), given.out)
        else:
            _refuse(book.broken_pages(given.book.resolve()), "links of the book")
    except DocsError as error:
        sys.exit(f"docs: {error}")


main()
