# SPDX-License-Identifier: Apache-2.0
"""The digests of a captured run, and statistics of measurement errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from driver import rows

DIGEST_BYTES = 300
"""Of a digest that travels alone to the controller, with its acknowledgement."""


@dataclass(frozen=True)
class Digest:
    """A digest that a switch sent."""

    at_ns: int
    switch: str
    name: str
    fields: tuple[int, ...]


def digests(capture: Path) -> Iterator[Digest]:
    """Give all digests of a capture folder, in the order in which they were sent."""
    for row in rows(capture / "digests.csv"):
        fields = tuple(int(number) for number in row["fields"].split())
        yield Digest(int(row["time_ns"]), row["switch"], row["digest"], fields)


def quantile(values: list[int], share: float) -> int:
    """Give the value below which this share of the values is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(errors: list[int]) -> str:
    """Say how large errors are."""
    median, p99 = quantile(errors, 0.5), quantile(errors, 0.99)
    return f"median error {median} ns, p99 {p99} ns, most {max(errors)} ns"
