// SPDX-License-Identifier: Apache-2.0

//! The worker: runs the network, the batch command, and commands from outside.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::Stdio;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::kmod::{ModuleInitFlags, finit_module};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};

use super::{fail, inside, read_spec, step};
use crate::exec::server::exit_code;
use crate::line;
use crate::mux::{self, Stream};
use crate::rundir::{self, GUEST_RUNDIR};
use crate::spec::{BatchSpec, LabSpec};
use crate::tty::{AsyncTty, RawMode};
use crate::watch::Watch;

/// gRPC port of the first controller; the others use the next ports.
const CONTROLLER_PORT: u16 = 9339;
/// The serial line to the outside.
const SERIAL: &str = "/dev/ttyS0";

/// The worker of process 1. Returns when the lab is done. `line` is the descriptor of the line to
/// the outside; `None` uses the serial line.
pub fn run(line: Option<RawFd>) -> io::Result<()> {
    // SAFETY: process 1 passed it on, and nobody else in this process has it.
    let line = line.map(|line| unsafe { OwnedFd::from_raw_fd(line) });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        if let Err(error) = work(line).await {
            fail(&error.to_string());
        }
    });
    Ok(())
}

async fn work(line: Option<OwnedFd>) -> io::Result<()> {
    let spec = read_spec()?;
    if let Some(line) = line {
        // Not inherited by the processes started here.
        fcntl(&line, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        tokio::task::spawn_local(serve_line(line));
    } else if spec.batch.is_none() {
        // A batch gets no input from outside, because its timing would be random.
        tokio::task::spawn_local(serve_outside());
    }
    for module in &spec.paths.modules {
        load_module(module).map_err(|e| within("kernel module", e))?;
    }
    step("modules");
    if spec.topology.is_none() {
        fs::write(inside(rundir::READY), "{}\n")?;
        return use_lab(spec.batch.as_ref()).await;
    }
    let mut network = start_network(&spec).map_err(|e| within("network", e))?;
    tokio::select! {
        ready = ready() => ready?,
        ended = network.wait() => return Err(network_ended(ended?)),
    }
    tokio::select! {
        done = use_lab(spec.batch.as_ref()) => done,
        ended = network.wait() => Err(network_ended(ended?)),
    }
}

/// Runs the batch command, or serves commands from outside as long as the lab is up.
async fn use_lab(batch: Option<&BatchSpec>) -> io::Result<()> {
    let Some(batch) = batch else {
        return std::future::pending().await;
    };
    let code = run_batch(batch)
        .await
        .map_err(|e| within("batch command", e))?;
    fs::write(inside(rundir::EXIT), format!("{code}\n"))
}

fn network_ended(status: std::process::ExitStatus) -> io::Error {
    let code = exit_code(status);
    io::Error::other(format!(
        "network: ended with exit status {code}; see network.log"
    ))
}

fn within(step: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}

fn load_module(path: &Path) -> io::Result<()> {
    let file = File::open(path)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    match finit_module(&file, c"", ModuleInitFlags::empty()) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(io::Error::other(format!("{}: {errno}", path.display()))),
    }
}

fn start_network(spec: &LabSpec) -> io::Result<Child> {
    let (out, err) = log("network.log")?;
    Command::new(&spec.paths.python)
        .args(["-m", "weft_topology", "up"])
        .arg(inside(rundir::SPEC))
        .env("PYTHONPATH", spec.paths.repo.join("topology"))
        .current_dir(GUEST_RUNDIR)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", spec.paths.python.display())))
}

/// Waits until the network is ready or has failed.
async fn ready() -> io::Result<()> {
    let mut watch = Watch::new(Path::new(GUEST_RUNDIR))?;
    loop {
        if inside(rundir::FAILED).exists() {
            return Err(io::Error::other("the network failed"));
        }
        if inside(rundir::READY).exists() {
            return Ok(());
        }
        watch.changed().await?;
    }
}

async fn run_batch(batch: &BatchSpec) -> io::Result<i32> {
    let (program, arguments) = batch
        .argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command given"))?;
    let (out, err) = log("batch.log")?;
    let status = Command::new(program)
        .args(arguments)
        .current_dir(GUEST_RUNDIR)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .status()
        .await
        .map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    Ok(exit_code(status))
}

fn log(name: &str) -> io::Result<(File, File)> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(inside(rundir::LOG).join(name))?;
    Ok((file.try_clone()?, file))
}

/// Serves connections over the serial line. Without it the lab runs but cannot be reached, which
/// is a failure.
async fn serve_outside() {
    let result = async {
        let line: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .open(SERIAL)?
            .into();
        let _raw = RawMode::new(line.try_clone()?)?;
        serve(AsyncTty::new(line)?).await
    };
    if let Err(error) = result.await {
        fail(&format!("serial line: {error}"));
    }
}

/// The same over a socket.
async fn serve_line(line: OwnedFd) {
    let result = async {
        let line = std::os::unix::net::UnixStream::from(line);
        line.set_nonblocking(true)?;
        serve(UnixStream::from_std(line)?).await
    };
    if let Err(error) = result.await {
        fail(&format!("line to the outside: {error}"));
    }
}

async fn serve(line: impl AsyncRead + AsyncWrite) -> io::Result<()> {
    let (line, carry) = line::reliable(line, line::End::Inside);
    let serve = mux::inside(line, |stream| {
        tokio::task::spawn_local(serve_stream(stream));
    });
    tokio::try_join!(carry, serve).map(drop)
}

async fn serve_stream(mut stream: Stream) {
    let Ok(service) = mux::read_service(&mut stream).await else {
        return;
    };
    if service == mux::EXEC {
        crate::exec::server::serve(stream).await;
        return;
    }
    let mut controllers = (CONTROLLER_PORT..).zip(mux::CONTROLLERS);
    if let Some((port, _)) = controllers.find(|(_, name)| *name == service) {
        // Refused while this controller isn't running; the caller then sees the connection end.
        if let Ok(mut controller) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            let _ = controller.set_nodelay(true);
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut controller).await;
        }
    }
}
