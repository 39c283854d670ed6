//! NC buffer (IV-C): packets that wait for a partner, and frames that wait for the channel.
//!
//! ```text
//!              no partner                 hold time over
//!  packet ------------------>  held  ------------------------+
//!    |                           |                           v
//!    | partner found             | partner of a later     ready  --- channel granted --->
//!    +---------------------------+ packet                    ^
//!                                +---------------------------+
//! ```
//!
//! Held packets are kept by direction, oldest first. Ready frames form one queue. With `late` a
//! ready packet may still become half of a pair, which then takes its place in the queue; the
//! paper's packets are out of reach once they are ready.

use super::packet::{Direction, Load, Packet};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// How a waiting packet came to be coded with a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pairing {
    /// Direction of the packet that waited.
    pub direction: Direction,
    /// Time for which it had waited.
    pub waited: Duration,
    /// Time for which it was to be held.
    pub hold: Duration,
}

/// Packets that this node is going to transmit.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Frames at which the buffer is full.
    capacity: usize,
    /// Whether a ready packet may still be paired.
    late: bool,
    held: BTreeMap<Direction, VecDeque<Packet>>,
    ready: VecDeque<Load>,
    /// Frames that all packets will take. A pair takes one.
    frames: usize,
}

impl Buffer {
    /// Returns an empty buffer.
    pub(crate) fn new(capacity: usize, late: bool) -> Self {
        Self { capacity, late, held: BTreeMap::new(), ready: VecDeque::new(), frames: 0 }
    }

    /// Returns whether there is space for another frame.
    pub(crate) fn has_space(&self) -> bool {
        self.frames < self.capacity
    }

    /// Queues a packet that is not to be held.
    pub(crate) fn push_ready(&mut self, packet: Packet) {
        self.frames += 1;
        self.ready.push_back(Load::Native(packet));
    }

    /// Queues a retransmission before all other frames.
    pub(crate) fn push_front(&mut self, load: Load) {
        self.frames += 1;
        self.ready.push_front(load);
    }

    /// Pairs `packet` with the oldest packet of the opposite direction that `suits` it.
    ///
    /// # Errors
    /// Gives the packet back if there is no such partner.
    pub(crate) fn pair(
        &mut self,
        packet: Packet,
        direction: Direction,
        suits: impl Fn(&Packet, &Packet) -> bool,
    ) -> Result<Pairing, Packet> {
        let opposite = direction.opposite();
        let is_partner = |other: &Packet| suits(&packet, other);

        // Ready packets are older than held ones of their direction. A retransmission is not
        // paired: its receiver waits for it, and a broadcast may be lost again.
        let ready = self.ready.iter().position(|load| match load {
            Load::Native(other) => {
                let is_first_attempt = other.header.sequence == 0;
                let crosses = other.direction() == Some(opposite);
                self.late && is_first_attempt && crosses && is_partner(other)
            }
            Load::Coded(..) => false,
        });

        let from_ready = ready.and_then(|at| match self.ready.remove(at)? {
            Load::Native(partner) => Some((partner, at)),
            Load::Coded(..) => None,
        });

        // A held partner goes to the end of the queue, together with its pair.
        let partner = from_ready.or_else(|| {
            let at = self.held.get(&opposite)?.iter().position(is_partner)?;
            Some((self.take_held(opposite, at)?, self.ready.len()))
        });

        // The pair takes the place of the partner, so the number of frames is the same.
        let Some((partner, at)) = partner else { return Err(packet) };
        let waited = packet.since - partner.since;
        let pairing = Pairing { direction: opposite, waited, hold: partner.hold };
        self.ready.insert(at, Load::Coded(partner, packet));
        Ok(pairing)
    }

    /// Holds a packet until its hold time is over. It never overtakes a held packet of its
    /// direction.
    pub(crate) fn hold(&mut self, packet: Packet, direction: Direction) {
        if packet.hold == Duration::ZERO && !self.held.contains_key(&direction) {
            self.push_ready(packet);
        } else {
            self.frames += 1;
            self.held.entry(direction).or_default().push_back(packet);
        }
    }

