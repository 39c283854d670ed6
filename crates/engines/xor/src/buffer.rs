//! The NC buffer (IV-C): outgoing packets that wait for one of the opposite direction, and those that wait for
//! the channel.

use super::frame::Tag;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A packet on its way out.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub tag: Tag,
    pub bytes: Arc<[u8]>,
    /// When it came here.
    pub since: Instant,
    /// How long it is held.
    pub hold: Duration,
}

/// The way of a packet through a relay: from whom, to whom.
pub(super) type Turn = (NodeId, NodeId);

impl Packet {
    /// Its way through this node; none where it begins here.
    pub(super) fn turn(&self) -> Option<Turn> {
        Some((self.tag.previous()?, self.tag.next()))
    }

    fn due(&self) -> Instant {
        self.since + self.hold
    }
}

/// What one transmission carries.
#[derive(Debug)]
pub(super) enum Burden {
    One(Packet),
    Two(Packet, Packet),
}

/// How a packet was found that another is coded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    /// Its way.
    pub turn: Turn,
    /// How long it had waited.
    pub waited: Duration,
    /// How long it was to be held.
    pub hold: Duration,
}

/// Packets that go out.
#[derive(Debug)]
pub(super) struct Buffer {
    capacity: usize,
    /// Whether packets that wait for the channel are still paired.
    late: bool,
    held: BTreeMap<Turn, VecDeque<Packet>>,
    ready: VecDeque<Burden>,
    /// Frames that all of it will take.
    frames: usize,
}

impl Buffer {
    pub(super) fn new(capacity: usize, late: bool) -> Self {
        Self { capacity, late, held: BTreeMap::new(), ready: VecDeque::new(), frames: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.frames < self.capacity
    }

    /// Takes a packet that is not to be coded.
    pub(super) fn send(&mut self, packet: Packet) {
        self.frames += 1;
        self.ready.push_back(Burden::One(packet));
    }

    /// Codes `packet` with the oldest one that goes the opposite way of `turn` and `suits`; gives it back where none
    /// is waiting.
    pub(super) fn pair(
        &mut self,
        packet: Packet,
        turn: Turn,
        suits: impl Fn(&Packet) -> bool,
    ) -> Result<Met, Packet> {
        let opposite = (turn.1, turn.0);
        let Some((partner, place)) = self.take_partner(opposite, suits) else { return Err(packet) };
        let met = Met { turn: opposite, waited: packet.since - partner.since, hold: partner.hold };
        self.ready.insert(place, Burden::Two(partner, packet));
        Ok(met)
    }

    /// Holds a packet until its hold time is over; the same turn's packets stay in order.
    pub(super) fn hold(&mut self, packet: Packet, turn: Turn) {
        self.frames += 1;
        if packet.hold == Duration::ZERO && !self.held.contains_key(&turn) {
            self.ready.push_back(Burden::One(packet));
        } else {
            self.held.entry(turn).or_default().push_back(packet);
        }
    }

    /// Lets go of what was held long enough.
    pub(super) fn release(&mut self, now: Instant) {
        while let Some((_, turn)) = self.first_due().filter(|(due, _)| *due <= now) {
            let released = self.take_held(turn);
            self.ready.extend(released.map(Burden::One));
        }
    }

    /// When the first packet was held long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.first_due().map(|(due, _)| due)
    }

