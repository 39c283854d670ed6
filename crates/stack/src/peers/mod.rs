//! Starts of other nodes: which frames are new, and which starts are current.
//!
//! The seal of a frame proves that a member wrote it, but not when. Somebody without the key may
//! record frames and send them again later, after the sender died or its hearer restarted. So a
//! start of a neighbour counts only once it has *proved* that it is there now: by a hello that
//! names the present start of this node, which no recording from before can contain, and the
//! number of one of its frames. RFC 8967 protects Babel with challenges in the same way. Here the
//! random salt of a start is the challenge, so nothing has to be sent for it.
//!
//! ```text
//!             a hello names a frame of ours               another start proved itself
//!  Unproven ------------------------------->  Current  ------------------------------>  Superseded
//!           <-------------------------------           <------------------------------
//!                 silent for LAPSE                 the same: two nodes have this id
//! ```
//!
//! A hello must name a frame that this node sent after the last change of the sender's start, or a
//! recording of an earlier start could pass. When a start becomes current, its replay window begins
//! behind the hello that proved it, so that nothing from before is heard a second time.
//!
//! Over a link that is poor, or works in one direction only, an echo may never arrive. Then a
//! neighbour whose start is current vouches for that of the other, in a hello that also echoes a
//! frame of this node.
//!
//! When all counters of a start are used up, its salt is followed by one that only members can
//! tell. A start that follows the current one needs no proof.
//!
//! Members can write frames in the name of others ([`window`] bounds what a counter may do). A
//! node whose neighbour names a frame of its present start that it has not sent knows of it, and
//! begins another start. It echoes all neighbours in the first hello of that, which proves it.

mod proofs;
#[cfg(test)]
mod tests;
mod window;

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{Cipher, Header, NodeId, Salt};
pub(crate) use proofs::{Heard, LEAST_LEN, MAX_LISTED, Proofs};
use proofs::{MAX_VOUCHES, Room};
use std::collections::BTreeMap;
use window::{Place, Window};

/// Most senders that are kept: twice as many as neighbours.
const MAX_SENDERS: usize = 2048;
/// Most starts of a sender that are kept.
const MAX_STARTS: usize = 3;
/// Silence after which a start has to prove itself again. Neighbours over poor links are silent
/// for long, and what could be replayed are only the last frames that this node has missed.
const LAPSE: Duration = Duration::from_secs(60);
/// Silence up to which a neighbour vouches for a start.
const ALIVE: Duration = Duration::from_secs(5);
/// Hellos in which an echo, or a question for one, is repeated: over a poor link few arrive.
const REPEATS: u8 = 8;
/// Number of hellos that ask a node itself, before others are asked to vouch for it.
const ASK_ITSELF: u8 = 3;
/// Silence after which another node with the same id may take the place of a current start.
const HOLD: Duration = Duration::from_secs(5);
/// Time for which an id is known to be used twice.
const DUPLICATE: Duration = Duration::from_secs(300);

/// Verdict on an authentic frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is of a current start. A late one was overtaken by another, and is no sign of life.
    Current {
        /// Whether it was overtaken.
        is_late: bool,
    },
    /// Its start has not proved itself.
    Unproven,
}

/// Starts of other nodes, as one node knows them.
#[derive(Debug)]
pub(crate) struct Peers {
    me: NodeId,
    /// Our start and the number of its last frame: what an echo must name.
    ours: (Salt, u32),
    senders: BTreeMap<NodeId, Sender>,
    /// Whether every start counts as current.
    trusting: bool,
    /// Whether somebody has begun to wait for a proof of ours.
    is_urgent: bool,
    /// Whether a frame of our start was named that we have not sent.
    is_forged: bool,
}

/// A node that was heard.
#[derive(Debug, Default)]
struct Sender {
    /// At most one of them is current.
    starts: Vec<Start>,
    /// Least number of a frame of ours that proves something now.
    floor: u32,
    /// Hellos that have asked for a proof.
    asks: u8,
    /// Whether to vouch for it in the next hello.
    owes_vouch: bool,
    /// When it was last seen that two nodes have its id.
    duplicate_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unproven,
    Current,
    Superseded,
}

#[derive(Debug)]
struct Start {
    salt: Salt,
    state: State,
    window: Window,
    /// When a frame of it arrived last that was not late.
    heard_at: Instant,
    /// Whether a hello of it was heard.
    has_greeted: bool,
    /// Hellos that are still to name it.
    echoes: u8,
    /// Whether the next hello names it, because a frame came that lies behind another.
    is_behind: bool,
    /// Hellos that are still to ask for a proof of it.
    asks: u8,
}

