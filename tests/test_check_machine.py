# SPDX-License-Identifier: Apache-2.0
"""What `ci/check-machine` and `ci/install` say on machines where Weft cannot be built or run."""

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

REPOSITORY = Path(__file__).parents[1]

PERSONALITY, PTRACE, SECCOMP, UNSHARE = 135, 101, 317, 272


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which nothing is built, with a cache of its own."""
    path = tmp_path / "my weft"
    shutil.copytree(REPOSITORY / "ci", path / "ci")
    for name in ("Cargo.toml", "requirements.lock"):
        shutil.copy(REPOSITORY / name, path)
    (tmp_path / "cache").mkdir()
    return path


def forbid(*system_calls: int) -> Callable[[], None]:
    """Return a function that makes system calls fail with EPERM, as a container's seccomp does."""
    load_number = struct.pack("HBBI", 0x20, 0, 0, 0)
    jumps = [
        struct.pack("HBBI", 0x15, len(system_calls) - index, 0, number)
        for index, number in enumerate(system_calls)
    ]
    allow, refuse = (struct.pack("HBBI", 6, 0, 0, verdict) for verdict in (0x7FFF0000, 0x50001))
    program = b"".join([load_number, *jumps, allow, refuse])
    libc = ctypes.CDLL(None)

    def install() -> None:
        instructions = ctypes.create_string_buffer(program, len(program))
        filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
        assert libc.prctl(22, 2, filters, 0, 0) == 0  # PR_SET_SECCOMP

    return install


def run(
    checkout: Path,
    command: str,
    *,
    prepare: str = "",
    namespaces: str = "--mount",
    forbidden: tuple[int, ...] = (),
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a checkout, in new namespaces that the script `prepare` sets up."""
    isolated = ["unshare", "--map-root-user", *namespaces.split()] if namespaces else []
    if isolated and subprocess.run([*isolated, "true"], capture_output=True).returncode:
        needs.skip("namespaces", "user namespaces are not allowed here")
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = inherited | {"WEFT_CACHE": str(checkout.parent / "cache")} | variables
    script = f"set -e; {prepare}\nexec bash -c {COMMAND}"
    return subprocess.run(
        [*isolated, "bash", "-c", script, command],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=forbid(*forbidden) if forbidden else None,
    )


def line_of(done: subprocess.CompletedProcess[str], words: str) -> str:
    """Return the only line with these words; other lines may concern the test's own machine."""
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if words in line]
    return line


# The script gets the command as its argument 0.
COMMAND = '"$0"'
CHECK = "bash ci/check-machine"
CHECK_LAB = f"{CHECK} lab"


def test_on_a_suitable_machine_only_the_needed_disk_space_is_printed(checkout: Path) -> None:
    if shutil.disk_usage(checkout).free < 8 << 30:
        pytest.skip("less than 8 GiB free here")
    done = run(checkout, CHECK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Still to be written: up to ")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"), [("ro", "is mounted read-only"), ("noexec", "is mounted noexec")]
)
def test_a_checkout_where_nothing_can_be_built_is_reported(
    checkout: Path, options: str, words: str
) -> None:
    done = run(
        checkout,
        CHECK,
        prepare=f'mount --bind . .; mount -o remount,bind,{options} "$PWD"; cd "$PWD"',
    )
    line = line_of(done, "machine: the checkout, ")
    assert words in line
    assert "clone into a folder" in line


def test_a_disk_that_is_too_small_is_reported_with_the_space_needed(checkout: Path) -> None:
    small = f'mount -t tmpfs -o size=64m none "{checkout.parent}/cache"'
    done = run(checkout, CHECK, prepare=small)
    line = line_of(done, f"machine: 0.0 GiB free on {checkout.parent}/cache, but 0.8 GiB needed")
    assert "lab kernel" in line
    assert "set WEFT_CACHE" in line


def test_less_memory_than_four_gigabytes_is_reported(checkout: Path) -> None:
    (checkout / "meminfo").write_text("MemTotal: 2048000 kB\nSwapTotal: 1024000 kB\n")
    done = run(checkout, CHECK, prepare="mount --bind meminfo /proc/meminfo")
    assert line_of(done, "machine: 2.9 GiB of memory and swap, but 4 are needed: ")


def test_no_folder_for_the_memory_of_a_lab_is_reported_with_the_reason_for_each(
    checkout: Path,
) -> None:
    no_room = (
        "mount -t tmpfs -o size=64m none /dev/shm;"
        "mount --rbind /tmp /tmp; mount -o remount,bind,noexec /tmp"
    )
    done = run(checkout, CHECK_LAB, prepare=no_room, TMPDIR="/none")
    line = line_of(done, "no room for the lab's memory of 2048 MiB ")
    assert "(/none is missing, /dev/shm has 64 MiB free, /tmp is mounted noexec)" in line
    assert "--shm-size=3g" in line
    # With MEMORY, the lab itself checks whether there is room.
    done = run(checkout, CHECK_LAB, prepare=no_room, TMPDIR="/none", MEMORY="60MiB")
    assert "no room" not in done.stderr


