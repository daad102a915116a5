# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, in words for the user."""


class UsageError(ValueError):
    """What was asked for cannot be; the text says what would be right."""


class StepError(RuntimeError):
    """A step of building or starting the network failed."""

    def __init__(self, step: str, reason: str, log: str = "") -> None:
        """`step` failed for `reason`; `log` is the end of its log."""
        super().__init__(f"{step}: {reason}")
        self.log = log

    def report(self) -> str:
        """One line that says which step failed and why, then the end of its log."""
        return "\n".join(part for part in (str(self), self.log) if part)
