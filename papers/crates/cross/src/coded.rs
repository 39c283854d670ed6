//! The three schemes of CORE (sections 5.3 to 5.5): each flow has a random linear code, and the
//! relay combines both.

use crate::Until;
use crate::air::Air;
use crate::span::{Span, recode};
use ncmesh_code::{Field, draw};

/// The destinations, and the coefficients of the packets on the channel.
struct Destinations {
    generation: usize,
    field: Field,
    /// Received packets of each destination. The coefficients of the other flow come first, so a
    /// row whose pivot comes after them belongs to the destination's own flow alone.
    spans: [Span; 2],
    /// Coefficients by flow, of the sources' packets or of the combined packet.
    packets: [Vec<u8>; 2],
    vector: Vec<u8>,
}

impl Destinations {
    fn new(generation: usize, field: Field) -> Self {
        Self {
            generation,
            field,
            spans: [0, 1].map(|_| Span::new(field, 2 * generation)),
            packets: [vec![0; generation], vec![0; generation]],
            vector: vec![0; 2 * generation],
        }
    }

    /// Says whether a destination can decode its own flow.
    fn has_all(&self, destination: usize) -> bool {
        self.spans[destination].rank_from(self.generation) == self.generation
    }

    fn are_done(&self, until: Until) -> bool {
        self.has_all(0) && (until == Until::One || self.has_all(1))
    }

    /// Draws a fresh packet of a source.
    fn draw(&mut self, flow: usize, air: &mut Air) {
        draw(self.field, &mut air.coefficients, &mut self.packets[flow]);
    }

    /// Gives a source's packet to the other flow's destination.
    fn overhear(&mut self, flow: usize) {
        self.vector.fill(0);
        // The other flow's coefficients come first, and its own are zero.
        self.vector[..self.generation].copy_from_slice(&self.packets[flow]);

        self.spans[1 - flow].absorb(&self.vector);
    }

    /// Gives the relay's combined packet to a destination.
    fn receive_combined(&mut self, destination: usize) {
        let (other, own) = self.vector.split_at_mut(self.generation);
        other.copy_from_slice(&self.packets[1 - destination]);
        own.copy_from_slice(&self.packets[destination]);

        self.spans[destination].absorb(&self.vector);
    }
}

/// Sends pairs of coded packets until `until`. The MAC repeats each packet on both hops, and the
/// relay sends the exclusive or of a pair.
pub(crate) fn without_recoding(generation: usize, field: Field, until: Until, air: &mut Air) {
    let mut destinations = Destinations::new(generation, field);

    while !destinations.are_done(until) && !air.is_given_up() {
        // A pair reaches the relay, one packet of each flow.
        for flow in 0..2 {
            destinations.draw(flow, air);
            if air.source_sends_until_received() {
                destinations.overhear(flow);
            }
        }

        // The relay sends it to one destination, and the other one may hear it.
        let addressed = air.draw_addressed();
        let by_the_other = air.relay_sends_until_received();

        destinations.receive_combined(addressed);
        if by_the_other {
            destinations.receive_combined(1 - addressed);
        }
    }
}

/// Runs rounds in which each source and then the relay broadcast once. With `feedback` a source
/// stops when the relay has full rank of its generation. A relay without packets is silent.
pub(crate) fn with_recoding(
    generation: usize,
    field: Field,
    feedback: bool,
    until: Until,
    air: &mut Air,
) {
    let mut destinations = Destinations::new(generation, field);
    let mut relay = [0, 1].map(|_| Span::new(field, generation));

    while !destinations.are_done(until) && !air.is_given_up() {
        // A source stops once the relay says that it has everything.
        for (flow, held) in relay.iter_mut().enumerate() {
            if !(feedback && held.is_full()) {
                send(flow, held, &mut destinations, air);
            }
        }

        if relay.iter().any(|held| held.rank() > 0) {
            send_combined(&relay, &mut destinations, air);
        }
    }
}

/// Sends a packet from a source to the relay; the other flow's destination may overhear it.
fn send(flow: usize, relay: &mut Span, destinations: &mut Destinations, air: &mut Air) {
    destinations.draw(flow, air);

    // One broadcast, without the MAC's acknowledgments.
    let [received, overheard] = air.source_sends();

    if received {
        relay.absorb(&destinations.packets[flow]);
    }
    if overheard {
        destinations.overhear(flow);
    }
}

/// Sends a combination of everything that the relay has.
fn send_combined(relay: &[Span; 2], destinations: &mut Destinations, air: &mut Air) {
    let [first, second] = &mut destinations.packets;
    recode(destinations.field, relay, &mut air.coefficients, [first, second]);

    // Both destinations want it, so nobody is addressed.
    for (destination, heard) in air.relay_sends().into_iter().enumerate() {
        if heard {
            destinations.receive_combined(destination);
        }
    }
}
