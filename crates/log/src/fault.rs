//! Named fault points: places where a test can make the process crash, an operation fail or a pause happen.
//!
//! `fault::point("redo.flush.before_sync")?` stands wherever the order of steps matters. Off, it costs a relaxed load of one atomic.
//! Names, not numbers: they stay when code moves, and all of them stand in [`ALL`] (a test compares the list with the sources).
//!
//! Faults are set for the whole process ([`set`], or the environment variable `RAUK_FAULT` read by
//! [`set_from_environment`]: a child process that a test starts) or for the calling thread only ([`Local`]: the
//! simulator, and unit tests, which run beside each other).
//! `RAUK_FAULT=redo.flush.before_sync:abort@17,checkpoint.row:enospc` aborts the process when that point is met the
//! 17th time, and makes the first row of a checkpoint fail; `@3+` means from the third time on; actions are `abort`,
//! `eio`, `enospc`, `pause=MILLISECONDS` and `hold=FILE`: what asks for it ([`holds`]) waits there, without a thread,
//! while the file exists.
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Every fault point there is, sorted.
pub const ALL: &[&str] = &[
    "checkpoint.before_create",
    "checkpoint.before_finish",
    "checkpoint.before_publish",
    "checkpoint.before_remove",
    "checkpoint.before_sync",
    "checkpoint.block",
    "checkpoint.read.block",
    "journal.append.after_sync",
    "journal.append.before_sync",
    "journal.append.before_write",
    "journal.compact.before",
    "journal.open.before_cut",
    "member.follow",
    "member.open.adopted",
    "member.open.registered",
    "member.start_anew",
    "node.checkpoint.after_manifest",
    "node.checkpoint.after_rows",
    "node.checkpoint.begin",
    "node.commit.after_append",
    "node.commit.before_append",
    "node.ddl.after_switch",
    "node.ddl.before_switch",
    "node.ddl.cluster.before_switch",
    "node.ddl.cluster.change",
    "node.ddl.cluster.locked",
    "node.ddl.cluster.locked_again",
    "node.ddl.cluster.open",
    "node.ddl.copy",
    "node.ddl.copy_again",
    "node.ddl.index",
    "node.ddl.step",
    "node.ddl.validate",
    "node.recovery.after_checkpoint",
    "node.recovery.after_redo",
    "redo.append",
    "redo.flush.after_sync",
    "redo.flush.before_publish",
    "redo.flush.before_sync",
    "redo.flush.before_write",
    "redo.open.before_rewrite",
    "redo.open.before_sync",
    "redo.open.segment",
    "redo.read.frame",
    "redo.release.before_remove",
    "redo.segment.after_take",
    "redo.segment.before_allocate",
    "redo.segment.before_recycle",
    "redo.segment.before_recycle_sync",
    "redo.segment.before_rename",
    "redo.segment.before_sync",
    "redo.segment.before_sync_dir",
    "redo.segment.before_upgrade",
    "redo.segment.before_write",
    "replace.after_sync_dir",
    "replace.before_rename",
    "replace.before_sync",
    "replace.before_sync_dir",
    "replace.before_write",
    "superblock.after_sync",
    "superblock.before_allocate",
    "superblock.before_sync",
    "superblock.before_write",
];

#[derive(Clone)]
pub enum Action {
    /// Ends the process at once, as kill -9 would.
    Abort,
    Error(io::ErrorKind),
    Pause(Duration),
    /// See [`holds`].
    Hold(PathBuf),
    /// Whatever a test wants; an error is the point's result.
    Call(Arc<dyn Fn() -> io::Result<()> + Send + Sync>),
}

#[derive(Clone)]
struct Fault {
    action: Action,
    /// The hit that triggers it, counted from 1.
    at: u64,
    /// Every later hit as well.
    onwards: bool,
    hits: u64,
}

/// How many faults are set, in the process and in all threads: zero makes every point free.
static ARMED: AtomicUsize = AtomicUsize::new(0);
static GLOBAL: Mutex<BTreeMap<String, Fault>> = Mutex::new(BTreeMap::new());

