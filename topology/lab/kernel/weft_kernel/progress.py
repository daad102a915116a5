# SPDX-License-Identifier: Apache-2.0
"""Says how far a kernel's compilation is while it runs."""

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

COMPILED = re.compile(rb"  (?:CC|AS|AR|LD) ")
"""How a line begins that kbuild prints for what it has begun to make."""

PERIOD_S = 0.5
"""Between two looks at the log."""

STEP_PERCENT = 10
"""Between two lines where the output is no terminal."""


def line(done: int, expected: int, elapsed_s: float) -> str:
    """Return how far it is and how long it will take; `expected` may be too few."""
    share = min(done / expected, 0.99)
    if share < 0.05:
        return f"{share:4.0%} compiled"
    left_s = elapsed_s * (1 - share) / share
    minutes, seconds = divmod(round(left_s, -1), 60)
    left = f"{minutes:.0f} min {seconds:02.0f} s" if minutes else f"{seconds:.0f} s"
    return f"{share:4.0%} compiled, about {left} left"


@contextlib.contextmanager
def watched(log: Path, expected: int, say: Callable[[str], None]) -> Iterator[None]:
    """Report what kbuild writes to `log`, of `expected` files, until the block ends."""
    over = threading.Event()
    # An interrupted build has left its lines above.
    old = log.stat().st_size if log.exists() else 0
    watcher = threading.Thread(target=_watch, args=(log, old, expected, say, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(
    log: Path, old: int, expected: int, say: Callable[[str], None], over: threading.Event
) -> None:
    begin = time.monotonic()
    is_terminal = sys.stderr.isatty()
    before = 0 if is_terminal else STEP_PERCENT
    done = 0
    while not over.wait(PERIOD_S):
        lines, old = _new_lines(log, old)
        done += sum(bool(COMPILED.match(one)) for one in lines)
        text = line(done, expected, time.monotonic() - begin)
        if is_terminal:
            print(f"\r\033[Klab kernel: {text}", end="", file=sys.stderr, flush=True)
        elif 100 * done / expected >= before:
            say(text.strip())
            before = (100 * done // expected // STEP_PERCENT + 1) * STEP_PERCENT
    if is_terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _new_lines(log: Path, begin: int) -> tuple[list[bytes], int]:
    """Return the whole lines after this position, and where they end."""
    if not log.exists():
        return [], begin
    with log.open("rb") as file:
        file.seek(begin)
        text = file.read()
    whole = text[: text.rfind(b"\n") + 1]
    return whole.splitlines(), begin + len(whole)