impl Peers {
    /// Returns the table of a node that has heard nobody, in its start `salt`.
    pub(crate) fn new(me: NodeId, salt: Salt) -> Self {
        Self {
            me,
            ours: (salt, 0),
            senders: BTreeMap::new(),
            trusting: false,
            is_urgent: false,
            is_forged: false,
        }
    }

    /// Takes every start for current from now on.
    pub(crate) fn trust_all(&mut self) {
        self.trusting = true;
    }

    /// Notes a frame that this node sent.
    pub(crate) fn note_sent(&mut self, salt: Salt, counter: u32) {
        if salt != self.ours.0 {
            // Nobody has named a frame of the new start yet.
            self.senders.values_mut().for_each(|sender| sender.floor = 0);
        }
        self.ours = (salt, counter);
    }

    /// Notes that this node has begun another start while it runs. Its next hellos prove it to the
    /// neighbours.
    pub(crate) fn begin_start(&mut self, salt: Salt) {
        self.note_sent(salt, 0);
        self.is_forged = false;
        for start in self.senders.values_mut().flat_map(|sender| &mut sender.starts) {
            if start.state == State::Current {
                start.echoes = start.echoes.max(1);
            }
        }
    }

    /// Returns whether somebody has named a frame of our present start that we have not sent.
    pub(crate) fn is_forged(&self) -> bool {
        self.is_forged
    }

    // ---- frames heard

    /// Returns whether a frame was not heard before, is not old, and not of a counter that its
    /// sender cannot have come to. Nothing changes: the frame may be forged.
    pub(crate) fn is_new(&self, header: &Header, now: Instant) -> bool {
        let known = self.senders.get(&header.sender).and_then(|sender| sender.start(header.salt));
        known.is_none_or(|start| match start.state {
            State::Current => start.window.place(header.counter, now).is_some(),
            _ => start.window.is_readable_unproven(header.counter, now),
        })
    }

    /// Returns whether the start of a frame is current.
    pub(crate) fn is_current(&self, header: &Header) -> bool {
        self.senders.get(&header.sender).is_some_and(|sender| sender.is_current(header.salt))
    }

    /// Records an authentic frame, for which [`is_new`](Self::is_new) returned true. Returns what it
    /// is worth.
    pub(crate) fn record(&mut self, header: &Header, cipher: &Cipher, now: Instant) -> Trust {
        let trusting = self.trusting;
        let counter = self.ours.1;
        let sender = self.sender(header.sender, now);

        // A start that was not heard before. It is believed at once only if it follows the current
        // start, and that can have run out of counters. All others prove themselves.
        if sender.start(header.salt).is_none() {
            sender.make_room();
            let follows = |current: &Start| {
                current.window.reaches(u32::MAX, now)
                    && cipher.next_salt(header.sender, current.salt) == header.salt
            };
            let is_current = trusting || sender.current().is_some_and(follows);
            sender.starts.push(Start::new(header, now));
            if is_current {
                sender.make_current(header.salt, counter);
            }
        }

        let Some(start) = sender.starts.iter_mut().find(|s| s.salt == header.salt) else {
            return Trust::Unproven;
        };

        // A late frame counts as received, but is no sign that the sender is there now. If it was
        // not only overtaken, its sender wants to know which frame it lies behind.
        let is_late = if start.state == State::Current {
            let place = start.window.record(header.counter, now);
            start.is_behind |= place != Place::Next;
            place == Place::Late
        } else {
            start.window.record_unproven(header.counter, now)
        };

        let silence = now.since(start.heard_at);
        if !is_late {
            start.heard_at = now;
        }

        // After a long silence the frame may be a recording, so the proof of before is void. Only
        // an echo of a frame that this node sends from now on is a new one.
        if start.state == State::Current && silence >= LAPSE && !trusting {
            start.state = State::Unproven;
            sender.floor = counter + 1;
        } else if start.state == State::Current {
            return Trust::Current { is_late };
        }

        start.asks = REPEATS;
        Trust::Unproven
    }

