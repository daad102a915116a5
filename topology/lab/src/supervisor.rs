// SPDX-License-Identifier: Apache-2.0

//! The supervisor of a running lab: runs the kernel and the clock, and passes connections inside.
//! It ends with the lab, and the lab ends with it.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use crate::clock::{self, ClockHandle, ClockPolicy};
use crate::control::{Answer, Event, REQUEST_MAX, Request, State, Status, Step};
use crate::error::{Context, Result};
use crate::kernel::{Kernel, KernelOptions};
use crate::spec::{ClockMode, LabSpec};
use crate::watch::Watch;
use crate::{line, machine, mux, rundir};

mod ending;

/// Interval of progress reports to the starter of a batch, and of checks for stalls.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Options of a supervisor, set by its starter.
#[derive(Debug, Clone)]
pub struct Options {
    /// The lab's folder, created by the starter.
    pub rundir: PathBuf,
    /// CPU to run on.
    pub cpu: Option<usize>,
    /// Memory of the lab; `None` uses [`LabSpec::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// Real time without a sign of life after which the lab has failed.
    pub stall_limit: Duration,
}

/// Why a lab ended.
enum End {
    /// It was stopped on request.
    Stopped,
    /// The batch command ended with this status.
    Batch(i32),
    /// It failed.
    Failed(String),
}

/// Calls [`run`] in a process that was started as a supervisor: its standard input is the
/// socket to the starter, its standard output the lock of the folder.
pub async fn run_started(options: Options) -> Result<()> {
    let context = || "standard streams".to_string();
    let starter = io::stdin().as_fd().try_clone_to_owned().context(context)?;
    let starter = std::os::unix::net::UnixStream::from(starter);
    starter.set_nonblocking(true).context(context)?;
    let starter = UnixStream::from_std(starter).context(context)?;
    let lock = io::stdout().as_fd().try_clone_to_owned().context(context)?;
    rundir::write_pid(&lock.into()).context(context)?;
    // Another open copy of the starter's socket would hide its end.
    nix::unistd::dup2_stdin(fs::File::open("/dev/null").context(context)?).context(context)?;
    run(options, starter).await
}

/// Runs a lab from its boot to its end, and reports to `starter`. The starter waits until the lab
/// is ready, or until a batch has ended. If it disconnects before, the lab stops.
pub async fn run(options: Options, starter: UnixStream) -> Result<()> {
    let rundir = options.rundir.clone();
    let (mut from_starter, to_starter) = starter.into_split();
    let mut reports = Reports(Some(to_starter));
    let end = match Supervisor::start(options).await {
        Ok(mut supervisor) => {
            let end = supervisor.supervise(&mut from_starter, &mut reports).await;
            supervisor.shared.state.set(State::Stopping);
            supervisor.kernel.kill().await;
            if let End::Batch(exit_code) = end {
                let virtual_ns = supervisor.shared.now_ns();
                // The starter takes the results and removes the folder.
                reports
                    .send(&Event::Ended {
                        exit_code,
                        virtual_ns,
                    })
                    .await;
                return Ok(());
            }
            end
        }
        Err(error) => End::Failed(error.to_string()),
    };
    if let End::Failed(message) = end {
        if reports.0.is_none() {
            // The starter is gone, so only the logs can tell.
            let _ = fs::write(rundir.join(rundir::LOG).join("failed"), &message);
            rundir::keep_logs(&rundir);
        } else {
            reports.send(&Event::Failed(message)).await;
            return Ok(());
        }
    }
    rundir::remove(&rundir)
}

/// State shared by the supervisor's tasks.
struct Shared {
    name: String,
    spec: LabSpec,
    rundir: PathBuf,
    clock: ClockHandle,
    state: Cell<State>,
    stop: Notify,
    /// Time of the last console output.
    console: Cell<Instant>,
}

impl Shared {
    fn is_native(&self) -> bool {
        self.spec.clock == ClockMode::Native
    }

    /// Virtual time since boot, or real time where that is what passes inside.
    fn now_ns(&self) -> u64 {
        match self.spec.clock.is_real_time() {
            true => self.clock.wall().as_nanos() as u64,
            false => self.clock.now_ns(),
        }
    }
}

struct Supervisor {
    shared: Rc<Shared>,
    kernel: Kernel,
    watch: Watch,
    memory_bytes: u64,
    stall_limit: Duration,
    steps_seen: usize,
    _cpu: Option<machine::Cpu>,
}

