//! Decides whose link states a node believes.
//!
//! A node without identities believes every state. One that trusts on first use pins each node's id
//! to the key under which it first heard a signed state, and believes nothing else under that id
//! from then on. A member of a network believes only states that a certified key signed.
//!
//! Keys travel on demand. A node that hears a signed state and lacks the key asks the neighbour
//! that told it; the answer is a broadcast, from which others learn, too. Lists of revocations are
//! told to all neighbours when they are new, and to those that say they have older ones.

mod checks;
mod frame;
mod jitter;
mod network;

use checks::Checks;
pub use frame::{CERTIFICATES, KEYS, KEYS_WANTED, KNOWN_LISTS, REVOCATIONS};
use frame::{Certificates, Keys, KnownList, KnownLists, NodeKey};
pub(crate) use frame::{KeysWanted, LAYOUTS};
use jitter::Jitter;
use ncmesh_engine::Malformed;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::topology::{LinkState, Profile};
use ncmesh_wire::identity::{
    Authority, Certificate, PublicKey, Purpose, Rejection, Revocations, SecretKey, Signature,
};
use ncmesh_wire::{NodeId, Record, Writer};
use network::Network;
use std::collections::{BTreeMap, BTreeSet};

/// Most nodes whose key or certificate is kept: as many as link states.
const MAX_KEYS: usize = 20_000;
/// Most keys that no signature has confirmed yet.
const MAX_CANDIDATES: usize = 1_024;
/// Most keys that are asked for, or waited for by neighbours, at a time.
const MAX_WANTED: usize = 400;
/// Time before the first request for a key. Others may be about to ask, or to answer.
const REQUEST_WAIT: Duration = Duration::from_millis(60);
/// Most requests for the same key.
const MAX_REQUESTS: u32 = 5;
/// Pauses between requests for the same key.
const REQUEST_PAUSES: Backoff =
    Backoff { first: Duration::from_millis(300), longest: Duration::from_millis(4_800) };
/// Most times in [`TELLS_TIME`] that a key goes with the whole states of its node. These are told
/// to nodes that lack the state, and as a rule those of a node that is new lack its key as well.
const MOST_TELLS: u8 = 4;
const TELLS_TIME: Duration = Duration::from_secs(600);
/// Pauses between answers that tell the same key. They double while it is asked for again and
/// again, by any node: an id costs nothing, so a budget for each one would bound nothing.
const ANSWER_PAUSES: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(16) };
/// Number of pauses without a request after which they begin again with the first.
const QUIET_PAUSES: u32 = 4;
/// Pause between two writes of what must survive a restart, for each key known, and at least. A
/// file has about 80 bytes for a key, so at most 8 kB are written in a second.
const SAVE_PAUSE_PER_KEY: Duration = Duration::from_millis(10);
const LEAST_SAVE_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two writes because pinned nodes have other names. Flash wears out, and a node may
/// change its name as often as it likes.
const RENAME_PAUSE: Duration = Duration::from_secs(3600);
/// Most nodes whose conflicts are remembered, and for how long.
const MAX_CONFLICTS: usize = 1_024;
const CONFLICT_TIME: Duration = Duration::from_secs(600);

ncmesh_engine::choices! {
    /// Ways to trust other nodes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum TrustMode {
        /// All nodes that have the shared key are believed.
        #[default]
        Key = "key",
        /// Ids are pinned to keys on first use.
        FirstUse = "first_use",
        /// Certificates of a network say which nodes are believed.
        Network = "network",
    }
}

/// How a node trusts others, and what that needs.
#[derive(Clone, Debug, Default)]
pub enum TrustConfig {
    /// All nodes that have the shared key are believed.
    #[default]
    Key,
    /// Ids are pinned to keys on first use.
    FirstUse(Box<FirstUse>),
    /// Certificates say whose states are believed.
    Network(Box<Membership>),
}

/// Trust on first use.
#[derive(Clone, Debug)]
pub struct FirstUse {
    /// Key of this node.
    pub key: SecretKey,
    /// Nodes that were pinned in earlier runs.
    pub pins: Vec<Pin>,
}

/// Membership in a network.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Key of this node.
    pub key: SecretKey,
    /// Certificate of this node.
    pub certificate: Certificate,
    /// The networks that count, with revocations of earlier runs.
    pub authority: Authority,
    /// Certificates of other nodes from earlier runs.
    pub known: Vec<Certificate>,
}

/// A node's id with the key that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The node.
    pub node: NodeId,
    /// Its name, as it told it last.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
}

/// Key of a node, with what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// Its certificate, in a network.
    pub certificate: Option<Certificate>,
}

