//! All queues of a network, slot by slot.

use super::arrivals::Arrivals;
use super::network::{Link, Network};
use ncmesh_engine::rng;
use ncmesh_engine_multirate::{
    Dropping, Moved, Packets, Parameters, Policy, Queues, Receiver, Tree, Utility,
    differential_backlog, most_pressing, pressure,
};
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// A queue's place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) session: usize,
    pub(super) link: usize,
    /// m.
    pub(super) receivers: u32,
    /// Where its packets come from: the queue before it, or, numbered after all queues, its session's source.
    before: usize,
}

/// A receiver, and the queue that its packets come from.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) receiver: Receiver,
    pub(super) queue: usize,
    /// Y at the slot's beginning.
    pressure: f64,
}

/// A link's capacity.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    capacity: f64,
    /// The part of a packet that it carried already.
    begun: f64,
}

/// A session's stream.
#[derive(Clone, Debug)]
struct Source {
    layers: Vec<Arrivals>,
    random: Vec<ChaCha8Rng>,
    /// What has not entered yet, since no more than A_max enter at once.
    waiting: Packets,
}

/// Everything that changes from slot to slot.
pub(super) struct Fabric {
    parameters: Parameters,
    rules: Dropping,
    has_pressure: bool,
    pub(super) places: Vec<Place>,
    pub(super) queues: Vec<Queues>,
    pub(super) seats: Vec<Seat>,
    carriers: Vec<Carrier>,
    /// The queues that share a link, or a node's radio.
    transmitters: Vec<Vec<usize>>,
    sources: Vec<Source>,
    /// Of each queue: m Q, the pressure at its far end, and the packets it may send.
    own: Vec<f64>,
    downstream: Vec<f64>,
    rates: Vec<u32>,
    /// What each queue sent and dropped; then what entered each source.
    moved: Vec<Moved>,
}

impl Fabric {
    /// All queues as a run begins. `utilities` are those of all receivers, session by session.
    pub(super) fn new(
        network: &Network,
        trees: &[Tree],
        policy: Policy,
        parameters: Parameters,
        utilities: Vec<Utility>,
        sources: Vec<Vec<Arrivals>>,
        seed: u64,
    ) -> Self {
        let places = places(trees);
        let rules = Dropping::new(policy, &parameters);
        let queues = places.len();
        Self {
            parameters,
            rules,
            has_pressure: policy.has_utilities(),
            queues: vec![Queues::new(&rules); queues],
            seats: seats(trees, utilities, &parameters),
            carriers: network.links.iter().map(|l| Carrier::new(l.capacity)).collect(),
            transmitters: transmitters(&network.links, &places),
            own: vec![0.0; queues],
            // What is before a source's links is nobody's business, but has a place.
            downstream: vec![0.0; queues + sources.len()],
            rates: vec![0; queues],
            moved: vec![Moved::default(); queues + sources.len()],
            sources: (0..).zip(sources).map(|(id, s)| Source::new(s, id, seed)).collect(),
            places,
        }
    }

    /// A link's capacity from now on, packets per slot.
    pub(super) fn set_capacity(&mut self, link: usize, capacity: f64) {
        self.carriers[link].capacity = capacity;
    }

    /// One slot.
    pub(super) fn step(&mut self) {
        self.weigh();
        self.schedule();
        self.serve();
        self.deliver();
    }

    /// What moved in the slot, queue by queue.
    pub(super) fn moved(&self) -> &[Moved] {
        &self.moved[..self.queues.len()]
    }

    /// What entered each source in the slot.
    pub(super) fn entered(&self) -> impl Iterator<Item = Packets> {
        self.moved[self.queues.len()..].iter().map(|moved| moved.sent)
    }

