"""Command line: `python -m weft_topology describe|draw|up`."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

    describe = commands.add_parser("describe", help="print topology.json of a fabric")
    describe.add_argument("--kind", default="leaf-spine", choices=[*fabrics.KINDS])
    describe.add_argument("--leaves", type=int)
    describe.add_argument("--spines", type=int)
    describe.add_argument("--hosts", type=int, help="per leaf")
    describe.add_argument("--k", type=int, help="ports of a switch of a fat-tree")
    describe.add_argument("--rate", default="1gbit", help="of links between switches")
    describe.add_argument("--host-rate", default="1gbit", help="of links to hosts")
    describe.add_argument("--sender-rate", help="from hosts to leaves [default: host rate]")
    describe.add_argument("--delay", default="10us", help="one way, of every link")
    describe.add_argument("--queue", type=int, default=100, help="packets, of every port")
    describe.add_argument("--routing", default="weft")
    for what, example in _OF_SPINES.items():
        describe.add_argument(
            f"--spine-{what}",
            action="append",
            default=[],
            metavar="SPINE=VALUE",
            help=f"another {what} for all links of a spine, like {example}",
        )
    describe.set_defaults(run=_describe)

    up = commands.add_parser("up", help="build and run the network of a lab.json")
    up.add_argument("lab", type=Path, metavar="LAB_JSON")
    up.set_defaults(run=_up)

    draw = commands.add_parser("draw", help="draw a topology.json, or `topology` of a lab.json")
    draw.add_argument("file", type=Path, metavar="JSON", help="- is standard input")
    draw.add_argument("--svg", action="store_true", help="as SVG instead of text")
    draw.set_defaults(run=_draw)

    return parser


_OF_SPINES = {"delay": "2=40us", "rate": "2=5mbit", "queue": "2=3750", "loss": "2=1%"}


def _describe(options: argparse.Namespace) -> int:
    from weft_topology import document, topos, units

    def of_spines(what: str, parse: Callable[[str], int]) -> dict[int, int]:
        return units.by_spine(getattr(options, f"spine_{what}"), _OF_SPINES[what], parse)

    given = {
        "leaves": options.leaves,
        "spines": options.spines,
        "hosts": options.hosts,
        "k": options.k,
        "rate_bps": units.rate_bps(options.rate),
        "host_rate_bps": units.rate_bps(options.host_rate),
        "sender_rate_bps": units.rate_bps(options.sender_rate) if options.sender_rate else None,
        "delay_ns": units.time_ns(options.delay),
        "queue_packets": options.queue,
        "routing": options.routing,
        "spine_delay_ns": of_spines("delay", units.time_ns),
        "spine_rate_bps": of_spines("rate", units.rate_bps),
        "spine_queue_packets": of_spines("queue", units.packets),
        "spine_loss_ppm": of_spines("loss", units.share_ppm),
    }
    chosen = {name: value for name, value in given.items() if value not in (None, {})}
    spec = fabrics.of_document({"kind": options.kind} | _in_json(chosen))
    print(json.dumps(document.of_topo(topos.of(spec)), indent=1))
    return 0


def _in_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Give them as JSON has them, where keys are texts."""
    return {
        name: {str(key): number for key, number in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in fields.items()
    }


def _draw(options: argparse.Namespace) -> int:
    from weft_topology import document, drawing, svg, topos

    try:
        text = sys.stdin.read() if str(options.file) == "-" else options.file.read_text()
        given = json.loads(text)
    except (OSError, json.JSONDecodeError) as error:
        raise UsageError(f"{options.file}: {error}") from None
    if isinstance(given, dict) and "kind" in given:
        given = document.of_topo(topos.of(fabrics.of_document(given)))
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
