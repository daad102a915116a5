# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can fix."""


class ScenarioError(Exception):
    """One line: where, what is wrong, and what would be right."""
