"""The kernel's own MPTCP selftests in the lab, under each scheduler."""
