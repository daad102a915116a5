// SPDX-License-Identifier: Apache-2.0

//! Outside of the lab: connects this process's standard streams to a command inside.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::codec::{Encoder, FramedRead};

use super::{Frame, FrameCodec, Request};
use crate::tty::{self, RawMode};

/// Bytes per read of standard input.
const CHUNK: usize = 16 << 10;

/// The input of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// None. Standard input is left to other readers.
    Nothing,
    /// Standard input.
    Stdin,
    /// Standard input, and single keys if it is a terminal.
    Keys,
}

/// Runs `request` through the socket at `path`. Returns its exit status.
pub async fn run(path: &Path, request: Request, input: Input) -> io::Result<i32> {
    let (receiver, mut sender) = UnixStream::connect(path).await?.into_split();
    let mut frames = FramedRead::new(receiver, FrameCodec);
    // Sent while output is read, because the command may wait for either.
    let mut outgoing = BytesMut::new();
    let terminal = input == Input::Keys && io::stdin().is_terminal();
    let _raw = if terminal {
        Some(RawMode::new(io::stdin())?)
    } else {
        None
    };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut interrupted = false;
    let mut resizes = signal(SignalKind::window_change())?;
    FrameCodec.encode(Frame::Request(request), &mut outgoing)?;
    if terminal {
        encode_size(&mut outgoing)?;
    }
    let mut stdin = match input {
        Input::Nothing => {
            FrameCodec.encode(Frame::StdinEnd, &mut outgoing)?;
            None
        }
        Input::Stdin | Input::Keys => Some(Stdin::new()?),
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = async {
            match stdin.as_mut() {
                Some(stdin) => stdin.read(&mut buffer).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            frame = frames.next() => match frame.transpose()? {
                Some(Frame::Stdout(data)) => print(io::stdout(), &data)?,
                Some(Frame::Stderr(data)) => print(io::stderr(), &data)?,
                Some(Frame::Exit(code)) => return Ok(code),
                Some(Frame::Error(text)) => return Err(io::Error::other(text)),
                Some(_) => {}
                None => return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the lab hung up",
                )),
            },
            sent = sender.write_buf(&mut outgoing), if !outgoing.is_empty() => if sent.is_err() {
                // The remaining output says why.
                outgoing.clear();
                stdin = None;
            },
            read = read, if outgoing.is_empty() => match read {
                // A read error counts as the end of input.
                Ok(0) | Err(_) => {
                    stdin = None;
                    FrameCodec.encode(Frame::StdinEnd, &mut outgoing)?;
                }
                Ok(read) => {
                    let data = Bytes::copy_from_slice(&buffer[..read]);
                    FrameCodec.encode(Frame::Stdin(data), &mut outgoing)?;
                }
            },
            _ = interrupts.recv() => {
                let number = SignalKind::interrupt().as_raw_value();
                // A second interrupt quits, whatever the command does.
                if interrupted {
                    return Ok(128 + number);
                }
                interrupted = true;
                FrameCodec.encode(Frame::Signal(number), &mut outgoing)?;
            }
            _ = resizes.recv(), if terminal => encode_size(&mut outgoing)?,
        }
    }
}

fn encode_size(outgoing: &mut BytesMut) -> io::Result<()> {
    match tty::size(&io::stdin()) {
        Some(size) => {
            let (rows, columns) = (size.ws_row, size.ws_col);
            FrameCodec.encode(Frame::Resize { rows, columns }, outgoing)
        }
        None => Ok(()),
    }
}

fn print(mut to: impl Write, data: &[u8]) -> io::Result<()> {
    to.write_all(data)?;
    to.flush()
}

/// Standard input. Terminals and pipes are polled before they are read, so that no thread
/// stays blocked in a read when the command ends first.
enum Stdin {
    Pollable(AsyncFd<OwnedFd>),
    /// A regular file, which is always ready and cannot be polled.
    File,
}

impl Stdin {
    fn new() -> io::Result<Self> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        // SAFETY: the descriptor is owned, and nobody else can close it.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(fd.map_or(Self::File, Self::Pollable))
    }

    /// Doesn't set non-blocking mode, because the open file is shared with other processes.
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self::Pollable(fd) = self else {
            return Ok(nix::unistd::read(io::stdin(), buffer)?);
        };
        loop {
            let mut guard = fd.readable().await?;
            if is_readable(fd.get_ref())? {
                return Ok(nix::unistd::read(io::stdin(), buffer)?);
            }
            guard.clear_ready();
        }
    }
}

/// Whether a read would return at once.
fn is_readable(fd: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut polled, PollTimeout::ZERO)? > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::time::Duration;

    use futures::SinkExt;
    use nix::unistd::{dup2_stdin, pipe, read, write};
    use tokio::net::UnixListener;
    use tokio::sync::Mutex;
    use tokio_util::codec::Framed;

    use super::*;
    use crate::exec::ExecRequest;

    const MORE_THAN_A_SOCKET_TAKES: usize = 4 << 20;
    /// Held by tests that change standard input.
    static STDIN: Mutex<()> = Mutex::const_new(());

    /// Runs a command with `stdin` against `inside`, which gets the other end of its connection.
    async fn run_with<F: Future<Output = ()>>(
        stdin: impl AsFd,
        input: Input,
        inside: impl FnOnce(Framed<UnixStream, FrameCodec>) -> F,
    ) -> io::Result<i32> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _turn = STDIN.lock().await;
        let before = io::stdin().as_fd().try_clone_to_owned().unwrap();
        dup2_stdin(stdin).unwrap();
        let request = Request::Command(ExecRequest::default());
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut frames = Framed::new(stream, FrameCodec);
            let asked = frames.next().await.unwrap().unwrap();
            assert_eq!(asked, Frame::Request(request.clone()));
            inside(frames).await;
        };
        let (code, ()) = tokio::join!(run(&path, request.clone(), input), serve);
        dup2_stdin(before).unwrap();
        code
    }

    #[tokio::test]
    async fn a_command_that_reads_nothing_leaves_standard_input_alone() {
        let (reader, writer) = pipe().unwrap();
        write(&writer, b"another's").unwrap();
        let code = run_with(&reader, Input::Nothing, async |mut frames| {
            assert_eq!(frames.next().await.unwrap().unwrap(), Frame::StdinEnd);
            frames.send(Frame::Exit(3)).await.unwrap();
        });
        assert_eq!(code.await.unwrap(), 3);
        let mut left = [0; 9];
        read(&reader, &mut left).unwrap();
        assert_eq!(&left, b"another's");
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_is_heard() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; MORE_THAN_A_SOCKET_TAKES]).unwrap();
        file.rewind().unwrap();
        let mut position = file.try_clone().unwrap();
        let code = run_with(&file, Input::Stdin, async |mut frames| {
            let (mut before, mut sent) = (0, 1);
            while sent > before {
                tokio::time::sleep(Duration::from_millis(50)).await;
                (before, sent) = (sent, position.stream_position().unwrap());
            }
            frames.send(Frame::Exit(3)).await.unwrap();
        });
        assert_eq!(code.await.unwrap(), 3);
    }
}
