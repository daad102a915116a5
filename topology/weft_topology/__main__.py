# SPDX-License-Identifier: Apache-2.0
"""Command line: `python -m weft_topology draw|up`."""

import argparse
import json
import sys
from pathlib import Path

from weft_topology import fabrics
from weft_topology.errors import UsageError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except UsageError as error:
        print(f"weft_topology {options.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weft_topology", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    up = commands.add_parser("up", help="build and run the network of a lab.json")
    up.add_argument("lab", type=Path, metavar="LAB_JSON")
    up.set_defaults(run=_up)

    draw = commands.add_parser("draw", help="draw a topology.json, or `topology` of a lab.json")
    draw.add_argument("file", type=Path, metavar="JSON", help="- is standard input")
    how = draw.add_mutually_exclusive_group()
    how.add_argument("--svg", action="store_true", help="as SVG instead of text")
    how.add_argument("--json", action="store_true", help="as topology.json instead of text")
    draw.set_defaults(run=_draw)

    return parser


def _draw(options: argparse.Namespace) -> int:
    from weft_topology import document, drawing, svg, topos

    try:
        text = sys.stdin.read() if str(options.file) == "-" else options.file.read_text()
        given = json.loads(text)
    except (OSError, json.JSONDecodeError) as error:
        raise UsageError(f"{options.file}: {error}") from None
    if isinstance(given, dict) and "kind" in given:
        given = document.of_topo(topos.of(fabrics.of_document(given)))
    if options.json:
        print(json.dumps(given, indent=1))
        return 0
    try:
        print(svg.picture(given) if options.svg else drawing.text(given), end="")
    except (KeyError, TypeError) as error:
        raise UsageError(f"{options.file}: no topology.json: {error!r}") from None
    return 0


def _up(options: argparse.Namespace) -> int:
    from weft_topology import up

    return up.run(options.lab)


if __name__ == "__main__":
    sys.exit(main())
