// SPDX-License-Identifier: Apache-2.0

//! Where Weft's parts are on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use weft_lab::Paths;

/// Where the sources are, when not found from the program's own place.
const ROOT: &str = "WEFT_ROOT";

/// The repository: `WEFT_ROOT`, or the folder above this program that has it.
pub fn root() -> Result<PathBuf> {
    if let Some(root) = std::env::var_os(ROOT) {
        let root = PathBuf::from(root);
        return root
            .canonicalize()
            .ok()
            .filter(|root| is_root(root))
            .with_context(|| format!("{ROOT}={}: not a checkout of Weft", root.display()));
    }
    let program = std::env::current_exe().context("this program's own path")?;
    program
        .ancestors()
        .find(|folder| is_root(folder))
        .map(Path::to_owned)
        .with_context(|| {
            format!(
                "{}: not inside a checkout of Weft; set {ROOT} to one",
                program.display()
            )
        })
}

fn is_root(folder: &Path) -> bool {
    folder.join("topology/weft_topology").is_dir() && folder.join("p4/compiled").is_dir()
}

/// Folder of the built programs: this one's own, unless it was copied away.
fn bin(root: &Path) -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(Path::to_owned))
        .filter(|folder| folder.join("weft-lab").exists())
        .unwrap_or_else(|| root.join("target/release"))
}

/// Everything a lab needs, checked to be there.
pub fn paths() -> Result<Paths> {
    with_kernel(Some(Kernel::find()?))
}

/// Everything a network on this machine's own kernel needs, checked to be there.
pub fn native_paths() -> Result<Paths> {
    with_kernel(None)
}

fn with_kernel(kernel: Option<Kernel>) -> Result<Paths> {
    let root = root()?;
    let is_lab = kernel.is_some();
    let kernel = kernel.unwrap_or_default();
    let compiled = root.join("p4/compiled");
    // Where it is, not the way there: a link on that way may lead out of what a lab sees.
    let compiled = compiled.canonicalize().unwrap_or(compiled);
    let paths = Paths {
        bin: bin(&root),
        python: root.join(".venv/bin/python"),
        kernel: kernel.kernel,
        modules: kernel.modules,
        programs: vec![compiled.clone()],
        linked: linked(&root),
        repo: root,
    };
    let modules = paths.modules.iter().cloned();
    let needed = [
        (paths.python.clone(), "make deps"),
        (paths.bin.join("weft-lab"), "make build"),
        (paths.bin.join("weft-switch"), "make build"),
        (paths.bin.join("weft-controller"), "make build"),
        (paths.bin.join("weft-agent"), "make build"),
        (paths.bin.join("weft-load"), "make build"),
        (compiled.join("leaf.json"), "make p4"),
    ];
    let kernel = is_lab.then(|| (paths.kernel.clone(), "make kernel"));
    for (path, target) in needed
        .into_iter()
        .chain(kernel)
        .chain(modules.map(|module| (module, "make kernel")))
    {
        if !path.exists() {
            bail!("{} is missing; run `{target}`", path.display());
        }
    }
    Ok(paths)
}

/// The folders that symbolic links at the top of the repository lead to.
fn linked(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_symlink() && path.is_dir())
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    // The file system's own order must not reach the lab.
    folders.sort();
    folders
}

/// What `topology/lab/kernel/build.py` has built last.
#[derive(Debug, Default, Deserialize)]
struct Kernel {
    /// The User-Mode Linux program.
    kernel: PathBuf,
    /// Weft's modules for it, in the order of loading.
    modules: Vec<PathBuf>,
}

impl Kernel {
    fn find() -> Result<Self> {
        let record = cache()?.join("kernel/current.json");
        let text = std::fs::read_to_string(&record)
            .with_context(|| format!("no lab kernel ({}); run `make kernel`", record.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{}; run `make kernel` again", record.display()))
    }
}

fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("WEFT_CACHE").filter(|cache| !cache.is_empty()) {
        return Ok(cache.into());
    }
    let home = std::env::var_os("HOME").context("neither WEFT_CACHE nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/weft"))
}

/// What `make results` writes: it changes nothing that runs.
const WRITTEN: [&str; 2] = [
    ":(exclude)workloads/RESULTS.md",
    ":(exclude)workloads/results",
];

/// The sources' revision as git describes it, if they are a git checkout; `-dirty` where one of
/// its files has been changed, but for results.
pub fn revision(root: &Path) -> Option<String> {
    let mut revision = git(root, &["describe", "--always", "--tags"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--", "."];
    if !git(root, &[&status[..], &WRITTEN].concat())?.is_empty() {
        revision += "-dirty";
    }
    Some(revision)
}

/// What git says; nothing where it fails.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(args).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_dirty_when_sources_are_changed_and_not_when_results_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(revision(root), None);
        let results = root.join("workloads/results");
        std::fs::create_dir_all(&results).unwrap();
        let files = [
            root.join("workloads/RESULTS.md"),
            results.join("mean.svg"),
            root.join("source"),
        ];
        let write = |text: &str, files: &[PathBuf]| {
            files
                .iter()
                .for_each(|file| std::fs::write(file, text).unwrap());
        };
        write("one", &files);
        git(root, &["init", "--quiet"]).unwrap();
        git(root, &["add", "."]).unwrap();
        let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        git(
            root,
            &[&who[..], &["commit", "--quiet", "-m", "one"]].concat(),
        )
        .unwrap();
        let clean = revision(root).unwrap();
        assert!(!clean.ends_with("-dirty"), "{clean}");
        write("two", &files[..2]);
        write("new", &[root.join("note")]);
        assert_eq!(revision(root).as_ref(), Some(&clean));
        write("two", &files[2..]);
        assert_eq!(revision(root), Some(format!("{clean}-dirty")));
    }
}
