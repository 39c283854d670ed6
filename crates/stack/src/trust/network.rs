//! The networks that a node belongs to, and how their lists of revocations reach all neighbours.
//!
//! A list that is new is told three times, so it crosses a mesh at once. Frames are lost, so a node
//! also keeps which lists its neighbours have said they have: by telling them, or by naming their
//! numbers in a short frame. It asks the others until they have answered, and tells the lists to
//! those that have older ones. A mesh that has no list, or whose nodes all have it, sends nothing.

use super::frame::{KnownList, KnownLists};
use super::jitter::Jitter;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::identity::{Authority, NetworkId, Rejection, Revocations};
use ncmesh_wire::{NodeId, Record, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// How often a list of revocations is told when it is new.
const LIST_TELLS: u8 = 3;
/// Least time between two such frames. It doubles while neighbours go on having older lists.
const LIST_PAUSES: Backoff =
    Backoff { first: Duration::from_millis(400), longest: Duration::from_secs(12) };
/// Pauses between questions to neighbours that have not said which lists they have.
const ASK_PAUSES: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(32) };
/// Mean time in which all that is to be said about lists goes into one frame. Several neighbours
/// may answer the same one.
const ANSWER_WAIT: Duration = Duration::from_millis(200);
/// Most neighbours that one frame asks.
const MAX_ASKED: usize = 64;
/// Time after which a neighbour is asked again which lists it has: frames do not prove who wrote
/// them.
const CONFIRMED_TIME: Duration = Duration::from_secs(600);
/// Most neighbours of which it is kept which lists they have.
const MAX_CONFIRMED: usize = 1_024;

/// Lists that a neighbour said it has.
#[derive(Clone, Debug)]
struct Confirmed {
    lists: Vec<KnownList>,
    at: Instant,
}

/// Networks that count, and what neighbours are still told or asked about their lists.
#[derive(Debug)]
pub(super) struct Network {
    me: NodeId,
    jitter: Jitter,
    pub(super) authority: Authority,
    tells: u8,
    next_tell: Instant,
    /// How often lists were told because neighbours had older ones, without a longer pause.
    repeats: u32,
    confirmed: BTreeMap<NodeId, Confirmed>,
    /// Neighbours that are asked with the next frame, and when that is due.
    asked: BTreeSet<NodeId>,
    answer_due: Option<Instant>,
    next_ask: Instant,
    asks: u32,
}

impl Network {
    pub(super) fn new(authority: Authority, me: NodeId) -> Self {
        Self {
            me,
            jitter: Jitter::new(me),
            authority,
            tells: 0,
            next_tell: Instant::default(),
            repeats: 0,
            confirmed: BTreeMap::new(),
            asked: BTreeSet::new(),
            answer_due: None,
            next_ask: Instant::default(),
            asks: 0,
        }
    }

    /// Takes a list, and tells it from now on.
    pub(super) fn revoke(&mut self, list: Revocations, now: Instant) -> Result<(), Rejection> {
        self.authority.revoke(list)?;
        self.tells = LIST_TELLS;
        self.next_tell = now;
        self.repeats = 0;
        self.asks = 0;
        self.next_ask = now + LIST_PAUSES.first * u32::from(LIST_TELLS) + ASK_PAUSES.first;
        Ok(())
    }

    /// Returns the number of the list that is known of a network; 0 if there is none.
    fn number(&self, network: [u8; 8]) -> u32 {
        let mut lists = self.authority.revocations().iter();
        lists.find(|list| list.network == network).map_or(0, |list| list.number)
    }

    /// Notes which list of a network `sender` has. It is told the list known here if that is newer.
    pub(super) fn note_list(&mut self, sender: NodeId, list: KnownList, now: Instant) {
        if !self.authority.ids().any(|NetworkId(id)| id == list.network) {
            return;
        }
        make_room(&mut self.confirmed, &sender, MAX_CONFIRMED, |confirmed| confirmed.at);
        let new = Confirmed { lists: Vec::new(), at: now };
        let confirmed = self.confirmed.entry(sender).or_insert(new);
        confirmed.at = now;
        confirmed.lists.retain(|known| known.network != list.network);
        confirmed.lists.push(list);
        if list.number < self.number(list.network) {
            self.tell_all(now);
        }
    }