    /// What waits outside each source.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.sources.iter().map(|source| source.waiting.total())
    }

    /// The pressures of all queues and receivers at the slot's beginning.
    fn weigh(&mut self) {
        self.downstream.fill(0.0);
        if self.has_pressure {
            for seat in &mut self.seats {
                seat.pressure = seat.receiver.pressure(&self.parameters);
                self.downstream[seat.queue] = seat.pressure;
            }
        }
        for ((place, queue), own) in self.places.iter().zip(&self.queues).zip(&mut self.own) {
            *own = pressure(place.receivers, queue.backlog());
            self.downstream[place.before] += *own;
        }
    }

    /// Which queue of each link or radio may send, and how much.
    fn schedule(&mut self) {
        self.rates.fill(0);
        for transmitter in &self.transmitters {
            let candidates = transmitter.iter().map(|queue| {
                let weight = differential_backlog(self.own[*queue], self.downstream[*queue]);
                (*queue, self.carriers[self.places[*queue].link].capacity, weight)
            });
            if let Some(queue) = most_pressing(candidates) {
                self.rates[queue] = self.carriers[self.places[queue].link].carry();
            }
        }
    }

    /// Queues send and drop.
    fn serve(&mut self) {
        for ((queue, rate), moved) in self.queues.iter_mut().zip(&self.rates).zip(&mut self.moved) {
            *moved = queue.advance(*rate, &self.rules);
        }
    }

    /// What was sent, and what enters, arrives.
    fn deliver(&mut self) {
        let queues = self.queues.len();
        for (source, entered) in self.sources.iter_mut().zip(&mut self.moved[queues..]) {
            entered.sent = source.enter(self.parameters.a_max);
        }
        for (queue, place) in self.queues.iter_mut().zip(&self.places) {
            queue.receive(self.moved[place.before].sent);
        }
        if self.has_pressure {
            for seat in &mut self.seats {
                let received = self.moved[seat.queue].sent.total();
                seat.receiver.advance(seat.pressure, received, &self.parameters);
            }
        }
    }
}

impl Carrier {
    fn new(capacity: f64) -> Self {
        Self { capacity, begun: 0.0 }
    }

    /// Whole packets carried in a slot that the link is busy in; what is left over of its capacity goes to the next.
    fn carry(&mut self) -> u32 {
        let carried = self.begun + self.capacity;
        self.begun = carried.fract();
        carried as u32
    }
}

impl Source {
    fn new(layers: Vec<Arrivals>, session: u16, seed: u64) -> Self {
        let stream =
            |layer| rng::stream(seed, NodeId(session), "wireline", &format!("layer {layer}"));
        let random = (0..layers.len()).map(stream).collect();
        Self { layers, random, waiting: Packets::default() }
    }

    /// Packets arrive, and at most `a_max` of those that wait enter, the base first.
    fn enter(&mut self, a_max: u32) -> Packets {
        let mut arrived = Packets::default();
        for ((layer, random), packets) in
            self.layers.iter_mut().zip(&mut self.random).zip(&mut arrived.0)
        {
            *packets = layer.draw(random);
        }
        self.waiting += arrived;
        let entering = self.waiting.lowest(a_max);
        self.waiting -= entering;
        entering
    }
}

fn places(trees: &[Tree]) -> Vec<Place> {
    let queues: usize = trees.iter().map(|tree| tree.hops.len()).sum();
    let mut places = Vec::with_capacity(queues);
    for (session, tree) in trees.iter().enumerate() {
        let first = places.len();
        places.extend(tree.hops.iter().map(|hop| Place {
            session,
            link: hop.link,
            receivers: hop.receivers,
            before: hop.parent.map_or(queues + session, |parent| first + parent),
        }));
    }
    places
}

fn seats(trees: &[Tree], utilities: Vec<Utility>, parameters: &Parameters) -> Vec<Seat> {
    let firsts = trees.iter().scan(0, |next, tree| {
        let first = *next;
        *next += tree.hops.len();
        Some(first)
    });
    let queues =
        firsts.zip(trees).flat_map(|(first, tree)| tree.last.iter().map(move |l| first + l));
    let seat = |(utility, queue)| Seat {
        receiver: Receiver::new(utility, parameters),
        queue,
        pressure: 0.0,
    };
    utilities.into_iter().zip(queues).map(seat).collect()
}

/// Queues that are served one at a time: those of a wire, or of all wireless links of a node.
fn transmitters(links: &[Link], places: &[Place]) -> Vec<Vec<usize>> {
    let mut wires: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut radios: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (queue, place) in places.iter().enumerate() {
        let link = &links[place.link];
        if link.wireless {
            radios.entry(&link.from.0).or_default().push(queue);
        } else {
            wires.entry(place.link).or_default().push(queue);
        }
    }
    wires.into_values().chain(radios.into_values()).collect()
}