impl Supervisor {
    async fn start(options: Options) -> Result<Self> {
        let rundir = &options.rundir;
        let context = || rundir.display().to_string();
        let json = fs::read(rundir.join(rundir::SPEC)).context(context)?;
        let spec: LabSpec = serde_json::from_slice(&json)
            .map_err(io::Error::from)
            .context(|| rundir.join(rundir::SPEC).display().to_string())?;
        let name = rundir.file_name().unwrap_or_default().to_string_lossy();
        let is_native = spec.clock == ClockMode::Native;
        // Processes of a native network may use all CPUs.
        let cpu = match options.cpu {
            None if is_native => None,
            wanted => Some(machine::pin(wanted)?),
        };
        let memory_bytes = options.memory_bytes.unwrap_or_else(|| spec.memory_bytes());
        let memory_dir = match is_native {
            true => PathBuf::new(),
            false => machine::memory_dir(memory_bytes)?,
        };
        let watch = Watch::new(rundir).context(context)?;
        let (here, there) = std::os::unix::net::UnixStream::pair().context(context)?;
        here.set_nonblocking(true).context(context)?;
        let line = UnixStream::from_std(here).context(context)?;
        // Nothing inside waits for real time before the lab is ready.
        let clock = ClockHandle::new(ClockPolicy::Free);
        let shared = Rc::new(Shared {
            name: name.into_owned(),
            rundir: rundir.clone(),
            clock: clock.clone(),
            state: Cell::new(State::Booting),
            stop: Notify::new(),
            console: Cell::new(Instant::now()),
            spec,
        });
        serve_clock(&rundir.join(rundir::CLOCK_SOCKET), clock).context(context)?;
        serve_control(shared.clone()).context(context)?;
        let (line, carry) = line::reliable(line, line::End::Outside);
        tokio::task::spawn_local(carry);
        let (opener, run) = mux::outside(line);
        tokio::task::spawn_local(run);
        let controllers = rundir::CONTROLLER_SOCKETS
            .into_iter()
            .zip(mux::CONTROLLERS)
            .take(shared.spec.controllers.into());
        for (socket, service) in controllers.chain([(rundir::EXEC_SOCKET, mux::EXEC)]) {
            mux::listen(&rundir.join(socket), service, opener.clone()).context(context)?;
        }
        let uml = rundir.join(rundir::UML);
        fs::create_dir(&uml).context(|| uml.display().to_string())?;
        let mut kernel = Kernel::start(KernelOptions {
            spec: &shared.spec,
            rundir,
            memory_dir: &memory_dir,
            memory_bytes,
            serial: there.into(),
        })?;
        let log = rundir.join(rundir::CONSOLE_LOG);
        let log = fs::File::create(&log).context(|| log.display().to_string())?;
        if let Some(console) = kernel.console.take() {
            tokio::task::spawn_local(copy_console(console, log, shared.clone()));
        }
        Ok(Self {
            shared,
            kernel,
            watch,
            memory_bytes,
            stall_limit: options.stall_limit,
            steps_seen: 0,
            _cpu: cpu,
        })
    }

    /// Watches the lab until it ends.
    async fn supervise(
        &mut self,
        from_starter: &mut (impl tokio::io::AsyncRead + Unpin),
        reports: &mut Reports,
    ) -> End {
        let (Ok(mut terminate), Ok(mut interrupt)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) else {
            return End::Failed("signals cannot be received".into());
        };
        let mut tick = tokio::time::interval(REPORT_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut life = Life::new(&self.shared);
        loop {
            let waited_for = reports.0.is_some();
            tokio::select! {
                biased;
                _ = terminate.recv() => return End::Stopped,
                _ = interrupt.recv() => return End::Stopped,
                () = self.shared.stop.notified() => return End::Stopped,
                // It sends nothing, so any result means that it is gone.
                _ = from_starter.read_u8(), if waited_for => return End::Stopped,
                how = self.kernel.wait() => return self.kernel_ended(&how).await,
                changed = self.watch.changed() => {
                    if let Err(error) = changed {
                        return End::Failed(format!("watch the lab's folder: {error}"));
                    }
                    life.seen();
                    if let Some(end) = self.look(reports).await {
                        return end;
                    }
                }
                _ = tick.tick(), if waited_for => {
                    if self.shared.state.get() == State::Ready {
                        self.report_batch(reports).await;
                    }
                    if life.lost_for(&self.shared) > self.stall_limit {
                        return self.stalled();
                    }
                }
            }
        }
    }

    /// Reads what the inside has reported.
    async fn look(&mut self, reports: &mut Reports) -> Option<End> {
        if let Some(end) = self.failure().await {
            return Some(end);
        }
        if self.shared.state.get() != State::Booting {
            return None;
        }
        for name in self.new_steps() {
            self.report_step(reports, name).await;
        }
        if self.shared.rundir.join(rundir::READY).exists() {
            self.shared.state.set(State::Ready);
            self.report_step(reports, "network".into()).await;
            if self.shared.spec.batch.is_none() {
                self.shared.clock.set_policy(match self.shared.spec.clock {
                    ClockMode::Free | ClockMode::Real | ClockMode::Native => ClockPolicy::Free,
                    ClockMode::Paced => ClockPolicy::Paced { ratio: 1.0 },
                    ClockMode::Paused => ClockPolicy::Paused,
                });
                reports.send(&Event::Ready).await;
                reports.0 = None;
            }
        }
        None
    }

    /// Steps completed since the last call.
    fn new_steps(&mut self) -> Vec<String> {
        let steps = fs::read_to_string(self.shared.rundir.join(rundir::STEPS)).unwrap_or_default();
        // An incomplete line is still being written.
        let whole = steps.rfind('\n').map_or("", |end| &steps[..end]);
        let new: Vec<String> = whole
            .lines()
            .skip(self.steps_seen)
            .map(String::from)
            .collect();
        self.steps_seen += new.len();
        new
    }

    async fn report_step(&self, reports: &mut Reports, name: String) {
        let wall = self.shared.clock.wall();
        reports.send(&Event::Step(Step { name, wall })).await;
    }

    async fn report_batch(&self, reports: &mut Reports) {
        let report = fs::read(self.shared.rundir.join(rundir::PROGRESS))
            .ok()
            .and_then(|json| serde_json::from_slice(&json).ok());
        let event = Event::Running {
            virtual_ns: self.shared.now_ns(),
            wall: self.shared.clock.wall(),
            report,
        };
        reports.send(&event).await;
    }
}

/// Signs of life: files, console output, virtual time.
struct Life {
    last: Instant,
    virtual_ns: u64,
}

impl Life {
    fn new(shared: &Shared) -> Self {
        Self {
            last: Instant::now(),
            virtual_ns: shared.clock.now_ns(),
        }
    }

