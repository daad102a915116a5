# SPDX-License-Identifier: Apache-2.0
"""Reference of the gRPC API: the calls and messages of weft.proto, with their comments."""

import re
from pathlib import Path

from weft_docs import markdown
from weft_docs.errors import DocsError

_BLOCK = re.compile(r"^((?://[^\n]*\n)*)(service|message|enum) (\w+) \{(.*?\n)?\}\n", re.M | re.S)
_EMPTY = re.compile(r"^message (\w+) \{\}\n", re.M)
_CALL = re.compile(
    r"^((?:  //.*\n)*)  rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);", re.M
)


def page(source: Path) -> str:
    """Write the page of the API."""
    proto = source.read_text(encoding="utf-8")
    package = re.search(r"^package ([\w.]+);", proto, re.M)
    services = [block for block in _blocks(proto) if block[1] == "service"]
    if package is None or not services:
        raise DocsError(f"{source}: no package, or no service")
    parts = [
        f"# API: {package[1]}",
        "The gRPC API of the controller. Users query it, and agents follow it. `weft patterns`,\n"
        "`weft explain` and the other queries of the command line are clients of it.",
    ]
    for comment, _, name, body in services:
        parts += [f"## {name}", markdown.text(comment)]
        rows = [_call(match) for match in _CALL.finditer(body)]
        parts.append(markdown.table(["call", "request", "answer", "what"], rows))
    parts.append("## Messages")
    for _, kind, name, body in _blocks(proto):
        if kind != "service":
            parts += [f"### {name}", f"```proto\n{body}\n```"]
    return "\n\n".join(parts) + "\n"


def _blocks(proto: str) -> list[tuple[str, str, str, str]]:
    """Give comment, kind, name and text of all top-level blocks except empty messages."""
    filled = _one_a_line(_EMPTY.sub("", proto))
    return [
        (_uncommented(found[1]), found[2], found[3], found[0].removesuffix("\n"))
        for found in _BLOCK.finditer(filled)
    ]


def _one_a_line(proto: str) -> str:
    """Spread `message A { int b = 1; }` over three lines."""
    return re.sub(r"^(message \w+) \{ (.*) \}\n", r"\1 {\n  \2\n}\n", proto, flags=re.M)


def _call(found: re.Match[str]) -> list[str]:
    comment, name, to, request, back, answer = found.groups()
    ways = [(to, request), (back, answer)]
    shown = [("stream of " if is_stream else "") + f"`{message}`" for is_stream, message in ways]
    return [f"`{name}`", *shown, markdown.text(_uncommented(comment))]


def _uncommented(comment: str) -> str:
    return " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
