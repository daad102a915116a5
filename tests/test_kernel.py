# SPDX-License-Identifier: Apache-2.0
"""The kernel module in a plain lab: its netlink interface, its sockets, its own tests."""

import re
import subprocess

import plain_lab
import pytest
from plain_lab import Kernel, Outcome

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """The lab's kernel and modules."""
    return plain_lab.kernel()


def test_bad_requests_are_refused_with_their_reason(kernel: Kernel) -> None:
    assert plain_lab.run_program(kernel, "bad_input") == []


def test_sockets_choose_schedulers_and_keep_the_module(kernel: Kernel) -> None:
    assert plain_lab.run_program(kernel, "sockets", str(kernel.module("weft"))) == []


def test_nothing_that_is_sent_to_it_harms_the_kernel(kernel: Kernel) -> None:
    module = str(kernel.module("weft"))
    assert plain_lab.run_program(kernel, "fuzz", "1", "2500", module) == []


def test_kunit_tests_pass_in_the_kernel(kernel: Kernel) -> None:
    outcome = plain_lab.run(
        kernel,
        ["insmod", kernel.module("weft_test")],
        arguments=["kunit.enable=1", "kunit.autorun=1", "slab_debug=FZPU"],
    )
    assert outcome.exit_code == 0, outcome.output
    assert outcome.complaints() == []
    lines = [re.sub(r"^\[[ .0-9]+\] ", "", line) for line in outcome.console.splitlines()]
    assert [line for line in lines if line.lstrip().startswith("not ok")] == []
    assert "ok 1 weft_table" in lines
    assert "ok 2 weft_connection" in lines
    assert "ok 3 weft_priority" in lines
    assert "ok 4 weft_rescue" in lines
    assert "ok 5 weft_buffer" in lines
    assert "ok 6 weft_netlink" in lines


def test_a_test_program_that_breaks_off_has_failed() -> None:
    good = Outcome(0, "ok 1 - one\n1..1\n", "[1.0] all is well\n")
    assert plain_lab.wrong(good) == []
    assert plain_lab.wrong(Outcome(0, "ok 1 - one\n", "")) == ["broke off: ok 1 - one"]
    assert plain_lab.wrong(Outcome(0, "", "")) != []
    assert plain_lab.wrong(Outcome(1, "not ok 1 - one\n# seen\n1..1\n", "")) == [
        "not ok 1 - one # seen"
    ]
    complaint = "[1.0] BUG: KASAN: slab-use-after-free in uaf_init+0x5c/0x1000"
    assert plain_lab.wrong(Outcome(0, good.output, complaint)) == [f"kernel: {complaint}"]


def test_a_lab_without_its_kernel_says_so(kernel: Kernel) -> None:
    missing = Kernel("none", kernel.tree / "missing", kernel.modules)
    with pytest.raises(plain_lab.LabError, match="missing"):
        plain_lab.run(missing, ["/bin/true"])


def test_unknown_selftests_are_refused_with_a_list_of_all() -> None:
    done = subprocess.run(
        [plain_lab.ROOT / "tests/selftests/run", "--tests", "nonsense"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "no test 'nonsense'; there are diag, " in done.stderr
