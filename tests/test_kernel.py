"""The kernel module in a plain lab: its netlink interface, its sockets, its removal."""

import subprocess
import sys

import plain_lab
import pytest

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def kernel() -> plain_lab.Kernel:
    """The lab's kernel and module."""
    return plain_lab.kernel()


def run(kernel: plain_lab.Kernel, program: str, *arguments: str, slab_debug: bool = True) -> str:
    """Run a program of kernel_tests; no claim may fail and the kernel may not complain."""
    outcome = plain_lab.run(
        kernel,
        ["/usr/bin/env", f"PYTHONPATH={plain_lab.ROOT / 'tests'}"]
        + [sys.executable, "-m", f"kernel_tests.{program}", *arguments],
        arguments=["slab_debug=FZPU"] if slab_debug else [],
    )
    assert outcome.complaints() == [], outcome.console
    failed = [line for line in outcome.output.splitlines() if line.startswith("not ok")]
    assert failed == [], outcome.output
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_bad_requests_are_refused_with_their_reason(kernel: plain_lab.Kernel) -> None:
    run(kernel, "bad_input")


def test_sockets_choose_schedulers_and_keep_the_module(kernel: plain_lab.Kernel) -> None:
    output = run(kernel, "sockets", str(kernel.module))
    assert "ok 1 - default: data arrive as they were sent" in output


def test_a_lab_without_its_kernel_says_so(kernel: plain_lab.Kernel) -> None:
    missing = plain_lab.Kernel("none", kernel.tree / "missing", kernel.module)
    with pytest.raises(plain_lab.LabError, match="missing"):
        plain_lab.run(missing, ["/bin/true"])


def test_selftests_name_what_there_is() -> None:
    done = subprocess.run(
        [plain_lab.ROOT / "tests/selftests/run", "--tests", "nonsense"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "no test 'nonsense'; there are diag, " in done.stderr
