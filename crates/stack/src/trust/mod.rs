//! Decides whose link states a node believes.
//!
//! A node without identities believes every state. One that trusts on first use pins each node's id
//! to the key under which it first heard a signed state, and believes nothing else under that id
//! from then on. A member of a network believes only states that a certified key signed.
//!
//! Keys travel on demand. A node that hears a signed state and lacks the key asks the neighbour
//! that told it; the answer is a broadcast, from which others learn, too. Lists of revocations are
//! told to all neighbours when they are new, and when a neighbour is new.

mod frame;

pub use frame::{CERTIFICATES, KEYS, KEYS_WANTED, REVOCATIONS};
use frame::{Certificates, Keys, NodeKey};
pub(crate) use frame::{KeysWanted, LAYOUTS};
use ncmesh_engine::Malformed;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::topology::{LinkState, Profile};
use ncmesh_wire::identity::{
    Authority, Certificate, PublicKey, Purpose, Rejection, Revocations, SecretKey, Signature,
};
use ncmesh_wire::{NodeId, Record, Writer};
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
/// Time in which an answer serves all who ask.
const ANSWERED: Duration = Duration::from_millis(250);
/// Failed checks of signatures that a neighbour may cause in a second, and at once.
const FAILURES_PER_S: f64 = 5.0;
const MOST_FAILURES: f64 = 50.0;
/// Most neighbours whose failed checks are counted.
const MAX_BUDGETS: usize = 1_024;
/// Most nodes whose conflicts are remembered, and for how long.
const MAX_CONFLICTS: usize = 1_024;
const CONFLICT_TIME: Duration = Duration::from_secs(600);
/// How often a list of revocations is told when it is new.
const LIST_TELLS: u8 = 3;
/// Time between two such frames.
const LIST_PAUSE: Duration = Duration::from_millis(400);

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
    /// Neighbour that told it.
    pub sender: NodeId,
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
}

#[derive(Clone, Copy, Debug)]
struct Want {
    from: NodeId,
    due: Instant,
    tries: u32,
    /// Whether the next request was put off, because another node asked.
    is_put_off: bool,
}

/// Failed checks that a neighbour may still cause, as of a time.
#[derive(Clone, Copy, Debug)]
struct Budget {
    failures: f64,
    at: Instant,
}

/// Time of the own clock at a moment, seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Clock {
    unix_s: u64,
    at: Instant,
}

/// Networks that count, and revocations that neighbours are still told.
#[derive(Debug)]
struct Network {
    authority: Authority,
    tells: u8,
    next_tell: Instant,
}

impl Network {
    /// Tells every list once, unless that is under way.
    fn tell_all(&mut self) {
        self.tells = self.tells.max(self.authority.revocations().len() as u8);
    }
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
    answered: BTreeMap<NodeId, Instant>,
    /// When something was last said under a node's id that was not the node's.
    conflicts: BTreeMap<NodeId, Instant>,
    budgets: BTreeMap<NodeId, Budget>,
    clock: Option<Clock>,
    /// Number of pauses so far, from which they differ.
    pauses: u16,
    /// Number of changes of what must survive a restart.
    changes: u64,
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
                let network = Network { authority, tells: 0, next_tell: Instant::default() };
                (Mode::Network(network), Some(key))
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
            conflicts: BTreeMap::new(),
            budgets: BTreeMap::new(),
            clock: None,
            pauses: 0,
            changes: 0,
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

    /// Returns the number of changes of keys, certificates and revocations since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
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
        let Claim { origin, state, signature, sender } = claim;
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

        // An unconfirmed key will do: the signature that it verifies confirms it.
        let candidate = self.candidates.get(&origin).map(|candidate| candidate.key);
        let Some(key) = known.or(candidate) else {
            self.want(origin, sender, now);
            return Verdict::KeyMissing;
        };

        // A check costs time. A neighbour whose states keep failing may cause few of them.
        if !self.may_check(sender, now) {
            return Verdict::Exhausted;
        }
        if !key.has_signed(Purpose::LinkState, contents, signature) {
            self.charge(sender);
            if self.candidates.remove(&origin).is_some() {
                // Somebody told a false key.
                self.want(origin, sender, now);
                return Verdict::KeyMissing;
            }
            self.note_conflict(origin, now);
            // The network's holder may have given the node another key meanwhile.
            if self.known.get(&origin).is_some_and(|known| known.certificate.is_some()) {
                self.want(origin, sender, now);
            }
            return Verdict::Refused;
        }

