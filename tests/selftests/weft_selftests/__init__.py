# SPDX-License-Identifier: Apache-2.0
"""The kernel's own MPTCP selftests in the lab, under each scheduler."""
