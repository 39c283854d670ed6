//! IPv6 packets in two halves, over a mesh whose frames are too short for them.
//!
//! IPv6 knows no path that carries less than [`V6_LEAST`] bytes: a link with shorter packets has to
//! cut and join them below IPv6 (RFC 8200, section 5). One node behind a VPN is enough for that.
//! Both halves are packets of the mesh, which their first four bits tell from others:
//!
//! ```text
//!    0       4       8                      24
//!   +-------+-------+----------------------+---------------------------
//!   | 2     | half  | number of the packet | its bytes
//!   +-------+-------+----------------------+---------------------------
//! ```

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::VecDeque;

/// Longest packet that every path of IPv6 carries, bytes.
pub const V6_LEAST: usize = 1280;
/// Longest half of it, bytes. A mesh that takes no longer packets carries no IPv6.
pub const LONGEST_HALF: usize = HEADER + V6_LEAST / 2;
/// First four bits of a half. IP has 4 and 6, measurements 0 and roll-outs 1.
const KIND: u8 = 2;
const HEADER: usize = 3;
/// Longest time that a half waits for the other one, which the mesh may have to repair. If it were
/// longer, halves of two packets with the same number could meet.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most halves that wait: of one node, and of all together.
const MOST_OF_NODE: usize = 16;
const MOST: usize = 128;

/// Halves that were sent and that wait for the other one.
#[derive(Debug, Default)]
pub(super) struct Halves {
    sent: u16,
    /// The oldest first.
    waiting: VecDeque<Half>,
}

/// A half that came from a node.
#[derive(Debug)]
struct Half {
    from: NodeId,
    number: u16,
    is_second: bool,
    bytes: Vec<u8>,
    came: Instant,
}

/// Packet that a half made whole, and how many halves were given up meanwhile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Joined {
    pub packet: Option<Vec<u8>>,
    pub given_up: u64,
}

/// Returns whether a packet of the mesh is half of one.
pub(super) fn is_half(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == KIND)
}

impl Halves {
    /// Cuts a packet.
    pub(super) fn cut(&mut self, packet: &[u8]) -> [Vec<u8>; 2] {
        self.sent = self.sent.wrapping_add(1);
        let [high, low] = self.sent.to_be_bytes();
        let (first, second) = packet.split_at(packet.len().div_ceil(2));
        [(0, first), (1, second)].map(|(half, bytes)| {
            let mut piece = vec![KIND << 4 | half, high, low];
            piece.extend(bytes);
            piece
        })
    }

    /// Takes a half from a node. `None` if it is none that a gateway makes.
    pub(super) fn join(&mut self, from: NodeId, piece: &[u8], now: Instant) -> Option<Joined> {
        let (header, bytes) = piece.split_first_chunk::<HEADER>()?;
        let [kind, high, low] = *header;
        let is_second = match kind & 0x0F {
            0 => false,
            1 => true,
            _ => return None,
        };
        if bytes.is_empty() || bytes.len() > V6_LEAST {
            return None;
        }

        let given_up = self.give_up_late(now);
        let number = u16::from_be_bytes([high, low]);
        let half = Half { from, number, is_second, bytes: bytes.to_vec(), came: now };
        let is_same = |other: &Half| other.from == from && other.number == number;
        let Some(at) = self.waiting.iter().position(is_same) else {
            let crowded_out = self.keep(half);
            return Some(Joined { packet: None, given_up: given_up + crowded_out });
        };

        // The same half again is a copy, or of a packet that has the number of an older one.
        let other = self.waiting.remove(at)?;
        if other.is_second == is_second {
            self.waiting.push_back(half);
            return Some(Joined { packet: None, given_up: given_up + 1 });
        }

        let (first, second) = if is_second { (other, half) } else { (half, other) };
        Some(Joined { packet: Some([first.bytes, second.bytes].concat()), given_up })
    }

    /// Keeps a half until the other one comes. Returns how many make room for it: no member takes
    /// the room of others.
    fn keep(&mut self, half: Half) -> u64 {
        let from = half.from;
        let of_node = self.waiting.iter().filter(|other| other.from == from).count();
        let oldest = match of_node {
            MOST_OF_NODE.. => self.waiting.iter().position(|other| other.from == from),
            _ if self.waiting.len() >= MOST => Some(0),
            _ => None,
        };

        let gone = oldest.and_then(|at| self.waiting.remove(at));
        self.waiting.push_back(half);
        u64::from(gone.is_some())
    }