    /// Handles the proofs of a hello that was recorded. Returns whether its start is current now.
    pub(crate) fn handle_proofs(&mut self, header: &Header, proofs: &Proofs, now: Instant) -> bool {
        let (me, (salt, counter)) = (self.me, self.ours);
        let is_start_of_ours = |heard: &Heard| heard.node == me && heard.start == salt.start();

        // An honest hearer names only what it heard. No recording can name it before we send it.
        self.is_forged |=
            proofs.echoes.iter().any(|heard| is_start_of_ours(heard) && heard.counter > counter);
        let is_ours = |heard: &&Heard| is_start_of_ours(heard) && heard.counter <= counter;
        let echo = proofs.echoes.iter().find(is_ours).map(|heard| heard.counter);
        let asks_us = proofs.asked.contains(&me) || proofs.doubted.contains(&me);

        let Some(sender) = self.senders.get_mut(&header.sender) else { return false };
        let floor = sender.floor;
        if let Some(start) = sender.start_mut(header.salt) {
            // The first hello of a start does not know us yet.
            let wants_echo = asks_us || !start.has_greeted;
            start.has_greeted = true;
            start.echoes = if wants_echo { REPEATS } else { 0 };
            self.is_urgent |= wants_echo;
        }

        // An echo of a frame older than the floor may have been recorded before the silence.
        if echo.is_some_and(|echo| echo >= floor) {
            sender.prove(header.salt, header.counter, counter, now);
        }
        if !sender.is_current(header.salt) {
            return false;
        }

        // A current start may vouch for others. The echo shows that the hello is no recording.
        let is_other = |node: NodeId| node != me && node != header.sender;
        for heard in proofs.vouches.iter().filter(|heard| is_other(heard.node)) {
            let Some(other) = self.senders.get_mut(&heard.node) else { continue };
            let unproven = |start: &&Start| {
                start.salt.start() == heard.start && start.state == State::Unproven
            };
            let unproven = other.starts.iter().find(unproven).map(|start| start.salt);
            if let Some(salt) = unproven.filter(|_| echo.is_some_and(|echo| echo >= other.floor)) {
                let highest = other.start(salt).map_or(0, |start| start.window.highest());
                other.prove(salt, heard.counter.max(highest), counter, now);
            }
        }

        // It asks for proofs of others that are current to us.
        let mut owes_vouch = false;
        for node in proofs.doubted.iter().filter(|node| is_other(**node)) {
            let Some(other) = self.senders.get_mut(node) else { continue };
            let is_alive = |start: &Start| now.since(start.heard_at) < ALIVE;
            other.owes_vouch |= other.current().is_some_and(is_alive);
            owes_vouch |= other.owes_vouch;
        }
        let start = self.senders.get_mut(&header.sender).and_then(|s| s.start_mut(header.salt));
        if let Some(start) = start.filter(|_| owes_vouch) {
            start.echoes = start.echoes.max(1);
        }
        true
    }

    /// Returns whether somebody has begun to wait for a proof since the last call.
    pub(crate) fn take_urgency(&mut self) -> bool {
        core::mem::take(&mut self.is_urgent)
    }

    /// Returns the proofs of the hello to be sent now, of at most `room` bytes.
    pub(crate) fn proofs(&mut self, room: usize) -> Proofs {
        let mut proofs = Proofs::default();
        let mut room = Room::new(room.saturating_sub(LEAST_LEN));
        for (node, sender) in &mut self.senders {
            let is_named = |start: &&mut Start| start.echoes > 0 || start.is_behind;
            for start in sender.starts.iter_mut().filter(is_named) {
                if proofs.echoes.len() < MAX_LISTED && room.heard() {
                    proofs.echoes.push(start.heard(*node));
                    start.echoes = start.echoes.saturating_sub(1);
                    start.is_behind = false;
                }
            }
        }

        // Echoes prove this node to its neighbours, so they get room before vouches for others.
        for (node, sender) in self.senders.iter_mut().filter(|(_, sender)| sender.owes_vouch) {
            let Some(current) = sender.current() else { continue };
            if proofs.vouches.len() < MAX_VOUCHES && room.heard() {
                proofs.vouches.push(current.heard(*node));
                sender.owes_vouch = false;
            }
        }

        // Nodes that were asked least go first.
        let is_asked = |sender: &Sender| sender.starts.iter().any(|start| start.asks > 0);
        let asked = self.senders.iter_mut().map(|(node, sender)| (*node, sender));
        let mut asked: Vec<(NodeId, &mut Sender)> =
            asked.filter(|(_, sender)| is_asked(sender)).collect();
        asked.sort_by_key(|(node, sender)| (sender.asks, *node));
        for (node, sender) in asked {
            let is_doubted = sender.asks >= ASK_ITSELF;
            let list = if is_doubted { &mut proofs.doubted } else { &mut proofs.asked };
            if list.len() < MAX_LISTED && room.ask() {
                list.push(node);
                sender.asks = sender.asks.saturating_add(1);
                for start in &mut sender.starts {
                    start.asks = start.asks.saturating_sub(1);
                }
            }
        }

        proofs
    }