    /// Whether something waits for the channel.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether something is to be sent now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.has_ready() || self.due().is_some_and(|due| due <= now)
    }

    /// What is sent next.
    pub(super) fn take(&mut self) -> Option<Burden> {
        let burden = self.ready.pop_front()?;
        self.frames -= 1;
        Some(burden)
    }

    /// Whether another packet goes to this neighbour.
    pub(super) fn has_more(&self, neighbour: NodeId) -> bool {
        self.packets().any(|packet| packet.tag.next() == neighbour)
    }

    /// All packets here.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let ready = self.ready.iter().flat_map(|burden| match burden {
            Burden::One(packet) => [Some(packet), None],
            Burden::Two(one, other) => [Some(one), Some(other)],
        });
        ready.flatten().chain(self.held.values().flatten())
    }

    /// Takes what goes before all else, as it is.
    pub(super) fn send_first(&mut self, burden: Burden) {
        self.frames += 1;
        self.ready.push_front(burden);
    }

    /// The oldest packet of a turn that suits, and the place in line that it leaves to the pair.
    fn take_partner(
        &mut self,
        turn: Turn,
        suits: impl Fn(&Packet) -> bool,
    ) -> Option<(Packet, usize)> {
        let is_it = |burden: &Burden| match burden {
            Burden::One(packet) => {
                let is_new = packet.tag.order == 0;
                self.late && is_new && packet.turn() == Some(turn) && suits(packet)
            }
            Burden::Two(..) => false,
        };
        if let Some(place) = self.ready.iter().position(is_it)
            && let Some(Burden::One(partner)) = self.ready.remove(place)
        {
            return Some((partner, place));
        }
        let held = self.held.get_mut(&turn)?;
        let partner = held.remove(held.iter().position(suits)?)?;
        if held.is_empty() {
            self.held.remove(&turn);
        }
        Some((partner, self.ready.len()))
    }

    fn first_due(&self) -> Option<(Instant, Turn)> {
        let front =
            |(turn, packets): (&Turn, &VecDeque<Packet>)| Some((packets.front()?.due(), *turn));
        self.held.iter().filter_map(front).min()
    }

    fn take_held(&mut self, turn: Turn) -> Option<Packet> {
        let packets = self.held.get_mut(&turn)?;
        let packet = packets.pop_front();
        if packets.is_empty() {
            self.held.remove(&turn);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::PacketId;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// At node 2 a packet from node 1 to 3, or back.
    fn packet(number: u32, forth: bool, since: u64, hold: u64) -> Packet {
        let (source, far) = if forth { (1, 3) } else { (3, 1) };
        let id = PacketId { source: NodeId(source), number };
        let route = vec![NodeId(2), NodeId(far)];
        let tag = Tag { id, order: 0, at: 1, route, more: false };
        Packet { tag, bytes: Arc::from([0]), since: at(since), hold: MS * hold as u32 }
    }

    fn numbers(buffer: &mut Buffer) -> Vec<Vec<u32>> {
        let burdens = core::iter::from_fn(|| buffer.take());
        let of = |burden| match burden {
            Burden::One(packet) => vec![packet.tag.id.number],
            Burden::Two(one, other) => vec![one.tag.id.number, other.tag.id.number],
        };
        burdens.map(of).collect()
    }

    fn hold(buffer: &mut Buffer, packet: Packet) {
        let turn = packet.turn().unwrap();
        buffer.hold(packet, turn);
    }

    #[test]
    fn held_packets_are_paired_oldest_first_or_let_go_in_order() {
        let mut buffer = Buffer::new(10, false);
        for number in 0..3 {
            hold(&mut buffer, packet(number, true, u64::from(number), 5));
        }
        assert_eq!((buffer.due(), buffer.is_ready(at(4))), (Some(at(5)), false));
        let back = packet(9, false, 4, 5);
        let turn = back.turn().unwrap();
        let met = buffer.pair(back, turn, |_| true).unwrap();
        assert_eq!((met.turn, met.waited, met.hold), ((NodeId(1), NodeId(3)), 4 * MS, 5 * MS));
        assert!(buffer.is_ready(at(4)));
        buffer.release(at(6));
        assert_eq!(numbers(&mut buffer), [vec![0, 9], vec![1]]);
        assert_eq!((buffer.packets().count(), buffer.due()), (1, Some(at(7))));
    }

    #[test]
    fn what_waits_for_the_channel_is_paired_where_it_stands_if_late_pairs_are_allowed() {
        for late in [false, true] {
            let mut buffer = Buffer::new(10, late);
            hold(&mut buffer, packet(0, true, 0, 0));
            hold(&mut buffer, packet(1, true, 0, 0));
            let back = packet(9, false, 1, 0);
            let turn = back.turn().unwrap();
            assert_eq!(buffer.pair(back, turn, |_| true).is_ok(), late);
            let first = if late { vec![0, 9] } else { vec![0] };
            assert_eq!(numbers(&mut buffer), [first, vec![1]]);
        }
    }

    #[test]
    fn room_is_counted_in_frames() {
        let mut buffer = Buffer::new(2, true);
        buffer.send(packet(0, true, 0, 0));
        assert!(buffer.has_room());
        let back = packet(1, false, 0, 0);
        let turn = back.turn().unwrap();
        let back = buffer.pair(back, turn, |_| false).unwrap_err();
        buffer.send(packet(2, true, 0, 0));
        assert!(!buffer.has_room());
        // What is coded with another takes no room.
        buffer.pair(back, turn, |_| true).unwrap();
        assert_eq!((buffer.has_room(), buffer.packets().count()), (false, 3));
        buffer.take();
        assert_eq!((buffer.has_room(), buffer.packets().count()), (true, 1));
    }
}
