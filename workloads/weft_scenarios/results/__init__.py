# SPDX-License-Identifier: Apache-2.0
"""Results of an experiment: its tables, and the verdicts on its claims."""
