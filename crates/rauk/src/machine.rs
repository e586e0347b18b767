//! What the machine gives to this process: memory.
//!
//! The kernel bounds a process twice: by the memory of the machine, and by the limits of the control group (cgroup) that
//! the process is in, which containers and systemd's `MemoryMax=` set. A limit of Rauk's own above the lower of them
//! would not be kept: the kernel ends the process (OOM) before an error 1114 could say that memory is full.
//!
//! Mechanism: `/proc/meminfo` has the machine's memory. `/proc/self/cgroup` names the group, `/proc/self/mountinfo` where
//! its files are; the limit of each group from there up to the mount point counts, since a parent's limit holds for all
//! that is below it. Version 2 (`memory.max`) and version 1 (`memory.limit_in_bytes`) are read, also both side by side.
//!
//! Invariant: what cannot be read is no limit. A wrong guess must not keep the server from starting. Left out: swap,
//! `memory.high` (it slows down and does not end), and what other processes of the machine take.

use std::path::{Path, PathBuf};

/// The most that this process can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub bytes: u64,
    /// What bounds it, as the subject and verb of a sentence: `this machine has`.
    pub of: String,
}

/// The machine's memory or the control group's limit, whichever is lower; `None` where that cannot be read.
pub fn memory() -> Option<Memory> {
    memory_below(Path::new("/"))
}

/// The same with the files below another root.
fn memory_below(root: &Path) -> Option<Memory> {
    let machine = machine_memory(root).map(|bytes| Memory { bytes, of: "this machine has".into() });
    let group = group_limit(root).map(|(bytes, file)| Memory {
        bytes,
        of: format!("the control group allows ({})", Path::new("/").join(file).display()),
    });
    machine.into_iter().chain(group).min_by_key(|memory| memory.bytes)
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = read(root, Path::new("proc/meminfo"))?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

fn read(root: &Path, path: &Path) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

/// The lowest limit of the group and of those that it is in, and the file that sets it.
fn group_limit(root: &Path) -> Option<(u64, PathBuf)> {
    let groups = read(root, Path::new("proc/self/cgroup"))?;
    let mounts = read(root, Path::new("proc/self/mountinfo"))?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::of).collect();
    let limits = groups.lines().filter_map(Group::of).filter_map(|group| {
        let mount = mounts.iter().find(|mount| mount.version_2 == group.version_2)?;
        lowest(root, mount, &group)
    });
    limits.min()
}

/// Where the files of a hierarchy that limits memory are.
struct Mount {
    version_2: bool,
    /// The group whose directory is the mount point.
    group: String,
    /// Without the slash at its beginning.
    point: PathBuf,
}

impl Mount {
    /// A line of mountinfo: `36 35 98:0 /group /mount/point options optional - type source super-options`.
    fn of(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (group, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or_default());
        let version_2 = match kind {
            "cgroup2" => true,
            "cgroup" if options.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        Some(Mount { version_2, group: group.into(), point: point.trim_start_matches('/').into() })
    }
}

/// The process's group in a hierarchy that may limit memory.
struct Group {
    version_2: bool,
    path: String,
}

impl Group {
    /// A line of `/proc/self/cgroup`: `0::/path` of version 2, `4:cpu,memory:/path` of version 1.
    fn of(line: &str) -> Option<Group> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let version_2 = number == "0" && controllers.is_empty();
        let limits = version_2 || controllers.split(',').any(|controller| controller == "memory");
        limits.then(|| Group { version_2, path: path.into() })
    }
}

fn lowest(root: &Path, mount: &Mount, group: &Group) -> Option<(u64, PathBuf)> {
    // A container without a namespace for groups sees its group's path from outside, and the group at the mount point.
    let inside = match group.path.strip_prefix(mount.group.trim_end_matches('/')) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => "",
    };
    let file = if mount.version_2 { "memory.max" } else { "memory.limit_in_bytes" };
    let own = if inside.is_empty() { mount.point.clone() } else { mount.point.join(inside) };
    let directories = own.ancestors().take_while(|directory| directory.starts_with(&mount.point));
    let limits = directories.filter_map(|directory| {
        let file = directory.join(file);
        // `max`, and numbers near 2^63 in version 1, are no limit: the machine's memory is lower.
        let bytes = read(root, &file)?.trim().parse::<u64>().ok()?;
        Some((bytes, file))
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
    const V1: &str = "33 32 0:30 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory";
    const GIB: u64 = 1 << 30;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        root
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:   1 kB\n");

    fn found(files: &[(&str, &str)]) -> (u64, String) {
        let root = root(files);
        let memory = memory_below(root.path()).expect("there is a bound");
        (memory.bytes, memory.of)
    }

    #[test]
    fn without_a_group_the_machine_counts() {
        assert_eq!(found(&[MACHINE]), (8 * GIB, "this machine has".into()));
        assert_eq!(memory_below(root(&[]).path()), None);
        let unlimited = [
            MACHINE,
            ("proc/self/cgroup", "0::/user.slice\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        ];
        assert_eq!(found(&unlimited).0, 8 * GIB);
    }

    #[test]
    fn the_lowest_limit_of_the_group_and_its_parents_counts() {
        let files = [
            MACHINE,
            ("proc/self/cgroup", "0::/a/b/c\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/c/memory.max", "3221225472\n"),
        ];
        assert_eq!(found(&files), (2 * GIB, "the control group allows (/sys/fs/cgroup/a/memory.max)".into()));
        let mut own_is_lower = files;
        own_is_lower[5].1 = "1073741824";
        assert_eq!(found(&own_is_lower).0, GIB);
    }

    #[test]
    fn version_1_counts_beside_an_empty_version_2() {
        let mounts = format!("{V2}\n{V1}\n");
        let files = [
            MACHINE,
            ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n"),
            ("proc/self/mountinfo", mounts.as_str()),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n"),
        ];
        assert_eq!(
            found(&files),
            (GIB, "the control group allows (/sys/fs/cgroup/memory/job/memory.limit_in_bytes)".into())
        );
    }

    /// The mount point is the container's own group, whose path is that outside of it.
    #[test]
    fn a_container_finds_its_own_limit() {
        for (path, group) in [("/docker/abc", "/docker/abc"), ("/../other", "/"), ("/", "/docker/abc")] {
            let own = format!("0::{path}\n");
            let mount = format!("30 25 0:26 {group} /sys/fs/cgroup ro - cgroup2 cgroup rw");
            let files = [
                MACHINE,
                ("proc/self/cgroup", own.as_str()),
                ("proc/self/mountinfo", mount.as_str()),
                ("sys/fs/cgroup/memory.max", "536870912\n"),
            ];
            assert_eq!(found(&files).0, GIB / 2, "{path} {group}");
        }
    }
}
