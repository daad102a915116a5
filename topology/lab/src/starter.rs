//! Starts the supervisor of a lab and listens to it.

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

/// How long a supervisor may take to clean up after it was told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A lab that is being started, or a batch that runs. Whoever drops it before
/// it says that the lab is ready stops the lab.
#[derive(Debug)]
pub struct Started {
    child: Child,
    events: Option<Lines<BufReader<UnixStream>>>,
    interrupts: Signal,
    rundir: PathBuf,
}

impl Started {
    /// Makes the folder and starts the supervisor.
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
        // From before there is anything to clean up, not from the first wait.
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

    /// The next event; an interrupt stops the lab and is an error.
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
        // The supervisor stops when nobody listens any more.
        self.events = None;
        let start = Instant::now();
        while start.elapsed() < STOP_LIMIT {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Has it ended, this does nothing; the kernel dies with it.
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

/// Refuses a lab's folder that the kernel would take for several arguments: its command line
/// is one string, split at white space.
fn check_unsplit(path: &Path) -> Result<()> {
    // The kernel takes bytes for Latin-1, where this is a space; it is one half of `à`.
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

/// The supervisor gets its end of the events as standard input and the lock as
/// standard output, which keeps both open and needs no numbers.
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
        // As a path that does not depend on where we are.
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
            // Out of the terminal's reach: Ctrl-C is for the starter.
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
