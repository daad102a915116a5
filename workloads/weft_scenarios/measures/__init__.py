# SPDX-License-Identifier: Apache-2.0
"""What a folder of a run says: metrics, curves, and formulas to compare them with."""
