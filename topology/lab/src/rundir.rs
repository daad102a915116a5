// SPDX-License-Identifier: Apache-2.0

//! The folder of a running lab: its path, its contents, its owner.
//!
//! A lab is up exactly as long as a process holds the lock on its folder's `lock` file. The kernel
//! releases the lock when that process ends for any reason. So a folder without a lock is left from
//! a crash and may be removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{AccessFlags, access, getuid};

use crate::error::{Context, Error, Result};
use crate::spec::LabSpec;

/// Mount point of the folder inside the lab.
pub const GUEST_RUNDIR: &str = "/run/weft";
/// The lab's specification.
pub const SPEC: &str = "lab.json";
/// Completed boot steps, one per line.
pub const STEPS: &str = "steps";
/// Written inside once the network is ready.
pub const READY: &str = "ready";
/// Written inside after a failure: one line.
pub const FAILED: &str = "failed";
/// Exit status of the batch command.
pub const EXIT: &str = "exit";
/// Progress report of the batch command.
pub const PROGRESS: &str = "progress.json";
/// Folder of logs.
pub const LOG: &str = "log";
/// The kernel's console output.
pub const CONSOLE_LOG: &str = "log/console.log";
/// Socket for requests to the supervisor.
pub const CONTROL_SOCKET: &str = "control.sock";
/// Sockets that connect to the controllers inside, one for each.
pub const CONTROLLER_SOCKETS: [&str; 3] =
    ["controller.sock", "controller2.sock", "controller3.sock"];
/// Socket that runs commands inside.
pub const EXEC_SOCKET: &str = "exec.sock";
/// The kernel's socket to the clock.
pub const CLOCK_SOCKET: &str = "clock.sock";
/// A link to the program that is process 1 inside. The kernel splits its command line at white
/// space, which the program's own path may contain.
pub const INIT: &str = "init";
/// The kernel's own folder.
pub const UML: &str = "uml";
const LOCK: &str = "lock";

/// Files of the launcher, which aren't results of a run.
const INTERNAL: [&str; 14] = [
    STEPS,
    READY,
    FAILED,
    EXIT,
    PROGRESS,
    CONTROL_SOCKET,
    CONTROLLER_SOCKETS[0],
    CONTROLLER_SOCKETS[1],
    CONTROLLER_SOCKETS[2],
    EXEC_SOCKET,
    CLOCK_SOCKET,
    INIT,
    UML,
    LOCK,
];

/// Maximum length of a Unix socket's path, including its final zero.
const SOCKET_PATH_MAX: usize = 107;

/// Parent of all lab folders of this user.
pub fn base() -> PathBuf {
    if let Some(dir) = env_path("WEFT_RUNTIME_DIR") {
        return dir;
    }
    // `su` passes on the variable of another user.
    let runtime = env_path("XDG_RUNTIME_DIR")
        .filter(|dir| access(dir, AccessFlags::W_OK | AccessFlags::X_OK).is_ok())
        .unwrap_or_else(|| "/tmp".into());
    runtime.join(format!("weft-{}", getuid()))
}

/// Folder for files that outlive a lab: `WEFT_CACHE` or `~/.cache/weft`.
pub fn cache() -> PathBuf {
    env_path("WEFT_CACHE")
        .or_else(|| env_path("HOME").map(|home| home.join(".cache/weft")))
        .unwrap_or_else(base)
}

/// A path from the environment. Made absolute, because supervisor and lab have other working
/// directories.
fn env_path(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name)?;
    // Fails for an empty path.
    std::path::absolute(value).ok()
}

/// Folder of the lab with this name, whether or not it exists.
pub fn of(name: &str) -> Result<PathBuf> {
    folder(&base(), name)
}

fn folder(base: &Path, name: &str) -> Result<PathBuf> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 32 || !name.chars().all(allowed) {
        return Err(Error::Name(name.into()));
    }
    check_own(base)?;
    let dir = base.join(name);
    let longest = dir.join(CONTROLLER_SOCKETS[1]);
    if longest.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(Error::Io {
            context: format!("{}", dir.display()),
            source: io::Error::new(
                io::ErrorKind::InvalidInput,
                "too long for sockets; set WEFT_RUNTIME_DIR to a shorter path",
            ),
        });
    }
    Ok(dir)
}

/// The owner of a lab's folder.
#[derive(Debug)]
pub enum Owner {
    /// There is no such folder.
    Nobody,
    /// The process with this ID.
    Process(i32),
    /// None: the lab has crashed.
    Crashed,
}

/// Finds the owner of `dir`.
pub fn owner(dir: &Path) -> Result<Owner> {
    let path = dir.join(LOCK);
    let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound && !dir.exists() => return Ok(Owner::Nobody),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Owner::Crashed),
        Err(source) => {
            return Err(Error::Io {
                context: path.display().to_string(),
                source,
            });
        }
    };
    let mut pid = String::new();
    file.read_to_string(&mut pid)
        .context(|| path.display().to_string())?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(_) => Ok(Owner::Crashed),
        Err(_) => Ok(Owner::Process(pid.trim().parse().unwrap_or(0))),
    }
}