    /// Handles the numbers of the lists that `sender` has.
    pub(super) fn handle_known(&mut self, sender: NodeId, known: &KnownLists, now: Instant) {
        let lists: Vec<KnownList> =
            self.authority.ids().map(|NetworkId(id)| known.of(id)).collect();
        for list in lists {
            self.note_list(sender, list, now);
            // The sender tells its list once it hears that this node has an older one.
            if list.number > self.number(list.network) {
                self.answer(now);
            }
        }
        if known.asked.contains(&self.me) {
            self.answer(now);
        }
    }

    fn answer(&mut self, now: Instant) {
        if self.answer_due.is_none() {
            self.answer_due = Some(now + ANSWER_WAIT.mul_f64(self.jitter.factor()));
        }
    }

    /// Tells every list once, unless that is under way. Pauses grow while that is needed again.
    fn tell_all(&mut self, now: Instant) {
        if self.tells > 0 {
            return;
        }
        let pause = LIST_PAUSES.pause(self.repeats);
        let is_quiet = now.since(self.next_tell) >= 2 * pause;
        self.repeats = if is_quiet { 0 } else { self.repeats + 1 };
        self.tells = self.authority.revocations().len() as u8;
    }

    /// Asks a neighbour that is new which lists it has.
    pub(super) fn note_new_neighbour(&mut self, node: NodeId, now: Instant) {
        self.confirmed.remove(&node);
        self.asks = 0;
        self.next_ask = self.next_ask.min(now + ASK_PAUSES.first);
    }

    /// Returns whether neighbours may be asked now.
    pub(super) fn may_ask(&self, now: Instant) -> bool {
        let has_lists = !self.authority.revocations().is_empty();
        has_lists && self.tells == 0 && now >= self.next_ask
    }

    /// Asks those of these neighbours that have not said that they have all lists.
    pub(super) fn ask(&mut self, members: Vec<NodeId>, now: Instant) {
        self.confirmed.retain(|_, confirmed| now.since(confirmed.at) < CONFIRMED_TIME);
        let lists = self.authority.revocations();
        let has = |confirmed: &Confirmed, list: &Revocations| {
            let mut known = confirmed.lists.iter();
            known.any(|known| known.network == list.network && known.number >= list.number)
        };
        let lacks = |node: &NodeId| {
            let confirmed = self.confirmed.get(node);
            !confirmed.is_some_and(|confirmed| lists.iter().all(|list| has(confirmed, list)))
        };

        self.asked = members.into_iter().filter(lacks).take(MAX_ASKED).collect();
        if !self.asked.is_empty() {
            self.next_ask = now + ASK_PAUSES.pause(self.asks).mul_f64(self.jitter.factor());
            self.asks += 1;
            self.answer(now);
        }
    }

    /// Writes a list that is due. Returns whether there was one that fits into `mtu` bytes.
    pub(super) fn fill_list(&mut self, mtu: usize, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.tells == 0 || now < self.next_tell {
            return false;
        }

        self.tells -= 1;
        self.next_tell = now + LIST_PAUSES.pause(self.repeats);
        // One list after the other: there are two during a change of the network's key.
        let lists = self.authority.revocations();
        let Some(list) = lists.get(usize::from(self.tells) % lists.len().max(1)) else {
            return false;
        };
        let start = out.len();
        list.write(out);
        if out.len() - start > mtu {
            out.truncate(start);
            return false;
        }
        true
    }

    /// Writes which lists this node has and whom it asks, if that is due. Returns whether it is.
    pub(super) fn fill_known(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.answer_due.is_none_or(|due| now < due) {
            return false;
        }

        self.answer_due = None;
        let lists = self.authority.revocations().iter();
        let lists = lists.map(|list| KnownList { network: list.network, number: list.number });
        let asked = core::mem::take(&mut self.asked).into_iter().collect();
        KnownLists { lists: lists.collect(), asked }.put(&mut Writer::new(out));
        true
    }

    /// Returns when a frame is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let tell = (self.tells > 0).then_some(self.next_tell);
        [tell, self.answer_due].into_iter().flatten().min()
    }
}
