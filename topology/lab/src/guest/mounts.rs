//! File systems of the inside.
//!
//! The root is the machine's own, read-only; what programs expect to write to
//! is memory, and only the rundir reaches outside.

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

/// Folders that a lab has of its own: they are covered with memory.
pub const OWN_FOLDERS: [&str; 3] = ["/run", "/tmp", "/dev/shm"];

/// A process's own descriptors under the names that shells use.
const DESCRIPTORS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Mounts what every Linux has.
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

/// Mounts the lab's folder, whose path outside is `outside`.
pub fn rundir(outside: &Path) -> io::Result<()> {
    fs::create_dir_all(GUEST_RUNDIR)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("hostfs", GUEST_RUNDIR, flags, Some(text(outside)?))
}

/// Makes a network's folder, whose path is `outside`, appear where it is in a lab, `/run`
/// empty besides, and `/sys` tell of the network's own interfaces: BMv2 looks there whether
/// they are up. The namespace of mounts is this process's own.
pub fn native(outside: &Path) -> io::Result<()> {
    let folder = fs::File::open(outside)?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    attach("sysfs", "/sys", quiet, None)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("tmpfs", "/run", flags, None)?;
    fs::create_dir_all(GUEST_RUNDIR)?;
    // It may have been in `/run` itself.
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

/// Mounts again, read-only, what the lab needs and [`system`] has covered:
/// somebody's checkout in `/tmp`.
pub fn hidden(spec: &LabSpec) -> io::Result<()> {
    let paths = &spec.paths;
    let folder_of = |file: &Path| file.parent().map(Path::to_path_buf);
    let mut needed = BTreeSet::from([
        paths.repo.clone(),
        paths.bin.clone(),
        paths.pipelines.clone(),
    ]);
    needed.extend(paths.linked.iter().cloned());
    needed.extend(paths.modules.iter().filter_map(|module| folder_of(module)));
    needed.extend(spec.bmv2.iter().filter_map(|program| folder_of(program)));
    needed.extend(spec.batch.iter().flat_map(|batch| batch.needs.clone()));
    // An interpreter is of no use without what is beside its `bin`.
    let programs = folder_of(&paths.python);
    let environment = programs.as_deref().and_then(folder_of);
    needed.extend(match environment {
        Some(dir) if !OWN_FOLDERS.iter().any(|memory| dir == Path::new(memory)) => Some(dir),
        _ => programs,
    });
    // Outer ones come first, and make inner ones visible.
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

/// Makes a file appear where it is outside, without what is beside it.
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
        // The kernel has done it.
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
