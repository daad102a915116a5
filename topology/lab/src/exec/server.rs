// SPDX-License-Identifier: Apache-2.0

//! Inside the lab: runs a command for each connection.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid, ttyname};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::codec::Framed;

use super::{ExecRequest, Frame, FrameCodec, Request};
use crate::rundir::GUEST_RUNDIR;
use crate::tty::AsyncTty;

/// Socket of the process that builds the network.
const TOPOLOGY_SOCKET: &str = "/run/weft-topology.sock";
/// Bytes per read of a command's output.
const CHUNK: usize = 16 << 10;
/// Frames that wait to be sent. With a slow reader the command blocks.
const FRAMES_MAX: usize = 8;
/// Maximum input that waits for a command to read it. Up to this limit the caller's frames are
/// still read, including interrupts.
const INPUT_BYTES_MAX: usize = 4 << 20;
/// The interrupt character of a terminal.
const CTRL_C: &[u8] = &[3];
/// The end-of-file character of a terminal.
const CTRL_D: &[u8] = &[4];

/// The input of a command. Written while output is read, because the command may wait for
/// either.
struct Input {
    /// The command's end; `None` once it accepts no more.
    writer: Option<Box<dyn AsyncWrite + Unpin>>,
    waiting: BytesMut,
    ended: bool,
}

impl Input {
    fn new(writer: Option<impl AsyncWrite + Unpin + 'static>) -> Self {
        Self {
            writer: writer.map(|writer| Box::new(writer) as _),
            waiting: BytesMut::new(),
            ended: false,
        }
    }

    fn put(&mut self, data: &[u8]) {
        if self.writer.is_some() {
            self.waiting.extend_from_slice(data);
        }
    }

    /// Closes the input after the waiting data.
    fn end(&mut self) {
        self.ended = true;
        if self.waiting.is_empty() {
            self.writer = None;
        }
    }

    /// Closes the input. It's no error if the command reads no input or has ended.
    fn close(&mut self) {
        self.writer = None;
        self.waiting.clear();
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < INPUT_BYTES_MAX
    }

    /// Writes some of the waiting data. Loses none if it is cancelled.
    async fn write(&mut self) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        match writer.write_buf(&mut self.waiting).await {
            Ok(1..) if self.ended => self.end(),
            Ok(1..) => {}
            Ok(0) | Err(_) => self.close(),
        }
    }
}

/// Serves one connection.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S) {
    let mut frames = Framed::new(stream, FrameCodec);
    let Some(Ok(Frame::Request(request))) = frames.next().await else {
        return;
    };
    let last = match run(request, &mut frames).await {
        Ok(code) => Frame::Exit(code),
        Err(error) => Frame::Error(error.to_string()),
    };
    // The caller may be gone.
    let _ = frames.send(last).await;
    let _ = frames.close().await;
}

async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    request: Request,
    frames: &mut Framed<S, FrameCodec>,
) -> io::Result<i32> {
    match request {
        Request::Command(request) if request.pty => run_on_pty(request, frames).await,
        Request::Command(request) => run_on_pipes(request, frames).await,
        Request::Mininet { terminal } => run_mininet(terminal, frames).await,
    }
}

async fn run_on_pipes<S: AsyncRead + AsyncWrite + Unpin>(
    request: ExecRequest,
    frames: &mut Framed<S, FrameCodec>,
) -> io::Result<i32> {
    let mut command = command(&request)?;
    command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(command, &request)?;
    let group = child.id().map(|id| Pid::from_raw(id as i32));
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    let stdin = Input::new(child.stdin.take());
    let stdout = child.stdout.take().map(|stdout| {
        let sender = sender.clone();
        tokio::task::spawn_local(pump(stdout, sender, Frame::Stdout))
    });
    let stderr = child
        .stderr
        .take()
        .map(|stderr| tokio::task::spawn_local(pump(stderr, sender, Frame::Stderr)));
    let wait = async move {
        let status = child.wait().await?;
        // Output is sent before the exit status. Like a shell's pipe, this waits for descendants
        // that keep the output open.
        for pump in [stdout, stderr].into_iter().flatten() {
            let _ = pump.await;
        }
        Ok(exit_code(status))
    };
    relay(frames, receiver, stdin, None, group, wait).await
}

