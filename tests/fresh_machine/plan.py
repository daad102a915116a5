# SPDX-License-Identifier: Apache-2.0
"""Which systems are tried."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A bare system, who works in it, and where the checkout lies."""

    release: str
    """Debian's number, as users say it."""
    suite: str
    """Debian's name for it, as mirrors have it."""
    user: str
    """`root`, or an ordinary user who may use sudo."""
    checkout: str
    """Folder of the checkout."""

    @property
    def home(self) -> str:
        """The user's home."""
        return "/root" if self.user == "root" else f"/home/{self.user}"

    @property
    def title(self) -> str:
        """What a line of output calls it."""
        return f"Debian {self.release}"


MACHINES = (
    Machine("13", "trixie", "ada", "/home/ada/große Netze/weft"),
    Machine("12", "bookworm", "root", "/tmp/weft"),
)
