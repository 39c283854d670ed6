//! Decides which link states of others a node believes, and answers lies about the node itself.
//!
//! Nothing proves who made a state: any node tells any other's. So a lie with a newer version goes
//! round the mesh like a true state. It reaches the node that it is about, which then tells a
//! version above it, as OSPF routers do (RFC 2328, section 13.4).
//!
//! That works as long as there is a version above it that others believe. An epoch begins as the
//! time of a start, and no clock comes beyond [`LAST_DATE`] for a long time. Above that, only
//! answers to lies lead, each by one. So a node believes an epoch there only a step above the one
//! that it knows, and one lie cannot use up the numbers. A node that was away while the mesh went
//! further, or knows nothing of the origin, believes a longer leap if it is told it for some time.
//!
//! With identities an origin signs its states. Signatures are kept with the states that they are
//! for, so that any node can pass both on; [`crate::trust`] says which count.

use super::Route;
use super::state::{self, Form, Told};
use crate::trust::{Asked, Learned};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::topology::LinkState;
use ncmesh_engine::{Context, Malformed};
use ncmesh_wire::NodeId;
use ncmesh_wire::identity::{Rejection, Revocations, Signature};
use std::collections::BTreeMap;

/// Epoch from which none is believed.
pub(super) const MAX_EPOCH: u64 = 1 << 62;
/// Epoch that is made by no clock before the year 2109.
const LAST_DATE: u64 = 1 << 58;
/// Distance above the known epoch up to which one beyond the last date is believed: a restart
/// without a clock takes so much.
const STEP: u64 = 1 << 16;
/// Distance above the last date up to which a longer leap of a known node is believed after
/// [`PATIENCE`]. With an answer each second, lies by steps do not come so far.
const LONGEST_LEAP: u64 = 1 << 40;
/// Time for which a leap has to be told.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest silence about a leap in that time. Neighbours that differ compare more often.
const SILENCE: Duration = Duration::from_secs(15);
/// Most leaps that are remembered.
const MAX_LEAPS: usize = 1024;
/// Pauses between answers to lies about this node: each floods the mesh.
const ANSWERS: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };
/// Time without lies after which pauses begin again with the first.
const CALM: Duration = Duration::from_secs(60);

/// Epochs that are further ahead than their nodes can have come, as far as this one knows.
#[derive(Debug, Default)]
pub(super) struct Leaps(BTreeMap<NodeId, Leap>);

#[derive(Clone, Copy, Debug)]
struct Leap {
    /// Since when such epochs are told, and when one was told last.
    since: Instant,
    told_at: Instant,
}

impl Leaps {
    /// Returns whether a node of which the epoch `known` is known has come to a higher `epoch`.
    pub(super) fn is_plausible(
        &mut self,
        node: NodeId,
        known: Option<u64>,
        epoch: u64,
        now: Instant,
    ) -> bool {
        // No clock is beyond the last date. Above it, one step from the known epoch is plausible.
        let next = known.map_or(0, |known| known.saturating_add(STEP));
        if epoch <= next.max(LAST_DATE) {
            return epoch < MAX_EPOCH;
        }

        // This node may have missed many steps. One lie must not use up the numbers, so a leap
        // counts only once it was told for some time.
        let longest = if known.is_some() { LAST_DATE + LONGEST_LEAP } else { MAX_EPOCH - 1 };
        if epoch > longest {
            return false;
        }

        // A silence begins the wait again: rare lies do not add up.
        make_room(&mut self.0, &node, MAX_LEAPS, |leap| leap.told_at);
        let leap = self.0.entry(node).or_insert(Leap { since: now, told_at: now });
        if now.since(leap.told_at) >= SILENCE {
            leap.since = now;
        }
        leap.told_at = now;
        now.since(leap.since) >= PATIENCE
    }
}

/// Lies about this node that it has not answered.
#[derive(Debug, Default)]
pub(super) struct Belied {
    /// Epoch that ours must exceed.
    epoch: Option<u64>,
    /// Whether a version of our epoch goes round that we never told.
    by_version: bool,
    /// Answers without a longer calm, and when the next one may be given.
    answers: u32,
    next: Instant,
}

/// Signature of the version of a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateSignature {
    pub version: (u64, u32),
    pub signature: Signature,
}

