//! Which medium a directory is on, as the kernel tells it in `/proc/self/mountinfo` and `/sys/dev/block`.
//!
//! What cannot be found is unknown, which is judged mildly: a virtual disk, a network file system and a stack of mapped
//! devices look alike from inside.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rotating,
    Flash,
    /// Of a virtual machine: what is below is not told.
    Virtual,
    /// tmpfs and the like.
    Memory,
    Unknown,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rotating => "a rotating disk",
            Kind::Flash => "flash",
            Kind::Virtual => "a virtual disk",
            Kind::Memory => "memory",
            Kind::Unknown => "a disk",
        }
    }

    /// No write is durable in less, at half of many tries: a quarter of a turn at 7 200 a minute; a flash device's
    /// round trip with a buffer that survives a power cut. Below a few microseconds nothing has left the machine.
    pub fn fastest(self) -> Duration {
        Duration::from_micros(match self {
            Kind::Rotating => 2_000,
            Kind::Flash => 8,
            Kind::Virtual | Kind::Memory | Kind::Unknown => 5,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    pub kind: Kind,
    pub file_system: String,
    pub device: Option<String>,
    /// `write back`: the device has a cache that must be flushed; `write through`: it says that it has none.
    pub cache: Option<String>,
}

impl Medium {
    pub fn of(dir: &Path) -> Medium {
        let device = std::fs::metadata(dir).map(|found| numbers(found.dev())).unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Medium::found(device, &mounts, Path::new("/sys"))
    }

    fn found((major, minor): (u64, u64), mounts: &str, sys: &Path) -> Medium {
        let (file_system, source) = mounted(mounts, major, minor).unwrap_or_default();
        let number = sys.join("dev/block").join(format!("{major}:{minor}")).canonicalize();
        // A partition's directory is in that of its disk.
        let disk =
            number.ok().and_then(|own| own.ancestors().take(2).find(|d| d.join("queue").is_dir()).map(Path::to_owned));
        let read = |name: &str| Some(std::fs::read_to_string(disk.as_ref()?.join(name)).ok()?.trim().to_owned());
        let name = disk.as_ref().and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
        let maker = [read("device/vendor"), read("device/model")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let is_virtual = name.as_ref().is_some_and(|n| n.starts_with("vd") || n.starts_with("xvd"))
            || ["QEMU", "VMware", "VBOX", "Msft", "Virtual", "Google"].iter().any(|v| maker.contains(v));
        let in_memory = ["tmpfs", "ramfs", "devtmpfs"].contains(&file_system.as_str())
            || name.as_ref().is_some_and(|n| n.starts_with("ram") || n.starts_with("zram"));
        let kind = match read("queue/rotational").as_deref() {
            _ if in_memory => Kind::Memory,
            _ if is_virtual => Kind::Virtual,
            Some("1") => Kind::Rotating,
            Some("0") => Kind::Flash,
            _ => Kind::Unknown,
        };
        Medium { kind, file_system, device: name.or(source), cache: read("queue/write_cache") }
    }

    pub fn described(&self) -> String {
        let file_system = if self.file_system.is_empty() { "unknown file system" } else { &self.file_system };
        let mut text = file_system.to_string();
        if let Some(device) = &self.device {
            text.push_str(&format!(" on {device}"));
        }
        match self.kind {
            Kind::Unknown => text.push_str(", of an unknown kind"),
            kind => text.push_str(&format!(", {}", kind.name())),
        }
        match self.cache.as_deref() {
            Some("write back") => text.push_str(", with a write cache that is flushed"),
            Some("write through") => text.push_str(", which says that it has no volatile write cache"),
            _ => {}
        }
        text
    }
}

/// A device number as Linux packs it.
fn numbers(device: u64) -> (u64, u64) {
    (((device >> 8) & 0xfff) | ((device >> 32) & !0xfff), (device & 0xff) | ((device >> 12) & !0xff))
}

/// File system and source of what is mounted from a device.
fn mounted(mounts: &str, major: u64, minor: u64) -> Option<(String, Option<String>)> {
    let wanted = format!("{major}:{minor}");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&wanted))?;
    let mut after = line.split_once(" - ")?.1.split(' ');
    let (file_system, source) = (after.next()?, after.next());
    Some((file_system.to_string(), source.filter(|source| *source != "none").map(str::to_string)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n25 22 0:23 / /tmp rw - tmpfs none rw\n30 22 254:0 / /v rw - xfs /dev/vda rw";

    /// A disk with a partition, as /sys has it.
    fn sys(disk: &str, number: &str, rotational: &str) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("a temporary directory");
        let own = sys.path().join("devices").join(disk);
        std::fs::create_dir_all(own.join("queue")).expect("made");
        std::fs::create_dir_all(own.join("part1")).expect("made");
        std::fs::create_dir_all(sys.path().join("dev/block")).expect("made");
        std::fs::write(own.join("queue/rotational"), rotational).expect("written");
        std::fs::write(own.join("queue/write_cache"), "write back\n").expect("written");
        std::os::unix::fs::symlink(own.join("part1"), sys.path().join("dev/block").join(number)).expect("linked");
        sys
    }

    #[test]
    fn the_medium_is_told_by_what_the_kernel_says() {
        let rotating = sys("sda", "8:1", "1\n");
        let found = Medium::found((8, 1), MOUNTS, rotating.path());
        assert_eq!(found.described(), "ext4 on sda, a rotating disk, with a write cache that is flushed");
        let flash = sys("nvme0n1", "8:1", "0\n");
        assert_eq!(Medium::found((8, 1), MOUNTS, flash.path()).kind, Kind::Flash);
        // Virtual disks say that they rotate.
        let virtual_disk = sys("vda", "254:0", "1\n");
        assert_eq!(Medium::found((254, 0), MOUNTS, virtual_disk.path()).kind, Kind::Virtual);
        let memory = Medium::found((0, 23), MOUNTS, rotating.path());
        assert_eq!((memory.kind, memory.described().as_str()), (Kind::Memory, "tmpfs, memory"));
        let unknown = Medium::found((0, 99), MOUNTS, rotating.path());
        assert_eq!(unknown.described(), "unknown file system, of an unknown kind");
        assert_eq!(numbers(0x0801), (8, 1));
        assert_eq!(numbers((259 & 0xfff) << 8 | 5), (259, 5));
    }
}
