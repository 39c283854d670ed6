//! What must reach the disk some time: done on another thread, and again until it succeeds.
//!
//! [`Saver`](ncmesh_host::saving::Saver) keeps a value that changes up to date. A chore is done
//! once: a line for the list of files received, the removal of a part.

use super::Node;
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
    /// What cannot be written, and why. Keys are names of files and directories of the daemon.
    problems: BTreeMap<&'static str, String>,
}

struct Chore {
    what: &'static str,
    work: Work,
    failures: u32,
    due: Instant,
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

    fn push(&mut self, chore: Chore) {
        if self.waiting.len() >= MAX_CHORES
            && let Some(given_up) = self.waiting.pop_front()
        {
            tracing::error!("too much cannot be saved: a change of {} is lost", given_up.what);
        }
        self.waiting.push_back(chore);
    }
}

impl Node {
    /// Does `work` on another thread, and again until it succeeds. `what` says in a word what it
    /// writes.
    pub(super) fn persist(
        &mut self,
        what: &'static str,
        work: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) {
        self.attempt(what, Arc::new(work), 0);
    }

    /// Takes the outcome of a first attempt at `work`.
    pub(super) fn check_persisted(
        &mut self,
        what: &'static str,
        result: &io::Result<()>,
        work: Work,
    ) {
        self.handle_attempt(what, result, work, 0);
    }

    /// Tries again what is due.
    pub(super) fn do_chores(&mut self, now: Instant) {
        let waiting = core::mem::take(&mut self.chores.waiting);
        for chore in waiting {
            if chore.due > now {
                self.chores.waiting.push_back(chore);
            } else {
                self.attempt(chore.what, chore.work, chore.failures);
            }
        }
    }

    fn attempt(&mut self, what: &'static str, work: Work, failures: u32) {
        let done = work.clone();
        self.handle.work(
            move || done(),
            move |node, result| node.handle_attempt(what, &result, work, failures),
        );
    }

    fn handle_attempt(
        &mut self,
        what: &'static str,
        result: &io::Result<()>,
        work: Work,
        failures: u32,
    ) {
        self.chores.note(what, result);
        if result.is_err() {
            let due = self.clock.now() + PAUSES.pause(failures);
            self.chores.push(Chore { what, work, failures: failures.saturating_add(1), due });
        }
    }
}
