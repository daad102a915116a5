// SPDX-License-Identifier: Apache-2.0

//! Starts the lab kernel: a User-Mode Linux process, or its native substitute.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, setsid};
use tokio::process::{Child, Command};

use crate::clock::TIME_OF_DAY_NS;
use crate::error::{Context, Error, Result};
use crate::spec::{ClockMode, LabSpec};
use crate::{machine, native, rundir};

const PAGE_BYTES: u64 = 4096;

/// Options of the lab kernel.
#[derive(Debug)]
pub struct KernelOptions<'a> {
    /// The lab's specification.
    pub spec: &'a LabSpec,
    /// The lab's folder.
    pub rundir: &'a Path,
    /// Folder for the file that backs the lab's memory.
    pub memory_dir: &'a Path,
    /// Memory of the lab.
    pub memory_bytes: u64,
    /// The lab's end of the serial line.
    pub serial: OwnedFd,
}

/// A running kernel. Dropping it kills it and everything inside.
#[derive(Debug)]
pub struct Kernel {
    child: Child,
    group: Pid,
    /// Its console output.
    pub console: Option<tokio::net::unix::pipe::Receiver>,
}

impl Kernel {
    /// Starts the kernel. It dies with this thread. Address randomization is off for it and for
    /// everything that this thread starts later.
    pub fn start(options: KernelOptions<'_>) -> Result<Self> {
        let is_native = options.spec.clock == ClockMode::Native;
        let (what, path) = match is_native {
            true => ("program", Path::new(native::PROGRAM)),
            false => ("lab kernel", &*options.spec.paths.kernel),
        };
        File::open(path).map_err(|source| Error::Missing {
            what,
            path: path.into(),
            source,
        })?;
        if !is_native {
            fix_addresses()?;
        }
        let (console, console_writer) = console_pipe().context(|| "console".into())?;
        let serial = options.serial.as_raw_fd();
        let mut command = Command::new(path);
        command
            .args(match is_native {
                true => {
                    let weft_lab = options.spec.paths.bin.join("weft-lab");
                    native::arguments(&weft_lab, options.rundir, options.serial.as_raw_fd())
                }
                false => arguments(&options),
            })
            .env_clear()
            .env("TMPDIR", options.memory_dir)
            .env("HOME", options.rundir)
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::from(
                console_writer.try_clone().context(|| "console".into())?,
            ))
            .stderr(Stdio::from(console_writer))
            .kill_on_drop(true);
        // Processes of it that outlive it become children of this one, which can wait for them.
        prctl::set_child_subreaper(true)
            .map_err(io::Error::from)
            .context(|| "child subreaper".into())?;
        // SAFETY: only system calls, which are safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                setsid()?;
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                let serial = std::os::fd::BorrowedFd::borrow_raw(serial);
                fcntl(serial, FcntlArg::F_SETFD(FdFlag::empty()))?;
                Ok(())
            });
        }
        let child = command
            .spawn()
            .context(|| format!("start {}", path.display()))?;
        let group = Pid::from_raw(child.id().map_or(0, |id| id as i32));
        Ok(Self {
            child,
            group,
            console: Some(console),
        })
    }

    /// Waits until it ends. Returns how, as text.
    pub async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// The machine's limit on memory mappings per process, if a process inside has reached it. Its
    /// next page fault then repeats forever, because the kernel cannot map the page.
    pub fn mappings_exhausted(&self) -> Option<usize> {
        machine::max_mappings().filter(|&limit| machine::any_has_mappings(self.group, limit))
    }

    /// Kills it and every process of it, and waits until none of them is left.
    pub async fn kill(&mut self) {
        self.kill_group();
        let _ = self.child.wait().await;
        if self.group.as_raw() > 0 {
            let members = Pid::from_raw(-self.group.as_raw());
            while let Ok(_) | Err(Errno::EINTR) = waitpid(members, None) {}
        }
    }

    fn kill_group(&self) {
        // Group 0 would be our own.
        if self.group.as_raw() > 0 {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Turns off address randomization, because addresses affect hash order and cache layout inside.
/// Done before the fork, because a child could not explain an error.
fn fix_addresses() -> Result<()> {
    let fixed = |persona| personality::set(persona | Persona::ADDR_NO_RANDOMIZE);
    personality::get().and_then(fixed).map(drop).context(|| {
        "switch address randomisation off (a container's seccomp profile may forbid it; \
             podman and Docker: --security-opt seccomp=unconfined)"
            .into()
    })
}

fn console_pipe() -> std::io::Result<(tokio::net::unix::pipe::Receiver, OwnedFd)> {
    let (writer, reader) = tokio::net::unix::pipe::pipe()?;
    Ok((reader, writer.into_blocking_fd()?))
}

/// The kernel's command line.
fn arguments(options: &KernelOptions<'_>) -> Vec<OsString> {
    let KernelOptions { spec, rundir, .. } = options;
    let with_path = |name: &str, path: &Path| {
        let mut argument = OsString::from(name);
        argument.push(path);
        argument
    };
    let mut arguments: Vec<OsString> = [
        format!("mem={}M", options.memory_bytes >> 20),
        "root=/dev/root".into(),
        "rootfstype=hostfs".into(),
        "rootflags=/".into(),
        "ro".into(),
        // Without seccomp mode the kernel uses ptrace, at twice the cost.
        "seccomp=auto".into(),
        // Otherwise the kernel adds it to the arguments of process 1.
        "console=tty0".into(),
        "con=null".into(),
        "con0=null,fd:1".into(),
        "ssl=null".into(),
        format!("ssl0=fd:{}", options.serial.as_raw_fd()),
        tcp_memory(options.memory_bytes),
        format!("weft.seed={}", spec.seed),
        "umid=lab".into(),
        "panic=-1".into(),
    ]
    .map(OsString::from)
    .into();
    arguments.push(with_path("uml_dir=", &rundir.join(rundir::UML)));
    if !spec.clock.is_real_time() {
        arguments.push(with_path(
            "time-travel=ext:",
            &rundir.join(rundir::CLOCK_SOCKET),
        ));
        arguments.push(format!("time-travel-start={TIME_OF_DAY_NS}").into());
    }
    arguments.push(with_path("weft.rundir=", rundir));
    arguments.push(with_path("init=", &rundir.join(rundir::INIT)));
    arguments.extend(spec.kernel_arguments.iter().map(OsString::from));
    arguments.extend(["--".into(), "guest".into()]);
    arguments
}

/// Half of the lab's memory for the buffers of TCP and MPTCP: by the kernel's default they are
/// short of it at a sixteenth, which is for one machine, and here it is for all hosts. Hosts that
/// are short of it drop data that they have received (`tcp_prune_ofo_queue()`).
fn tcp_memory(memory_bytes: u64) -> String {
    let pages = memory_bytes / PAGE_BYTES / 2;
    format!("sysctl.net.ipv4.tcp_mem=\"{pages} {pages} {pages}\"")
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn buffers_of_all_hosts_may_take_half_of_the_memory() {
        let argument = tcp_memory(2 << 30);
        assert_eq!(argument, "sysctl.net.ipv4.tcp_mem=\"262144 262144 262144\"");
    }

    #[tokio::test]
    async fn when_it_has_been_killed_no_process_of_it_is_left() {
        prctl::set_child_subreaper(true).unwrap();
        let many = "for i in $(seq 300); do sleep 600 & done; echo ready; wait";
        let mut child = Command::new("/bin/sh")
            .args(["-c", many])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let group = Pid::from_raw(child.id().unwrap() as i32);
        let mut ready = [0; 6];
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut ready).await.unwrap();
        let mut kernel = Kernel {
            child,
            group,
            console: None,
        };
        kernel.kill().await;
        assert_eq!(killpg(group, None), Err(Errno::ESRCH));
    }
}
