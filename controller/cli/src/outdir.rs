// SPDX-License-Identifier: Apache-2.0

//! Where results go: never over older ones, never half, and no two runs' to one place.
//!
//! Who has chosen a place holds a lock in the folder for work in progress beside it. The
//! kernel drops the lock with its holder, however that ends, so a folder without one is
//! what a run has left that failed or was killed, and makes way.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::Failure;

/// Folder of all runs that were given no other.
const RUNS: &str = "runs";

/// In the folder for work in progress, whose it is.
const LOCK: &str = "lock";

/// The folder for a run's results: `out` if given, which may not exist, else
/// the first of `runs/<name>`, `runs/<name>-2`, ... that is free.
pub fn choose(out: Option<PathBuf>, name: &str) -> Result<Place, Failure> {
    match out {
        Some(out) if out.exists() => Err(Failure::Usage(format!(
            "--out {}: exists already; remove it or choose another name",
            out.display()
        ))),
        Some(out) if out.file_name().is_none() => Err(Failure::Usage(format!(
            "--out {}: give the name of a new folder, such as {RUNS}/x",
            out.display()
        ))),
        Some(out) => Place::reserve(&out)?.ok_or_else(|| {
            Failure::Usage(format!(
                "--out {}: another run is going to write it; choose another name",
                out.display()
            ))
        }),
        None => Ok(first_free(&Path::new(RUNS).join(name))?),
    }
}

fn first_free(path: &Path) -> Result<Place> {
    let mut candidate = path.to_owned();
    let mut number = 1;
    loop {
        if let Some(place) = Place::reserve(&candidate)? {
            return Ok(place);
        }
        number += 1;
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{number}"));
        candidate = name.into();
    }
}

/// A folder that is going to be, for one run alone; what was made for it and is empty in
/// the end goes.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    lock: Flock<fs::File>,
    /// The folder for work in progress, and those above it that were not there.
    made: Vec<PathBuf>,
}

impl Place {
    /// Where the results go.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes `path` and empties the folder for its work in progress; `None` if it exists
    /// or another run has it.
    fn reserve(path: &Path) -> Result<Option<Self>> {
        let work = work_of(path);
        let place = Self::lock(path, &work).with_context(|| work.display().to_string())?;
        // Whoever had it before may have come to its end just now.
        let Some(place) = place.filter(|place| !place.path.exists()) else {
            return Ok(None);
        };
        empty(&work).with_context(|| work.display().to_string())?;
        Ok(Some(place))
    }

    fn lock(path: &Path, work: &Path) -> io::Result<Option<Self>> {
        loop {
            let above = work.ancestors().skip(1);
            let missing =
                above.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
            let made = std::iter::once(work)
                .chain(missing)
                .map(Path::to_owned)
                .collect();
            fs::create_dir_all(work)?;
            let mut options = OpenOptions::new();
            let lock = match options
                .write(true)
                .create(true)
                .truncate(false)
                .open(work.join(LOCK))
            {
                // Another run has removed the folder since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            let lock = match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                lock => lock.map_err(|(_, errno)| errno)?,
            };
            // Nor is a lock worth anything that its last holder has removed.
            if lock.metadata()?.nlink() > 0 {
                let path = path.to_owned();
                return Ok(Some(Self { path, lock, made }));
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The lock goes with the folder when a run has come to its end: there may be
        // another's by now.
        if self.lock.metadata().is_ok_and(|lock| lock.nlink() > 0) {
            let _ = fs::remove_file(work_of(&self.path).join(LOCK));
        }
        for folder in &self.made {
            // Refused where something is in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn empty(work: &Path) -> io::Result<()> {
    for entry in fs::read_dir(work)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The folder for what a lab writes whose results go to `path`.
pub fn work_of(path: &Path) -> PathBuf {
    beside(path, "lab")
}

/// A folder beside `path`, for work in progress: `.<name>.<suffix>`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// Moves the folder `from` to `to`, whole or not at all, also to another file
/// system.
pub fn move_folder(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    let renamed = match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_whole(from, to),
        other => other,
    };
    renamed.with_context(|| format!("move {} to {}", from.display(), to.display()))
}

fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let partial = beside(to, "partial");
    let copied = copy_tree(from, &partial).and_then(|()| fs::rename(&partial, to));
    if copied.is_err() {
        let _ = fs::remove_dir_all(&partial);
        return copied;
    }
    fs::remove_dir_all(from)
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(chosen: Result<Place, Failure>) -> String {
        match chosen {
            Err(Failure::Usage(line)) => line,
            other => panic!("{other:?}"),
        }
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn results_never_replace_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(first_free(&path).unwrap().path(), path);
        fs::create_dir(&path).unwrap();
        fs::create_dir(folder.path().join("x-2")).unwrap();
        let free = first_free(&path).unwrap();
        assert_eq!(free.path(), folder.path().join("x-3"));
        assert!(usage(choose(Some(path), "y")).contains("exists already"));
    }

    #[test]
    fn runs_at_the_same_time_get_different_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let first = first_free(&path).unwrap();
        let second = first_free(&path).unwrap();
        assert_eq!(first.path(), path);
        assert_eq!(second.path(), folder.path().join("x-2"));
        let refused = usage(choose(Some(path.clone()), "y"));
        assert!(refused.contains("another run"), "{refused}");
        drop(first);
        assert_eq!(first_free(&path).unwrap().path(), path);
    }

    #[test]
    fn a_run_without_results_leaves_no_folder_that_was_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/x");
        drop(first_free(&path).unwrap());
        assert!(names(folder.path()).is_empty());
        fs::create_dir(folder.path().join("runs")).unwrap();
        drop(first_free(&path).unwrap());
        assert_eq!(names(folder.path()), ["runs"]);
    }

    #[test]
    fn what_a_failed_run_has_left_stays_until_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let log = work_of(&path).join("log");
        let failed = first_free(&path).unwrap();
        fs::create_dir(&log).unwrap();
        fs::write(log.join("batch.log"), "no").unwrap();
        fs::write(work_of(&path).join("lab.json"), "{}").unwrap();
        drop(failed);
        assert!(log.join("batch.log").exists());
        let next = first_free(&path).unwrap();
        assert_eq!(next.path(), path);
        assert_eq!(names(&work_of(&path)), [LOCK]);
    }

    #[test]
    fn a_place_that_was_left_is_not_taken_from_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let left = first_free(&path).unwrap();
        // As a run does in the end.
        fs::remove_dir_all(work_of(&path)).unwrap();
        let next = first_free(&path).unwrap();
        drop(left);
        assert_eq!(next.path(), path);
        assert_eq!(first_free(&path).unwrap().path(), folder.path().join("x-2"));
    }

    #[test]
    fn a_copied_folder_is_whole_and_the_old_one_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("log")).unwrap();
        fs::write(from.join("log/a"), "1").unwrap();
        copy_whole(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("log/a")).unwrap(), "1");
        assert!(!from.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