impl Route {
    /// Handles what another node tells of this one: from before a restart that forgot its epoch, of
    /// another node with the same id, or a lie.
    pub(super) fn handle_own(&mut self, told: &Told<'_>, now: Instant) {
        // A change tells only low bits of its epoch. If they differ, it is not of our present one.
        let epoch = match told.form {
            Form::Whole { epoch, .. } => epoch,
            Form::Change { epoch_bits, .. } if self.epoch as u16 == epoch_bits => self.epoch,
            Form::Change { .. } => return,
        };

        if epoch > self.epoch {
            // An epoch that others do not believe is not answered: they would not believe us.
            if self.leaps.is_plausible(self.me, Some(self.epoch), epoch, now) {
                self.belied.epoch = self.belied.epoch.max(Some(epoch));
            }
        } else if epoch == self.epoch && told.seq > self.seq {
            // No room would be left above this number, so the next epoch is begun.
            if told.seq >= u32::MAX / 2 {
                self.belied.epoch = self.belied.epoch.max(Some(epoch));
            } else {
                self.seq = told.seq;
                self.belied.by_version = true;
            }
        } else if (epoch, told.seq) == (self.epoch, self.seq) && self.is_unlike_own(told) {
            self.belied.by_version = true;
        }

        self.answer_lies(now);
    }

    /// Begins another epoch, because others were told something in the present one that this node
    /// has not told.
    pub(crate) fn outdate_epoch(&mut self, now: Instant) {
        self.belied.epoch = self.belied.epoch.max(Some(self.epoch));
        self.answer_lies(now);
    }

    /// Returns whether a state of the present version of this node tells other links than this node
    /// has told.
    fn is_unlike_own(&self, told: &Told<'_>) -> bool {
        let own = self.topology.state(self.me);
        let own = own.filter(|own| own.version == (self.epoch, told.seq));
        own.zip(told.whole()).is_some_and(|(own, told)| own.hears != told.hears)
    }

    /// Announces this node at once under a version above those that others were told in its name,
    /// unless it has just done so.
    pub(super) fn answer_lies(&mut self, now: Instant) {
        let is_belied = self.belied.epoch.is_some() || self.belied.by_version;
        if !is_belied || now < self.belied.next {
            return;
        }

        if now.since(self.belied.next) >= CALM {
            self.belied.answers = 0;
        }

        // Two nodes with one id would answer each other for ever. Pauses grow with each answer.
        self.belied.next = now + ANSWERS.pause(self.belied.answers);
        self.belied.answers += 1;
        self.belied.by_version = false;

        if let Some(epoch) = self.belied.epoch.take().filter(|epoch| *epoch >= self.epoch) {
            self.epoch = epoch + 1;
            self.seq = 0;
        }

        // The whole mesh is told the whole state, however much it was told lately.
        self.is_unlike_told = true;
        self.announced_at = None;
        self.next_own = now;
    }
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

    /// Returns whether a node without an identity bears a name that the signed state of another one
    /// would take.
    pub(super) fn is_name_borne(&self, origin: NodeId, name: &str) -> bool {
        let bears = |node: NodeId| node != origin && self.trust.of(node).is_none();
        self.trust.takes_name(origin, name) && self.topology.named(name).any(bears)
    }

    // ---- keys

    /// Handles keys that a neighbour told.
    pub(crate) fn handle_keys(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let learned = self.trust.handle_keys(sender, body, cx.now)?;
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

    /// Takes a list of revocations that this node was given.
    pub(crate) fn revoke(&mut self, list: Revocations, now: Instant) -> Result<(), Rejection> {
        self.trust.revoke(list, now)?;
        self.forget_outcasts(now);
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

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn dates_are_believed_and_beyond_them_only_steps() {
        let top = LAST_DATE;
        for (known, epoch, is_plausible) in [
            (None, 1, true),
            (None, top, true),
            (None, top + 1, false),
            // A clock that a node has found, or lost.
            (Some(1 << 20), 1 << 57, true),
            (Some(1 << 57), top, true),
            (Some(1 << 57), top + 1, false),
            (Some(top), top + STEP, true),
            (Some(top), top + STEP + 1, false),
            (Some(MAX_EPOCH - 1), MAX_EPOCH, false),
            (Some(1 << 57), u64::MAX, false),
        ] {
            let plausible = Leaps::default().is_plausible(NODE, known, epoch, at(0));
            assert_eq!(plausible, is_plausible, "{known:?} {epoch}");
        }
    }

    #[test]
    fn a_leap_is_believed_once_it_was_told_for_a_while() {
        for (known, longest) in [(Some(5), LAST_DATE + LONGEST_LEAP), (None, MAX_EPOCH - 1)] {
            let mut leaps = Leaps::default();
            let mut told = |epoch, s| leaps.is_plausible(NODE, known, epoch, at(s));
            assert!(!told(longest, 100) && !told(longest, 109));
            assert!(told(longest, 110));
            assert!(!told(longest + 1, 111));
            // After a silence it begins again.
            assert!(!told(longest, 200) && !told(longest, 205) && told(longest, 212));
        }
    }

    #[test]
    fn leaps_of_many_nodes_take_bounded_memory() {
        let mut leaps = Leaps::default();
        for node in 0..10_000 {
            leaps.is_plausible(NodeId(node), None, MAX_EPOCH - 1, at(0));
        }
        assert_eq!(leaps.0.len(), MAX_LEAPS);
    }
}
