//! The primitives under the executor, so that loom can stand in for them in model tests (`--cfg loom`).

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, Ordering};

/// A mutex that is held for a few instructions only, never across foreign code.
#[cfg(not(loom))]
pub struct Mutex<T>(parking_lot::Mutex<T>);
#[cfg(loom)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(not(loom))]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }
    pub fn lock(&self) -> parking_lot::MutexGuard<'_, T> {
        self.0.lock()
    }
}

#[cfg(loom)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }
    pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("no panic happens under it")
    }
}

#[cfg(not(loom))]
pub struct Cell<T>(std::cell::UnsafeCell<T>);
#[cfg(loom)]
pub struct Cell<T>(loom::cell::UnsafeCell<T>);

impl<T> Cell<T> {
    pub fn new(value: T) -> Self {
        #[cfg(not(loom))]
        return Cell(std::cell::UnsafeCell::new(value));
        #[cfg(loom)]
        return Cell(loom::cell::UnsafeCell::new(value));
    }

    /// Lends the content.
    ///
    /// # Safety
    /// Nobody else may be inside `with_mut` of the same cell.
    #[inline]
    pub unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(not(loom))]
        // SAFETY: the caller is alone.
        return f(unsafe { &mut *self.0.get() });
        #[cfg(loom)]
        // SAFETY: the caller is alone; loom checks it.
        return self.0.with_mut(|p| f(unsafe { &mut *p }));
    }
}

/// Lets others run while a thread waits for one of them to end a short job.
pub fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}
