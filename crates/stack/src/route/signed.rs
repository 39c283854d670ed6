//! Signatures of link states: kept with the states that they are for, so that any node can pass
//! both on; and what a node does when it learns a key.

use super::Route;
use super::state::{self, Form, Told};
use crate::trust::{Asked, Learned};
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::LinkState;
use ncmesh_engine::{Context, Malformed};
use ncmesh_wire::NodeId;
use ncmesh_wire::identity::Signature;

/// Signature of the version of a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateSignature {
    pub version: (u64, u32),
    pub signature: Signature,
}

impl Route {
    /// Returns the signature of a state, if it came with one.
    pub(super) fn signature_of(&self, origin: NodeId, state: &LinkState) -> Option<Signature> {
        let kept = self.signatures.get(&origin)?;
        (kept.version == state.version).then_some(kept.signature)
    }

    /// Keeps the signature of the state that was just stored, or forgets the one before.
    pub(super) fn keep_signature(
        &mut self,
        origin: NodeId,
        version: (u64, u32),
        signature: Option<Signature>,
    ) {
        match signature {
            None => drop(self.signatures.remove(&origin)),
            Some(signature) => {
                self.signatures.insert(origin, StateSignature { version, signature });
            }
        }
    }

    /// Signs the present state of this node, if it has an identity.
    pub(super) fn sign_own(&mut self) {
        let Some(state) = self.topology.state(self.me) else { return };
        let version = state.version;
        let signature = self.trust.sign(&state::signed_contents(self.me, state));
        self.keep_signature(self.me, version, signature);
    }

    /// Returns whether what is told of this node may have been told by it: before a restart, or by
    /// another node with the same key. Without an identity anything may.
    pub(super) fn may_be_own(&self, told: &Told<'_>) -> bool {
        if !self.trust.signs() {
            return true;
        }
        // A change cannot be checked without what it builds on; the whole state comes by repair.
        let Some((state, signature)) = told.whole().zip(told.signature) else { return false };
        self.trust.is_own(&state::signed_contents(self.me, &state), &signature)
    }

    /// Returns whether what is told of this node is no news to it if it has an identity.
    pub(super) fn is_old_of_own(&self, told: &Told<'_>) -> bool {
        let is_old = match told.form {
            Form::Whole { epoch, .. } => (epoch, told.seq) <= (self.epoch, self.seq),
            Form::Change { .. } => true,
        };
        self.trust.signs() && is_old
    }

    // ---- keys

    /// Handles keys that a neighbour told.
    pub(crate) fn handle_keys(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let learned = self.trust.handle_keys(body, cx.now)?;
        self.note_learned(&learned, cx.now);
        Ok(())
    }

    /// Handles certificates that a neighbour told.
    pub(crate) fn handle_certificates(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let learned = self.trust.handle_certificates(sender, body, cx.now)?;
        self.note_learned(&learned, cx.now);
        Ok(())
    }

    /// Handles a list of revocations that a neighbour told.
    pub(crate) fn handle_revocations(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let is_new = self.trust.handle_revocations(sender, body, cx.now)?;
        if is_new {
            self.forget_outcasts(cx.now);
        }
        Ok(())
    }

    /// Asks for the states that were not believed for want of a key, and forgets those that a key
    /// signed which counts no more.
    fn note_learned(&mut self, learned: &Learned, now: Instant) {
        for node in &learned.void {
            self.spread.withdraw(*node);
            self.store(*node, None, now);
        }
        for Asked { node, from } in &learned.wanted {
            self.repair.want(*node, *from, now);
        }
    }

    /// Forgets the nodes whose certificates count no more, as neighbours too.
    pub(super) fn forget_outcasts(&mut self, now: Instant) {
        for node in self.trust.outcasts(now) {
            self.outcasts.insert(node);
            if self.topology.state(node).is_some() {
                self.spread.withdraw(node);
                self.store(node, None, now);
            }
        }
    }
}
