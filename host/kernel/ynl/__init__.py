# SPDX-License-Identifier: GPL-2.0
"""From the specification of the family `weft` to all that speaks it: `make netlink`."""
