# SPDX-License-Identifier: Apache-2.0
"""Reference of the commands, from the `--help` of each program."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from weft_docs import markdown
from weft_docs.errors import DocsError

PROGRAMS = {
    "weft": "The command line: everything that users do.",
    "weft-load": "The traffic generator. In a lab, `weft workload` and `weft run` start it.",
    "weft-switch": "The P4 target: all switches of a fabric in one process.",
    "weft-controller": "The controller of a fabric.",
    "weft-agent": "Brings patterns into the kernels of hosts, and opens subflows.",
}
"""All documented programs."""

_SECTION = re.compile(r"^([A-Z][\w ]*):\s*$")
_ITEM = re.compile(r"^ {2,6}((?:-\w, )?--[a-z]\S*(?: \S+)?|[<\[]\S+)(?: {2,}(\S.*))?$")
_COMMAND = re.compile(r"^  ([a-z][\w-]*)(?: {2,}(.*))?$")
_NOTE = re.compile(r"\[(default|possible values|env): ([^\]]*?)=?\]")
_UNIVERSAL = ("--help", "--version")


@dataclass
class Item:
    """A flag or an argument."""

    name: str
    lines: list[str] = field(default_factory=list)


@dataclass
class Help:
    """The parsed help of a command."""

    about: list[str]
    usage: list[str]
    commands: dict[str, str]
    sections: dict[str, list[Item]]


def parse(said: str) -> Help:
    """Parse the output of `--help`."""
    found = Help([], [], {}, {})
    section = ""
    for line in said.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section = heading[1]
        elif line.startswith("Usage:"):
            section = "Usage"
            found.usage.append(line.removeprefix("Usage:").strip())
        elif not section:
            found.about.append(line)
        elif section == "Usage":
            found.usage += [line.strip()] if line.strip() else []
        elif section == "Commands":
            command = _COMMAND.match(line)
            if command:
                found.commands[command[1]] = command[2] or ""
        else:
            _take(found.sections.setdefault(section, []), line)
    return found


def _take(items: list[Item], line: str) -> None:
    item = _ITEM.match(line)
    if item:
        items.append(Item(item[1].strip(), [item[2]] if item[2] else []))
    elif items and line.strip():
        items[-1].lines.append(line.strip())


def page(programs: Path) -> str:
    """Write the page of all commands."""
    parts = [
        "# Commands and flags",
        "Every make variable is the flag of that name: `make run SPINE_DELAY=2=40us` is\n"
        "`weft run --spine-delay 2=40us`.",
    ]
    printed: dict[str, str] = {}
    for program, what in PROGRAMS.items():
        binary = programs / program
        if not binary.exists():
            raise DocsError(f"no {binary}: run `make build` first")
        parts += [f"## {program}", what]
        parts += _commands(binary, [], printed)
    return "\n\n".join(parts) + "\n"


def _commands(binary: Path, words: list[str], printed: dict[str, str]) -> list[str]:
    """Describe a command and its subcommands; equal lists of flags appear once."""
    # In an empty environment, because help texts show the values of variables.
    said = subprocess.run(
        [binary, *words, "--help"], check=True, capture_output=True, text=True, env={}, timeout=60
    )
    told = parse(said.stdout)
    name = " ".join([binary.name, *words])
    parts = [f"### {name}"] if words else []
    parts.append(markdown.text("\n".join(told.about).strip()))
    if not told.commands:
        parts.append("\n".join(f"    {line}" for line in told.usage))
    for title, items in told.sections.items():
        listed = "\n".join(_item(item) for item in items if not item.name.endswith(_UNIVERSAL))
        if listed:
            parts += _section(title, listed, printed.setdefault(listed, name), name)
    for command in told.commands:
        if command != "help":
            parts += _commands(binary, [*words, command], printed)
    return parts


def _section(title: str, listed: str, first: str, name: str) -> list[str]:
    if first != name:
        return [f"**{title}**: as of [{first}](#{markdown.slug(first)})."]
    return [f"**{title}**", listed]


def _item(item: Item) -> str:
    """Format a flag as an entry of a list, with its values below."""
    about = [line for line in item.lines if not line.startswith(("- ", "Possible values:"))]
    values = [line.removeprefix("- ") for line in item.lines if line.startswith("- ")]
    said = _NOTE.sub(r"(\1: `\2`)", " ".join(about))
    lines = [f"- `{item.name}`: {markdown.text(said)}"]
    for value in values:
        word, _, what = value.partition(":")
        lines.append(f"  - `{word.strip()}`: {markdown.text(what.strip())}")
    return "\n".join(lines)
