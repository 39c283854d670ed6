//! Forwarding and COPE-like coding (sections 5.1 and 5.2): native packets, repeated by the MAC.

use crate::Until;
use crate::air::Air;

/// Share of packets that the relay drops when it gets the channel as often as each source (eq. 5).
pub(crate) const DROPPED: f64 = 0.5;

/// Forwards a generation of each flow. The relay drops packets with probability `dropped`.
pub(crate) fn forward(generation: usize, dropped: f64, air: &mut Air) {
    for _ in 0..2 * generation {
        // A packet that the relay drops is sent again.
        air.source_sends_until_received();
        while air.draw_event(dropped) && !air.is_given_up() {
            air.source_sends_until_received();
        }
        air.relay_sends_until_received();
    }
}

/// Sends pairs of packets, one of each flow, which the relay combines into one. A destination
/// decodes if it receives the combined packet and overheard the other flow's packet; otherwise the
/// source sends its packet again in another pair. When one flow is complete, the rest of the other
/// is forwarded.
pub(crate) fn cope(generation: usize, until: Until, air: &mut Air) {
    let mut left = [generation; 2];

    while needs_pairs(left, until) && !air.is_given_up() {
        // Each source's packet may be overheard by the destination of the other flow.
        let by_the_second = air.source_sends_until_received();
        let by_the_first = air.source_sends_until_received();

        // The relay's packet is repeated until the addressed destination has it.
        let addressed = air.draw_addressed();
        let mut combined = [air.relay_sends_until_received(); 2];
        combined[addressed] = true;

        for (d, overheard) in [by_the_first, by_the_second].into_iter().enumerate() {
            left[d] = left[d].saturating_sub(usize::from(overheard && combined[d]));
        }
    }

    // Only one flow is left, and nothing to combine it with.
    if until == Until::Both {
        for _ in 0..left[0] + left[1] {
            air.source_sends_until_received();
            air.relay_sends_until_received();
        }
    }
}

fn needs_pairs(left: [usize; 2], until: Until) -> bool {
    match until {
        Until::Both => left[0] > 0 && left[1] > 0,
        Until::One => left[0] > 0,
    }
}