    /// Makes the packets ready whose hold times are over at `now`, the earliest first.
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some((_, direction)) = self.first_held().filter(|(ends, _)| *ends <= now) {
            let released = self.take_held(direction, 0);
            self.ready.extend(released.map(Load::Native));
        }
    }

    /// Returns when the next hold time is over.
    pub(crate) fn release_at(&self) -> Option<Instant> {
        self.first_held().map(|(ends, _)| ends)
    }

    /// Returns whether a frame waits for the channel.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether there is a frame to send at `now`, ready or about to be released.
    pub(crate) fn can_transmit(&self, now: Instant) -> bool {
        self.has_ready() || self.release_at().is_some_and(|at| at <= now)
    }

    /// Removes and returns the next frame to send.
    pub(crate) fn pop_ready(&mut self) -> Option<Load> {
        let load = self.ready.pop_front()?;
        self.frames -= 1;
        Some(load)
    }

    /// Returns whether some packet goes to `neighbour` next.
    pub(crate) fn has_packet_to(&self, neighbour: NodeId) -> bool {
        self.packets().any(|packet| packet.header.next() == neighbour)
    }

    /// Returns all packets, ready ones first.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let ready = self.ready.iter().flat_map(|load| match load {
            Load::Native(packet) => [Some(packet), None],
            Load::Coded(one, other) => [Some(one), Some(other)],
        });
        ready.flatten().chain(self.held.values().flatten())
    }

    /// Returns the held packet that is released next: when, and its direction. Only the oldest
    /// packet of a direction counts, so that packets of a direction stay in order.
    fn first_held(&self) -> Option<(Instant, Direction)> {
        let oldest = |(direction, packets): (&Direction, &VecDeque<Packet>)| {
            Some((packets.front()?.hold_ends(), *direction))
        };
        self.held.iter().filter_map(oldest).min()
    }

    fn take_held(&mut self, direction: Direction, at: usize) -> Option<Packet> {
        let packets = self.held.get_mut(&direction)?;
        let packet = packets.remove(at);
        if packets.is_empty() {
            self.held.remove(&direction);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Header, PacketId};
    use super::*;
    use std::sync::Arc;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Returns a packet at node 2 that goes from node 1 to 3, or back.
    fn packet(number: u32, forth: bool, since: u64, hold: u64) -> Packet {
        let (source, far) = if forth { (1, 3) } else { (3, 1) };
        let id = PacketId { source: NodeId(source), number };
        let route = vec![NodeId(2), NodeId(far)];
        let header = Header { id, sequence: 0, hop: 1, route, more: false };
        Packet { header, bytes: Arc::from([0]), since: at(since), hold: MS * hold as u32 }
    }

    fn numbers(buffer: &mut Buffer) -> Vec<Vec<u32>> {
        let loads = core::iter::from_fn(|| buffer.pop_ready());
        let numbers = |load| match load {
            Load::Native(packet) => vec![packet.header.id.number],
            Load::Coded(one, other) => vec![one.header.id.number, other.header.id.number],
        };
        loads.map(numbers).collect()
    }

    fn hold(buffer: &mut Buffer, packet: Packet) {
        let direction = packet.direction().unwrap();
        buffer.hold(packet, direction);
    }

    fn pair(buffer: &mut Buffer, packet: Packet, suits: bool) -> Result<Pairing, Packet> {
        let direction = packet.direction().unwrap();
        buffer.pair(packet, direction, |_, _| suits)
    }

    #[test]
    fn held_packets_are_paired_oldest_first_or_released_in_order() {
        let mut buffer = Buffer::new(10, false);
        for number in 0..3 {
            hold(&mut buffer, packet(number, true, u64::from(number), 5));
        }
        assert_eq!((buffer.release_at(), buffer.can_transmit(at(4))), (Some(at(5)), false));
        let pairing = pair(&mut buffer, packet(9, false, 4, 5), true).unwrap();
        let direction = Direction { previous: NodeId(1), next: NodeId(3) };
        assert_eq!(pairing, Pairing { direction, waited: 4 * MS, hold: 5 * MS });
        assert!(buffer.can_transmit(at(4)));
        buffer.release(at(6));
        assert_eq!(numbers(&mut buffer), [vec![0, 9], vec![1]]);
        assert_eq!((buffer.packets().count(), buffer.release_at()), (1, Some(at(7))));
    }

    #[test]
    fn ready_packets_are_paired_in_their_place_only_if_late_pairs_are_allowed() {
        for late in [false, true] {
            let mut buffer = Buffer::new(10, late);
            hold(&mut buffer, packet(0, true, 0, 0));
            hold(&mut buffer, packet(1, true, 0, 0));
            assert_eq!(pair(&mut buffer, packet(9, false, 1, 0), true).is_ok(), late);
            let first = if late { vec![0, 9] } else { vec![0] };
            assert_eq!(numbers(&mut buffer), [first, vec![1]]);
        }
    }

    #[test]
    fn a_retransmission_is_not_paired() {
        let mut buffer = Buffer::new(10, true);
        let mut again = packet(0, true, 0, 0);
        again.header.sequence = 5;
        buffer.push_front(Load::Native(again));
        assert!(pair(&mut buffer, packet(9, false, 1, 0), true).is_err());
        assert_eq!(numbers(&mut buffer), [vec![0]]);
    }

    #[test]
    fn space_is_counted_in_frames() {
        let mut buffer = Buffer::new(2, true);
        buffer.push_ready(packet(0, true, 0, 0));
        assert!(buffer.has_space());
        let back = pair(&mut buffer, packet(1, false, 0, 0), false).unwrap_err();
        buffer.push_ready(packet(2, true, 0, 0));
        assert!(!buffer.has_space());
        // A packet that is coded with another takes no space.
        pair(&mut buffer, back, true).unwrap();
        assert_eq!((buffer.has_space(), buffer.packets().count()), (false, 3));
        buffer.pop_ready();
        assert_eq!((buffer.has_space(), buffer.packets().count()), (true, 1));
    }
}
