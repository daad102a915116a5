//! Where results go: never over older ones, never half.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::Failure;

/// Folder of all runs that were given no other.
const RUNS: &str = "runs";

/// The folder for a run's results: `out` if given, which may not exist, else
/// the first of `runs/<name>`, `runs/<name>-2`, ... that is free.
pub fn choose(out: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    match out {
        Some(out) if out.exists() => Err(Failure::Usage(format!(
            "--out {}: exists already; remove it or choose another name",
            out.display()
        ))),
        Some(out) if out.file_name().is_none() => Err(Failure::Usage(format!(
            "--out {}: give the name of a new folder, such as {RUNS}/x",
            out.display()
        ))),
        Some(out) => Ok(out),
        None => Ok(first_free(&Path::new(RUNS).join(name))),
    }
}

fn first_free(path: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    std::iter::once(path.to_owned())
        .chain((2..).map(numbered))
        .find(|candidate| !candidate.exists())
        .unwrap_or_else(|| path.to_owned())
}

/// A folder beside `path`, for work in progress: `.<name>.<suffix>`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
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

    #[test]
    fn results_never_replace_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(first_free(&path), path);
        fs::create_dir(&path).unwrap();
        fs::create_dir(folder.path().join("x-2")).unwrap();
        assert_eq!(first_free(&path), folder.path().join("x-3"));
        assert!(matches!(choose(Some(path), "y"), Err(Failure::Usage(_))));
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
