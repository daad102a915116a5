# SPDX-License-Identifier: GPL-2.0-only
"""Generates what is specified in mptcp_pattern.yaml: `make netlink`."""
