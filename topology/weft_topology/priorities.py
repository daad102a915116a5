# SPDX-License-Identifier: Apache-2.0
"""Lets hosts write classes of what is left to send into DSCP: `host/kernel/priority.c`."""

from pathlib import Path

from weft_topology.errors import StepError

_PARAMETER = Path("/sys/module/weft/parameters/weft_priorities")


def begin(classes: int) -> None:
    """Write so many classes, on all hosts of this kernel."""
    try:
        _PARAMETER.write_text(str(classes))
    except FileNotFoundError:
        reason = "this kernel has no module weft, which writes classes into packets"
        raise StepError("network", f"{reason}: run without --priorities") from None
