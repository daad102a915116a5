// SPDX-License-Identifier: Apache-2.0

//! Terminals: raw mode, size, and asynchronous reading.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::Winsize;
use nix::sys::termios::{LocalFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

nix::ioctl_read_bad!(tiocgwinsz, nix::libc::TIOCGWINSZ, Winsize);
nix::ioctl_write_ptr_bad!(tiocswinsz, nix::libc::TIOCSWINSZ, Winsize);

/// A terminal in raw mode. Dropping this restores its mode.
#[derive(Debug)]
pub struct RawMode<F: AsFd> {
    terminal: F,
    before: Termios,
}

impl<F: AsFd> RawMode<F> {
    /// Puts `terminal` into raw mode.
    pub fn new(terminal: F) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&terminal, SetArg::TCSANOW, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl<F: AsFd> Drop for RawMode<F> {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
    }
}

/// Turns off the echo of a terminal.
pub fn no_echo(terminal: &impl AsFd) -> io::Result<()> {
    let mut settings = tcgetattr(terminal)?;
    settings.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(terminal, SetArg::TCSANOW, &settings)?;
    Ok(())
}

/// Size of a terminal, if it is one.
pub fn size(terminal: &impl AsFd) -> Option<Winsize> {
    let mut size = Winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let fd = std::os::fd::AsRawFd::as_raw_fd(&terminal.as_fd());
    // SAFETY: the call writes a size into `size`, nothing else.
    unsafe { tiocgwinsz(fd, &mut size) }.ok()?;
    Some(size)
}

/// Sets the size of a terminal. It's no error if the terminal is gone.
pub fn set_size(terminal: &impl AsFd, size: Winsize) {
    let fd = std::os::fd::AsRawFd::as_raw_fd(&terminal.as_fd());
    // SAFETY: the call reads a size.
    let _ = unsafe { tiocswinsz(fd, &size) };
}

/// A terminal that is read and written asynchronously.
#[derive(Debug)]
pub struct AsyncTty {
    fd: AsyncFd<std::fs::File>,
}

impl AsyncTty {
    /// Takes over a terminal. It must have no other users, because it becomes non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
        fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        // SAFETY: the descriptor is owned and nobody else can close it.
        let fd = unsafe { AsyncFd::register(fd.into())? };
        Ok(Self { fd })
    }
}

impl AsyncRead for AsyncTty {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(context))?;
            let unfilled = buffer.initialize_unfilled();
            match guard.try_io(|fd| fd.get_ref().read(unfilled)) {
                Ok(read) => {
                    buffer.advance(read?);
                    return Poll::Ready(Ok(()));
                }
                Err(_would_block) => continue,
            }
        }
    }
}

impl AsyncWrite for AsyncTty {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.fd.poll_write_ready(context))?;
            match guard.try_io(|fd| fd.get_ref().write(data)) {
                Ok(written) => return Poll::Ready(written),
                Err(_would_block) => continue,
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
