//! All queues of a network, slot by slot.
//!
//! A [`Fabric`] holds the queues of all sessions in one array, session by session. A slot has four
//! steps: `weigh` computes the pressures at both ends of each queue, `schedule` grants each wire or
//! radio to its most pressing queue, `serve` sends and drops packets, and `deliver` hands them to
//! the next queue (section III of the paper).

use crate::arrivals::Arrivals;
use crate::network::{Link, Network};
use ncmesh_engine::rng;
use ncmesh_engine_multirate::{
    Candidate, Dropping, Moved, Packets, Parameters, Policy, Queues, Receiver, Tree, Utility,
    differential_backlog, max_weight, pressure,
};
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Position of a queue in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: usize,
    pub(crate) link: usize,
    /// Receivers that are reached through the queue (m).
    pub(crate) receivers: u32,
    /// Index of the queue before it. The sources are numbered after all queues.
    before: usize,
}

/// A receiver and the queue that its packets come from.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) receiver: Receiver,
    pub(crate) queue: usize,
    /// The pressure Y at the beginning of the slot.
    pressure: f64,
}

/// Capacity of a link.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    capacity: f64,
    /// Fraction of the next packet that is carried already.
    begun: f64,
}

/// Stream of a session.
#[derive(Clone, Debug)]
struct Source {
    layers: Vec<Arrivals>,
    random: Vec<ChaCha8Rng>,
    /// Packets that wait outside the network because at most `a_max` enter in a slot.
    waiting: Packets,
}

/// State of the network in a slot.
pub(crate) struct Fabric {
    parameters: Parameters,
    rules: Dropping,
    has_pressure: bool,
    pub(crate) places: Vec<Place>,
    pub(crate) queues: Vec<Queues>,
    pub(crate) seats: Vec<Seat>,
    carriers: Vec<Carrier>,
    /// The queues that share a wire or a radio.
    transmitters: Vec<Vec<usize>>,
    sources: Vec<Source>,
    /// Pressure m Q of each queue.
    own: Vec<f64>,
    /// Pressure behind the far end of each queue, then of each source.
    downstream: Vec<f64>,
    /// Packets that each queue may send in the slot.
    rates: Vec<u32>,
    /// Packets that each queue sent and dropped; then those that entered each source.
    moved: Vec<Moved>,
}