        // The key is right. In a network the certificate bounds what the node may say, too.
        let known = self.known.get(&origin);
        let Some(certificate) = known.and_then(|known| known.certificate.as_ref()) else {
            return self.pin(origin, &state.name, key);
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

    /// Fetches the key of a signed state that this node believes in any case, so that others with
    /// identities can have it from here.
    fn carry_key(&mut self, claim: Claim<'_>, contents: &[u8], now: Instant) {
        let Claim { origin, signature, sender, .. } = claim;
        let Some(signature) = signature else { return };
        if let Some(Candidate { key, .. }) = self.candidates.get(&origin).copied() {
            if !self.may_check(sender, now)
                || key.has_signed(Purpose::LinkState, contents, signature)
            {
                return;
            }
            self.charge(sender);
            self.candidates.remove(&origin);
        }
        self.want(origin, sender, now);
    }

    /// Pins a node to a key under which it signed a state, and takes note of its name if it is no
    /// other node's.
    fn pin(&mut self, node: NodeId, name: &str, key: PublicKey) -> Verdict {
        // A name belongs to the node that had it first. Another node is pinned without one.
        let is_free = self.owner(name).is_none_or(|owner| owner == node);
        let is_full = self.known.len() >= MAX_KEYS;
        match self.known.get_mut(&node) {
            Some(known) if is_free && known.name != name => name.clone_into(&mut known.name),
            Some(_) => return Verdict::Believed,
            None if is_full => return Verdict::Exhausted,
            None => {
                let name = if is_free { name.to_owned() } else { String::new() };
                self.known.insert(node, Known { name, key, certificate: None });
                self.candidates.remove(&node);
            }
        }

        self.changes += 1;
        Verdict::Believed
    }

    fn note_conflict(&mut self, node: NodeId, now: Instant) {
        make_room(&mut self.conflicts, &node, MAX_CONFLICTS, |at| *at);
        self.conflicts.insert(node, now);
    }

    fn may_check(&mut self, sender: NodeId, now: Instant) -> bool {
        make_room(&mut self.budgets, &sender, MAX_BUDGETS, |budget| budget.at);
        let full = Budget { failures: MOST_FAILURES, at: now };
        let budget = self.budgets.entry(sender).or_insert(full);
        let earned = FAILURES_PER_S * now.since(budget.at).as_secs_f64();
        *budget = Budget { failures: (budget.failures + earned).min(MOST_FAILURES), at: now };
        budget.failures >= 1.0
    }

    fn charge(&mut self, sender: NodeId) {
        if let Some(budget) = self.budgets.get_mut(&sender) {
            budget.failures -= 1.0;
        }
    }

    // ---- keys on demand

    /// Asks `from` for the key of a node until it comes.
    pub(crate) fn want(&mut self, node: NodeId, from: NodeId, now: Instant) {
        if self.wanted.len() < MAX_WANTED || self.wanted.contains_key(&node) {
            let due = now + REQUEST_WAIT.mul_f64(self.jitter());
            let want = Want { from, due, tries: 0, is_put_off: false };
            self.wanted.entry(node).or_insert(want).from = from;
        }
    }

    /// Returns a factor from 0.5 to 1.5 for a pause. Nodes that do not hear each other often ask
    /// for a key that the same hello made them want: in step, their requests would collide again
    /// and again.
    fn jitter(&mut self) -> f64 {
        self.pauses = self.pauses.wrapping_add(1);
        // Multiples of the golden ratio are spread evenly (Knuth, volume 3, 6.4).
        let spread = (self.me.0 ^ self.pauses.wrapping_mul(0x3C6F)).wrapping_mul(0x9E37);
        0.5 + f64::from(spread) / 65_536.0
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
        self.answered.retain(|_, at| now.since(*at) < ANSWERED);
        for node in nodes {
            let is_had = self.known.contains_key(&node) || self.candidates.contains_key(&node);
            let is_due = is_had && !self.answered.contains_key(&node);
            if is_due && self.answers.len() < MAX_WANTED {
                self.answers.insert(node);
            }
        }
        Ok(())
    }

    /// Handles keys that a neighbour told.
    pub(crate) fn handle_keys(&mut self, body: &[u8], now: Instant) -> Result<Learned, Malformed> {
        let Keys { keys } = Keys::from_body(body)?;
        Ok(self.note_keys(keys, now))
    }

    fn note_keys(&mut self, keys: impl IntoIterator<Item = NodeKey>, now: Instant) -> Learned {
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

            // A key that was asked for finds room in any case. Unasked ones end at the bound.
            let want = self.wanted.remove(&node);
            if want.is_some() || self.candidates.len() < MAX_CANDIDATES {
                make_room(&mut self.candidates, &node, MAX_CANDIDATES, |candidate| candidate.at);
                self.candidates.insert(node, Candidate { key, at: now });
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
            return Ok(self.note_keys(certificates.into_iter().map(bare), now));
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
            if node == self.me || !is_new || !has_room || !self.may_check(sender, now) {
                continue;
            }

            let Mode::Network(network) = &mut self.mode else { break };
            match network.authority.admit(&certificate, clock) {
                Ok(_) => {}
                // Only this one shows that somebody lies: others told it in good faith.
                Err(Rejection::Signature) => {
                    self.charge(sender);
                    continue;
                }
                Err(_) => continue,
            }

            // Another key voids all that was believed under the old one.
            if before.is_some_and(|before| before != certificate.key) {
                learned.void.push(node);
            }
            self.known.insert(node, Known::certified(certificate));
            self.changes += 1;

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
        if !self.may_check(sender, now) {
            return Ok(false);
        }

        let id = list.network;
        let number = list.number;
        match self.revoke(list) {
            Ok(()) => return Ok(true),
            Err(Rejection::Old) => {
                let Mode::Network(network) = &mut self.mode else { return Ok(false) };
                // A neighbour that comes from another part of the mesh knows less.
                let mut known = network.authority.revocations().iter();
                if known.any(|list| list.network == id && list.number > number) {
                    network.tell_all();
                }
            }
            // Only a false signature shows that somebody lies.
            Err(Rejection::Signature) => self.charge(sender),
            Err(_) => {}
        }
        Ok(false)
    }

    /// Takes a list of revocations, and tells it from now on.
    pub(crate) fn revoke(&mut self, list: Revocations) -> Result<(), Rejection> {
        let Mode::Network(network) = &mut self.mode else { return Err(Rejection::OtherNetwork) };
        network.authority.revoke(list)?;
        network.tells = LIST_TELLS;
        self.changes += 1;
        Ok(())
    }

    /// Returns the nodes whose certificates count no more.
    pub(crate) fn outcasts(&self, now: Instant) -> Vec<NodeId> {
        self.known.keys().copied().filter(|node| self.is_outcast(*node, now)).collect()
    }

    /// Notes that a neighbour is new, so that it is told the revocations.
    pub(crate) fn note_new_neighbor(&mut self) {
        if let Mode::Network(network) = &mut self.mode
            && !network.authority.revocations().is_empty()
        {
            network.tell_all();
        }
    }

    // ---- frames sent

    /// Returns when, later than `after`, a frame is due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let wants = self.wanted.values().map(|want| want.due);
        wants.chain(self.next_tell()).filter(|due| *due > after).min()
    }

    fn next_tell(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Network(network) if network.tells > 0 => Some(network.next_tell),
            _ => None,
        }
    }

    /// Returns whether a frame is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.answers.is_empty()
            || self.wanted.values().any(|want| want.due <= now)
            || self.next_tell().is_some_and(|at| at <= now)
    }

    /// Writes the frame that is due into a body of at most `mtu` bytes. Returns its kind.
    pub(crate) fn fill(&mut self, mtu: usize, now: Instant, out: &mut Vec<u8>) -> Option<u8> {
        let start = out.len();
        if let Mode::Network(network) = &mut self.mode
            && network.tells > 0
            && network.next_tell <= now
        {
            network.tells -= 1;
            network.next_tell = now + LIST_PAUSE;
            // One list after the other: there are two during a change of the network's key.
            let lists = network.authority.revocations();
            let list = lists.get(usize::from(network.tells) % lists.len().max(1))?;
            list.write(out);
            if out.len() - start > mtu {
                out.truncate(start);
                return None;
            }
            return Some(REVOCATIONS);
        }

        // Requests to the same neighbour go together, also those due soon.
        if let Some(from) = self.wanted.values().find(|want| want.due <= now).map(|w| w.from) {
            let jitter = self.jitter();
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
            self.answered.insert(node, now);
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
        _ => Revocations::parse(body).is_ok(),
    }
}
