# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernel builder's decisions; nothing is downloaded or compiled."""

import contextlib
import fcntl
import json
import os
import signal
from pathlib import Path

import pytest
from weft_kernel import archive, cli, sources, store, tree
from weft_kernel.errors import BuildError

ONE_LINE = """
# deb http://commented.example/debian trixie main
deb [arch=amd64 signed-by=/k.gpg] http://other.example/apt stable-thing main
deb-src http://source.example/debian trixie main
deb http://security.example/debian-security trixie-security main
deb [arch=amd64] http://mirror.example/debian trixie main contrib # ours
"""

DEB822 = """Types: deb
# http://commented.example/debian
URIs: http://first.example/debian
 http://second.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""


def apt_folder(folder: Path, **files: str) -> Path:
    """Return a folder like /etc/apt."""
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        if name == "main":
            (folder / "sources.list").write_text(text)
        else:
            (folder / "sources.list.d" / name.replace("_", ".")).write_text(text)
    return folder


def test_mirror_is_found_in_one_line_format(tmp_path: Path) -> None:
    assert sources.mirror(apt_folder(tmp_path, main=ONE_LINE)) == "http://mirror.example/debian"


def test_mirror_is_found_in_deb822_format(tmp_path: Path) -> None:
    folder = apt_folder(tmp_path, debian_sources=DEB822)
    assert sources.mirror(folder) == "http://first.example/debian"


def test_disabled_security_and_foreign_sources_are_no_mirror(tmp_path: Path) -> None:
    off = DEB822[DEB822.index("Enabled") :]
    other = "deb http://a.example/ubuntu noble main\n"
    security = "deb http://b.example/debian-security trixie-security main\n"
    folder = apt_folder(tmp_path, main=other + security, off_sources=off, x_bak=ONE_LINE)
    with pytest.raises(BuildError, match="KERNEL_SRC"):
        sources.mirror(folder)


def madison(name: str, version: str, suite: str) -> str:
    """Return a line of apt-cache madison."""
    return f" {name} | {version} | http://mirror.example/debian {suite}/main amd64 Packages\n"


def test_newest_backport_comes_first_then_stable() -> None:
    text = (
        madison("linux-source-6.12", "6.12.9-1", "trixie")
        + madison("linux-source-6.12", "6.12.10-1", "trixie")
        + madison("linux-source-6.12", "6.12.10-1~bpo12+1", "bookworm-backports")
        + madison("linux-source-7.2", "7.2.12-1~bpo13+1", "trixie-backports")
        + madison("linux-source-7.3", "7.3.4-1~bpo13+1", "trixie-backports")
        + madison("linux-source-6.1", "6.1.100-1", "bookworm-backports")
    )
    order = archive.preferred(archive.parse_madison(text))
    assert [(package.version, package.suite) for package in order] == [
        ("7.3.4-1~bpo13+1", "trixie-backports"),
        ("6.12.10-1", "trixie"),
        ("6.12.10-1~bpo12+1", "bookworm-backports"),
    ]


def test_without_network_nothing_else_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Err:1 http://m.example/debian trixie InRelease\n  Temporary failure resolving 'm'\n"
    monkeypatch.setattr(archive, "KEYRINGS", (tmp_path,))
    monkeypatch.setattr(sources, "mirror", lambda: "http://m.example/debian")
    monkeypatch.setattr(archive, "run", lambda command, **_: said if "update" in command else "")
    with store.Store(tmp_path / "kernel") as cache, pytest.raises(BuildError) as raised:
        cli.kernel_from_debian(cache)
    assert str(raised.value).startswith("no network: apt-get did not reach http://m.example/debian")


def test_option_that_did_not_survive_is_reported() -> None:
    wanted = '# why\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=n\nCONFIG_D="x"\n'
    assert tree.unmet_lines(wanted, 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D="x"\n') == []
    assert tree.unmet_lines(wanted, "CONFIG_B=y\n") == ["CONFIG_A=y", "CONFIG_B=n", 'CONFIG_D="x"']


def test_hash_follows_content_and_name(tmp_path: Path) -> None:
    patch = tmp_path / "0001.patch"
    patch.write_text("a")
    before = store.digest([patch])
    patch.write_text("b")
    changed = store.digest([patch])
    renamed = patch.rename(tmp_path / "0002.patch")
    assert len({before, changed, store.digest([renamed])}) == 3


def test_a_relative_cache_is_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_CACHE", "here")
    assert store.default_folder() == tmp_path / "here" / "kernel"


def test_unfinished_build_leaves_nothing(tmp_path: Path) -> None:
    with store.Store(tmp_path / "kernel") as cache:
        with contextlib.suppress(BuildError), cache.new() as folder:
            (folder / "tree").mkdir()
            raise BuildError("stop")
        assert cache.find("key") is None
    assert [path.name for path in (tmp_path / "kernel").iterdir()] == ["lock"]


def test_interrupted_compilation_goes_on_and_a_failed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def compile_kernel(_: store.Store, folder: Path, key: str, about: dict[str, str]) -> Path:
        compiled.append((folder / "tree" / "a.o").read_text())
        raise KeyboardInterrupt if len(compiled) == 1 else BuildError("no")

    monkeypatch.setattr(cli, "compile_kernel", compile_kernel)
    with store.Store(tmp_path) as cache:
        assert cli.resumed(cache, "key") is None
        with cache.partial("key") as folder:
            (folder / "tree").mkdir()
            (folder / "tree" / "a.o").write_text("half of it")
        # Whether its tree is complete is not known yet.
        assert cli.resumed(cache, "key") is None
        store.write_json(folder / cli.PREPARED, {"version": "7.3"})
        with pytest.raises(KeyboardInterrupt):
            cli.resumed(cache, "key")
    with store.Store(tmp_path) as cache:
        assert cli.resumed(cache, "key") is None
        assert not folder.exists()
    assert compiled == ["half of it"] * 2


def test_what_a_killed_build_left_is_deleted(tmp_path: Path) -> None:
    for name in (".build-1", "7.3-key/.build-2", ".partial-other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".current.json.123").touch()
    with store.Store(tmp_path) as cache, cache.partial("key"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [".partial-key", "7.3-key", "lock"]
    assert list((tmp_path / "7.3-key").iterdir()) == []


def test_the_next_build_waits_for_what_a_killed_one_still_compiles(tmp_path: Path) -> None:
    with store.Store(tmp_path / "kernel"):
        child = os.fork()
        if child == 0:
            os.execvp("sleep", ["sleep", "60"])  # as a compiler that has lost its parents
    try:
        with (tmp_path / "kernel" / "lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with store.Store(tmp_path / "kernel") as cache:
        assert cache.find("key") is None


def test_finished_build_is_found_and_old_ones_go(tmp_path: Path) -> None:
    with store.Store(tmp_path) as cache:
        for age, name in enumerate(["1-a", "2-b", "3-c", "4-key"]):
            with cache.new() as folder:
                kept = cache.keep(folder, name, {"version": name})
            os.utime(kept / "build.json", (age, age))
        found = cache.find("key")
        assert found is not None
        assert json.loads((found / "build.json").read_text()) == {"version": "4-key"}
        assert cache.find("a") is None


def test_patches_for_everybody_come_before_the_labs_own() -> None:
    own = [patch.is_relative_to(cli.HERE) for patch in cli.patches()]
    assert own == sorted(own)
    assert {False, True} == set(own)


HUNK = """--- a/send.c
+++ b/send.c
@@ -2,3 +2,4 @@ int get_retrans(void)
{above}
 for_each()
