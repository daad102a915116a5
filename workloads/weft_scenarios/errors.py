"""What a user can put right."""


class ScenarioError(Exception):
    """One line: where, what, and what would be right."""
