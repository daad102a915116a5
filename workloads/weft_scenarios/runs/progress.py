# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of an experiment in one line."""

import time

from weft_scenarios import units


class Progress:
    """Rewrites the line on a terminal; elsewhere prints one every 30 s."""

    def __init__(self, jobs: int | None, terminal: bool) -> None:
        """`jobs` labs run in parallel, if that is known; a `terminal` can rewrite its line."""
        self._jobs = jobs
        self._terminal = terminal
        self._start = time.monotonic()
        self._next = self._start

    def elapsed_s(self) -> float:
        """Give the real time since the start."""
        return time.monotonic() - self._start

    def __call__(self, ended: int, total: int, left_s: float) -> None:
        """Show how many runs have ended; the others take `left_s`, one after the other."""
        now = time.monotonic()
        last = ended == total
        if not total or (now < self._next and not last):
            return
        self._next = now + (0.2 if self._terminal else 30.0)
        is_known = self._jobs and not last
        left = f", about {units.spent(left_s / (self._jobs or 1))} left" if is_known else ""
        text = f"{ended} of {total} runs in {units.spent(self.elapsed_s())}{left}"
        print(
            f"\r{text:<60}" if self._terminal else text,
            end="\n" if last or not self._terminal else "",
            flush=True,
        )
