# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests share."""

from collections.abc import Iterator

import pytest
from driver import Labs, Weft


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
