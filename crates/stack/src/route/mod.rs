//! Link state: every node tells which neighbours it hears how well, so that all know the mesh.
//!
//! A state has a version (epoch, sequence number); a newer one replaces an older one. What changes
//! enough to matter far away goes everywhere; smaller changes go a few hops (the fisheye of Pei,
//! Gerla and Chen, ICC 2000), because a path is chosen hop by hop and each hop sees its own
//! surroundings sharply. A node may tell the whole mesh only so often, the less often the larger
//! the mesh is, so that control per node hardly grows with the mesh.
//!
//! States are told once: nothing is repeated to keep it alive. Nodes pass a state on while somebody
//! probably lacks it (`spread`), and neighbours whose digests differ compare what they know
//! (`repair`). A node that nobody reaches any more is forgotten after a while.
//!
//! Source: De Couto et al., MobiCom 2003 (ETX); Pacifier, VI-B.

mod belief;
mod config;
mod doubt;
mod hearer;
mod names;
mod own;
mod ports;
pub(crate) mod profile;
mod question;
mod repair;
mod spread;
mod state;

use crate::links::Links as PortLinks;
use crate::trust::{Claim, Trust, TrustConfig, Verdict};
use belief::{Belied, Leaps, MAX_EPOCH, StateSignature};
pub use config::RouteConfig;
use hearer::Hearer;
use names::Names;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant, seconds};
use ncmesh_engine::topology::{LinkState, Links, Profile, SharedStates, Topology};
use ncmesh_engine::{Context, Malformed};
use ncmesh_wire::{NodeId, Reader, Record};
use ports::PortsWatch;
use profile::{KEY_LEN, Signing};
use question::List;
pub(crate) use question::{Compare, States, Wanted};
pub(crate) use repair::Asked;
use repair::Repair;
use spread::Spread;
pub(crate) use state::STATE;
use state::{Change, EVERYWHERE, Form, Told};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most nodes whose state is kept.
const MAX_NODES: usize = 20_000;
/// Time between two looks at the link measurements.
const LOOK: Duration = Duration::from_millis(200);
/// Time between two looks at whether this node may announce what it could not before.
const LOOK_AT_OWN: Duration = Duration::from_millis(500);
/// Time between two looks at how the neighbours hear this node, if they stay the same.
const LOOK_AT_HEARERS: Duration = Duration::from_secs(1);
/// Time between two looks for nodes that nobody reaches.
const SWEEP: Duration = Duration::from_secs(10);
/// Time in which all nodes forget one that nobody reaches. A state that is told again later comes
/// from a mesh that was out of reach.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// Time after a start in which a node measures before it tells about its links.
const FIRST_LOOK: Duration = Duration::from_millis(1500);

/// Link state at one node.
#[derive(Debug)]
pub struct Route {
    config: RouteConfig,
    me: NodeId,
    name: String,
    profile: Profile,
    epoch: u64,
    /// Length of the longest state that a frame has room for, bytes.
    longest: usize,
    started: Instant,
    seq: u32,
    announced_at: Option<Instant>,
    /// Whether the whole mesh must be told the whole state: a version of it goes round that we
    /// never told, or our profile has changed.
    is_unlike_told: bool,
    ports: PortsWatch,
    /// Link states that others were told in the name of this node.
    belied: Belied,
    names: Names,
    /// Epochs of other nodes that they can hardly have come to.
    leaps: Leaps,
    /// Least pause between two announcements now.
    pace: Duration,
    /// Links as the whole mesh was told last, and those touched since.
    base: Links,
    touched: BTreeSet<NodeId>,
    /// Announcements to the whole mesh that are free, as of a time.
    far: (f64, Instant),
    next_look: Instant,
    next_own: Instant,
    next_hearers: Instant,
    next_sweep: Instant,
    /// Links to neighbours that are gone, as these told them last, and in which version.
    doubted: BTreeMap<NodeId, ((u64, u32), f64)>,
    /// When somebody last lost a sure link to a node.
    lost: BTreeMap<NodeId, Instant>,
    /// Since when nobody reaches a node.
    unreachable: BTreeMap<NodeId, Instant>,
    /// Versions that were forgotten lately: neighbours may not have forgotten them yet.
    forgotten: BTreeMap<NodeId, ((u64, u32), Instant)>,
    spread: Spread,
    repair: Repair,
    /// Decides whose states are believed.
    pub(crate) trust: Trust,
    /// Signatures that came with the states known, at most one for each.
    signatures: BTreeMap<NodeId, StateSignature>,
    /// Nodes whose certificates count no more, to be forgotten as neighbours.
    outcasts: BTreeSet<NodeId>,
    /// Digest of all states.
    digest: u64,
    /// Shared if it was given to all nodes of a simulation.
    topology: Arc<Topology>,
    /// Link states as the other nodes of a simulation know them.
    shared: Option<SharedStates>,
    /// Whether the topology was given: then nothing is announced or learned.
    pinned: bool,
}

