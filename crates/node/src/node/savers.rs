//! Values that the daemon remembers beyond a restart, written by other threads when they changed:
//! its epoch, keys of others, and inboxes other than the configured one.
//!
//! A write that fails is tried again with a backoff ([`Saver`]). The daemon goes on meanwhile.

use super::Handle;
use crate::identity::Remembered;
use crate::state::StateDir;
use ncmesh_engine::time::Instant;
use ncmesh_host::saving::Saver;
use ncmesh_stack::Stack;
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Values that are kept on disk.
pub(super) struct Savers {
    pub(super) epoch: Saver<u64>,
    inboxes: Saver<BTreeMap<FlowId, PathBuf>>,
    /// Number of changes of keys and certificates.
    identities: Saver<u64>,
}

impl Savers {
    /// Returns savers of the inboxes that were read from the disk, and of an epoch that is new.
    pub(super) fn new(inboxes: BTreeMap<FlowId, PathBuf>) -> Self {
        Self { epoch: Saver::new(0), inboxes: Saver::new(inboxes), identities: Saver::new(0) }
    }

    /// When [`save`](Self::save) is to be called again though nothing happened.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let times = [
            self.epoch.poll_timeout(),
            self.inboxes.poll_timeout(),
            self.identities.poll_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// Writes what changed and must be on disk soon, and what is due again after a failure: the
    /// epoch, which the stack raises if others remember a higher one, keys of others, and the
    /// inboxes of files that do not go to the configured one, where a restart goes on.
    pub(super) fn save(
        &mut self,
        stack: &Stack,
        elsewhere: &BTreeMap<FlowId, PathBuf>,
        state: &Arc<StateDir>,
        handle: &Handle,
        now: Instant,
    ) {
        // A thread writes; its result comes back to the node's loop, which tries again if it
        // failed.
        if let Some(epoch) = self.epoch.begin(&stack.epoch(), now) {
            let state = state.clone();
            handle.work(
                move || state.save_epoch(epoch),
                |node, written| {
                    node.savers.epoch.handle_written(written.is_ok(), node.clock.now());
                    node.chores.note("epoch", &written);
                },
            );
        }

        if self.identities.begin(&stack.identity_changes(), now).is_some() {
            // The copy is made here, since the thread cannot look at the stack.
            let state = state.clone();
            let remembered = Remembered::of(stack);
            handle.work(
                move || remembered.save(&state),
                |node, written| {
                    node.savers.identities.handle_written(written.is_ok(), node.clock.now());
                    node.chores.note("identities", &written);
                },
            );
        }

        if let Some(inboxes) = self.inboxes.begin(elsewhere, now) {
            let state = state.clone();
            handle.work(
                move || state.save_inboxes(&inboxes),
                |node, written| {
                    node.savers.inboxes.handle_written(written.is_ok(), node.clock.now());
                    node.chores.note("inboxes", &written);
                },
            );
        }
    }
}
