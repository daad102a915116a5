// SPDX-License-Identifier: Apache-2.0

//! Labs that stay up: how to start, find, use and stop them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::clock::ClockPolicy;
use crate::control::{self, Answer, Event, Request, Status, Step};
use crate::error::{Context, Error, Result};
use crate::exec::client::Input;
use crate::exec::{self, ExecRequest};
use crate::rundir::{self, Owner};
use crate::spec::LabSpec;
use crate::starter::Started;
use crate::supervisor::Options;

/// Time that a lab has to stop before it is killed.
const DOWN_LIMIT: Duration = Duration::from_secs(5);
/// Interval at which that is checked.
const DOWN_INTERVAL: Duration = Duration::from_millis(5);

/// A running lab of this user.
#[derive(Debug, Clone)]
pub struct Lab {
    name: String,
    rundir: PathBuf,
}

/// Options for starting a lab.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its name; a user can have several.
    pub name: String,
    /// CPU to run on; `None` lets the launcher choose.
    pub cpu: Option<usize>,
    /// Memory of the lab; `None` uses [`LabSpec::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// Real time without a sign of life after which the boot has failed.
    pub stall_limit: Duration,
}

impl Default for UpOptions {
    fn default() -> Self {
        Self {
            name: "lab".into(),
            cpu: None,
            memory_bytes: None,
            stall_limit: Duration::from_secs(60),
        }
    }
}

impl Lab {
    /// Starts a lab and returns when it is ready; it stays up when the caller
    /// ends. `progress` hears of every step. An interrupt (Ctrl-C) during the
    /// boot stops it and is [`Error::Interrupted`].
    pub async fn up(
        spec: &LabSpec,
        options: &UpOptions,
        mut progress: impl FnMut(&Step),
    ) -> Result<Lab> {
        let mut started = Started::new(&options.name, spec, |rundir| Options {
            rundir,
            cpu: options.cpu,
            memory_bytes: options.memory_bytes,
            stall_limit: options.stall_limit,
        })?;
        loop {
            match started.next().await? {
                Event::Step(step) => progress(&step),
                Event::Ready => break,
                Event::Running { .. } | Event::Ended { .. } | Event::Failed(_) => {}
            }
        }
        let lab = Lab {
            name: options.name.clone(),
            rundir: started.rundir().into(),
        };
        started.release();
        Ok(lab)
    }

    /// The lab with this name, if it is up. Removes the remains of a crashed lab.
    pub fn find(name: &str) -> Result<Option<Lab>> {
        let rundir = rundir::of(name)?;
        match rundir::owner(&rundir)? {
            Owner::Nobody => Ok(None),
            Owner::Crashed => rundir::remove(&rundir).map(|()| None),
            Owner::Process(_) => Ok(Some(Lab {
                name: name.into(),
                rundir,
            })),
        }
    }

    /// Names of this user's labs that are up.
    pub fn list() -> Result<Vec<String>> {
        let mut names = rundir::names()?;
        names.retain(|name| matches!(Self::find(name), Ok(Some(_))));
        Ok(names)
    }

    /// Stops the lab and removes its folder. Returns when nothing is left.
    pub async fn down(&self) -> Result<()> {
        let Owner::Process(pid) = rundir::owner(&self.rundir)? else {
            return rundir::remove(&self.rundir);
        };
        // A lab that doesn't answer is killed below.
        let _ = self.ask(Request::Down).await;
        if !self.gone_within(DOWN_LIMIT).await? {
            // The kernel dies with its supervisor, and everything inside with the kernel.
            if pid > 0 {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            if !self.gone_within(DOWN_LIMIT).await? {
                return Err(Error::NoAnswer {
                    name: self.name.clone(),
                    request: "down",
                    limit: DOWN_LIMIT,
                });
            }
        }
        rundir::remove(&self.rundir)
    }

    async fn gone_within(&self, limit: Duration) -> Result<bool> {
        let start = tokio::time::Instant::now();
        while start.elapsed() < limit {
            if !matches!(rundir::owner(&self.rundir)?, Owner::Process(_)) {
                return Ok(true);
            }
            tokio::time::sleep(DOWN_INTERVAL).await;
        }
        Ok(false)
    }

    /// The status of the lab.
    pub async fn status(&self) -> Result<Status> {
        match self.ask(Request::Status).await? {
            Answer::Status(status) => Ok(*status),
            Answer::Done | Answer::Refused(_) => Err(Error::NotUp(self.name.clone())),
        }
    }

    /// Sets how virtual time advances.
    pub async fn set_clock(&self, policy: ClockPolicy) -> Result<()> {
        self.ask(Request::Clock(policy)).await.map(drop)
    }

    async fn ask(&self, request: Request) -> Result<Answer> {
        let socket = self.rundir.join(rundir::CONTROL_SOCKET);
        control::ask(&self.name, &socket, request).await
    }

    /// Runs a command inside, connected to this process's standard streams. Returns its exit
    /// status (128 + signal if a signal killed it).
    pub async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let input = match request.pty {
            true => Input::Keys,
            false => Input::Stdin,
        };
        self.run_inside(exec::Request::Command(request), input)
            .await
    }

    /// The same for a command without input, so that standard input is left to others.
    pub async fn exec_without_input(&self, request: ExecRequest) -> Result<i32> {
        self.run_inside(exec::Request::Command(request), Input::Nothing)
            .await
    }

    /// Runs a Mininet prompt inside, on this process's terminal or standard input.
    pub async fn mininet_shell(&self) -> Result<i32> {
        use std::io::IsTerminal;
        let terminal = std::io::stdin().is_terminal();
        let request = exec::Request::Mininet { terminal };
        self.run_inside(request, Input::Keys).await
    }

    async fn run_inside(&self, request: exec::Request, input: Input) -> Result<i32> {
        let socket = self.rundir.join(rundir::EXEC_SOCKET);
        exec::client::run(&socket, request, input)
            .await
            .context(|| format!("lab {}", self.name))
    }

    /// Unix sockets that connect to the controllers' gRPC servers inside, in order.
    pub fn controller_sockets(&self) -> Vec<PathBuf> {
        let sockets = rundir::CONTROLLER_SOCKETS.iter();
        let sockets = sockets.map(|socket| self.rundir.join(socket));
        sockets.filter(|socket| socket.exists()).collect()
    }

    /// Its folder on this machine; `/run/weft` inside the lab.
    pub fn rundir(&self) -> &Path {
        &self.rundir
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
