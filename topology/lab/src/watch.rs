// SPDX-License-Identifier: Apache-2.0

//! Waits for files to change, without polling.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Notices every file that is written in a folder.
#[derive(Debug)]
pub struct Watch {
    inotify: AsyncFd<InotifyFd>,
}

#[derive(Debug)]
struct InotifyFd(Inotify);

impl std::os::fd::AsRawFd for InotifyFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        use std::os::fd::AsFd;
        self.0.as_fd().as_raw_fd()
    }
}

impl Watch {
    /// Starts to watch `dir`.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        inotify.add_watch(
            dir,
            AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_MOVED_TO,
        )?;
        // SAFETY: the descriptor is owned and nobody else can close it.
        let inotify =
            unsafe { AsyncFd::register_with_interest(InotifyFd(inotify), Interest::READABLE)? };
        Ok(Self { inotify })
    }

    /// Returns once something has been written since the last call. Safe to cancel and call again.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable_mut().await?;
            let mut heard = false;
            loop {
                match ready.get_inner_mut().0.read_events() {
                    Ok(_) => heard = true,
                    Err(Errno::EAGAIN) => break,
                    Err(errno) => return Err(errno.into()),
                }
            }
            ready.clear_ready();
            if heard {
                return Ok(());
            }
        }
    }
}
