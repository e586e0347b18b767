use super::*;

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimClock::default())
}

fn bytes(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    let mount = disk.mount();
    let file = mount.open(path, false).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

#[test]
fn synced_stays_and_unsynced_is_torn_by_sectors() {
    let mut states = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = disk(seed);
        let mount = disk.mount();
        let file = mount.open("f", true).unwrap();
        file.write_all_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        mount.sync_dir("").unwrap();
        file.write_all_at(&[2; 1100], 500).unwrap();
        disk.power_failure();
        assert!(file.len().is_err(), "a handle of an earlier life");
        let bytes = bytes(&disk, "f").unwrap();
        assert_eq!(bytes.len(), 2048);
        let mut state = 0;
        for (i, sector) in bytes.chunks(512).enumerate() {
            let mut old = vec![1; 512];
            if sector != old {
                state |= 1 << i;
                let start = i * 512;
                (0..512).filter(|k| (500..1600).contains(&(start + k))).for_each(|k| old[k] = 2);
                assert_eq!(sector, old);
            }
        }
        states.insert(state);
    }
    assert_eq!(states.len(), 16, "all combinations occur");
}

#[test]
fn names_need_a_synced_directory() {
    let (mut there, mut gone) = (0, 0);
    for seed in 0..100 {
        let disk = disk(seed);
        let mount = disk.mount();
        mount.create_dir_all("d").unwrap();
        mount.sync_dir("").unwrap();
        for name in ["d/a", "d/b"] {
            let file = mount.open(name, true).unwrap();
            file.write_all_at(name.as_bytes(), 0).unwrap();
            file.sync_data().unwrap();
        }
        mount.sync_dir("d").unwrap();
        mount.rename("d/a", "d/b").unwrap();
        assert_eq!(bytes(&disk, "d/b").unwrap(), b"d/a");
        disk.power_failure();
        let now = bytes(&disk, "d/b").unwrap();
        if now == b"d/a" {
            assert_eq!(bytes(&disk, "d/a"), None);
            there += 1;
        } else {
            assert_eq!((now, bytes(&disk, "d/a")), (b"d/b".to_vec(), Some(b"d/a".to_vec())));
            gone += 1;
        }
    }
    assert!(there > 20 && gone > 20);
}

#[test]
fn a_kill_keeps_the_page_cache_and_a_failed_sync_loses_it_later() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = disk(seed);
        let mount = disk.mount();
        let file = mount.open("f", true).unwrap();
        file.write_all_at(&[1; 512], 0).unwrap();
        file.sync_data().unwrap();
        mount.sync_dir("").unwrap();
        file.write_all_at(&[2; 512], 0).unwrap();
        disk.fail_sync_at(Some(1));
        assert!(file.sync_data().is_err());
        // The next sync says that all is well.
        file.sync_data().unwrap();
        disk.kill();
        assert_eq!(bytes(&disk, "f").unwrap(), [2; 512]);
        disk.power_failure();
        lost += u32::from(bytes(&disk, "f").unwrap() == [1; 512]);
    }
    assert!(lost > 10 && lost < 40, "{lost}");
}

#[test]
fn limits_stops_and_flips() {
    let disk = disk(1);
    let mount = disk.mount();
    let file = mount.open("f", true).unwrap();
    file.allocate(1000).unwrap();
    disk.set_limit(Some(1000));
    file.write_all_at(&[1; 1000], 0).unwrap();
    assert_eq!(file.write_all_at(&[1; 2], 999).unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.set_limit(None);
    assert_eq!(disk.flip_bit().unwrap().0, "f");
    let flipped = bytes(&disk, "f").unwrap().iter().filter(|&&b| b != 1).count();
    assert_eq!(flipped, 1);
    disk.stop_at(Some(3));
    assert!(mount.exists("f").is_ok() && mount.exists("f").is_ok());
    assert!(mount.exists("f").is_err() && disk.is_stopped() && mount.exists("f").is_err());
    disk.kill();
    assert!(disk.mount().exists("f").unwrap());
}

/// A file is written, synced slowly, renamed and its directory synced; the machine fails before the first sync is over.
#[test]
fn what_comes_behind_a_slow_sync_has_not_happened_before_its_end() {
    for seed in 0..50 {
        let clock = SimClock::default();
        let disk = SimDisk::new(seed, clock.clone());
        let mount = disk.mount();
        let write = |name: &str, contents: &[u8]| {
            let file = mount.open(name, true).unwrap();
            file.write_all_at(contents, 0).unwrap();
            file.sync_data().unwrap();
        };
        write("f", b"old");
        mount.sync_dir("").unwrap();
        let (now, end) = (clock.now(), clock.now() + Duration::from_millis(50));
        disk.set_stall(Some(Arc::new(move |_| end)));
        disk.set_slow(1.0);
        write("f.tmp", b"new");
        mount.rename("f.tmp", "f").unwrap();
        mount.sync_dir("").unwrap();
        if seed % 2 == 0 {
            disk.power_failure();
            assert_eq!(bytes(&disk, "f").unwrap(), b"old", "at {now:?}");
        } else {
            clock.advance_to(end);
            disk.power_failure();
            assert_eq!(bytes(&disk, "f").unwrap(), b"new");
        }
    }
}

/// Two pieces are written and synced one after the other, the first sync is slow: while it goes on the second has not even been written.
#[test]
fn a_sync_behind_a_slow_one_is_not_done_before_it() {
    let mut torn = 0;
    for seed in 0..100 {
        let clock = SimClock::default();
        let disk = SimDisk::new(seed, clock.clone());
        let mount = disk.mount();
        let file = mount.open("f", true).unwrap();
        file.write_all_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        mount.sync_dir("").unwrap();
        let end = clock.now() + Duration::from_millis(50);
        disk.set_stall(Some(Arc::new(move |_| end)));
        disk.set_slow(1.0);
        file.write_all_at(&[2; 1024], 0).unwrap();
        file.sync_data().unwrap();
        disk.set_slow(0.0);
        file.write_all_at(&[3; 1024], 1024).unwrap();
        if seed % 3 > 0 {
            file.sync_data().unwrap();
        }
        file.set_len(4096).unwrap();
        if seed % 2 == 0 {
            disk.power_failure();
            let bytes = bytes(&disk, "f").unwrap();
            assert_eq!((bytes.len(), &bytes[1024..]), (2048, &[1; 1024][..]), "seed {seed}");
            torn += u32::from(bytes[..512] != bytes[512..1024]);
        } else {
            clock.advance_to(end);
            disk.power_failure();
            let bytes = bytes(&disk, "f").unwrap();
            assert_eq!(bytes[..1024], [2; 1024]);
            assert!(seed % 3 == 0 || bytes[1024..2048] == [3; 1024], "seed {seed}");
        }
    }
    assert!(torn > 5, "{torn}: the slow sync has brought some of it to the disk");
}