impl Fabric {
    /// Creates the state at the start of a run, with the utilities of all receivers, session by
    /// session.
    pub(crate) fn new(
        network: &Network,
        trees: &[Tree],
        policy: Policy,
        parameters: Parameters,
        utilities: Vec<Utility>,
        sources: Vec<Vec<Arrivals>>,
        seed: u64,
    ) -> Self {
        // Queues are numbered session by session, as the trees list their links.
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
            // The sources have entries too, although nothing reads them: `before` needs no test.
            downstream: vec![0.0; queues + sources.len()],
            rates: vec![0; queues],
            moved: vec![Moved::default(); queues + sources.len()],
            sources: (0..).zip(sources).map(|(id, s)| Source::new(s, id, seed)).collect(),
            places,
        }
    }

    /// Changes the capacity of a link, in packets per slot.
    pub(crate) fn set_capacity(&mut self, link: usize, capacity: f64) {
        self.carriers[link].capacity = capacity;
    }

    /// Advances by one slot.
    pub(crate) fn step(&mut self) {
        self.weigh();
        self.schedule();
        self.serve();
        self.deliver();
    }

    /// Returns what each queue sent and dropped in the slot.
    pub(crate) fn moved(&self) -> &[Moved] {
        &self.moved[..self.queues.len()]
    }

    /// Returns the packets that entered each source in the slot.
    pub(crate) fn entered(&self) -> impl Iterator<Item = Packets> {
        self.moved[self.queues.len()..].iter().map(|moved| moved.sent)
    }

    /// Returns the number of packets that wait outside each source.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.sources.iter().map(|source| source.waiting.total())
    }

    /// Computes the pressures of all queues and receivers at the beginning of the slot.
    fn weigh(&mut self) {
        // Receivers press only under a policy that has utilities.
        self.downstream.fill(0.0);
        if self.has_pressure {
            for seat in &mut self.seats {
                seat.pressure = seat.receiver.pressure(&self.parameters);
                self.downstream[seat.queue] = seat.pressure;
            }
        }

        // A queue is downstream of the one before it, with all that it holds.
        for ((place, queue), own) in self.places.iter().zip(&self.queues).zip(&mut self.own) {
            *own = pressure(place.receivers, queue.backlog());
            self.downstream[place.before] += *own;
        }
    }

    /// Grants each wire or radio to its most pressing queue.
    fn schedule(&mut self) {
        self.rates.fill(0);

        // One queue of each wire or radio is served, that with the greatest weight.
        for transmitter in &self.transmitters {
            let candidates = transmitter.iter().map(|queue| Candidate {
                key: *queue,
                rate: self.carriers[self.places[*queue].link].capacity,
                weight: differential_backlog(self.own[*queue], self.downstream[*queue]),
            });

            if let Some(queue) = max_weight(candidates) {
                self.rates[queue] = self.carriers[self.places[queue].link].carry();
            }
        }
    }

    /// Sends and drops packets of every queue.
    fn serve(&mut self) {
        for ((queue, rate), moved) in self.queues.iter_mut().zip(&self.rates).zip(&mut self.moved) {
            // The policy's rules say how much is dropped.
            *moved = queue.advance(*rate, &self.rules);
        }
    }

    /// Hands the packets sent to the next queues, and lets new packets enter.
    fn deliver(&mut self) {
        // Behind the queues, `moved` has a place for each source.
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

    /// Returns the whole packets carried in a busy slot. The rest of the capacity counts for the
    /// next busy slot.
    fn carry(&mut self) -> u32 {
        let carried = self.begun + self.capacity;
        self.begun = carried.fract();
        carried as u32
    }
}

impl Source {
    fn new(layers: Vec<Arrivals>, session: u16, seed: u64) -> Self {
        // Each layer draws from a stream of its own, so that layers do not disturb each other.
        let stream =
            |layer| rng::stream(seed, NodeId(session), "wireline", &format!("layer {layer}"));
        let random = (0..layers.len()).map(stream).collect();
        Self { layers, random, waiting: Packets::default() }
    }

    /// Draws the arrivals and returns the packets that enter: at most `a_max`, base layer first.
    fn enter(&mut self, a_max: u32) -> Packets {
        // All layers draw, whether there is room or not.
        let mut arrived = Packets::default();
        for ((layer, random), packets) in
            self.layers.iter_mut().zip(&mut self.random).zip(&mut arrived.0)
        {
            *packets = layer.draw(random);
        }

        // The rest waits outside the network.
        self.waiting += arrived;
        let entering = self.waiting.lowest(a_max);
        self.waiting -= entering;
        entering
    }
}

fn places(trees: &[Tree]) -> Vec<Place> {
    // Sources are numbered behind all queues.
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
    // The first queue of each session, from which a tree counts its own.
    let firsts = trees.iter().scan(0, |next, tree| {
        let first = *next;
        *next += tree.hops.len();
        Some(first)
    });

    // A receiver sits behind the last queue of its path.
    let queues =
        firsts.zip(trees).flat_map(|(first, tree)| tree.last.iter().map(move |l| first + l));

    let seat = |(utility, queue)| Seat {
        receiver: Receiver::new(utility, parameters),
        queue,
        pressure: 0.0,
    };
    utilities.into_iter().zip(queues).map(seat).collect()
}

/// Groups the queues that are served one at a time: those of a wire, or of a node's radio.
fn transmitters(links: &[Link], places: &[Place]) -> Vec<Vec<usize>> {
    // A wire serves its own link; a radio all links of its node.
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
