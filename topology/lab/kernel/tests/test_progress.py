# SPDX-License-Identifier: Apache-2.0
"""What is said while the kernel compiles."""

import time
from pathlib import Path

from weft_kernel import progress


def test_the_rest_takes_as_long_for_each_file_as_what_is_done() -> None:
    assert progress.line(250, 1_000, 60) == " 25% compiled, about 3 min 00 s left"
    assert progress.line(900, 1_000, 90) == " 90% compiled, about 10 s left"


def test_with_little_done_no_time_is_guessed() -> None:
    assert progress.line(10, 1_000, 1) == "  1% compiled"


def test_more_files_than_expected_are_never_all() -> None:
    assert progress.line(1_200, 1_000, 60).startswith(" 99% compiled")


def test_only_files_that_are_made_after_the_start_count(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_text("  CC      old.o\n" * 90)
    said: list[str] = []
    with progress.watched(log, 100, said.append), log.open("a") as stream:
        stream.write("  CC      new.o\n  HOSTCC  tool\n  AR      built-in.a\n" * 10)
        stream.flush()
        deadline = time.monotonic() + 60
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said[0].startswith("20% compiled")