    /// Forgets the halves whose other one did not come in time. Returns how many.
    fn give_up_late(&mut self, now: Instant) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|half| now.since(half.came) <= PATIENCE);
        (before - self.waiting.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BARN: NodeId = NodeId(5);
    const ROOF: NodeId = NodeId(6);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn whole(joined: Option<Joined>) -> Option<Vec<u8>> {
        joined.and_then(|joined| joined.packet)
    }

    proptest! {
        #[test]
        fn what_is_cut_is_joined_in_either_order(
            packet in prop::collection::vec(any::<u8>(), 2..=V6_LEAST),
            turned in any::<bool>(),
        ) {
            let [first, second] = Halves::default().cut(&packet);
            prop_assert!(is_half(&first) && is_half(&second));
            prop_assert!(first.len().max(second.len()) <= LONGEST_HALF);
            let (one, other) = if turned { (second, first) } else { (first, second) };
            let mut halves = Halves::default();
            prop_assert_eq!(whole(halves.join(BARN, &one, at(0))), None);
            prop_assert_eq!(whole(halves.join(BARN, &other, at(9))), Some(packet));
            prop_assert_eq!(halves.waiting.len(), 0);
        }

        #[test]
        fn nothing_makes_it_grow_or_panic(
            pieces in prop::collection::vec(prop::collection::vec(0..40u8, 0..6), 0..600),
        ) {
            let mut halves = Halves::default();
            for (ms, piece) in (0..).zip(pieces) {
                halves.join(NodeId(ms as u16 % 40), &piece, at(ms));
                prop_assert!(halves.waiting.len() <= MOST);
            }
        }
    }

    #[test]
    fn halves_of_other_nodes_and_other_packets_are_not_joined() {
        let mut sender = Halves::default();
        let [first, second] = sender.cut(&[7; 100]);
        let [_, of_next] = sender.cut(&[8; 100]);
        let mut halves = Halves::default();
        halves.join(BARN, &first, at(0));
        assert_eq!(whole(halves.join(ROOF, &second, at(0))), None);
        assert_eq!(whole(halves.join(BARN, &of_next, at(0))), None);
        assert_eq!(whole(halves.join(BARN, &second, at(0))), Some(vec![7; 100]));
    }

    #[test]
    fn a_half_that_is_alone_too_long_is_given_up_and_counted() {
        let mut sender = Halves::default();
        let [first, second] = sender.cut(&[7; 100]);
        let mut halves = Halves::default();
        halves.join(BARN, &first, at(0));
        let late = halves.join(BARN, &second, at(5_001)).unwrap();
        assert_eq!(late, Joined { packet: None, given_up: 1 });

        // The same half twice is one of them at most.
        let again = halves.join(BARN, &second, at(5_002)).unwrap();
        assert_eq!(again, Joined { packet: None, given_up: 1 });
        assert_eq!(whole(halves.join(BARN, &first, at(5_003))), Some(vec![7; 100]));
    }

    #[test]
    fn a_node_that_sends_halves_alone_takes_no_room_of_others() {
        let mut halves = Halves::default();
        let [first, second] = Halves::default().cut(&[7; 100]);
        halves.join(ROOF, &first, at(0));
        let mut flood = Halves::default();
        let given_up: u64 = (0..1_000)
            .map(|_| halves.join(BARN, &flood.cut(&[8; 100])[0], at(1)).unwrap().given_up)
            .sum();
        assert_eq!(given_up, 1_000 - MOST_OF_NODE as u64);
        assert_eq!(whole(halves.join(ROOF, &second, at(2))), Some(vec![7; 100]));
    }

    #[test]
    fn other_packets_are_no_halves() {
        for packet in [&[][..], &[0x45, 0, 0, 1], &[0x60, 0, 0, 1], &[0x00, 1, 2, 3]] {
            assert!(!is_half(packet));
        }
        let mut halves = Halves::default();
        for piece in [&[0x20][..], &[0x20, 0, 1], &[0x22, 0, 1, 9]] {
            assert_eq!(halves.join(BARN, piece, at(0)), None);
        }
    }
}