impl Known {
    fn certified(certificate: Certificate) -> Self {
        let name = certificate.name.clone();
        Self { name, key: certificate.key, certificate: Some(certificate) }
    }
}

/// Judgment of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Believed,
    /// It may be true, but the key of its origin is not known yet.
    KeyMissing,
    /// It is not its origin's, or its origin is none that counts.
    Refused,
    /// Its sender caused too many failed checks.
    Exhausted,
}

/// A state with what is to be judged of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    pub origin: NodeId,
    pub state: &'a LinkState,
    pub signature: Option<&'a Signature>,
    /// Key of the origin, if it came with the state.
    pub key: Option<PublicKey>,
    /// Neighbour that told it.
    pub sender: NodeId,
    /// Whether a node without an identity has had its name longer.
    pub is_name_borne: bool,
}

/// A statement with what is to be judged of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    pub origin: NodeId,
    pub contents: &'a [u8],
    pub signature: Option<&'a Signature>,
    /// Neighbour that passed it on.
    pub sender: NodeId,
}

/// How this node knows the packets of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bond<'a> {
    /// One of both has no identity.
    Free,
    /// By a key of both.
    Keys { own: &'a SecretKey, peer: PublicKey },
    /// The other node is none that counts.
    Refused,
}

/// Nodes about which an answer brought news.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Nodes whose key was asked for, with the neighbour that told the state then.
    pub wanted: Vec<Asked>,
    /// Nodes that have another key than before: states of the old one are void.
    pub void: Vec<NodeId>,
}

/// A node whose key was asked for, and the neighbour that was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub node: NodeId,
    pub from: NodeId,
}

/// Key that a node is said to have, and when that was heard.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    key: PublicKey,
    at: Instant,
    /// Neighbour that told it.
    teller: NodeId,
    /// Whether a state bears its signature, where that pins no node to it.
    is_confirmed: bool,
}

impl Candidate {
    fn new(key: PublicKey, teller: NodeId, now: Instant) -> Self {
        Self { key, at: now, teller, is_confirmed: false }
    }
}

/// How often a key was told with states, since a time.
#[derive(Clone, Copy, Debug)]
struct Tells {
    count: u8,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Want {
    from: NodeId,
    due: Instant,
    tries: u32,
    /// Whether the next request was put off, because another node asked.
    is_put_off: bool,
    /// Whether a false key was told, so that now only `from` is believed.
    is_strict: bool,
}

/// Last answer that told a key, and how often the pause before the next one is doubled.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    doublings: u32,
}

impl Answered {
    fn pause(self) -> Duration {
        ANSWER_PAUSES.pause(self.doublings)
    }
}

/// Time of the own clock at a moment, seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Clock {
    unix_s: u64,
    at: Instant,
}

#[derive(Debug)]
enum Mode {
    Key,
    FirstUse,
    Network(Network),
}

/// Keys, certificates and pins at one node.
#[derive(Debug)]
pub(crate) struct Trust {
    me: NodeId,
    mode: Mode,
    own: Option<SecretKey>,
    /// This node too, if it has an identity.
    known: BTreeMap<NodeId, Known>,
    /// Keys that nodes are said to have.
    candidates: BTreeMap<NodeId, Candidate>,
    wanted: BTreeMap<NodeId, Want>,
    /// Nodes whose keys neighbours asked for, and when each was told last.
    answers: BTreeSet<NodeId>,
    answered: BTreeMap<NodeId, Answered>,
    /// Keys that were told with states.
    told: BTreeMap<NodeId, Tells>,
    /// When something was last said under a node's id that was not the node's.
    conflicts: BTreeMap<NodeId, Instant>,
    checks: Checks,
    clock: Option<Clock>,
    jitter: Jitter,
    /// Number of times that what must survive a restart was to be saved.
    saves: u64,
    /// Whether a key is not saved yet, or a name, and when each may be.
    is_unsaved: bool,
    is_renamed: bool,
    next_save: Instant,
    next_rename: Instant,
}

impl Trust {
    /// Returns the trust of the node `me`.
    pub(crate) fn new(config: TrustConfig, me: NodeId, name: &str) -> Self {
        let mut known = BTreeMap::new();
        let (mode, own) = match config {
            TrustConfig::Key => (Mode::Key, None),
            TrustConfig::FirstUse(first_use) => {
                let FirstUse { key, pins } = *first_use;
                for Pin { node, name, key } in pins.into_iter().take(MAX_KEYS) {
                    known.insert(node, Known { name, key, certificate: None });
                }
                let own = Known { name: name.to_owned(), key: key.public(), certificate: None };
                known.insert(me, own);
                (Mode::FirstUse, Some(key))
            }
            TrustConfig::Network(membership) => {
                let Membership { key, certificate, authority, known: certificates } = *membership;
                for certificate in certificates.into_iter().take(MAX_KEYS) {
                    known.insert(certificate.node, Known::certified(certificate));
                }
                known.insert(me, Known::certified(certificate));
                (Mode::Network(Network::new(authority, me)), Some(key))
            }
        };

        Self {
            me,
            mode,
            own,
            known,
            candidates: BTreeMap::new(),
            wanted: BTreeMap::new(),
            answers: BTreeSet::new(),
            answered: BTreeMap::new(),
            told: BTreeMap::new(),
            conflicts: BTreeMap::new(),
            checks: Checks::default(),
            clock: None,
            jitter: Jitter::new(me),
            saves: 0,
            is_unsaved: false,
            is_renamed: false,
            next_save: Instant::default(),
            next_rename: Instant::default(),
        }
    }

