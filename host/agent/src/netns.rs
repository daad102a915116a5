// SPDX-License-Identifier: Apache-2.0

//! Runs code inside a network namespace.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;

use nix::sched::{CloneFlags, setns};

/// Runs `work` inside the network namespace at `path` (such as one under `/run/netns`), on a
/// thread of its own, so that the caller stays in its namespace. Sockets that `work` opens
/// stay in that namespace.
///
/// # Errors
/// The namespace cannot be opened or entered.
pub fn inside<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