    /// Returns the ids that two nodes use, as was seen lately.
    pub(crate) fn duplicates(&self, now: Instant) -> impl Iterator<Item = NodeId> + '_ {
        let is_recent = move |at: Instant| now.since(at) < DUPLICATE;
        let is_duplicate = move |sender: &Sender| sender.duplicate_at.is_some_and(is_recent);
        self.senders.iter().filter(move |(_, sender)| is_duplicate(sender)).map(|(node, _)| *node)
    }

    /// Notes that another node with the id of this one is there.
    pub(crate) fn note_double(&mut self, now: Instant) {
        if let Some(sender) = self.senders.get_mut(&self.me) {
            sender.duplicate_at = Some(now);
        }
    }

    /// Returns a sender. A new one takes the place of the one that was silent longest, of those
    /// that have proved nothing if there are such.
    fn sender(&mut self, node: NodeId, now: Instant) -> &mut Sender {
        if self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(&node) {
            let worth = |sender: &Sender| {
                let heard = sender.starts.iter().map(|start| start.heard_at).max();
                (sender.current().is_some(), heard.unwrap_or(now))
            };
            let least = self.senders.iter().min_by_key(|(_, sender)| worth(sender));
            if let Some(least) = least.map(|(node, _)| *node) {
                self.senders.remove(&least);
            }
        }
        self.senders.entry(node).or_default()
    }
}

impl Sender {
    fn start(&self, salt: Salt) -> Option<&Start> {
        self.starts.iter().find(|start| start.salt == salt)
    }

    fn start_mut(&mut self, salt: Salt) -> Option<&mut Start> {
        self.starts.iter_mut().find(|start| start.salt == salt)
    }

    fn current(&self) -> Option<&Start> {
        self.starts.iter().find(|start| start.state == State::Current)
    }

    fn is_current(&self, salt: Salt) -> bool {
        self.current().is_some_and(|start| start.salt == salt)
    }

    /// Forgets the start that was silent longest, except the current one, if there are too many.
    fn make_room(&mut self) {
        if self.starts.len() >= MAX_STARTS {
            let others = self.starts.iter().enumerate().filter(|(_, s)| s.state != State::Current);
            if let Some((oldest, _)) = others.min_by_key(|(_, start)| start.heard_at) {
                self.starts.swap_remove(oldest);
            }
        }
    }

    /// Makes a start current that has proved itself, except if the id is used twice and the other
    /// node is there: then both would take each other's place again and again.
    /// Frames up to `heard` are refused from then on.
    fn prove(&mut self, salt: Salt, heard: u32, ours: u32, now: Instant) {
        let Some(state) = self.start(salt).map(|start| start.state) else { return };
        if state == State::Current {
            self.asks = 0;
            return;
        }

        // A start that was superseded can only prove itself if its node still runs.
        if state == State::Superseded {
            self.duplicate_at = Some(now);
        }

        let is_duplicate = self.duplicate_at.is_some_and(|at| now.since(at) < DUPLICATE);
        let is_there = |start: &Start| now.since(start.heard_at) < HOLD;
        if is_duplicate && self.current().is_some_and(is_there) {
            return;
        }

        // Recordings from before the proof may still arrive: the window begins above them.
        self.make_current(salt, ours);
        if let Some(start) = self.start_mut(salt) {
            start.window = Window::after(heard, now);
        }
    }

    fn make_current(&mut self, salt: Salt, ours: u32) {
        for start in &mut self.starts {
            start.asks = 0;
            start.state = match start.state {
                _ if start.salt == salt => State::Current,
                State::Current => State::Superseded,
                other => other,
            };
        }
        self.floor = ours.saturating_add(1);
        self.asks = 0;
    }
}

impl Start {
    fn new(header: &Header, now: Instant) -> Self {
        Self {
            salt: header.salt,
            state: State::Unproven,
            window: Window::after(header.counter.saturating_sub(1), now),
            heard_at: now,
            has_greeted: false,
            echoes: 0,
            is_behind: false,
            asks: 0,
        }
    }

    fn heard(&self, node: NodeId) -> Heard {
        Heard { node, start: self.salt.start(), counter: self.window.highest() }
    }
}
