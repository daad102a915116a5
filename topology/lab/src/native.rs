//! A network on this machine's own kernel, in real time: what stands in for the lab kernel
//! is a process in namespaces of its own.
//!
//! It has its own interfaces, mounts, process ids and loopback, so that nothing of it is
//! seen outside, it can stand beside others, and all of it ends with that process. Whoever
//! is not root is root of a user namespace inside, where the system lets users have those.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;

use nix::unistd::geteuid;

/// The program that makes the namespaces.
pub const PROGRAM: &str = "/usr/bin/unshare";

/// Arguments of [`PROGRAM`] for a network with its folder at `rundir`, whose line to the
/// outside is the descriptor `line`. `weft_lab` is process 1 inside.
pub fn arguments(weft_lab: &Path, rundir: &Path, line: RawFd) -> Vec<OsString> {
    let namespaces = ["--net", "--mount", "--pid", "--ipc", "--uts"];
    let mut arguments: Vec<OsString> = namespaces.map(OsString::from).into();
    if !geteuid().is_root() {
        arguments.push("--map-root-user".into());
    }
    arguments.extend(["--fork", "--kill-child", "--mount-proc"].map(OsString::from));
    arguments.push(weft_lab.into());
    arguments.extend(["guest-native", "--line"].map(OsString::from));
    arguments.push(line.to_string().into());
    arguments.push(rundir.into());
    arguments
}