    // ---- what it knows

    /// Returns the nodes with keys that this node knows, itself included.
    pub(crate) fn known(&self) -> impl Iterator<Item = (NodeId, &Known)> + '_ {
        self.known.iter().map(|(node, known)| (*node, known))
    }

    /// Returns what is known of a node's identity.
    pub(crate) fn of(&self, node: NodeId) -> Option<&Known> {
        self.known.get(&node)
    }

    /// Returns how often keys, certificates and revocations were to be saved since the start.
    pub(crate) fn saves(&self) -> u64 {
        self.saves
    }

    /// Does what falls due with time; `neighbours` are the nodes heard.
    pub(crate) fn handle_timeout(&mut self, neighbours: &BTreeSet<NodeId>, now: Instant) {
        let is_rename_due = self.is_renamed && now >= self.next_rename;
        if (self.is_unsaved && now >= self.next_save) || is_rename_due {
            self.saves += 1;
            self.is_unsaved = false;
            self.is_renamed = false;
            let pause = SAVE_PAUSE_PER_KEY * self.known.len() as u32;
            self.next_save = now + pause.max(LEAST_SAVE_PAUSE);
            self.next_rename = now + RENAME_PAUSE;
        }

        // Ids that a member invents have no certificates, and are not asked.
        if matches!(&self.mode, Mode::Network(network) if network.may_ask(now)) {
            let members = neighbours.iter().copied().filter(|node| self.is_certified(*node, now));
            let members: Vec<NodeId> = members.collect();
            if let Mode::Network(network) = &mut self.mode {
                network.ask(members, now);
            }
        }
    }

    /// Returns the lists of revocations that count.
    pub(crate) fn revocations(&self) -> &[Revocations] {
        match &self.mode {
            Mode::Network(network) => network.authority.revocations(),
            Mode::Key | Mode::FirstUse => &[],
        }
    }

    /// Returns the nodes under whose ids others said something lately.
    pub(crate) fn conflicts(&self, now: Instant) -> impl Iterator<Item = NodeId> + '_ {
        let recent = move |at: &Instant| now.since(*at) < CONFLICT_TIME;
        self.conflicts.iter().filter(move |(_, at)| recent(at)).map(|(node, _)| *node)
    }

    /// Sets the time of the own clock, seconds since 1970.
    pub(crate) fn set_clock(&mut self, unix_s: u64, now: Instant) {
        self.clock = Some(Clock { unix_s, at: now });
    }

    fn clock(&self, now: Instant) -> Option<u64> {
        self.clock.map(|clock| clock.unix_s.saturating_add(now.since(clock.at).as_secs()))
    }

    /// Returns whether this node signs what it tells.
    pub(crate) fn signs(&self) -> bool {
        self.own.is_some()
    }

    /// Returns whether the certificate of a node is known and counts no more.
    pub(crate) fn is_outcast(&self, node: NodeId, now: Instant) -> bool {
        let Mode::Network(network) = &self.mode else { return false };
        let certificate = self.known.get(&node).and_then(|known| known.certificate.as_ref());
        certificate.is_some_and(|c| network.authority.is_valid(c, self.clock(now)).is_err())
    }

    /// Returns whether a node has a certificate that counts.
    fn is_certified(&self, node: NodeId, now: Instant) -> bool {
        let has_one = self.known.get(&node).is_some_and(|known| known.certificate.is_some());
        has_one && !self.is_outcast(node, now)
    }

    /// Returns whether a node would be pinned with this name, and is not yet.
    pub(crate) fn takes_name(&self, node: NodeId, name: &str) -> bool {
        let is_new = self.known.get(&node).is_none_or(|known| known.name != name);
        matches!(self.mode, Mode::FirstUse) && is_new
    }

    /// Returns whether a node's first signed state will pin it to its key.
    pub(crate) fn awaits_key(&self, node: NodeId) -> bool {
        matches!(self.mode, Mode::FirstUse) && !self.known.contains_key(&node)
    }

    /// Returns whether a name belongs to a node by its key, and to which.
    pub(crate) fn owner(&self, name: &str) -> Option<NodeId> {
        self.known.iter().find(|(_, known)| known.name == name).map(|(node, _)| *node)
    }

    /// Returns the part of a profile that this node may tell.
    pub(crate) fn permitted(&self, profile: Profile) -> Profile {
        let own = self.known.get(&self.me).and_then(|known| known.certificate.as_ref());
        let Some(certificate) = own else { return profile };
        let mut profile = profile;
        profile.prefixes.retain(|prefix| certificate.permits(prefix));
        profile
    }

    // ---- states

    /// Signs the state of this node; `None` without an identity.
    pub(crate) fn sign(&self, contents: &[u8]) -> Option<Signature> {
        self.own.as_ref().map(|key| key.sign(Purpose::LinkState, contents))
    }

    /// Returns whether this node signed contents.
    pub(crate) fn is_own(&self, contents: &[u8], signature: &Signature) -> bool {
        let own = self.own.as_ref().map(SecretKey::public);
        own.is_some_and(|key| key.has_signed(Purpose::LinkState, contents, signature))
    }

    /// Judges a state whose signed `contents` are these.
    pub(crate) fn judge(&mut self, claim: Claim<'_>, contents: &[u8], now: Instant) -> Verdict {
        let Claim { origin, state, signature, key: told_key, sender, is_name_borne } = claim;
        if matches!(self.mode, Mode::Key) {
            self.carry_key(claim, contents, now);
            return Verdict::Believed;
        }

        let known = self.known.get(&origin).map(|known| known.key);
        let Some(signature) = signature else {
            if known.is_some() {
                self.note_conflict(origin, now);
            } else if matches!(self.mode, Mode::FirstUse) {
                // A node without an identity.
                return Verdict::Believed;
            }
            return Verdict::Refused;
        };

        // An unconfirmed key will do: the signature that it verifies confirms it. One that comes
        // with the state goes before one that any node may have told. In a network a key means
        // nothing without its certificate.
        let told_key = told_key.filter(|_| matches!(self.mode, Mode::FirstUse));
        let with_state = told_key.map(|key| Candidate::new(key, sender, now));
        let candidate = with_state.or_else(|| self.candidates.get(&origin).copied());
        let Some(key) = known.or(candidate.map(|candidate| candidate.key)) else {
            self.want(origin, sender, now);
            return Verdict::KeyMissing;
        };

        // A check costs time, so lies may cause few of them.
        if !self.checks.may_check(sender, now) {
            return Verdict::Exhausted;
        }
        if !key.has_signed(Purpose::LinkState, contents, signature) {
            // With an unconfirmed key it is not known which of the two is false.
            if let (None, Some(Candidate { teller, .. })) = (known, candidate) {
                self.checks.note_failure(teller);
                if with_state.is_some() {
                    return Verdict::Refused;
                }
                self.candidates.remove(&origin);
                self.want_strictly(origin, sender, now);
                return Verdict::KeyMissing;
            }
            self.checks.note_failure(sender);
            self.note_conflict(origin, now);
            // The network's holder may have given the node another key meanwhile.
            if self.known.get(&origin).is_some_and(|known| known.certificate.is_some()) {
                self.want(origin, sender, now);
            }
            return Verdict::Refused;
        }

        // The key is right. In a network the certificate bounds what the node may say, too.
        self.checks.note_success(sender, now);
        let known = self.known.get(&origin);
        let Some(certificate) = known.and_then(|known| known.certificate.as_ref()) else {
            let name = if is_name_borne { "" } else { state.name.as_str() };
            return self.pin(origin, name, key);
        };
        let is_permitted = state.name == certificate.name
            && state.profile.prefixes.iter().all(|prefix| certificate.permits(prefix));
        if is_permitted && !self.is_outcast(origin, now) {
            return Verdict::Believed;
        }

        // There may be another certificate meanwhile.
        self.want(origin, sender, now);
        Verdict::Refused
    }

    /// Returns how this node knows the packets of another one.
    pub(crate) fn bond(&self, node: NodeId, now: Instant) -> Bond<'_> {
        let Some(own) = &self.own else { return Bond::Free };
        if matches!(self.mode, Mode::Network(_)) && !self.is_certified(node, now) {
            return Bond::Refused;
        }
        let known = self.known.get(&node);
        known.map_or(Bond::Free, |known| Bond::Keys { own, peer: known.key })
    }

    /// Signs a statement of this node; `None` without an identity.
    pub(crate) fn sign_statement(&self, contents: &[u8]) -> Option<Signature> {
        self.own.as_ref().map(|key| key.sign(Purpose::Statement, contents))
    }

    /// Judges a statement in a frame.
    pub(crate) fn judge_statement(&mut self, said: Said<'_>, now: Instant) -> Verdict {
        let Said { origin, contents, signature, sender } = said;
        let is_member = match self.mode {
            Mode::Key => return Verdict::Believed,
            Mode::FirstUse => true,
            Mode::Network(_) => self.is_certified(origin, now),
        };

        // Only states pin nodes to keys. They come with the keys, and as soon as statements.
        let known = self.known.get(&origin).map(|known| known.key);
        match (known.filter(|_| is_member), signature) {
            (Some(key), Some(signature)) => {
                if !self.checks.may_check(sender, now) {
                    return Verdict::Exhausted;
                }
                if key.has_signed(Purpose::Statement, contents, signature) {
                    self.checks.note_success(sender, now);
                    return Verdict::Believed;
                }
                self.checks.note_failure(sender);
                Verdict::Refused
            }
            // A node without an identity.
            (_, None) if known.is_none() && matches!(self.mode, Mode::FirstUse) => {
                Verdict::Believed
            }
            (_, None) => Verdict::Refused,
            (None, Some(_)) => {
                if !self.candidates.contains_key(&origin) {
                    self.want(origin, sender, now);
                }
                Verdict::KeyMissing
            }
        }
    }

    /// Returns whether a statement that this node believes goes on with its signature. Without an
    /// identity this node believes it in any case, but puts no false signature behind it: to others
    /// it would be false with it.
    pub(crate) fn passes_signature_on(&mut self, said: Said<'_>, now: Instant) -> bool {
        let Said { origin, contents, signature, sender } = said;
        if !matches!(self.mode, Mode::Key) {
            return true;
        }

        // Only a key that its node has confirmed decides.
        let confirmed = self.candidates.get(&origin).filter(|candidate| candidate.is_confirmed);
        let Some((key, signature)) = confirmed.map(|candidate| candidate.key).zip(signature) else {
            return false;
        };

        // Checking a signature takes time, so each sender has a budget of checks.
        if !self.checks.may_check(sender, now) {
            return false;
        }

        let is_right = key.has_signed(Purpose::Statement, contents, signature);
        match is_right {
            true => self.checks.note_success(sender, now),
            false => self.checks.note_failure(sender),
        }
        is_right
    }

    /// Fetches the key of a signed state that this node believes in any case, so that others with
    /// identities can have it from here.
    fn carry_key(&mut self, claim: Claim<'_>, contents: &[u8], now: Instant) {
        let Claim { origin, signature, key: told_key, sender, .. } = claim;
        let Some(signature) = signature else { return };
        let with_state = told_key.map(|key| Candidate::new(key, sender, now));
        let candidate = with_state.or_else(|| self.candidates.get(&origin).copied());
        let Some(candidate) = candidate else { return self.want(origin, sender, now) };
        if !self.checks.may_check(sender, now) {
            return;
        }

        if candidate.key.has_signed(Purpose::LinkState, contents, signature) {
            self.checks.note_success(sender, now);
            self.wanted.remove(&origin);
            make_room(&mut self.candidates, &origin, MAX_CANDIDATES, |candidate| candidate.at);
            self.candidates.insert(origin, Candidate { is_confirmed: true, ..candidate });
            return;
        }

        self.checks.note_failure(candidate.teller);
        if with_state.is_none() {
            self.candidates.remove(&origin);
            self.want_strictly(origin, sender, now);
        }
    }

    /// Pins a node to a key under which it signed a state, and takes note of its name, if it may
    /// have one and no other node has it.
    fn pin(&mut self, node: NodeId, name: &str, key: PublicKey) -> Verdict {
        // A name belongs to the node that had it first. Another node is pinned without one.
        let is_free = self.owner(name).is_none_or(|owner| owner == node);
        let name = if is_free { name } else { "" };
        let is_full = self.known.len() >= MAX_KEYS;
        match self.known.get_mut(&node) {
            Some(known) if !name.is_empty() && known.name != name => {
                name.clone_into(&mut known.name);
                self.is_renamed = true;
            }
            Some(_) => {}
            None if is_full => return Verdict::Exhausted,
            None => {
                self.known.insert(node, Known { name: name.to_owned(), key, certificate: None });
                self.candidates.remove(&node);
                self.wanted.remove(&node);
                self.is_unsaved = true;
            }
        }

        Verdict::Believed
    }

    fn note_conflict(&mut self, node: NodeId, now: Instant) {
        make_room(&mut self.conflicts, &node, MAX_CONFLICTS, |at| *at);
        self.conflicts.insert(node, now);
    }

    // ---- keys on demand

    /// Asks `from` for the key of a node until it comes.
    pub(crate) fn want(&mut self, node: NodeId, from: NodeId, now: Instant) {
        if self.wanted.len() < MAX_WANTED || self.wanted.contains_key(&node) {
            let due = now + REQUEST_WAIT.mul_f64(self.jitter.factor());
            let want = Want { from, due, tries: 0, is_put_off: false, is_strict: false };
            self.wanted.entry(node).or_insert(want).from = from;
        }
    }

    /// Returns the key of a node if it is to go with the whole state that is told next.
    pub(crate) fn key_to_tell(&self, node: NodeId, now: Instant) -> Option<PublicKey> {
        if matches!(self.mode, Mode::Network(_)) {
            return None;
        }
        let is_recent = |told: &&Tells| now.since(told.since) < TELLS_TIME;
        let told = self.told.get(&node).filter(is_recent);
        let confirmed = self.candidates.get(&node).filter(|candidate| candidate.is_confirmed);
        let key = self.known.get(&node).map(|known| known.key);
        let key = key.or_else(|| confirmed.map(|candidate| candidate.key));
        key.filter(|_| told.is_none_or(|told| told.count < MOST_TELLS))
    }

    /// Notes that the key of a node went with its state.
    pub(crate) fn note_key_told(&mut self, node: NodeId, now: Instant) {
        make_room(&mut self.told, &node, MAX_KEYS, |told| told.since);
        let told = self.told.entry(node).or_insert(Tells { count: 0, since: now });
        if now.since(told.since) >= TELLS_TIME {
            *told = Tells { count: 0, since: now };
        }
        told.count += 1;
    }

    /// Asks `from` for the key of a node of which a false one was told. Only what `from` says is
    /// believed then.
    fn want_strictly(&mut self, node: NodeId, from: NodeId, now: Instant) {
        self.want(node, from, now);
        if let Some(want) = self.wanted.get_mut(&node) {
            want.is_strict = true;
        }
    }

    /// Handles a request for keys.
    pub(crate) fn handle_wanted(&mut self, body: &[u8], now: Instant) -> Result<(), Malformed> {
        let KeysWanted { to, nodes } = KeysWanted::from_body(body)?;
        if to != self.me {
            // Whoever asked is answered by a broadcast, so this node need not ask for a while.
            // Once for each request: somebody who asks for ever must not keep others from asking.
            for node in nodes {
                if let Some(want) = self.wanted.get_mut(&node).filter(|want| !want.is_put_off) {
                    want.due = want.due.max(now + REQUEST_PAUSES.first);
                    want.is_put_off = true;
                }
            }
            return Ok(());
        }

        // One broadcast answers all that ask within a short time.
        self.answered.retain(|_, told| now.since(told.at) < QUIET_PAUSES * told.pause());
        for node in nodes {
            let is_had = self.known.contains_key(&node) || self.candidates.contains_key(&node);
            let told = self.answered.get(&node);
            let is_due = is_had && told.is_none_or(|told| now.since(told.at) >= told.pause());
            if is_due && self.answers.len() < MAX_WANTED {
                self.answers.insert(node);
            }
        }
        Ok(())
    }

    /// Handles keys that a neighbour told.
    pub(crate) fn handle_keys(
        &mut self,
        teller: NodeId,
        body: &[u8],
        now: Instant,
    ) -> Result<Learned, Malformed> {
        let Keys { keys } = Keys::from_body(body)?;
        Ok(self.note_keys(teller, keys, now))
    }

    fn note_keys(
        &mut self,
        teller: NodeId,
        keys: impl IntoIterator<Item = NodeKey>,
        now: Instant,
    ) -> Learned {
        let mut learned = Learned::default();
        if matches!(self.mode, Mode::Network(_)) {
            return learned;
        }

        // A key that is known stays: a later claim does not replace the first.
        for NodeKey { node, key } in keys {
            self.answers.remove(&node);
            if self.known.contains_key(&node) || self.candidates.contains_key(&node) {
                continue;
            }

            // After a lie, or many, only the neighbour that was asked is believed.
            let want = self.wanted.get(&node).copied();
            let is_asked = want.is_some_and(|want| want.from == teller);
            let is_strict = want.is_some_and(|want| want.is_strict);
            if !is_asked && (is_strict || !self.checks.may_check(teller, now)) {
                continue;
            }

            // A key that was asked for finds room in any case. Unasked ones end at the bound.
            self.wanted.remove(&node);
            if want.is_some() || self.candidates.len() < MAX_CANDIDATES {
                make_room(&mut self.candidates, &node, MAX_CANDIDATES, |candidate| candidate.at);
                self.candidates.insert(node, Candidate::new(key, teller, now));
            }
            learned.wanted.extend(want.map(|want| Asked { node, from: want.from }));
        }
        learned
    }

    /// Handles certificates that `sender` told.
    pub(crate) fn handle_certificates(
        &mut self,
        sender: NodeId,
        body: &[u8],
        now: Instant,
    ) -> Result<Learned, Malformed> {
        let Certificates { certificates } = Certificates::from_body(body)?;
        if !matches!(self.mode, Mode::Network(_)) {
            // Outside a network a certificate is as good as a bare key.
            let bare = |c: Certificate| NodeKey { node: c.node, key: c.key };
            return Ok(self.note_keys(sender, certificates.into_iter().map(bare), now));
        }

        let mut learned = Learned::default();
        let clock = self.clock(now);
        for certificate in certificates {
            let node = certificate.node;
            self.answers.remove(&node);
            let before = self.known.get(&node);
            let known = before.and_then(|known| known.certificate.as_ref());
            let is_new = known.is_none_or(|known| {
                known.network != certificate.network || known.serial < certificate.serial
            });

            // Cheap checks first, so that copies cost no signature check.
            let before = before.map(|known| known.key);
            let has_room = before.is_some() || self.known.len() < MAX_KEYS;
            if node == self.me || !is_new || !has_room || !self.checks.may_check(sender, now) {
                continue;
            }

            let Mode::Network(network) = &mut self.mode else { break };
            match network.authority.admit(&certificate, clock) {
                Ok(()) => self.checks.note_success(sender, now),
                // Only this one shows that somebody lies: others told it in good faith.
                Err(Rejection::Signature) => {
                    self.checks.note_failure(sender);
                    continue;
                }
                Err(_) => continue,
            }

            // Another key voids all that was believed under the old one.
            if before.is_some_and(|before| before != certificate.key) {
                learned.void.push(node);
            }
            self.known.insert(node, Known::certified(certificate));
            self.is_unsaved = true;

            let want = self.wanted.remove(&node);
            learned.wanted.extend(want.map(|want| Asked { node, from: want.from }));
        }
        Ok(learned)
    }

    /// Handles a list of revocations that `sender` told. Returns whether it is new.
    pub(crate) fn handle_revocations(
        &mut self,
        sender: NodeId,
        body: &[u8],
        now: Instant,
    ) -> Result<bool, Malformed> {
        let list = Revocations::parse(body)?;
        if !self.checks.may_check(sender, now) {
            return Ok(false);
        }

        let told = KnownList { network: list.network, number: list.number };
        let revoked = self.revoke(list, now);
        match revoked {
            Ok(()) => self.checks.note_success(sender, now),
            // Only a false signature shows that somebody lies.
            Err(Rejection::Signature) => self.checks.note_failure(sender),
            Err(_) => {}
        }
        // A neighbour that comes from another part of the mesh may know less.
        if matches!(revoked, Ok(()) | Err(Rejection::Old))
            && let Mode::Network(network) = &mut self.mode
        {
            network.note_list(sender, told, now);
        }
        Ok(revoked.is_ok())
    }

    /// Handles the numbers of the lists that `sender` has.
    pub(crate) fn handle_known_lists(
        &mut self,
        sender: NodeId,
        body: &[u8],
        now: Instant,
    ) -> Result<(), Malformed> {
        let known = KnownLists::from_body(body)?;
        if let Mode::Network(network) = &mut self.mode {
            network.handle_known(sender, &known, now);
        }
        Ok(())
    }

    /// Takes a list of revocations, and tells it from now on.
    pub(crate) fn revoke(&mut self, list: Revocations, now: Instant) -> Result<(), Rejection> {
        let Mode::Network(network) = &mut self.mode else { return Err(Rejection::OtherNetwork) };
        network.revoke(list, now)?;
        // It is saved at once: a node that restarts must not let a stolen one in again.
        self.saves += 1;
        Ok(())
    }

    /// Returns the nodes whose certificates count no more.
    pub(crate) fn outcasts(&self, now: Instant) -> Vec<NodeId> {
        self.known.keys().copied().filter(|node| self.is_outcast(*node, now)).collect()
    }

    /// Notes that a neighbour is new, and may not have the revocations.
    pub(crate) fn note_new_neighbour(&mut self, node: NodeId, now: Instant) {
        if let Mode::Network(network) = &mut self.mode {
            network.note_new_neighbour(node, now);
        }
    }

    // ---- frames sent

    /// Returns when, later than `after`, a frame is due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let wants = self.wanted.values().map(|want| want.due);
        wants.chain(self.lists_due()).filter(|due| *due > after).min()
    }

    fn lists_due(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Network(network) => network.due(),
            Mode::Key | Mode::FirstUse => None,
        }
    }

    /// Returns whether a frame is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.answers.is_empty()
            || self.wanted.values().any(|want| want.due <= now)
            || self.lists_due().is_some_and(|at| at <= now)
    }

    /// Writes the frame that is due into a body of at most `mtu` bytes. Returns its kind.
    pub(crate) fn fill(&mut self, mtu: usize, now: Instant, out: &mut Vec<u8>) -> Option<u8> {
        let start = out.len();
        if let Mode::Network(network) = &mut self.mode {
            if network.fill_list(mtu, now, out) {
                return Some(REVOCATIONS);
            }
            if network.fill_known(now, out) {
                return Some(KNOWN_LISTS);
            }
        }

        // Requests to the same neighbour go together, also those due soon.
        if let Some(from) = self.wanted.values().find(|want| want.due <= now).map(|w| w.from) {
            let jitter = self.jitter.factor();
            let room = mtu.saturating_sub(KeysWanted::LEN) / 2;
            let mut nodes = Vec::new();
            for (node, want) in &mut self.wanted {
                if want.from == from && want.due <= now + REQUEST_WAIT && nodes.len() < room {
                    nodes.push(*node);
                    want.due = now + REQUEST_PAUSES.pause(want.tries).mul_f64(jitter);
                    want.tries += 1;
                    want.is_put_off = false;
                }
            }

            // A key that no request brought is given up until another state needs it.
            self.wanted.retain(|_, want| want.tries < MAX_REQUESTS);
            KeysWanted { to: from, nodes }.put(&mut Writer::new(out));
            return Some(KEYS_WANTED);
        }

        // As many answers as fit. The rest waits for the next frame.
        while let Some(node) = self.answers.first().copied() {
            let before = out.len();
            let known = self.known.get(&node);
            let candidate = self.candidates.get(&node).map(|candidate| candidate.key);
            if let Some(certificate) = known.and_then(|known| known.certificate.as_ref()) {
                certificate.write(out);
            } else if let Some(key) = known.map(|known| known.key).or(candidate) {
                NodeKey { node, key }.put(&mut Writer::new(out));
            }
            if out.len() - start > mtu {
                out.truncate(before);
                // A certificate that fits into no frame is told to no neighbour.
                if before > start {
                    break;
                }
            }

            self.answers.remove(&node);
            // Entries end after some quiet, so one that is there was asked for again soon.
            let before = self.answered.get(&node);
            let doublings = before.map_or(0, |told| told.doublings + 1);
            self.answered.insert(node, Answered { at: now, doublings });
        }

        let kind = if matches!(self.mode, Mode::Network(_)) { CERTIFICATES } else { KEYS };
        (out.len() > start).then_some(kind)
    }
}

