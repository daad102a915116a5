# SPDX-License-Identifier: Apache-2.0
"""Runs of `weft run`: which are needed, checked before, run here or on a cluster, and stored."""
