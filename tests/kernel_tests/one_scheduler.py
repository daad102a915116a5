# SPDX-License-Identifier: Apache-2.0
"""Sockets choose one scheduler, which carries their data: one_scheduler NAME."""

import sys

from kernel_tests import network
from kernel_tests.sockets import check_scheduler
from kernel_tests.tap import Tap


def main() -> None:
    """Check the scheduler of this name."""
    tap = Tap()
    network.make("left", "right")
    check_scheduler(tap, 0, sys.argv[1])
    tap.finish()


if __name__ == "__main__":
    main()
