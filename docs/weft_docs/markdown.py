# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Markdown."""

import re
from collections.abc import Iterable, Sequence

_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def text(plain: str) -> str:
    """Escape plain text, except code in backquotes."""
    parts = re.split(r"(`[^`]*`)", plain)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<])", r"\\\1", part) for part in parts
    )


def prose(source: str) -> list[tuple[int, str]]:
    """Give the lines outside code blocks, with their numbers; code spans become spaces."""
    kept: list[tuple[int, str]] = []
    fence = ""
    before = ""
    for number, line in enumerate(source.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip().startswith(fence):
            fence = ""
        elif not fence:
            is_block = line.startswith("    ") and (not before.strip() or before == "block")
            if not is_block:
                kept.append((number, _CODE.sub(lambda found: " " * len(found[0]), line)))
            before = "block" if is_block else line
    return kept


def links(source: str) -> list[tuple[int, str]]:
    """Give the targets of all links and images, with line numbers."""
    found = []
    for number, line in prose(source):
        reference = _REFERENCE.match(line)
        targets = [reference[1]] if reference else _LINK.findall(line)
        found += [(number, target) for target in targets]
    return found


def paths(source: str, tops: Iterable[str]) -> list[tuple[int, str]]:
    """Give the code spans that name a file or folder below `tops`, with line numbers."""
    spelled = re.compile(rf"`((?:{'|'.join(map(re.escape, sorted(tops)))})/[\w./-]*)`")
    return [
        (number, path)
        for number, line in enumerate(source.splitlines(), 1)
        for path in spelled.findall(line)
    ]


def anchors(source: str) -> set[str]:
    """Give the anchors of all headings."""
    given: set[str] = set()
    numbered = {number for number, _ in prose(source)}
    for number, line in enumerate(source.splitlines(), 1):
        heading = _HEADING.match(line) if number in numbered else None
        if heading:
            name = slug(heading[2])
            taken, again = name, 0
            while taken in given:
                again += 1
                taken = f"{name}-{again}"
            given.add(taken)
    return given


def slug(heading: str) -> str:
    """Give the anchor of a heading."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = re.sub(r"[^\w\- ]", "", shown.lower())
    return kept.replace(" ", "-")