+forget();
 use();
"""


def test_a_patch_that_fits_at_two_places_is_refused(tmp_path: Path) -> None:
    source = "int get_send(void)\n{\nfor_each()\nuse();\n}\n"
    (tmp_path / "send.c").write_text(source + source.replace("send", "retrans"))
    patch = tmp_path / "0001.patch"
    patch.write_text(HUNK.format(above=" {"))
    with pytest.raises(BuildError, match=r"0001.patch fits at several places.*get_retrans"):
        tree.apply([patch], tmp_path)
    patch.write_text(HUNK.replace("2,3 +2,4", "1,4 +1,5").format(above=" int get_send(void)\n {"))
    tree.apply([patch], tmp_path)
    assert (tmp_path / "send.c").read_text().index("forget") < source.index("}")


def test_every_module_is_kept_and_none_when_one_is_missing(tmp_path: Path) -> None:
    build, target = tmp_path / "build", tmp_path / "modules"
    build.mkdir()
    (build / "weft.ko").write_text("")
    with pytest.raises(BuildError, match="weft_coupled"):
        cli.keep_modules(build, target)
    assert not target.exists()

    build = tmp_path / "again"
    build.mkdir()
    for name in (*cli.LOADED, "weft_test"):
        (build / f"{name}.ko").write_text("")
    (build / cli.SYMBOLS).write_text("")
    cli.keep_modules(build, target)
    assert {path.stem for path in target.glob("*.ko")} == {*cli.LOADED, "weft_test"}
    assert (target / cli.SYMBOLS).exists()


def test_modules_are_made_of_all_folders_but_their_tests() -> None:
    names = {path.relative_to(cli.MODULES).as_posix() for path in cli.module_sources()}
    assert {"Kbuild", "main.c", "include/uapi/weft.h", "congestion/lia.c"} <= names
    assert not any(name.startswith("tests/") for name in names)


def test_a_module_of_ones_own_is_one_c_file_that_includes_the_schedulers_headers() -> None:
    kbuild = cli.own_kbuild([Path("some/where/mine.c"), Path("yours.c")])
    assert "obj-m := mine.o yours.o\n" in kbuild
    assert "-I$(src)/weft" in kbuild


def test_a_folder_without_a_c_file_has_no_module_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with store.Store(tmp_path / "cache") as cache, pytest.raises(BuildError, match="no C file"):
        cli.own_modules(cache, tmp_path / "kernel", tmp_path)


def test_foreign_folder_is_no_kernel_source(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="not a Linux source tree"):
        cli.build(tmp_path / "cache", str(tmp_path))


class Mirror:
    """Stands in for an archive with two kernels."""

    def __init__(self, *_: object) -> None:
        pass

    def update(self) -> None:
        """Do nothing."""

    def packages(self) -> list[archive.Package]:
        """Return the newest, and what to fall back to."""
        return [
            archive.Package("linux-source-7.3", "7.3.4-1", "trixie-backports"),
            archive.Package("linux-source-6.12", "6.12.9-1", "trixie"),
        ]

    def download(self, package: archive.Package, folder: Path) -> Path:
        """Leave a file that is not whole before it fails, as an interrupted download would."""
        file = folder / f"{package.name}_{package.version}_all.deb"
        file.write_text("half")
        if package.version in self.unreachable:
            raise BuildError("no route to mirror")
        return file

    unreachable: tuple[str, ...] = ()


def kernel_of(mirror: type[Mirror], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the version that is built from a mirror whose newest kernel has no build."""

    def unpack(package: Path, tree: Path) -> None:
        if "7.3" in package.name:
            raise BuildError("tar failed")

    def keep(cache: store.Store, build: Path, key: str, about: dict[str, str]) -> Path:
        return Path(about["version"])

    monkeypatch.setattr(cli, "Archive", mirror)
    monkeypatch.setattr(sources, "mirror", lambda: "http://mirror.example/debian")
    monkeypatch.setattr(tree, "unpack", unpack)
    monkeypatch.setattr(cli, "make_kernel", keep)
    with store.Store(folder) as cache:
        return str(cli.kernel_from_debian(cache))


def test_a_kernel_that_cannot_be_built_gives_way_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernel_of(Mirror, tmp_path, monkeypatch) == "6.12.9-1"


def test_a_kernel_that_cannot_be_downloaded_does_not_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(Mirror):
        unreachable = ("7.3.4-1",)

    with pytest.raises(BuildError, match=r"download of linux-source-7.3 7.3.4-1 .*: no route"):
        kernel_of(Away, tmp_path, monkeypatch)
    assert not list(tmp_path.rglob("*.deb"))


def test_stripping_keeps_what_modules_need(tmp_path: Path) -> None:
    keep = ["Makefile", "linux", "include/linux/mm.h", "scripts/mod/modpost", "net/mptcp/pm.h"]
    drop = ["vmlinux.o", "net/mptcp/pm.c", "drivers/net/veth.c", "scripts/mod/modpost.o"]
    for name in keep + drop:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    tree.strip_down(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(keep)
    assert not (tmp_path / "drivers").exists()