    fn seen(&mut self) {
        self.last = Instant::now();
    }

    fn lost_for(&mut self, shared: &Shared) -> Duration {
        let virtual_ns = shared.clock.now_ns();
        // During the boot, only completed steps count, not virtual time.
        if shared.state.get() == State::Ready && virtual_ns != self.virtual_ns {
            self.seen();
        }
        self.virtual_ns = virtual_ns;
        self.last = self.last.max(shared.console.get());
        self.last.elapsed()
    }
}

/// Reports to the starter while it is connected.
struct Reports(Option<tokio::net::unix::OwnedWriteHalf>);

impl Reports {
    async fn send(&mut self, event: &Event) {
        let Some(starter) = &mut self.0 else {
            return;
        };
        if let Ok(mut line) = serde_json::to_vec(event) {
            line.push(b'\n');
            // A disconnect is noticed where the socket is read.
            let _ = starter.write_all(&line).await;
        }
    }
}

fn serve_clock(path: &Path, clock: ClockHandle) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    tokio::task::spawn_local(async move {
        // The connection ends with the kernel, which is waited for elsewhere.
        if let Ok((kernel, _)) = listener.accept().await {
            let _ = clock::serve(clock, kernel).await;
        }
    });
    Ok(())
}

fn serve_control(shared: Rc<Shared>) -> io::Result<()> {
    let listener = UnixListener::bind(shared.rundir.join(rundir::CONTROL_SOCKET))?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shared = shared.clone();
            tokio::task::spawn_local(async move {
                let _ = serve_request(&shared, stream).await;
            });
        }
    });
    Ok(())
}

async fn serve_request(shared: &Shared, stream: UnixStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(REQUEST_MAX).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer(shared, request),
        Err(error) => Answer::Refused(format!("request: {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

fn answer(shared: &Shared, request: Request) -> Answer {
    match request {
        Request::Down => {
            shared.state.set(State::Stopping);
            shared.stop.notify_one();
            Answer::Done
        }
        Request::Clock(_) if shared.state.get() != State::Ready => {
            Answer::Refused("the clock can be set when the lab is ready".into())
        }
        Request::Clock(ClockPolicy::Paced { ratio }) if !(ratio > 0.0 && ratio.is_finite()) => {
            Answer::Refused(format!("pace {ratio}: give a number above 0"))
        }
        Request::Clock(_) if shared.spec.clock.is_real_time() => {
            Answer::Refused("it runs in real time".into())
        }
        Request::Clock(policy) => {
            shared.clock.set_policy(policy);
            Answer::Done
        }
        Request::Status => {
            let (clock, ratio) = match shared.clock.policy() {
                _ if shared.spec.clock.is_real_time() => (shared.spec.clock, 1.0),
                ClockPolicy::Free => (ClockMode::Free, 1.0),
                ClockPolicy::Paced { ratio } => (ClockMode::Paced, ratio),
                ClockPolicy::Paused => (ClockMode::Paused, 1.0),
            };
            Answer::Status(Box::new(Status {
                name: shared.name.clone(),
                state: shared.state.get(),
                pid: std::process::id() as i32,
                virtual_ns: shared.now_ns(),
                wall: shared.clock.wall(),
                clock,
                ratio,
                spec: shared.spec.clone(),
                rundir: shared.rundir.clone(),
            }))
        }
    }
}

/// Writes the kernel's console output to a file, and records when there is any.
async fn copy_console(
    mut console: tokio::net::unix::pipe::Receiver,
    mut log: fs::File,
    shared: Rc<Shared>,
) {
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = console.read(&mut buffer).await {
        shared.console.set(Instant::now());
        // A full disk must not stop the lab.
        let _ = io::Write::write_all(&mut log, &buffer[..read]);
    }
}