type Observer = Box<dyn Fn(&'static str) -> io::Result<()>>;

thread_local! {
    static LOCAL: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// A place where a fault may happen. `Ok` unless a fault that is set says otherwise.
#[inline]
pub fn point(name: &'static str) -> io::Result<()> {
    if ARMED.load(Ordering::Relaxed) == 0 { Ok(()) } else { met(name) }
}

#[cold]
fn met(name: &'static str) -> io::Result<()> {
    // Taken out while it runs, so that an observer that meets a point itself does not run twice.
    if let Some(observer) = LOCAL.take() {
        let result = observer(name);
        LOCAL.set(Some(observer));
        result?;
    }
    let action = {
        let mut faults = GLOBAL.lock();
        let Some(fault) = faults.get_mut(name) else { return Ok(()) };
        fault.hits += 1;
        if fault.hits != fault.at && !(fault.onwards && fault.hits > fault.at) {
            return Ok(());
        }
        fault.action.clone()
    };
    match action {
        Action::Abort => std::process::abort(),
        Action::Error(kind) => Err(io::Error::new(kind, format!("fault point {name}"))),
        Action::Pause(duration) => {
            std::thread::sleep(duration);
            Ok(())
        }
        Action::Call(call) => call(),
        Action::Hold(_) => Ok(()),
    }
}

/// Whether work that comes to this point is to wait there, for as long as this says so.
#[inline]
pub fn holds(name: &'static str) -> bool {
    ARMED.load(Ordering::Relaxed) > 0
        && matches!(GLOBAL.lock().get(name), Some(Fault { action: Action::Hold(file), .. }) if file.exists())
}

/// Sets a fault for the whole process: at hit `at` (from 1), and at all later ones if `onwards`. Replaces the point's earlier fault.
pub fn set(name: &str, action: Action, at: u64, onwards: bool) {
    let earlier = GLOBAL.lock().insert(name.to_string(), Fault { action, at, onwards, hits: 0 });
    if earlier.is_none() {
        ARMED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes away the process's fault at this point.
pub fn clear(name: &str) {
    if GLOBAL.lock().remove(name).is_some() {
        ARMED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sets the faults that `RAUK_FAULT` names; an error says what in it is wrong.
pub fn set_from_environment() -> Result<(), String> {
    match std::env::var("RAUK_FAULT") {
        Ok(text) => parse(&text).map(|faults| faults.into_iter().for_each(|(n, a, at, on)| set(&n, a, at, on))),
        Err(_) => Ok(()),
    }
}

fn parse(text: &str) -> Result<Vec<(String, Action, u64, bool)>, String> {
    let one = |item: &str| {
        let wrong = |what: &str| {
            format!(
                "RAUK_FAULT: {what} in '{item}' (expected POINT:abort|eio|enospc|pause=MS[@N[+]] or POINT:hold=FILE)"
            )
        };
        let (name, rest) = item.split_once(':').ok_or_else(|| wrong("no ':'"))?;
        if !ALL.contains(&name) {
            return Err(wrong("no such fault point"));
        }
        let (action, at) = rest.split_once('@').unwrap_or((rest, "1"));
        let (at, onwards) = at.strip_suffix('+').map_or((at, false), |at| (at, true));
        let at = at.parse().ok().filter(|&at| at > 0).ok_or_else(|| wrong("no number after '@'"))?;
        if let Some(file) = action.strip_prefix("hold=") {
            return Ok((name.to_string(), Action::Hold(file.into()), at, onwards));
        }
        let action = match (action, action.strip_prefix("pause=")) {
            ("abort", _) => Action::Abort,
            ("eio", _) => Action::Error(io::ErrorKind::Other),
            ("enospc", _) => Action::Error(io::ErrorKind::StorageFull),
            (_, Some(ms)) => Action::Pause(Duration::from_millis(ms.parse().map_err(|_| wrong("no milliseconds"))?)),
            _ => return Err(wrong("unknown action")),
        };
        Ok((name.to_string(), action, at, onwards))
    };
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(one).collect()
}

/// Faults of one thread: `observer` is called at every point that this thread meets, and its error is the point's result.
/// Dropping it takes the observer away.
pub struct Local(());

impl Local {
    pub fn new(observer: impl Fn(&'static str) -> io::Result<()> + 'static) -> Local {
        let earlier = LOCAL.replace(Some(Box::new(observer)));
        assert!(earlier.is_none(), "one set of local faults a thread");
        ARMED.fetch_add(1, Ordering::Relaxed);
        Local(())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        LOCAL.set(None);
        ARMED.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::rc::Rc;

    fn names_in(dir: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names_in(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("log/src/fault.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                // Also behind a wrapper of another crate's.
                for call in ["fault::point(\"", "fault_point(\""] {
                    for part in text.split(call).skip(1) {
                        found.insert(part.split('"').next().unwrap().to_string());
                    }
                }
            }
        }
    }

    #[test]
    fn every_point_is_listed_once_and_used() {
        let mut found = BTreeSet::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for entry in std::fs::read_dir(crates).unwrap() {
            let src = entry.unwrap().path().join("src");
            if src.is_dir() {
                names_in(&src, &mut found);
            }
        }
        assert!(ALL.is_sorted());
        let listed: BTreeSet<String> = ALL.iter().map(|n| n.to_string()).collect();
        assert_eq!(listed, found);
        assert_eq!(listed.len(), ALL.len());
    }

    #[test]
    fn local_faults_are_local() {
        let hits = Rc::new(Cell::new(0));
        let seen = hits.clone();
        let local = Local::new(move |name| {
            seen.set(seen.get() + 1);
            if name == "redo.append" { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        });
        assert!(point("redo.flush.before_write").is_ok());
        assert_eq!(point("redo.append").unwrap_err().kind(), io::ErrorKind::StorageFull);
        std::thread::spawn(|| point("redo.append").unwrap()).join().unwrap();
        drop(local);
        assert!(point("redo.append").is_ok());
        assert_eq!(hits.get(), 2);
    }

    #[test]
    fn environment_syntax() {
        let faults = parse("redo.append:abort@17, checkpoint.block:pause=5,redo.flush.before_sync:eio@2+").unwrap();
        assert_eq!(faults.len(), 3);
        assert!(matches!(faults[0], (ref n, Action::Abort, 17, false) if n == "redo.append"));
        assert!(matches!(faults[1].1, Action::Pause(d) if d.as_millis() == 5));
        assert!(matches!(faults[2], (_, Action::Error(_), 2, true)));
        let held = parse("node.ddl.index:hold=/tmp/a-file").unwrap();
        assert!(matches!(&held[0].1, Action::Hold(file) if file.as_os_str() == "/tmp/a-file"));
        for wrong in
            ["redo.append", "nowhere:abort", "redo.append:explode", "redo.append:abort@0", "redo.append:pause=x"]
        {
            assert!(parse(wrong).err().expect(wrong).contains("RAUK_FAULT"));
        }
    }

    // The only test that sets faults of the whole process; its point is met by no other test of this crate.
    #[test]
    fn counted_faults() {
        set("test.only", Action::Error(io::ErrorKind::Other), 2, false);
        let results: Vec<bool> = (0..4).map(|_| point("test.only").is_ok()).collect();
        clear("test.only");
        assert_eq!(results, [true, false, true, true]);
        assert!(point("test.only").is_ok());
    }
}
