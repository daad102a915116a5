// SPDX-License-Identifier: Apache-2.0

//! Explains to the user why a lab has ended.

use std::fs;
use std::time::Duration;

use super::{End, Supervisor};
use crate::control::State;
use crate::rundir;

impl Supervisor {
    /// The failure that the inside has reported, if any.
    pub(super) async fn failure(&self) -> Option<End> {
        let failed = fs::read_to_string(self.shared.rundir.join(rundir::FAILED)).ok()?;
        // Empty while it is being written.
        let message = Some(failed.trim()).filter(|message| !message.is_empty())?;
        Some(End::Failed(
            match killed_for_memory(&self.console().await) {
                Some(name) => format!(
                    "{} MiB of memory are too few for this lab (its kernel had to end {name}): \
                 give it more with --memory",
                    self.memory_bytes >> 20
                ),
                None => message.to_owned(),
            },
        ))
    }

    /// The kernel has ended. Returns whether that was regular.
    pub(super) async fn kernel_ended(&self, how: &str) -> End {
        if let Some(end) = self.failure().await {
            return end;
        }
        let exit = fs::read_to_string(self.shared.rundir.join(rundir::EXIT)).ok();
        if let Some(code) = exit.and_then(|code| code.trim().parse().ok()) {
            return End::Batch(code);
        }
        let console = self.console().await;
        End::Failed(match panic_in(&console) {
            _ if self.shared.is_native() => {
                let said = console.lines().last().unwrap_or("it said nothing");
                format!("the network ended ({how}) {}: {said}", self.when())
            }
            Some(panic) => format!("the lab kernel panicked: {panic}"),
            None => format!("the lab kernel ended ({how}) {}", self.when()),
        })
    }

    /// There has been no progress for too long.
    pub(super) fn stalled(&self) -> End {
        let seconds = self.stall_limit.as_secs();
        let why = if self.shared.clock.is_idle_forever() {
            format!("for {seconds} s everything inside has waited for an event that never comes")
        } else if let Some(limit) = self.kernel.mappings_exhausted() {
            format!(
                "a process inside has all {limit} memory mappings that this machine allows; \
                 as root: sysctl vm.max_map_count={}",
                4 * limit
            )
        } else {
            format!("no sign of life for {seconds} s")
        };
        End::Failed(format!("the lab hangs {}: {why}", self.when()))
    }

    fn when(&self) -> String {
        let steps = fs::read_to_string(self.shared.rundir.join(rundir::STEPS)).unwrap_or_default();
        match (self.shared.state.get(), steps.lines().last()) {
            (State::Booting, Some(step)) => format!("during its boot, after step `{step}`"),
            (State::Booting, None) => "before its first step".into(),
            _ => "while it ran".into(),
        }
    }

    /// The whole console output.
    async fn console(&self) -> String {
        // The console is a separate pipe and may lag behind.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let console = fs::read(self.shared.rundir.join(rundir::CONSOLE_LOG));
        String::from_utf8_lossy(&console.unwrap_or_default()).into_owned()
    }
}

/// The message of a kernel panic.
fn panic_in(console: &str) -> Option<&str> {
    let (_, panic) = console.split_once("Kernel panic - not syncing: ")?;
    panic.lines().next()
}

/// The process that the kernel killed for lack of memory (mm/oom_kill.c).
fn killed_for_memory(console: &str) -> Option<&str> {
    let (_, killed) = console.split_once("Out of memory: Killed process ")?;
    let (_, name) = killed.lines().next()?.split_once('(')?;
    name.split_once(')').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_in_the_console() {
        let console = "[ 1.0] booting\nKernel panic - not syncing: Attempted to kill init!\nmore";
        assert_eq!(panic_in(console), Some("Attempted to kill init!"));
        assert_eq!(panic_in("all is well"), None);
    }

    #[test]
    fn a_process_that_had_to_end_for_lack_of_memory_is_found_in_the_console() {
        let console = "[ 1.3] Mem-Info:\n[ 1.3] Out of memory: Killed process 23 (weft-switch) \
                       total-vm:170332kB, anon-rss:90792kB (more)\n";
        assert_eq!(killed_for_memory(console), Some("weft-switch"));
        assert_eq!(killed_for_memory("[ 1.0] booting"), None);
    }
}
