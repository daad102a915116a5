"""Errors that a user can fix."""


class ScenarioError(Exception):
    """One line: where, what is wrong, and what would be right."""
