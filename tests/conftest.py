# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests share."""

import signal
from collections.abc import Iterator

import pytest
from driver import Labs, Weft


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: shells have background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def weft(tmp_path_factory: pytest.TempPathFactory) -> Weft:
    """The command line."""
    weft = Weft(tmp_path_factory.mktemp("weft"))
    assert weft.program.exists(), "run `make build` first"
    return weft


@pytest.fixture(scope="module")
def labs(weft: Weft) -> Iterator[Labs]:
    """Starter of labs that are stopped when the module's tests are done."""
    labs = Labs(weft)
    yield labs
    labs.down()
