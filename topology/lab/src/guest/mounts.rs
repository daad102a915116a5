// SPDX-License-Identifier: Apache-2.0

//! File systems of the lab.
//!
//! The root is the machine's own, read-only. Folders that programs write to are in memory. Only
//! the lab's folder is shared with the outside.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use crate::rundir::GUEST_RUNDIR;
use crate::spec::LabSpec;

/// Folders that each lab has in memory, over those of the machine.
pub const OWN_FOLDERS: [&str; 3] = ["/run", "/tmp", "/dev/shm"];

/// Links to a process's own descriptors, under the names that shells use.
const DESCRIPTORS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Mounts the usual file systems of a Linux system.
pub fn system() -> io::Result<()> {
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    attach("proc", "/proc", quiet, None)?;
    attach("sysfs", "/sys", quiet, None)?;
    attach("devtmpfs", "/dev", MsFlags::MS_NOSUID, None)?;
    for (target, name) in DESCRIPTORS {
        symlink(target, name)?;
    }
    for dir in ["/dev/pts", "/dev/shm"] {
        fs::create_dir_all(dir)?;
    }
    attach(
        "devpts",
        "/dev/pts",
        MsFlags::MS_NOSUID,
        Some("mode=620,ptmxmode=666"),
    )?;
    for dir in OWN_FOLDERS {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        attach("tmpfs", dir, flags, None)?;
    }
    Ok(())
}

/// Mounts the lab's folder; `outside` is its path outside.
pub fn rundir(outside: &Path) -> io::Result<()> {
    fs::create_dir_all(GUEST_RUNDIR)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("hostfs", GUEST_RUNDIR, flags, Some(text(outside)?))
}

/// For a network on this machine's own kernel: mounts the folder `outside` where a lab has it,
/// with an otherwise empty `/run`, and a `/sys` that shows the network's own interfaces, where
/// BMv2 checks that they are up. Only this process's mount namespace changes.
pub fn native(outside: &Path) -> io::Result<()> {
    let folder = fs::File::open(outside)?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    attach("sysfs", "/sys", quiet, None)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("tmpfs", "/run", flags, None)?;
    fs::create_dir_all(GUEST_RUNDIR)?;
    // The folder may have been in `/run` itself.
    let folder = format!("/proc/self/fd/{}", folder.as_raw_fd());
    mount(
        Some(folder.as_str()),
        GUEST_RUNDIR,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?;
    Ok(())
}

/// Mounts again, read-only, what the lab needs and [`system`] has hidden, such as a checkout in
/// `/tmp`.
pub fn hidden(spec: &LabSpec) -> io::Result<()> {
    let paths = &spec.paths;
    let folder_of = |file: &Path| file.parent().map(Path::to_path_buf);
    let mut needed = BTreeSet::from([paths.repo.clone(), paths.bin.clone()]);
    needed.extend(paths.programs.iter().chain(&paths.linked).cloned());
    needed.extend(paths.modules.iter().filter_map(|module| folder_of(module)));
    needed.extend(spec.bmv2.iter().filter_map(|program| folder_of(program)));
    needed.extend(spec.batch.iter().flat_map(|batch| batch.needs.clone()));
    // An interpreter also needs the folders next to its `bin`.
    let programs = folder_of(&paths.python);
    let environment = programs.as_deref().and_then(folder_of);
    needed.extend(match environment {
        Some(dir) if !OWN_FOLDERS.iter().any(|memory| dir == Path::new(memory)) => Some(dir),
        _ => programs,
    });
    // Outer folders come first and make inner ones visible.
    for dir in needed {
        let covered = OWN_FOLDERS.iter().any(|memory| dir.starts_with(memory));
        if !covered || dir.exists() {
            continue;
        }
        fs::create_dir_all(&dir)?;
        let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        attach("hostfs", text(&dir)?, flags, Some(text(&dir)?))?;
    }
    let read = spec.batch.iter().flat_map(|batch| &batch.reads);
    for (number, file) in read.filter(|file| !file.exists()).enumerate() {
        lone(file, number)?;
    }
    Ok(())
}

/// Makes a single file visible at its outside path, without its siblings.
fn lone(file: &Path, number: usize) -> io::Result<()> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Ok(());
    };
    let outside = Path::new("/run/outside").join(number.to_string());
    fs::create_dir_all(&outside)?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("hostfs", text(&outside)?, flags, Some(text(folder)?))?;
    fs::create_dir_all(folder)?;
    fs::File::create(file)?;
    mount(
        Some(&outside.join(name)),
        file,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?;
    Ok(())
}

fn attach(kind: &str, at: &str, flags: MsFlags, data: Option<&str>) -> io::Result<()> {
    match mount(Some("none"), at, Some(kind), flags, data) {
        // The kernel has already mounted it.
        Ok(()) | Err(Errno::EBUSY) => Ok(()),
        Err(errno) => Err(io::Error::new(
            io::Error::from(errno).kind(),
            format!("mount {kind} on {at}: {errno}"),
        )),
    }
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{}: not UTF-8", path.display()),
        )
    })
}