/// Creates and locks the folder of a new lab, with `spec` in it. Removes the folder of a crashed
/// lab first.
pub fn create(name: &str, spec: &LabSpec) -> Result<(PathBuf, File)> {
    let dir = of(name)?;
    match owner(&dir)? {
        Owner::Nobody => {}
        Owner::Crashed => remove(&dir)?,
        Owner::Process(pid) => {
            return Err(Error::AlreadyUp {
                name: name.into(),
                pid,
            });
        }
    }
    create_base(&base())?;
    let mut private = fs::DirBuilder::new();
    private.mode(0o700);
    private.create(&dir).context(|| dir.display().to_string())?;
    let path = dir.join(LOCK);
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .context(|| path.display().to_string())?;
    // Forgetting the guard keeps the lock. It belongs to the open file, which the supervisor
    // inherits.
    let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, errno)| errno)
        .context(|| path.display().to_string())?;
    let file = lock.try_clone().context(|| path.display().to_string())?;
    std::mem::forget(lock);
    let log = dir.join(LOG);
    private.create(&log).context(|| log.display().to_string())?;
    let path = dir.join(SPEC);
    let json = serde_json::to_vec_pretty(spec).map_err(io::Error::from);
    json.and_then(|json| fs::write(&path, json))
        .context(|| path.display().to_string())?;
    let path = dir.join(INIT);
    symlink(spec.paths.bin.join("weft-lab"), &path).context(|| path.display().to_string())?;
    Ok((dir, file))
}

/// Records who holds the lock.
pub fn write_pid(mut lock: &File) -> io::Result<()> {
    writeln!(lock, "{}", std::process::id())
}

/// Removes a lab's folder, and the parent folder if it was the last.
pub fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::Io {
            context: format!("remove {}", dir.display()),
            source: e,
        }),
        _ => {
            if let Some(base) = dir.parent() {
                // Fails while another lab is in it.
                let _ = fs::remove_dir(base);
            }
            Ok(())
        }
    }
}

/// Names of all folders, of running and crashed labs.
pub fn names() -> Result<Vec<String>> {
    let base = base();
    let entries = match fs::read_dir(&base) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context(|| base.display().to_string())?,
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Moves the results of a run to `out`.
pub fn collect(dir: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out).context(|| out.display().to_string())?;
    let entries = fs::read_dir(dir).context(|| dir.display().to_string())?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if INTERNAL.iter().any(|internal| name == *internal) {
            continue;
        }
        let (from, to) = (entry.path(), out.join(&name));
        move_tree(&from, &to).context(|| format!("move {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}

/// Keeps the logs of a failed lab. Returns their folder.
pub fn keep_logs(dir: &Path) -> Option<PathBuf> {
    let name = dir.file_name()?.to_str()?;
    let stamp = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?
        .as_secs();
    let kept = cache().join("logs").join(format!("{name}-{stamp}"));
    fs::create_dir_all(&kept).ok()?;
    move_tree(&dir.join(LOG), &kept).ok()?;
    Some(kept)
}

/// Renames, or copies between file systems. Merges into existing folders.
fn move_tree(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(from)?.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            move_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        return fs::remove_dir(from);
    }
    match fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            fs::copy(from, to)?;
            fs::remove_file(from)
        }
        result => result,
    }
}

/// Creates the parent of all lab folders.
fn create_base(base: &Path) -> Result<()> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(base);
    made.context(|| base.display().to_string())?;
    check_own(base)
}

/// Refuses a parent folder of another user, which anybody can create in /tmp. Its sockets would
/// belong to that user, and its locks would name any process.
fn check_own(base: &Path) -> Result<()> {
    let metadata = match fs::symlink_metadata(base) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.context(|| base.display().to_string())?,
    };
    if metadata.is_dir() && metadata.uid() == getuid().as_raw() {
        return Ok(());
    }
    Err(Error::Io {
        context: base.display().to_string(),
        source: io::Error::new(
            io::ErrorKind::PermissionDenied,
            "belongs to another user; set WEFT_RUNTIME_DIR to a folder of yours",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_folder_names_are_refused() {
        for name in ["", "../x", "a b", "a/b", &"x".repeat(33)] {
            assert!(matches!(of(name), Err(Error::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn labs_in_the_folder_of_another_user_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(folder(dir.path(), "lab").is_ok());
        assert!(folder(&dir.path().join("none"), "lab").is_ok());
        // A link, even one to a folder of ours.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let theirs = match getuid().is_root() {
            true => {
                let theirs = dir.path().join("theirs");
                fs::create_dir(&theirs).unwrap();
                std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
                theirs
            }
            false => "/".into(),
        };
        for base in [link, theirs] {
            let refused = folder(&base, "lab").unwrap_err().to_string();
            assert!(refused.contains("another user"), "{refused}");
        }
    }

    #[test]
    fn results_are_moved_and_internals_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let out = dir.path().join("out");
        fs::create_dir_all(run.join("log")).unwrap();
        fs::write(run.join("flows.csv"), "x").unwrap();
        fs::write(run.join("log/switch.log"), "y").unwrap();
        fs::write(run.join(READY), "{}").unwrap();
        collect(&run, &out).unwrap();
        assert_eq!(fs::read_to_string(out.join("flows.csv")).unwrap(), "x");
        assert_eq!(fs::read_to_string(out.join("log/switch.log")).unwrap(), "y");
        assert!(!out.join(READY).exists());
    }

    #[test]
    fn a_folder_without_a_lock_holder_is_a_crashed_lab() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(owner(dir.path()), Ok(Owner::Crashed)));
        assert!(matches!(owner(&dir.path().join("none")), Ok(Owner::Nobody)));
    }
}
