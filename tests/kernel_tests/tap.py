# SPDX-License-Identifier: Apache-2.0
"""Claims and whether they hold, as TAP on standard output."""

import sys


class Tap:
    """Counts claims and prints them."""

    def __init__(self) -> None:
        """No claim yet."""
        self.count = 0
        self.failed = 0

    def check(self, holds: bool, claim: str, detail: object = "") -> None:
        """Print whether a claim holds; `detail` is printed when it does not."""
        self.count += 1
        if not holds:
            self.failed += 1
        print(f"{'' if holds else 'not '}ok {self.count} - {claim}", flush=True)
        if not holds and detail != "":
            print(f"# {detail}", flush=True)

    def finish(self) -> None:
        """End the program."""
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