/// Reads a frame of this module. Returns whether it follows the format.
pub(crate) fn is_well_formed(kind: u8, body: &[u8]) -> bool {
    match kind {
        KEYS_WANTED => KeysWanted::from_body(body).is_ok(),
        KEYS => Keys::from_body(body).is_ok(),
        CERTIFICATES => Certificates::from_body(body).is_ok(),
        KNOWN_LISTS => KnownLists::from_body(body).is_ok(),
        _ => Revocations::parse(body).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    fn key(seed: u8) -> SecretKey {
        SecretKey::new(&[seed; 32].into())
    }

    fn first_use() -> Trust {
        let first_use = FirstUse { key: key(1), pins: Vec::new() };
        Trust::new(TrustConfig::FirstUse(Box::new(first_use)), NodeId(1), "n1")
    }

    #[test]
    fn new_names_of_a_node_are_saved_once_in_an_hour() {
        let mut trust = first_use();
        for second in 0..2 * 3600 {
            let name = format!("m{second}");
            assert_eq!(trust.pin(NodeId(2), &name, key(2).public()), Verdict::Believed);
            trust.handle_timeout(&BTreeSet::new(), at(second));
            assert_eq!(trust.owner(&name), Some(NodeId(2)));
        }
        assert!((2..=3).contains(&trust.saves()), "{} writes", trust.saves());
    }

    #[test]
    fn the_more_keys_are_known_the_more_seldom_they_are_saved() {
        let mut trust = first_use();
        trust.pin(NodeId(2), "n2", key(2).public());
        trust.handle_timeout(&BTreeSet::new(), at(1));
        assert_eq!(trust.saves(), 1, "the first is saved at once");
        for second in 2..1002 {
            for index in 0..10 {
                trust.pin(NodeId(10 * second + index), "", key(3).public());
            }
            trust.handle_timeout(&BTreeSet::new(), at(second.into()));
        }
        assert_eq!(trust.known().count(), 10_002);
        assert!((10..60).contains(&trust.saves()), "{} writes", trust.saves());
    }
}