async fn run_on_pty<S: AsyncRead + AsyncWrite + Unpin>(
    request: ExecRequest,
    frames: &mut Framed<S, FrameCodec>,
) -> io::Result<i32> {
    let OpenptyResult { master, slave } = openpty(None, None)?;
    let mut command = command(&request)?;
    command
        .stdin(Stdio::from(slave.try_clone()?))
        .stdout(Stdio::from(slave.try_clone()?))
        .stderr(Stdio::from(slave));
    // SAFETY: only system calls, which are safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            // Standard input is the terminal by now.
            if nix::libc::ioctl(0, nix::libc::TIOCSCTTY, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut child = spawn(command, &request)?;
    let group = child.id().map(|id| Pid::from_raw(id as i32));
    let resize = master.try_clone()?;
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    let (output, input) = tokio::io::split(AsyncTty::new(master)?);
    let output = tokio::task::spawn_local(pump(output, sender, Frame::Stdout));
    let wait = async move {
        let status = child.wait().await?;
        let _ = output.await;
        Ok(exit_code(status))
    };
    let input = Input::new(Some(input));
    relay(frames, receiver, input, Some(resize), group, wait).await
}

/// Runs a Mininet prompt in the process that built the network, on a terminal that is made here.
async fn run_mininet<S: AsyncRead + AsyncWrite + Unpin>(
    terminal: bool,
    frames: &mut Framed<S, FrameCodec>,
) -> io::Result<i32> {
    let topology = UnixStream::connect(TOPOLOGY_SOCKET).await?;
    run_prompt(topology, terminal, frames).await
}

async fn run_prompt<S: AsyncRead + AsyncWrite + Unpin>(
    mut topology: UnixStream,
    terminal: bool,
    frames: &mut Framed<S, FrameCodec>,
) -> io::Result<i32> {
    let OpenptyResult { master, slave } = openpty(None, None)?;
    if !terminal {
        crate::tty::no_echo(&slave)?;
    }
    let tty = ttyname(&slave)?;
    let ask = serde_json::json!({"cmd": "shell", "tty": tty, "terminal": terminal});
    topology.write_all(format!("{ask}\n").as_bytes()).await?;
    let resize = master.try_clone()?;
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    let (output, input) = tokio::io::split(AsyncTty::new(master)?);
    let output = tokio::task::spawn_local(pump(output, sender, Frame::Stdout));
    let pump = output.abort_handle();
    let wait = async move {
        let mut answer = String::new();
        BufReader::new(topology).read_line(&mut answer).await?;
        // The terminal ends when nobody has it open.
        drop(slave);
        let _ = output.await;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        match answer.get("error").and_then(|error| error.as_str()) {
            None => Ok(0),
            Some(error) => Err(io::Error::other(error.to_string())),
        }
    };
    let input = Input::new(Some(input));
    let code = relay(frames, receiver, input, Some(resize), None, wait).await;
    // The last copy of the terminal. Closing it hangs up the prompt if it is still running.
    pump.abort();
    code
}

/// Relays frames in both directions until the command has ended. Without a `group` to signal,
/// it returns as soon as the caller is gone.
async fn relay<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Framed<S, FrameCodec>,
    mut output: mpsc::Receiver<Frame>,
    mut input: Input,
    terminal: Option<OwnedFd>,
    group: Option<Pid>,
    wait: impl Future<Output = io::Result<i32>>,
) -> io::Result<i32> {
    tokio::pin!(wait);
    let mut connected = true;
    let mut ended = None;
    loop {
        tokio::select! {
            biased;
            frame = output.recv() => match frame {
                // A caller that is gone gets no more frames. The signal below tells the command.
                Some(frame) => if connected && frames.send(frame).await.is_err() {
                    connected = false;
                    input.close();
                    hang_up(group)?;
                },
                None => return match ended {
                    Some(code) => code,
                    None => wait.await,
                },
            },
            code = &mut wait, if ended.is_none() => ended = Some(code),
            () = input.write(), if !input.waiting.is_empty() => {}
            frame = frames.next(), if connected && input.has_room() => match frame {
                Some(Ok(frame)) => take(frame, &mut input, terminal.as_ref(), group),
                Some(Err(_)) | None => {
                    connected = false;
                    input.close();
                    hang_up(group)?;
                }
            },
        }
    }
}

