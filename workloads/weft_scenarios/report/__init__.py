# SPDX-License-Identifier: Apache-2.0
"""What people read: plots, tables, the page of each figure, RESULTS.md and HTML reports."""