/// The node whose state this one tells: itself.
pub(crate) struct Origin {
    pub(crate) node: NodeId,
    pub(crate) epoch: u64,
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) trust: TrustConfig,
}

impl Route {
    /// Returns a node that knows nobody at `now`; a frame has room for a state of `longest` bytes.
    #[must_use]
    pub(crate) fn new(config: RouteConfig, origin: Origin, longest: usize, now: Instant) -> Self {
        let Origin { node: me, epoch, name, profile, trust } = origin;
        let trust = Trust::new(trust, me, &name);
        let profile = trust.permitted(profile);
        let pace = seconds(config.min_interval_s);
        let topology = Arc::new(Topology::new(config.min_delivery));

        // Nothing is known of the mesh yet, and nothing of this node was told.
        Self {
            config,
            me,
            name,
            profile,
            epoch,
            longest,
            started: now,
            seq: 0,
            announced_at: None,
            is_unlike_told: false,
            ports: PortsWatch::default(),
            belied: Belied::default(),
            names: Names::default(),
            leaps: Leaps::default(),
            pace,
            base: Links::new(),
            touched: BTreeSet::new(),
            far: (own::first_credit(me), now),
            // Everything that repeats begins at once, but the sweep.
            next_look: now,
            next_own: now,
            next_hearers: now,
            next_sweep: now + SWEEP,
            doubted: BTreeMap::new(),
            lost: BTreeMap::new(),
            unreachable: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            spread: Spread::default(),
            repair: Repair::default(),
            trust,
            signatures: BTreeMap::new(),
            outcasts: BTreeSet::new(),
            digest: 0,
            topology,
            shared: None,
            pinned: false,
        }
    }

    /// Lowers the bytes of states that a hello may tell: hellos have become longer.
    pub(crate) fn shorten(&mut self, by: usize) {
        self.longest = self.longest.saturating_sub(by);
    }

    /// Returns the mesh as known here.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Uses `topology` from now on instead of measuring (Pacifier, IV-A: measured once beforehand).
    pub(crate) fn pin(&mut self, topology: Arc<Topology>) {
        self.topology = topology;
        self.pinned = true;
    }

    /// Keeps states together with other nodes from now on.
    pub(crate) fn share_states(&mut self, shared: SharedStates) {
        self.shared = Some(shared);
    }

    /// Returns whether the topology was given.
    #[must_use]
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Tells another profile from now on, with the next announcement. The ports stay.
    pub(crate) fn set_profile(&mut self, profile: Profile) {
        let ports = self.profile.ports.clone();
        let profile = Profile { ports, ..self.trust.permitted(profile) };
        if self.profile != profile {
            self.profile = profile;
            self.is_unlike_told = true;
        }
    }

    /// Returns the epoch under which this node announces itself.
    #[must_use]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the node of this name: the one whose key it belongs to; else the only one, or the
    /// one that had it long before others.
    pub(crate) fn node_named(&self, name: &str) -> Option<NodeId> {
        if let Some(owner) = self.trust.owner(name) {
            return self.topology.state(owner).filter(|s| s.name == name).map(|_| owner);
        }
        self.names.owner(name, &self.topology)
    }

    /// Returns the digest of all states known.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    // ---- timers

    /// Looks at the link measurements, announces changes, forgets nodes, compares.
    pub(crate) fn handle_timeout(&mut self, now: Instant, link: &mut PortLinks) {
        self.repair.handle_timeout(now);
        if now < self.next_look && !link.is_answer_due(now) {
            return;
        }

        self.next_look = now + LOOK;
        self.answer_lies(now);

        // Links come first: all that follows depends on which neighbours are there.
        let topology = &self.topology;
        let is_lost = |node, since| doubt::is_lost_with_others(topology, &self.lost, node, since);
        let review = link.review(now, |from, to| topology.delivery(from, to), is_lost);
        let mut gone = review.gone;
        for node in self.dead_neighbours(now, link) {
            link.forget(node);
            gone.push(node);
        }
        for node in core::mem::take(&mut self.outcasts) {
            link.forget(node);
            gone.push(node);
        }

        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }

