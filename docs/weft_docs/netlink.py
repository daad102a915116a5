# SPDX-License-Identifier: Apache-2.0
"""Reference of the generic netlink family, from the UAPI header."""

import re
from pathlib import Path

from weft_docs import markdown
from weft_docs.errors import DocsError

_ENUM = re.compile(r"enum (\w+) \{\n(.*?)^\};", re.M | re.S)
_ENTRY = re.compile(r"^\t([A-Z]\w*)(?: = (\d+))?,", re.M)
_DEFINE = re.compile(r"^#define (WEFT_\w+)[ \t]+(\d+|\"\w+\")(?:\s*/\*(.*?)\*/)?", re.M | re.S)
_KERNEL_DOC = re.compile(r"/\*\*\n \* enum (\w+) - (.*?)\n \*/", re.S)
_OPENING = re.compile(r"^/\*\n(.*?)\n \*/", re.M | re.S)


def page(source: Path) -> str:
    """Write the page of the netlink family."""
    header = source.read_text(encoding="utf-8")
    documented = dict(_KERNEL_DOC.findall(header))
    opening = _OPENING.search(header)
    enums = _ENUM.findall(header)
    if opening is None or not enums:
        raise DocsError(f"{source}: no opening comment, or no enum")
    parts = ["# Generic netlink family", *_paragraphs(opening[1]), "## Constants"]
    defines = [[f"`{n}`", f"`{value}`", _said(said)] for n, value, said in _DEFINE.findall(header)]
    parts.append(markdown.table(["name", "value", "what"], defines))
    for name, body in enums:
        about, notes = _kernel_doc(documented.get(name, ""))
        parts.append(f"## enum {name}")
        parts += [markdown.text(about)] if about else []
        parts.append(markdown.table(["value", "name", "what"], _rows(body, notes)))
    return "\n\n".join(parts) + "\n"


def _rows(body: str, notes: dict[str, str]) -> list[list[str]]:
    rows = []
    value = -1
    for name, given in _ENTRY.findall(body):
        value = int(given) if given else value + 1
        if not name.startswith("__") and not name.endswith(("_UNSPEC", "_PAD")):
            rows.append([str(value), f"`{name}`", markdown.text(notes.get(name, ""))])
    return rows


def _kernel_doc(comment: str) -> tuple[str, dict[str, str]]:
    """Split the comment of an enum into its description and those of its values."""
    about, *entries = re.split(r"\n \* @", comment)
    notes = {}
    for entry in entries:
        name, _, said = entry.partition(":")
        notes[name] = _joined(said)
    return _joined(about), notes


def _paragraphs(comment: str) -> list[str]:
    lines = [line.removeprefix(" *").strip() for line in comment.splitlines()]
    parts = re.split(r"\n\n+", "\n".join(lines))
    return [markdown.text(part) for part in parts if not part.startswith("Generated from")]


def _said(comment: str) -> str:
    return markdown.text(_joined(comment))


def _joined(comment: str) -> str:
    return " ".join(line.strip().removeprefix("*").strip() for line in comment.splitlines()).strip()
