//! The three schemes of CORE (sections 5.3 to 5.5): random linear codes for each flow, joined at the relay.

use crate::Until;
use crate::air::Air;
use crate::span::{Span, recode};
use ncmesh_code::{Field, draw};

/// The destinations, and coefficients of the packets that are under way.
struct Destinations {
    generation: usize,
    field: Field,
    /// By flow. Coefficients of the other flow come first: what is left behind them is of its own alone.
    spans: [Span; 2],
    /// By flow, of the sources' packets or of the combined one.
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

    /// Whether a destination has its flow: all of it, whatever of the other flow it lacks.
    fn has_all(&self, destination: usize) -> bool {
        self.spans[destination].rank_from(self.generation) == self.generation
    }

    fn are_done(&self, until: Until) -> bool {
        self.has_all(0) && (until == Until::One || self.has_all(1))
    }

    /// A fresh packet of a source.
    fn draw(&mut self, flow: usize, air: &mut Air) {
        draw(self.field, &mut air.coefficients, &mut self.packets[flow]);
    }

    /// The destination of the other flow overhears a source's packet.
    fn overhear(&mut self, flow: usize) {
        self.vector.fill(0);
        self.vector[..self.generation].copy_from_slice(&self.packets[flow]);
        self.spans[1 - flow].absorb(&self.vector);
    }

    /// A destination hears the packet that the relay combined of both.
    fn hear(&mut self, destination: usize) {
        let (other, own) = self.vector.split_at_mut(self.generation);
        other.copy_from_slice(&self.packets[1 - destination]);
        own.copy_from_slice(&self.packets[destination]);
        self.spans[destination].absorb(&self.vector);
    }
}

/// Pairs of coded packets, repeated by the MAC on both hops, of which the relay sends the exclusive or.
pub(crate) fn without_recoding(generation: usize, field: Field, until: Until, air: &mut Air) {
    let mut destinations = Destinations::new(generation, field);
    while !destinations.are_done(until) && !air.is_spent() {
        for flow in 0..2 {
            destinations.draw(flow, air);
            if air.source_insists() {
                destinations.overhear(flow);
            }
        }
        let addressed = air.addressed();
        let by_the_other = air.relay_insists();
        destinations.hear(addressed);
        if by_the_other {
            destinations.hear(1 - addressed);
        }
    }
}

/// Rounds in which each source and then the relay broadcast once. With `feedback` sources stop at full rank of
/// the relay. A relay that holds nothing is silent.
pub(crate) fn with_recoding(
    generation: usize,
    field: Field,
    feedback: bool,
    until: Until,
    air: &mut Air,
) {
    let mut destinations = Destinations::new(generation, field);
    let mut relay = [0, 1].map(|_| Span::new(field, generation));
    while !destinations.are_done(until) && !air.is_spent() {
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

/// A source sends a packet to the relay, which the other flow's destination may overhear.
fn send(flow: usize, relay: &mut Span, destinations: &mut Destinations, air: &mut Air) {
    destinations.draw(flow, air);
    let [received, overheard] = air.source_sends();
    if received {
        relay.absorb(&destinations.packets[flow]);
    }
    if overheard {
        destinations.overhear(flow);
    }
}

/// The relay sends a packet made of all it has.
fn send_combined(relay: &[Span; 2], destinations: &mut Destinations, air: &mut Air) {
    let [first, second] = &mut destinations.packets;
    recode(destinations.field, relay, &mut air.coefficients, [first, second]);
    for (destination, heard) in air.relay_sends().into_iter().enumerate() {
        if heard {
            destinations.hear(destination);
        }
    }
}
