#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build the lab's kernel and the schedulers' module for it; see README.md."""

import sys

from weft_kernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
