# SPDX-License-Identifier: Apache-2.0
"""`python -m weft_scenarios`."""

import sys

from weft_scenarios.cli import main

sys.exit(main())
