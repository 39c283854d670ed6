//! Forwarding and COPE-like coding (sections 5.1 and 5.2): packets as they are, repeated by the MAC.

use crate::Until;
use crate::air::Air;

/// Share of packets that a relay drops which gets the channel as often as each source (eq. 5).
pub(crate) const DROPPED: f64 = 0.5;

/// Forwards a generation of each flow; the relay drops packets with probability `dropped`.
pub(crate) fn forward(generation: usize, dropped: f64, air: &mut Air) {
    for _ in 0..2 * generation {
        air.source_insists();
        while air.happens(dropped) && !air.is_spent() {
            air.source_insists();
        }
        air.relay_insists();
    }
}

/// Pairs of packets, one of each flow, that the relay sends as one. A destination needs that one and the other
/// flow's packet, overheard; what one of them misses comes anew from the source, in another pair. Once a flow
/// is through, the rest of the other is forwarded.
pub(crate) fn cope(generation: usize, until: Until, air: &mut Air) {
    let mut left = [generation; 2];
    while pairs_go_on(left, until) && !air.is_spent() {
        let by_the_second = air.source_insists();
        let by_the_first = air.source_insists();
        let addressed = air.addressed();
        let mut combined = [air.relay_insists(); 2];
        combined[addressed] = true;
        for (d, overheard) in [by_the_first, by_the_second].into_iter().enumerate() {
            left[d] = left[d].saturating_sub(usize::from(overheard && combined[d]));
        }
    }
    if until == Until::Both {
        for _ in 0..left[0] + left[1] {
            air.source_insists();
            air.relay_insists();
        }
    }
}

fn pairs_go_on(left: [usize; 2], until: Until) -> bool {
    match until {
        Until::Both => left[0] > 0 && left[1] > 0,
        Until::One => left[0] > 0,
    }
}