def test_a_container_that_cannot_disable_address_randomisation_is_reported(checkout: Path) -> None:
    done = run(checkout, CHECK_LAB, forbidden=(PERSONALITY,))
    line = line_of(done, "address randomisation cannot be switched off")
    assert "--security-opt seccomp=unconfined" in line
    # Building is possible there.
    assert "randomisation" not in run(checkout, CHECK, forbidden=(PERSONALITY,)).stderr


def test_missing_ptrace_is_reported_only_without_an_alternative(checkout: Path) -> None:
    assert "ptrace" not in run(checkout, CHECK_LAB, forbidden=(PTRACE,)).stderr
    assert "ptrace" not in run(checkout, CHECK_LAB, forbidden=(SECCOMP,)).stderr
    both = run(checkout, CHECK_LAB, forbidden=(PTRACE, SECCOMP))
    assert line_of(both, "neither seccomp filters nor ptrace are allowed")
    # Linux 6.12 has no seccomp mode.
    old_kernel = checkout.parent / "cache" / "kernel" / "current.json"
    old_kernel.parent.mkdir()
    old_kernel.write_text('{\n  "version": "6.12.9-1"\n}\n')
    assert "ptrace" in run(checkout, CHECK_LAB, forbidden=(PTRACE,)).stderr


def test_missing_namespaces_are_reported_only_for_a_native_network(checkout: Path) -> None:
    done = run(checkout, CHECK_LAB, namespaces="", forbidden=(UNSHARE,))
    assert "namespaces" not in done.stderr
    done = run(checkout, CHECK_LAB, namespaces="", forbidden=(UNSHARE,), CLOCK="native")
    assert "leave CLOCK=native out" in line_of(done, "namespaces, which are not allowed here")


def test_a_missing_network_is_reported_in_one_line(checkout: Path) -> None:
    done = run(
        checkout,
        "source ci/install; install_python",
        namespaces="--mount --net",
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("install: no network for pip (")
    assert line.endswith("run again; what is installed stays")


def test_crates_that_cannot_be_downloaded_are_reported_in_one_line(tmp_path: Path) -> None:
    done = run(
        REPOSITORY,
        f'source "{REPOSITORY}/ci/install"; install_crates',
        namespaces="--mount --net",
        CARGO_HOME=str(tmp_path),
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("install: no network for cargo fetch (")


UNREACHED = """\
Err:1 http://mirror.example/debian trixie InRelease
  Temporary failure resolving 'mirror.example'
Reading package lists...
W: Failed to fetch http://mirror.example/debian/dists/trixie/InRelease
W: Some index files failed to download. They have been ignored, or old ones used instead.
"""


def test_package_lists_that_cannot_be_downloaded_are_reported_in_one_line(checkout: Path) -> None:
    programs = checkout / "programs"
    programs.mkdir()
    (programs / "apt-get").write_text(f"#!/bin/sh\ncat <<'END'\n{UNREACHED}END\n")
    (programs / "apt-get").chmod(0o755)
    done = run(checkout, f'PATH="{programs}:$PATH"; source ci/install; apt_update')
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("install: no network for apt-get update (")
    assert "Temporary failure resolving 'mirror.example'" in line


@pytest.mark.parametrize("name", ["Fedora Linux 42", "Arch Linux", "Ubuntu 24.04.2 LTS"])
def test_other_systems_get_a_list_of_what_is_missing_and_the_container(
    checkout: Path, name: str
) -> None:
    (checkout / "os-release").write_text(f'ID={name.split()[0].lower()}\nPRETTY_NAME="{name}"\n')
    done = run(
        checkout, "bash ci/install", prepare="mount --bind os-release $(realpath /etc/os-release)"
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"install: {name} is not Debian 12 or 13, and has no ")
    assert "Debian's linux-source" in line
    assert line.endswith("podman build -t weft .")


def test_a_cargo_that_is_too_old_is_reported_before_anything_is_installed(checkout: Path) -> None:
    programs = checkout / "programs"
    programs.mkdir()
    (programs / "cargo").write_text("#!/bin/sh\necho cargo 1.63.0\n")
    (programs / "cargo").chmod(0o755)
    done = run(checkout, f'PATH="{programs}:$PATH"; source ci/install; check_rust')
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"install: cargo 1.63.0 ({programs}/cargo) is older than 1.")