/// Processes a frame from outside.
fn take(frame: Frame, input: &mut Input, terminal: Option<&OwnedFd>, group: Option<Pid>) {
    match frame {
        Frame::Stdin(data) => input.put(&data),
        Frame::StdinEnd if terminal.is_some() => input.put(CTRL_D),
        Frame::StdinEnd => input.end(),
        Frame::Resize { rows, columns } => {
            if let Some(terminal) = terminal {
                crate::tty::set_size(
                    terminal,
                    Winsize {
                        ws_row: rows,
                        ws_col: columns,
                        ws_xpixel: 0,
                        ws_ypixel: 0,
                    },
                );
            }
        }
        Frame::Signal(number) => match (Signal::try_from(number), group) {
            (Ok(signal), Some(group)) => {
                let _ = killpg(group, signal);
            }
            (Ok(Signal::SIGINT), None) if terminal.is_some() => input.put(CTRL_C),
            _ => {}
        },
        _ => {}
    }
}

/// Tells a command that its caller is gone. Fails if there is no group to signal.
fn hang_up(group: Option<Pid>) -> io::Result<()> {
    let group = group.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))?;
    let _ = killpg(group, Signal::SIGHUP);
    let _ = killpg(group, Signal::SIGTERM);
    Ok(())
}

async fn pump<R: AsyncRead + Unpin>(
    mut reader: R,
    sender: mpsc::Sender<Frame>,
    frame: impl Fn(Bytes) -> Frame,
) {
    let mut buffer = vec![0; CHUNK];
    // A terminal without its last user reads as an error.
    while let Ok(read @ 1..) = reader.read(&mut buffer).await {
        let data = Bytes::copy_from_slice(&buffer[..read]);
        if sender.send(frame(data)).await.is_err() {
            return;
        }
    }
}

fn command(request: &ExecRequest) -> io::Result<Command> {
    let (program, arguments) = request
        .argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command given"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(request.cwd.as_deref().unwrap_or(GUEST_RUNDIR))
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .kill_on_drop(true);
    if let Some(host) = &request.host {
        let namespace = namespace(host)?;
        // SAFETY: only a system call, which is safe between fork and exec.
        unsafe {
            command.pre_exec(move || Ok(setns(&namespace, CloneFlags::CLONE_NEWNET)?));
        }
    }
    Ok(command)
}

fn namespace(host: &str) -> io::Result<File> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no host {host}"));
    if host.contains('/') {
        return Err(unknown());
    }
    File::open(Path::new("/run/netns").join(host)).map_err(|_| unknown())
}

fn spawn(mut command: Command, request: &ExecRequest) -> io::Result<tokio::process::Child> {
    command.spawn().map_err(|e| {
        let program = request.argv.first().map_or("", String::as_str);
        io::Error::new(e.kind(), format!("{program}: {e}"))
    })
}