        // Where no node tells ports, all links count alike.
        let told = &self.profile.ports;
        if (link.are_several() || !told.is_empty() || self.topology.tells_ports())
            && let Some(ports) = self.ports.look(told, link, self.longest, now)
        {
            self.profile.ports = ports;
            self.is_unlike_told = true;
        }

        // A lost neighbour is news at once. Other changes wait for the next look at our links.
        self.note_lost(&self.surely_lost(&gone), now);
        let changes = review.is_news || !gone.is_empty() || now >= self.next_own;
        if changes && now >= self.started + FIRST_LOOK {
            self.next_own = now + LOOK_AT_OWN;
            let hears = self.best_that_fit(link.inbound().into_iter());
            self.announce_if_worth(hears, now);
        }

        let neighbours = link.heard();
        self.trust.handle_timeout(&neighbours, now);
        self.doubt_links_to(gone, &neighbours);

        // Hearers depend on the whole topology, so they are computed anew only now and then.
        if now >= self.next_hearers || !self.spread.knows(&neighbours) {
            self.next_hearers = now + LOOK_AT_HEARERS;
            self.repair.retain(|node| neighbours.contains(&node));
            let inbound: Links = link.inbound().into_iter().collect();
            self.spread.set_hearers(hearer::all(&self.topology, self.me, &neighbours, &inbound));
        }

        // A neighbour compares with those that reach it well. Of one whose state nobody has told us
        // we do not know who they are.
        let quality = |node| {
            let is_known = self.topology.state(node).is_some();
            let hearer = self.spread.hearer(node)?;
            (!is_known || hearer.is_ours_to_repair()).then_some(hearer.quality)
        };

