//! One generation of a flow at one node.

use super::frame::{Feedback, Head, UNKNOWN, Wish};
use super::mixtures::{Mixtures, Packet};
use super::owed::Latest;
use super::rules::Rules;
use super::sending::Sending;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::Coder;
use ncmesh_engine::tunnel::RelayMode;
use rand_core::RngCore;
use std::collections::VecDeque;

/// Packets kept to be sent on as they came, at most.
const MAX_QUEUED: usize = 512;

/// What a node has of a generation, and what it is to send of it.
#[derive(Debug)]
pub(super) struct Generation {
    /// As heard last; the node that wrote it may know more by now.
    pub head: Head,
    coder: Coder,
    /// How this node relays it: as when it began here.
    relay: RelayMode,
    pub mixtures: Mixtures,
    /// To be sent on as they came.
    queue: VecDeque<Packet>,
    pub sending: Sending,
    pub begun_at: Instant,
    /// When something new came.
    pub heard_at: Instant,
    /// When the next node told that the destination has it.
    pub done_at: Option<Instant>,
    /// The node before was told so.
    pub released: bool,
    /// What the next node answered, for those before it.
    pub passing: Option<Feedback>,
    /// The last question about it, and the last answer.
    pub questions: Latest,
    pub answers: Latest,
}

impl Generation {
    /// Nothing of it. `None` where there is no such.
    pub(super) fn new(head: Head, decodes: bool, relay: RelayMode, now: Instant) -> Option<Self> {
        Some(Self {
            coder: Coder::new(head.room, usize::from(head.symbol), decodes)?,
            head,
            relay,
            mixtures: Mixtures::default(),
            queue: VecDeque::new(),
            sending: Sending::new(now),
            begun_at: now,
            heard_at: now,
            done_at: None,
            released: false,
            passing: None,
            questions: Latest::default(),
            answers: Latest::default(),
        })
    }

    /// Takes in what a frame says of it. Says whether it is the same generation.
    pub(super) fn learn(&mut self, head: &Head) -> bool {
        let same = (self.head.room, self.head.symbol) == (head.room, head.symbol);
        if same {
            self.head.count = self.head.count.max(head.count);
            self.head.closed |= head.closed;
            self.head.behind = head.behind;
        }
        same
    }

    pub(super) fn rank(&self) -> usize {
        self.coder.rank()
    }

    /// Whether its packets are sent as they came, not combined anew.
    pub(super) fn is_verbatim(&self) -> bool {
        self.relay == RelayMode::NonRecoding
    }

    /// Whether this node answers for it as a relay.
    pub(super) fn answers(&self) -> bool {
        self.relay == RelayMode::Core
    }

    pub(super) fn coder(&self) -> &Coder {
        &self.coder
    }

    /// Whether all its packets are here and there will be no more.
    pub(super) fn is_whole(&self) -> bool {
        self.head.closed && self.rank() >= usize::from(self.head.count)
    }

    /// Takes a combination in. Says whether it was innovative; `None` if it is of another shape.
    pub(super) fn absorb(&mut self, packet: &Packet, now: Instant) -> Option<bool> {
        let innovative = self.coder.absorb(&packet.0, &packet.1)?;
        if innovative {
            self.heard_at = now;
        }
        Some(innovative)
    }

    /// Sends a packet on as it is. Says whether there was room for it.
    pub(super) fn enqueue(&mut self, packet: Packet, now: Instant) -> bool {
        if self.queue.len() >= MAX_QUEUED {
            return false;
        }
        self.queue.push_back(packet);
        self.sending.earn(1.0, now);
        true
    }

    pub(super) fn has_credit(&self) -> bool {
        if self.is_verbatim() {
            !self.queue.is_empty()
        } else {
            self.rank() > 0 && self.sending.has_credit()
        }
    }

    /// Whether there is anything of it that could be combined with others.
    pub(super) fn has_something(&self) -> bool {
        if self.is_verbatim() { !self.queue.is_empty() } else { self.rank() > 0 }
    }

    /// Packets to be sent yet, as far as known.
    pub(super) fn waiting(&self) -> u64 {
        if self.is_verbatim() { self.queue.len() as u64 } else { self.sending.alone() as u64 }
    }

    /// What goes on the air now.
    pub(super) fn next_packet(&mut self, rng: &mut impl RngCore) -> Option<Packet> {
        if self.is_verbatim() { self.queue.pop_front() } else { self.coder.combine(rng) }
    }

    /// The packet of this place, if it is known by now.
    pub(super) fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        self.coder.packet(place)
    }

    // ---- requests for packets by their numbers

    /// The first `most` packets that are lacking.
    fn wanted(&mut self, most: u8) -> Vec<u8> {
        let coder = &mut self.coder;
        let lacking = (0..self.head.count).filter(|i| coder.symbol(*i).is_none());
        lacking.take(usize::from(most)).collect()
    }

    /// Sends packets again as they are, by their numbers, where this node knows them.
    pub(super) fn repeat(&mut self, numbers: &[u8], now: Instant) {
        for number in numbers {
            if let Some(symbol) = self.coder.symbol(*number).map(<[u8]>::to_vec) {
                let vector = unit(self.head.room, *number);
                self.enqueue((vector, symbol), now);
            }
        }
    }

    // ---- answers

    /// The answer to the node before, of a generation that is not done with; `None` if another node has to give it.
    pub(super) fn answer(&mut self, rules: &Rules, is_destination: bool) -> Option<Feedback> {
        let lacking = usize::from(self.head.count).saturating_sub(self.rank()) as u8;
        let wish = match self.is_whole() {
            true if is_destination => Wish::Next,
            true => Wish::Stop,
            false => Wish::More,
        };
        if !is_destination && !self.answers() {
            return self.passing.clone();
        }
        let unknown = self.mixtures.unknown().map_or(UNKNOWN, |unknown| unknown as u8);
        let progress = (self.rank() as u16).saturating_add(self.sending.progress());
        let by_number = wish == Wish::More && !rules.coded;
        let wanted = if by_number { self.wanted(rules.wanted) } else { Vec::new() };
        Some(Feedback {
            start: self.head.start,
            to: self.head.start.source,
            generation: self.head.generation,
            number: 0,
            wish,
            alone: lacking,
            combined: lacking.saturating_add(unknown),
            progress,
            wanted,
            heard: Vec::new(),
        })
    }
}

/// The vector of a packet that is not combined.
pub(super) fn unit(room: u8, place: u8) -> Vec<u8> {
    let mut vector = vec![0; usize::from(room)];
    vector[usize::from(place)] = 1;
    vector
}
