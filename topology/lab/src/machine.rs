// SPDX-License-Identifier: Apache-2.0

//! Resources of the machine: a place for the lab's memory, memory mappings, and a CPU.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, Pid, access, getpgid, getuid};

use crate::error::{Context, Error, Result};

/// Finds a folder whose file system has room for the lab's memory. The kernel maps a file there,
/// with execute permission. Memory file systems come first.
pub fn memory_dir(needed_bytes: u64) -> Result<PathBuf> {
    let chosen = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let candidates: Vec<PathBuf> = match chosen {
        Some(dir) => vec![dir.into(), "/dev/shm".into(), "/tmp".into()],
        None => vec!["/dev/shm".into(), "/tmp".into(), "/var/tmp".into()],
    };
    let mut tried = Vec::new();
    for dir in candidates {
        match usable(&dir, needed_bytes) {
            Ok(()) => return Ok(dir),
            Err(why) => tried.push(format!("{} ({why})", dir.display())),
        }
    }
    Err(Error::NoRoom {
        needed_mib: needed_bytes >> 20,
        tried: tried.join(", "),
    })
}

fn usable(dir: &Path, needed_bytes: u64) -> Result<(), String> {
    access(dir, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|e| e.desc().to_string())?;
    let stat = statvfs(dir).map_err(|e| e.desc().to_string())?;
    if stat.flags().contains(FsFlags::ST_NOEXEC) {
        return Err("mounted noexec".into());
    }
    let free_bytes = stat.blocks_available() * stat.fragment_size();
    if free_bytes < needed_bytes {
        return Err(format!("{} MiB free", free_bytes >> 20));
    }
    Ok(())
}

/// The machine's limit on memory mappings per process; `None` if unknown.
pub fn max_mappings() -> Option<usize> {
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    limit.trim().parse().ok()
}

/// Whether a process of `group` has at least `count` memory mappings.
pub fn any_has_mappings(group: Pid, count: usize) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| getpgid(Some(Pid::from_raw(*pid))) == Ok(group))
        .filter_map(|pid| fs::read(format!("/proc/{pid}/maps")).ok())
        .any(|maps| maps.iter().filter(|&&byte| byte == b'\n').count() >= count)
}

/// A CPU reserved for a lab. While this exists, other labs of this user choose other CPUs.
#[derive(Debug)]
pub struct Cpu {
    /// Its number.
    pub number: usize,
    _claim: Option<UnixListener>,
}

/// Pins this process and its children to CPU `wanted`, or to one without another lab of this user.
/// On two CPUs a lab is six times slower than on one, because waking a virtual CPU on another CPU
/// costs 35 us.
pub fn pin(wanted: Option<usize>) -> Result<Cpu> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context(|| "CPU affinity".into())?;
    let allowed: Vec<usize> = (0..CpuSet::count())
        .filter(|&cpu| allowed.is_set(cpu).unwrap_or(false))
        .collect();
    let cpu = match wanted {
        Some(number) if allowed.contains(&number) => Cpu {
            number,
            _claim: claim(number),
        },
        Some(number) => {
            return Err(Error::Refused(format!(
                "CPU {number} is not available; choose one of {allowed:?}"
            )));
        }
        None => unclaimed(&allowed),
    };
    let mut set = CpuSet::new();
    set.set(cpu.number)
        .and_then(|()| sched_setaffinity(this, &set))
        .context(|| format!("pin to CPU {}", cpu.number))?;
    Ok(cpu)
}

/// Searches from the last CPU, because machines serve interrupts on the first.
fn unclaimed(allowed: &[usize]) -> Cpu {
    for &number in allowed.iter().rev() {
        if let Some(claim) = claim(number) {
            return Cpu {
                number,
                _claim: Some(claim),
            };
        }
    }
    Cpu {
        number: allowed[std::process::id() as usize % allowed.len()],
        _claim: None,
    }
}

/// A claim is an abstract socket name. It disappears with its owner and leaves no file.
fn claim(cpu: usize) -> Option<UnixListener> {
    let name = format!("weft-{}-cpu{cpu}", getuid());
    let address = SocketAddr::from_abstract_name(name).ok()?;
    UnixListener::bind_addr(&address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_file_system_holds_is_said_with_what_is_free() {
        let error = memory_dir(1 << 60).unwrap_err().to_string();
        assert!(error.contains("MiB free"), "{error}");
        assert!(error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn a_process_that_has_all_its_mappings_is_found_in_its_group() {
        let group = nix::unistd::getpgrp();
        assert!(any_has_mappings(group, 2));
        assert!(!any_has_mappings(group, max_mappings().unwrap()));
        assert!(!any_has_mappings(Pid::from_raw(i32::MAX), 0));
    }

    #[test]
    fn a_claimed_cpu_is_left_alone() {
        let allowed = [9990, 9991];
        let first = unclaimed(&allowed);
        let second = unclaimed(&allowed);
        assert_ne!(first.number, second.number);
        drop(first);
        assert_eq!(unclaimed(&allowed).number, 9991);
    }
}
