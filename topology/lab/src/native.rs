// SPDX-License-Identifier: Apache-2.0

//! A network on this machine's own kernel, in real time. A process in its own namespaces replaces
//! the lab kernel.
//!
//! It has its own interfaces, mounts, process IDs and loopback. So nothing of it is visible
//! outside, several can run side by side, and all of it ends with that process. A user who
//! isn't root is root of a user namespace inside, if the system allows user namespaces.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;

use nix::unistd::geteuid;

/// The program that creates the namespaces.
pub const PROGRAM: &str = "/usr/bin/unshare";

/// Arguments of [`PROGRAM`] for a network with the folder `rundir`. `line` is the descriptor of its
/// line to the outside, and `weft_lab` is process 1 inside.
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