/// The exit status as a shell reports it.
pub fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use tokio::io::DuplexStream;
    use tokio::task::{JoinHandle, LocalSet};

    use super::*;
    use crate::tty::RawMode;

    /// The caller of a prompt, the process that runs it, and the server for the caller.
    struct Shell {
        caller: Framed<DuplexStream, FrameCodec>,
        topology: BufReader<UnixStream>,
        /// The prompt's terminal in raw mode.
        tty: AsyncTty,
        _raw: RawMode<File>,
        served: JoinHandle<io::Result<i32>>,
    }

    impl Shell {
        async fn new() -> Self {
            let (caller, inside) = tokio::io::duplex(CHUNK);
            let (here, there) = UnixStream::pair().unwrap();
            let served = tokio::task::spawn_local(async move {
                run_prompt(there, false, &mut Framed::new(inside, FrameCodec)).await
            });
            let mut topology = BufReader::new(here);
            let mut asked = String::new();
            topology.read_line(&mut asked).await.unwrap();
            let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
            let tty = File::options()
                .read(true)
                .write(true)
                .custom_flags(nix::libc::O_NOCTTY)
                .open(asked["tty"].as_str().unwrap())
                .unwrap();
            Self {
                caller: Framed::new(caller, FrameCodec),
                topology,
                _raw: RawMode::new(tty.try_clone().unwrap()).unwrap(),
                tty: AsyncTty::new(tty.into()).unwrap(),
                served,
            }
        }
    }

    #[tokio::test]
    async fn a_prompt_whose_caller_goes_away_is_hung_up() {
        let test = async {
            let mut shell = Shell::new().await;
            drop(shell.caller);
            let mut keys = Vec::new();
            // After the end, Linux reports EIO on a terminal without its other side.
            let _ = shell.tty.read_to_end(&mut keys).await;
            assert!(keys.is_empty(), "{keys:?}");
            assert!(shell.served.await.unwrap().is_err());
            assert_eq!(shell.topology.read(&mut [0]).await.unwrap(), 0);
        };
        LocalSet::new().run_until(test).await;
    }

    /// More than the pipes and the waiting frames can hold.
    const MUCH: usize = 2 << 20;

    /// Starts `argv` and sends it `MUCH` bytes. Returns the connection.
    async fn flooded(argv: &[&str]) -> Framed<DuplexStream, FrameCodec> {
        let (caller, inside) = tokio::io::duplex(MUCH + CHUNK);
        tokio::task::spawn_local(serve(inside));
        let mut caller = Framed::new(caller, FrameCodec);
        let request = ExecRequest {
            argv: argv.iter().map(ToString::to_string).collect(),
            cwd: Some("/".into()),
            ..Default::default()
        };
        let request = Frame::Request(Request::Command(request));
        caller.send(request).await.unwrap();
        for _ in 0..MUCH / CHUNK {
            let data = Bytes::from_static(&[7; CHUNK]);
            caller.send(Frame::Stdin(data)).await.unwrap();
        }
        caller
    }

    #[tokio::test]
    async fn a_command_that_writes_much_before_it_reads_gets_all_and_ends() {
        let test = async {
            let script = format!("head -c {MUCH} /dev/zero; cat");
            let mut caller = flooded(&["sh", "-c", &script]).await;
            caller.send(Frame::StdinEnd).await.unwrap();
            let mut back = 0;
            while let Some(Frame::Stdout(data)) = caller.next().await.transpose().unwrap() {
                back += data.len();
            }
            assert_eq!(back, 2 * MUCH);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_can_be_interrupted() {
        let test = async {
            let mut caller = flooded(&["sleep", "1000"]).await;
            let interrupt = Frame::Signal(Signal::SIGINT as i32);
            caller.send(interrupt).await.unwrap();
            let last = caller.next().await.unwrap().unwrap();
            assert_eq!(last, Frame::Exit(128 + Signal::SIGINT as i32));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn an_interrupt_reaches_a_prompt_without_a_terminal_as_its_key() {
        let test = async {
            let mut shell = Shell::new().await;
            let interrupt = Frame::Signal(Signal::SIGINT as i32);
            shell.caller.send(interrupt).await.unwrap();
            let mut key = [0];
            shell.tty.read_exact(&mut key).await.unwrap();
            assert_eq!(key, CTRL_C);
        };
        LocalSet::new().run_until(test).await;
    }
}
