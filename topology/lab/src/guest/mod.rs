// SPDX-License-Identifier: Apache-2.0

//! Inside the lab: process 1.
//!
//! Process 1 mounts file systems, starts one worker and then only reaps processes. However the
//! worker ends, the lab is shut down properly and reports why. Everything blocks on events, because
//! a timer here would cost real time in every lab.

mod loopback;
mod mounts;
mod worker;

use std::fs;
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, sethostname, sync};

use crate::rundir::{self, GUEST_RUNDIR};
use crate::spec::LabSpec;

pub use mounts::OWN_FOLDERS;
pub use worker::run as worker;

/// Search path of programs; Mininet needs `sbin`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Virtual time that passes before anything starts; it takes no real time. Some programs, such
/// as `ping`, take an uptime of 0 s for a time that they haven't read yet.
const AGE: Duration = Duration::from_secs(1);

/// Limit on the files that a process may open: the usual maximum (`fs.nr_open`). The default of
/// 4096 is too low, because a thousand hosts have more connections.
const OPEN_FILES: u64 = 1 << 20;

/// Process 1. Powers the lab off at the end, so it doesn't return.
pub fn init() -> io::Result<()> {
    check_first()?;
    if let Err(error) = boot() {
        fail(&format!("start inside: {error}"));
    }
    sync();
    reboot(RebootMode::RB_POWER_OFF)?;
    Ok(())
}

/// Process 1 of a network on this machine's own kernel, which ends with this process. `rundir` is
/// the lab's folder, `line` the descriptor of the line to the outside.
pub fn init_native(rundir: &Path, line: RawFd) -> io::Result<()> {
    check_first()?;
    // Messages can be found outside only after this mount.
    mounts::native(rundir)?;
    step("namespaces");
    let spec = read_spec()?;
    sethostname("weft")?;
    if let Err(error) = loopback::up().and_then(|()| work(&spec, Some(line))) {
        fail(&format!("start inside: {error}"));
    }
    Ok(())
}

fn check_first() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "`guest` is process 1 of a lab and nothing else",
        ));
    }
    Ok(())
}

/// Everything from the first mount to the end of the worker.
fn boot() -> io::Result<()> {
    mounts::system()?;
    mounts::rundir(&rundir_outside()?)?;
    step("kernel");
    std::thread::sleep(AGE);
    let spec = read_spec()?;
    mounts::hidden(&spec)?;
    sethostname("weft")?;
    if !spec.clock.is_real_time() && has_only_our_programs(&spec) {
        run_in_order_of_waking()?;
    }
    loopback::up()?;
    work(&spec, None)
}

/// Whether only our own programs run in it. With the scheduling below, a program that waits
/// without sleeping, such as `iperf3`, would stop everything else.
fn has_only_our_programs(spec: &LabSpec) -> bool {
    spec.topology.is_some() && spec.batch.is_some() && spec.bmv2.is_none()
}

/// Makes processes run in the order in which they wake up, each until it sleeps.
///
/// The default policy considers the CPU time that each process has used since the boot. In virtual
/// time that is nearly zero, and the rest depends on chance, such as how many files Python has
/// looked for. It would decide which of two processes that wake at the same time reads first.
fn run_in_order_of_waking() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    Errno::result(result).map(drop).map_err(Into::into)
}

/// Lets processes open [`OPEN_FILES`] files. On this machine's own kernel, as many as allowed.
fn open_many_files() -> io::Result<()> {
    match setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES) {
        Err(Errno::EPERM) => {
            let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
            setrlimit(Resource::RLIMIT_NOFILE, most, most)
        }
        done => done,
    }
    .map_err(Into::into)
}

/// Runs the worker until it ends.
fn work(spec: &LabSpec, line: Option<RawFd>) -> io::Result<()> {
    open_many_files()?;
    let worker = Command::new("/proc/self/exe")
        .arg("guest-worker")
        .args(line.map(|line| format!("--line={line}")))
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/tmp")
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        // The root file system is read-only.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Hash order must be the same in every run.
        .env(
            "PYTHONHASHSEED",
            spec.seed.wrapping_rem(1 << 32).to_string(),
        )
        .current_dir(GUEST_RUNDIR)
        .spawn()?;
    reap_until(Pid::from_raw(worker.id() as i32))
}

/// Reaps processes until the worker has ended.
fn reap_until(worker: Pid) -> io::Result<()> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, 0)) if pid == worker => return Ok(()),
            Ok(WaitStatus::Exited(pid, code)) if pid == worker => {
                return Err(io::Error::other(format!("exit status {code}")));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == worker => {
                return Err(io::Error::other(format!("killed by {signal}")));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The lab's specification.
fn read_spec() -> io::Result<LabSpec> {
    let path = inside(rundir::SPEC);
    let json = fs::read(&path)?;
    serde_json::from_slice(&json).map_err(|e| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {e}", path.display()),
        )
    })
}

/// A file in the lab's folder.
fn inside(name: &str) -> PathBuf {
    Path::new(GUEST_RUNDIR).join(name)
}

/// Reports a completed step to the outside. If the folder isn't writable, the next step that
/// needs it fails.
fn step(name: &str) {
    let file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(inside(rundir::STEPS));
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{name}");
    }
}

/// Reports to the outside that the lab has failed. Only the first failure is kept, because it
/// is the cause of the others.
fn fail(message: &str) {
    let path = inside(rundir::FAILED);
    if path.exists() {
        return;
    }
    if let Err(error) = fs::write(&path, format!("{message}\n")) {
        // Only the console's log is left for it.
        eprintln!("weft-lab: {message} ({}: {error})", path.display());
    }
}

/// The folder's path outside, from the kernel's command line.
fn rundir_outside() -> io::Result<PathBuf> {
    let line = fs::read_to_string("/proc/cmdline")?;
    line.split_ascii_whitespace()
        .find_map(|argument| argument.strip_prefix("weft.rundir="))
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("no weft.rundir= on the kernel's command line"))
}
