//! The inside: process 1 of the lab.
//!
//! Process 1 mounts what a system needs, starts one worker and then does
//! nothing but reap: whatever becomes of the worker, the lab ends in good
//! order and with a word about it. Everything blocks on events; a timer here
//! would cost every lab time.

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

/// Where programs are looked for; Mininet needs `sbin`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Virtual time before anything starts, which takes no real time. Programs take
/// an uptime of 0 s for one they have not asked for yet; `ping` is one.
const AGE: Duration = Duration::from_secs(1);

/// Files that a process may open, as many as a kernel usually allows at most (`fs.nr_open`);
/// without a word it would be 4096, and a thousand hosts have more connections.
const OPEN_FILES: u64 = 1 << 20;

/// Process 1. Ends by switching the lab off, so it does not return.
pub fn init() -> io::Result<()> {
    check_first()?;
    if let Err(error) = boot() {
        fail(&format!("start inside: {error}"));
    }
    sync();
    reboot(RebootMode::RB_POWER_OFF)?;
    Ok(())
}

/// Process 1 of a network on this machine's own kernel, which ends with it. The folder is
/// `rundir`, the line to the outside the descriptor `line`.
pub fn init_native(rundir: &Path, line: RawFd) -> io::Result<()> {
    check_first()?;
    // Before that folder is in its place nobody outside would find a word about it.
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
    if has_only_our_programs(&spec) {
        run_in_order_of_waking()?;
    }
    loopback::up()?;
    work(&spec, None)
}

/// Whether nobody can start a program in it that waits without sleeping, as `iperf3` does: next
/// to those that only run when it sleeps there would be none.
fn has_only_our_programs(spec: &LabSpec) -> bool {
    spec.topology.is_some() && spec.batch.is_some() && spec.bmv2.is_none()
}

/// Lets processes run in the order in which they wake up, each until it sleeps.
///
/// The usual policy goes by how much processor time each had before, from the boot on. In
/// virtual time that is next to nothing, and what little there is decides who reads first of
/// two that wake at the same moment: it would depend on how many files Python has looked for.
fn run_in_order_of_waking() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    Errno::result(result).map(drop).map_err(Into::into)
}

/// Lets processes open [`OPEN_FILES`], or, on this machine's own kernel, as many as they may.
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

/// Runs the worker to its end.
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
        // The root file system takes no writes.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Hash order must not depend on the run.
        .env(
            "PYTHONHASHSEED",
            spec.seed.wrapping_rem(1 << 32).to_string(),
        )
        .current_dir(GUEST_RUNDIR)
        .spawn()?;
    reap_until(Pid::from_raw(worker.id() as i32))
}

/// Reaps whoever ends, until the worker does.
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

/// The lab's description.
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

/// A file of the rundir.
fn inside(name: &str) -> PathBuf {
    Path::new(GUEST_RUNDIR).join(name)
}

/// Says outside that a step is done. A rundir that cannot be written shows at
/// the next step that needs it.
fn step(name: &str) {
    let file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(inside(rundir::STEPS));
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{name}");
    }
}

/// Says outside that the lab has failed, unless that is known already: the
/// first failure is the cause of the others.
fn fail(message: &str) {
    let path = inside(rundir::FAILED);
    if path.exists() {
        return;
    }
    if let Err(error) = fs::write(&path, format!("{message}\n")) {
        // The console's log is the last place left.
        eprintln!("weft-lab: {message} ({}: {error})", path.display());
    }
}

/// The rundir's path outside, which only the kernel's command line knows.
fn rundir_outside() -> io::Result<PathBuf> {
    let line = fs::read_to_string("/proc/cmdline")?;
    line.split_ascii_whitespace()
        .find_map(|argument| argument.strip_prefix("weft.rundir="))
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("no weft.rundir= on the kernel's command line"))
}
