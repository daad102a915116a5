// SPDX-License-Identifier: Apache-2.0

//! Starts the supervisor of a lab and receives its events.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::setsid;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::control::Event;
use crate::error::{Context, Error, Result};
use crate::rundir;
use crate::spec::{ClockMode, LabSpec};
use crate::supervisor::Options;

/// Time that a supervisor has to clean up after it was told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A lab that is starting, or a batch that runs. Dropping it before the lab is ready stops the
/// lab.
#[derive(Debug)]
pub struct Started {
    child: Child,
    events: Option<Lines<BufReader<UnixStream>>>,
    interrupts: Signal,
    rundir: PathBuf,
}

impl Started {
    /// Creates the folder and starts the supervisor.
    pub fn new(
        name: &str,
        spec: &LabSpec,
        options: impl FnOnce(PathBuf) -> Options,
    ) -> Result<Self> {
        let program = spec.paths.bin.join("weft-lab");
        check("launcher", &program)?;
        if spec.clock != ClockMode::Native {
            check("lab kernel", &spec.paths.kernel)?;
            check_unsplit(&rundir::of(name)?)?;
        }
        for module in &spec.paths.modules {
            check("kernel module", module)?;
        }
        check("Python", &spec.paths.python)?;
        // Before there is anything to clean up, not at the first wait.
        let interrupts = signal(SignalKind::interrupt()).context(|| "SIGINT".into())?;
        let (rundir, lock) = rundir::create(name, spec)?;
        match spawn(&program, &options(rundir.clone()), lock) {
            Ok((child, events)) => Ok(Self {
                child,
                events: Some(BufReader::new(events).lines()),
                interrupts,
                rundir,
            }),
            Err(error) => {
                rundir::remove(&rundir)?;
                Err(error)
            }
        }
    }

    /// The next event. An interrupt stops the lab and returns an error.
    pub async fn next(&mut self) -> Result<Event> {
        let Some(events) = &mut self.events else {
            return Err(self.failed("the launcher has ended".into()));
        };
        let line = tokio::select! {
            line = events.next_line() => line.context(|| "launcher".into())?,
            _ = self.interrupts.recv() => {
                self.stop();
                return Err(Error::Interrupted);
            }
        };
        let event = line.and_then(|line| serde_json::from_str(&line).ok());
        match event {
            Some(Event::Failed(message)) => Err(self.failed(message)),
            Some(event) => Ok(event),
            None => {
                let said = fs::read_to_string(self.supervisor_log()).unwrap_or_default();
                let said = said.lines().last().unwrap_or("it said nothing").to_string();
                Err(self.failed(format!("the launcher ended: {said}")))
            }
        }
    }

    /// The lab's folder.
    pub fn rundir(&self) -> &Path {
        &self.rundir
    }

    /// Leaves the lab running.
    pub fn release(mut self) {
        self.events = None;
    }

    /// Stops the lab, if it still runs, and waits until nothing is left.
    pub fn stop(&mut self) {
        // The supervisor stops when its starter is gone.
        self.events = None;
        let start = Instant::now();
        while start.elapsed() < STOP_LIMIT {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Does nothing if it has ended. The kernel dies with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = rundir::remove(&self.rundir);
    }

    fn supervisor_log(&self) -> PathBuf {
        self.rundir.join(rundir::LOG).join(SUPERVISOR_LOG)
    }

    fn failed(&mut self, message: String) -> Error {
        let log = rundir::keep_logs(&self.rundir);
        self.stop();
        Error::Failed { message, log }
    }
}

const SUPERVISOR_LOG: &str = "launcher.log";

fn check(what: &'static str, path: &Path) -> Result<()> {
    File::open(path).map(drop).map_err(|source| Error::Missing {
        what,
        path: path.into(),
        source,
    })
}

/// Refuses a folder path that the kernel would split into several arguments: its command line is
/// one string, split at white space.
fn check_unsplit(path: &Path) -> Result<()> {
    // The kernel reads bytes as Latin-1, where this is a space; it is half of `à` in UTF-8.
    let splits = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0xa0;
    if !path.as_os_str().as_encoded_bytes().iter().any(splits) {
        return Ok(());
    }
    Err(Error::Io {
        context: path.display().to_string(),
        source: io::Error::new(
            io::ErrorKind::InvalidInput,
            "the lab kernel takes no path with white space (or `à`); \
             set WEFT_RUNTIME_DIR to another",
        ),
    })
}

/// The supervisor gets its end of the event socket as standard input and the lock as standard
/// output. So both stay open and need no descriptor numbers.
fn spawn(program: &Path, options: &Options, lock: File) -> Result<(Child, UnixStream)> {
    let context = || program.display().to_string();
    let (here, there) = std::os::unix::net::UnixStream::pair().context(context)?;
    here.set_nonblocking(true).context(context)?;
    let here = UnixStream::from_std(here).context(context)?;
    let log = options.rundir.join(rundir::LOG).join(SUPERVISOR_LOG);
    let log = File::create(&log).context(|| log.display().to_string())?;
    let mut command = Command::new(program);
    command
        .arg("supervise")
        .arg(&options.rundir)
        .arg(format!("--stall-seconds={}", options.stall_limit.as_secs()))
        .current_dir("/")
        // Absolute, because the working directory changes.
        .env("WEFT_CACHE", rundir::cache())
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::from(lock))
        .stderr(Stdio::from(log));
    if let Some(cpu) = options.cpu {
        command.arg(format!("--cpu={cpu}"));
    }
    if let Some(memory_bytes) = options.memory_bytes {
        command.arg(format!("--memory-bytes={memory_bytes}"));
    }
    // SAFETY: only a system call, which is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // Detached from the terminal: Ctrl-C goes to the starter only.
            setsid().map(drop).map_err(io::Error::from)
        });
    }
    let child = command.spawn().context(context)?;
    Ok((child, here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_kernel_would_split_is_refused() {
        for path in ["/home/ann/my weft/target", "/a\tb", "/home/ann/là/weft"] {
            let error = check_unsplit(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains("WEFT_RUNTIME_DIR"), "{error}");
        }
        check_unsplit(Path::new("/home/zoë/weft-1")).unwrap();
    }
}
