# SPDX-License-Identifier: Apache-2.0
"""The command line of scenarios."""

import subprocess
import sys

from weft_scenarios.runs.installation import ROOT


def test_a_reader_that_leaves_early_is_no_error() -> None:
    listing = subprocess.Popen(
        [sys.executable, "-m", "weft_scenarios", "list"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "", "PYTHONUNBUFFERED": "1"},
    )
    assert listing.stdout is not None
    listing.stdout.close()
    _, said = listing.communicate()
    assert listing.returncode == 141
    assert said == ""