        if let Some((neighbour, told)) =
            self.repair.begin(&self.topology, self.digest, quality, now)
        {
            told.into_iter().for_each(|origin| self.spread.tell(origin, neighbour, now));
        }
    }

    /// Returns when, later than `after`, something falls due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let trust = self.trust.poll_timeout(after);
        let repair = self.repair.poll_timeout(after);
        let times = [Some(self.next_look), repair, self.spread.due(), trust];
        times.into_iter().flatten().filter(|t| *t > after).min()
    }

    /// Forgets the nodes that nobody has reached for long.
    fn sweep(&mut self, now: Instant) {
        // The clock of a node runs from the moment at which no path leads to it.
        let max_age = seconds(self.config.max_age_s);
        let around = self.topology.around(self.me);
        self.unreachable.retain(|node, _| !around.contains(node));
        for node in self.topology.nodes().filter(|node| !around.contains(node)) {
            self.unreachable.entry(node).or_insert(now);
        }

        // Its version is remembered for a while. Otherwise a neighbour that still has the state
        // would give it back, and the mesh would never forget it.
        let old = |since: &Instant| now.since(*since) >= max_age;
        let gone = self.unreachable.iter().filter(|(_, since)| old(since));
        for node in gone.map(|(node, _)| *node).collect::<Vec<_>>() {
            if let Some(state) = self.topology.state(node) {
                self.forgotten.insert(node, (state.version, now));
            }
            self.unreachable.remove(&node);
            self.spread.withdraw(node);
            self.store(node, None, now);
        }

        self.forget_outcasts(now);

        // Entries of the other tables are void with the state that it was about, or with time.
        let version = |node: &NodeId| self.topology.state(*node).map(|state| state.version);
        self.doubted.retain(|node, (told, _)| version(node) == Some(*told));
        self.forgotten.retain(|_, (_, since)| now.since(*since) < FORGOTTEN);
        self.lost.retain(|_, at| now.since(*at) < doubt::LOSS_COUNTS);
    }

    // ---- frames heard

    /// Handles the states of a hello, whose sender knows states of this `digest`.
    pub(crate) fn handle_states(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        digest: u64,
        mut states: Reader<'_>,
    ) {
        // One malformed state makes the rest of the frame unreadable. Those before it were whole,
        // and stay.
        while states.remaining() > 0 {
            let Ok(told) = Told::read(&mut states) else {
                cx.counters.drop(DropReason::Malformed);
                break;
            };
            if told.origin == self.me {
                if self.is_old_of_own(&told) {
                    continue;
                }
                if self.may_be_own(&told) {
                    self.handle_own(&told, cx.now);
                } else {
                    cx.counters.drop(DropReason::Untrusted);
                }
            } else {
                self.handle_state(cx, sender, &told);
            }
        }

        // Where the digests still differ after these states, the two nodes compare tables. Where
        // they agree, the sender lacks nothing that waits to be told.
        let ours = self.digest;
        for origin in self.repair.note_digest(sender, digest, ours, &self.topology, cx.now) {
            self.spread.retell(origin, sender, soon(cx));
        }
        if digest == self.digest {
            self.spread.note_complete(sender);
        }
    }

    /// Handles the state of another node: learns it if it is new, and passes it on.
    fn handle_state(&mut self, cx: &mut Context<'_>, sender: NodeId, told: &Told<'_>) {
        let origin = told.origin;
        let known = self.topology.state(origin);
        // A signed state goes before one that anybody may have written, whatever its version is.
        let outranks = told.signature.is_some()
            && self.trust.awaits_key(origin)
            && !self.signatures.contains_key(&origin);

        // Versions first: a copy or an old state is the common case, and costs no signature check.
        let learned = match told.form {
            // No epoch has really come so far, and nothing could outlive it.
            Form::Whole { epoch, .. } if epoch >= MAX_EPOCH => {
                return cx.counters.drop(DropReason::Malformed);
            }
            Form::Whole { .. } if outranks => told.whole(),
            Form::Whole { epoch, .. } => {
                let version = (epoch, told.seq);
                if known.is_some_and(|known| known.version >= version) {
                    return self.note_copy(sender, origin);
                }

                if self.forgotten.get(&origin).is_some_and(|(old, _)| *old >= version) {
                    return cx.counters.drop(DropReason::Stale);
                }

                // A made-up epoch far ahead would outlive all true states of the node.
                let known = known.map(|known| known.version.0);
                if !self.leaps.is_plausible(origin, known, epoch, cx.now) {
                    return cx.counters.drop(DropReason::Unproven);
                }
                told.whole()
            }
            Form::Change { epoch_bits, .. } => {
                // A change builds on a state that we have. Low bits tell if it is of its epoch.
                let same_epoch = known.filter(|known| known.version.0 as u16 == epoch_bits);
                if same_epoch.is_some_and(|known| known.version.1 >= told.seq) {
                    return self.note_copy(sender, origin);
                }

                self.as_told(origin).and_then(|known| told.applied_to(&known))
            }
        };

        let Some(state) = learned else {
            // We lack what the change builds on.
            return self.repair.want(origin, sender, cx.now);
        };

        // Room is checked before the signature: made-up nodes must be cheap to refuse.
        if known.is_none() && self.topology.len() >= MAX_NODES {
            return cx.counters.drop(DropReason::Full);
        }

        // The signature covers the whole state, so a change is checked after it was applied.
        let signature = told.signature.as_ref();
        let contents = state::signed_contents(origin, &state);
        let is_name_borne = self.is_name_borne(origin, &state.name);
        let key = told.key;
        let claim = Claim { origin, state: &state, signature, key, sender, is_name_borne };
        match self.trust.judge(claim, &contents, cx.now) {
            Verdict::Believed => {}
            Verdict::Exhausted => return cx.counters.drop(DropReason::Full),
            Verdict::KeyMissing | Verdict::Refused => {
                // The state that the change builds on may have been another node's.
                if signature.is_some() && matches!(told.form, Form::Change { .. }) {
                    self.repair.want(origin, sender, cx.now);
                }
                return cx.counters.drop(DropReason::Untrusted);
            }
        }

        // A state told to a node that lacks it goes on only if the whole mesh was to know it.
        let before = known.filter(|_| !outranks).map(|known| (known.version.0, known.base));
        let is_far_news = before.is_none_or(|before| before < (state.version.0, state.base));
        let goes_on = if told.scope == EVERYWHERE { is_far_news } else { told.scope > 0 };

        // Lost links show only beside the old state, so they are looked for before it is replaced.
        let lost = known.map(|known| doubt::lost_links(known, &state)).unwrap_or_default();
        self.note_lost(&lost, cx.now);
        let version = state.version;
        if outranks {
            // An older version takes the place of a newer one only if that is gone.
            self.store(origin, None, cx.now);
        }
        self.store(origin, Some(state), cx.now);
        self.keep_signature(origin, version, told.signature);
        self.repair.note_learned(origin);

        if !goes_on {
            return self.spread.withdraw(origin);
        }

        // Each hop takes one off the scope.
        let left = if told.scope == EVERYWHERE { EVERYWHERE } else { told.scope - 1 };
        let change = match told.form {
            Form::Whole { .. } => None,
            Form::Change { since, .. } => Some(Change { since, links: told.links().collect() }),
        };

        // Neighbours that heard the sender, too, need not hear it from us.
        let covered = self.covered(sender);
        let reach = (left, told.urgent);
        self.spread.pass_on(origin, reach, change, &covered, cx.now, &mut *cx.rng);
    }

    /// Notes a copy of a state that is known already.
    fn note_copy(&mut self, sender: NodeId, origin: NodeId) {
        if self.spread.is_passing_on(origin) {
            let covered = self.covered(sender);
            self.spread.note_copy(origin, &covered);
        }
    }

    /// Returns who has what `sender` sends.
    fn covered(&mut self, sender: NodeId) -> Arc<[f64]> {
        let topology = &self.topology;
        self.spread.coverage(sender, |from, to| topology.delivery(from, to))
    }

    /// Handles digests of ranges from a neighbour that compares with this node.
    pub(crate) fn handle_compare(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let Compare { to, ranges } = Compare::from_body(body)?;
        let all = self.topology.len();
        if to == self.me && !self.repair.may_answer(sender, all, all, cx.now) {
            cx.counters.drop(DropReason::Full);
        } else if to == self.me {
            // Both would otherwise compare at the same time, and tell each other the same states.
            self.repair.postpone(cx.now);

            // It is told unasked only what it depends on us for.
            let quality = |hearer: &Hearer| if hearer.relies { hearer.quality } else { 1.0 };
            let quality = self.spread.hearer(sender).map_or(1.0, quality);
            for origin in self.repair.refine(&self.topology, sender, quality, ranges, cx.now) {
                self.spread.tell(origin, sender, soon(cx));
            }
        }
        Ok(())
    }

    /// Handles lists of versions from a neighbour: tells what it lacks, asks for what we lack.
    pub(crate) fn handle_versions(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let States { to, lists } = States::from_body(body)?;
        if to != self.me {
            return Ok(());
        }

        // Ranges that overlap would make this node answer for a state several times.
        let lists: Vec<_> = repair::apart(lists, |list| (list.first, list.last)).collect();
        let in_range = |list: &List| self.topology.states_between(list.first, list.last);
        let states = lists.iter().map(|list| in_range(list).count()).sum();
        if !self.repair.may_answer(sender, states, self.topology.len(), cx.now) {
            cx.counters.drop(DropReason::Full);
            return Ok(());
        }
        self.repair.postpone(cx.now);

        // A list is complete for its range of origins, so what is not in it is what the sender
        // lacks.
        for List { first, last, states } in lists {
            let theirs: BTreeMap<NodeId, (u64, u32)> =
                states.into_iter().map(|l| (l.origin, (l.epoch, l.base))).collect();
            for (origin, state) in self.topology.states_between(first, last) {
                let ours = (state.version.0, state.base);
                if theirs.get(&origin).is_none_or(|theirs| *theirs < ours) {
                    self.spread.tell(origin, sender, soon(cx));
                }
            }

            // A version that this node knew and forgot is not asked for again: the origin is gone.
            for (origin, version) in theirs {
                let known = self.topology.state(origin).map(|s| (s.version.0, s.base));
                let forgotten = self.forgotten.get(&origin).map(|(version, _)| *version);
                let is_newer = known.max(forgotten).is_none_or(|known| known < version);
                let known = known.map(|(epoch, _)| epoch);
                if is_newer && self.leaps.is_plausible(origin, known, version.0, cx.now) {
                    self.repair.want(origin, sender, cx.now);
                }
            }
        }
        Ok(())
    }

    /// Handles a neighbour's request for whole states.
    pub(crate) fn handle_request(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let Wanted { to, origins } = Wanted::from_body(body)?;
        let all = self.topology.len();
        if to == self.me && !self.repair.may_answer(sender, origins.len(), all, cx.now) {
            cx.counters.drop(DropReason::Full);
        } else if to == self.me {
            for origin in origins.into_iter().filter(|n| self.topology.state(*n).is_some()) {
                self.spread.tell(origin, sender, soon(cx));
            }
        }
        Ok(())
    }

    // ---- frames sent

    /// Returns whether states are due.
    pub(crate) fn are_states_due(&self, now: Instant) -> bool {
        self.spread.due().is_some_and(|due| due <= now)
    }

    /// Appends as many due states as fit into `room` bytes.
    pub(crate) fn fill_states(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        with_hello: bool,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        for origin in self.spread.together(cx.now, with_hello) {
            let state = self.as_told(origin);
            let Some(((reach, change), state)) = self.spread.told(origin).zip(state) else {
                self.spread.withdraw(origin);
                continue;
            };

            let signature = self.signature_of(origin, &state);
            let is_signed = signature.is_some();

            // The length is computed beforehand: a state that does not fit waits, uncut.
            let mut len = change.map_or_else(
                || state::whole_len(&state, is_signed),
                |change| state::change_len(change.links.len(), is_signed),
            );

            // A node that lacks a whole state probably lacks the key of its origin, too.
            let is_keyed = change.is_none() && is_signed && len + KEY_LEN <= self.longest;
            let key = self.trust.key_to_tell(origin, cx.now).filter(|_| is_keyed);
            len += key.map_or(0, |_| KEY_LEN);

            // A state that came in a larger frame than ours take goes no further here.
            if len > self.longest {
                self.spread.withdraw(origin);
                continue;
            }
            if out.len() - start + len > room {
                break;
            }

            match change {
                None => {
                    let signing = signature.map(|signature| Signing { signature, key });
                    state::write_whole(out, origin, reach, &state, signing);
                }
                Some(change) => {
                    state::write_change(out, origin, reach, &state, change, signature.as_ref());
                }
            }
            if key.is_some() {
                self.trust.note_key_told(origin, cx.now);
            }
            self.spread.note_sent(origin, cx.now, cx.rng);
        }
    }

    /// Returns whether a question to a neighbour waits.
    pub(crate) fn is_question_waiting(&self) -> bool {
        self.repair.is_waiting()
    }

    /// Writes a question to a neighbour. Returns what it is.
    pub(crate) fn fill_question(&mut self, mtu: usize, out: &mut Vec<u8>) -> Option<Asked> {
        let (to, question) = self.repair.pop()?;
        let asked = question.kind();
        if let Some(rest) = repair::write(out, mtu, to, question, &self.topology) {
            self.repair.put_back(to, rest);
        }
        Some(asked)
    }

    /// Stores the state of a node, or removes it.
    fn store(&mut self, node: NodeId, state: Option<LinkState>, now: Instant) {
        // The digest is the exclusive or of all hashes: a change costs two, not a pass over all.
        let before = repair::hash(node, self.topology.state(node));
        let changed = before ^ repair::hash(node, state.as_ref());
        self.digest ^= changed;
        self.repair.note_news(node, changed, now);

        // Hundreds of nodes in a simulation know the same state. It is kept once for all.
        let shared = &self.shared;
        let state = state.map(|state| match shared {
            Some(shared) => shared.share(node, state),
            None => Arc::new(state),
        });

        let name = |state: &LinkState| state.name.clone();
        let told = state.as_deref().map(name);
        if told != self.topology.state(node).map(name) {
            self.names.note(node, told.is_some(), now);
        }

        let topology = Arc::make_mut(&mut self.topology);
        match state {
            Some(state) => drop(topology.learn(node, state)),
            None => {
                topology.forget(node);
                self.signatures.remove(&node);
            }
        }
    }
}

/// Returns a random time soon: several neighbours may have heard the same.
fn soon(cx: &mut Context<'_>) -> Instant {
    cx.now + spread::WAIT.mul_f64(unit(cx.rng))
}

/// Reads the states of a hello. Returns whether they follow the format.
pub(crate) fn are_well_formed(mut states: Reader<'_>) -> bool {
    while states.remaining() > 0 {
        if Told::read(&mut states).is_err() {
            return false;
        }
    }
    true
}
