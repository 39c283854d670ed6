//! Writes that must reach the disk some time: done on another thread, and again until it succeeds.
//!
//! [`Saver`](ncmesh_host::saving::Saver) keeps a value that changes up to date. A chore is done
//! once: a line for the list of files received, the removal of a part.

use super::Handle;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// Pauses between attempts.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };
/// Most chores that wait. Beyond it the oldest is given up: what it would have saved or removed is
/// found again, or removed, after a restart.
const MAX_CHORES: usize = 1024;

/// Work that a chore does.
pub(super) type Work = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Chores that failed, and what could not be written last.
#[derive(Default)]
pub(super) struct Chores {
    waiting: VecDeque<Chore>,
    /// Files that cannot be written, and why, by names of files and directories of the daemon.
    problems: BTreeMap<&'static str, String>,
}

/// An attempt that failed, and when the next one is due.
struct Chore {
    attempt: Attempt,
    due: Instant,
}

/// An attempt to write something.
struct Attempt {
    what: &'static str,
    work: Work,
    /// Attempts before this one, all of which failed.
    failures: u32,
}

impl Chores {
    /// Returns when the next chore is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|chore| chore.due).min()
    }

    /// Returns what cannot be written, and why.
    pub(super) fn problems(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.problems.iter().map(|(what, why)| (*what, why.as_str()))
    }

    /// Notes whether `what` could be written.
    pub(super) fn note(&mut self, what: &'static str, result: &io::Result<()>) {
        match result {
            Ok(()) => {
                // Success is worth a line only after a failure.
                if self.problems.remove(what).is_some() {
                    tracing::info!("{what} is saved again");
                }
            }
            Err(e) => {
                tracing::warn!("{what} cannot be saved: {e}");
                self.problems.insert(what, e.to_string());
            }
        }
    }

    /// Does `work` on another thread, and again until it succeeds. `what` says in a word what it
    /// writes.
    pub(super) fn persist(
        &self,
        what: &'static str,
        handle: &Handle,
        work: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) {
        let first = Attempt { what, work: Arc::new(work), failures: 0 };
        first.begin(handle);
    }

    /// Takes the outcome of a first attempt at `work`.
    pub(super) fn check_persisted(
        &mut self,
        what: &'static str,
        result: &io::Result<()>,
        work: Work,
        now: Instant,
    ) {
        self.note_attempt(Attempt { what, work, failures: 0 }, result, now);
    }

    /// Tries again what is due.
    pub(super) fn handle_timeout(&mut self, handle: &Handle, now: Instant) {
        for chore in core::mem::take(&mut self.waiting) {
            if chore.due > now {
                self.waiting.push_back(chore);
            } else {
                chore.attempt.begin(handle);
            }
        }
    }

    fn note_attempt(&mut self, attempt: Attempt, result: &io::Result<()>, now: Instant) {
        self.note(attempt.what, result);
        if result.is_ok() {
            return;
        }

        // Bounded, for a disk that stays full. A restart finds the work of the oldest again.
        if self.waiting.len() >= MAX_CHORES
            && let Some(given_up) = self.waiting.pop_front()
        {
            let what = given_up.attempt.what;
            tracing::error!("too much cannot be saved: a change of {what} is lost");
        }

        let due = now + PAUSES.pause(attempt.failures);
        let failures = attempt.failures.saturating_add(1);
        self.waiting.push_back(Chore { attempt: Attempt { failures, ..attempt }, due });
    }
}

impl Attempt {
    /// Does the work on another thread.
    fn begin(self, handle: &Handle) {
        let work = self.work.clone();
        handle.work(
            move || work(),
            move |node, result| node.chores.note_attempt(self, &result, node.clock.now()),
        );
    }
}
