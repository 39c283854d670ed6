//! Runs a network slot by slot and counts packets and queue lengths.

use crate::error::WirelineError;
use crate::fabric::Fabric;
use crate::network::{Change, Network};
use crate::outcome::{Outcome, QueueOutcome, ReceiverOutcome, SessionOutcome};
use crate::series::Series;
use crate::setup::Setup;
use crate::tally::{Lengths, Total};
use ncmesh_engine_multirate::{Parameters, Queues, Tree};
use std::ops::ControlFlow;

/// Slots between two calls of the caller's `poll`.
const POLL_PERIOD: u64 = 1 << 12;

/// Runs `network` under `setup`. Calls `poll` every few thousand slots; a `Break` ends the run.
///
/// # Errors
/// A fault of the network or the setup, or [`WirelineError::Interrupted`] after a `Break`.
pub fn run(
    network: &Network,
    setup: &Setup,
    mut poll: impl FnMut() -> ControlFlow<()>,
) -> Result<Outcome, WirelineError> {
    let mut run = Run::new(network, setup)?;

    // Long runs ask now and then whether they are still wanted.
    for slot in 0..setup.slots {
        if slot % POLL_PERIOD == 0 && poll().is_break() {
            return Err(WirelineError::Interrupted);
        }

        run.step(slot);
    }
    Ok(run.outcome())
}

/// State of a run.
struct Run<'a> {
    setup: &'a Setup,
    trees: Vec<Tree>,
    parameters: Parameters,
    fabric: Fabric,
    /// Changes still to come, the next one last.
    changes: Vec<Change>,
    count: Count,
    /// The counts at the end of the warm-up.
    warm: Count,
    /// The counts at the last sample.
    sampled: Count,
    q: Vec<Lengths>,
    d: Vec<Lengths>,
    z: Vec<Lengths>,
    waiting: Vec<Lengths>,
    series: Option<Series>,
}

/// Packets of the whole run, by queue, receiver and session.
#[derive(Clone, Debug)]
struct Count {
    dropped: Vec<Total>,
    received: Vec<Total>,
    entered: Vec<Total>,
}

impl<'a> Run<'a> {
    fn new(network: &Network, setup: &'a Setup) -> Result<Self, WirelineError> {
        // Everything that can be wrong is found before the first slot.
        let trees = network.trees()?;
        setup.check(network)?;
        let utilities = setup.receivers_utilities(network)?;
        let parameters = setup.parameters(network, &utilities)?;

        // Sizes of the tables.
        let receivers = utilities.len();
        let queues = trees.iter().map(|tree| tree.hops.len()).sum();
        let sessions = trees.len();

        // Changes are taken from the end of their list, so the first one is last.
        let arrivals =
            network.sessions.iter().enumerate().map(|(id, session)| session.arrivals(id));
        let arrivals = arrivals.collect::<Result<_, _>>()?;
        let mut changes = network.changes.clone();
        changes.sort_by_key(|change| std::cmp::Reverse(change.slot));

        // Virtual queues are those of receivers with utilities.
        let seats = if setup.policy.has_utilities() { receivers } else { 0 };
        let series = |every| Series::new(every, setup.slots, queues, receivers, seats, sessions);
        let series = setup.series.map(series).transpose()?;

        let count = Count::new(queues, receivers, sessions);
        let policy = setup.policy;
        let seed = setup.seed;
        let fabric = Fabric::new(network, &trees, policy, parameters, utilities, arrivals, seed);
        Ok(Self {
            setup,
            trees,
            parameters,
            fabric,
            changes,
            warm: count.clone(),
            sampled: count.clone(),
            count,
            q: vec![Lengths::default(); queues],
            d: vec![Lengths::default(); queues],
            z: vec![Lengths::default(); seats],
            waiting: vec![Lengths::default(); sessions],
            series,
        })
    }

    fn step(&mut self, slot: u64) {
        // Capacities of this slot.
        while let Some(change) = self.changes.pop_if(|change| change.slot <= slot) {
            self.fabric.set_capacity(change.link, change.capacity);
        }

        if slot == self.setup.warm_up {
            self.warm = self.count.clone();
        }

        // The slot itself, and its counts.
        self.fabric.step();
        self.count.add(&self.fabric);
        self.measure(slot >= self.setup.warm_up);

        if let Some(series) = self.series.as_mut().filter(|s| (slot + 1).is_multiple_of(s.every)) {
            sample(series, &self.fabric, &self.count, &self.sampled);
            self.sampled.clone_from(&self.count);
        }
    }

    /// Records the lengths of all queues after a slot.
    fn measure(&mut self, is_averaged: bool) {
        for ((queue, q), d) in self.fabric.queues.iter().zip(&mut self.q).zip(&mut self.d) {
            q.add(queue.backlog().into(), is_averaged);
            d.add(queue.drop_queue(), is_averaged);
        }

        for (seat, z) in self.fabric.seats.iter().zip(&mut self.z) {
            z.add(seat.receiver.z(), is_averaged);
        }

        for (waiting, length) in self.fabric.waiting().zip(&mut self.waiting) {
            length.add(waiting.into(), is_averaged);
        }
    }

    fn outcome(self) -> Outcome {
        // Means and rates are of the slots behind the warm-up.
        let slots = self.setup.slots - self.setup.warm_up;
        let queue = |(at, place): (usize, &crate::fabric::Place)| QueueOutcome {
            link: place.link,
            session: place.session,
            receivers: place.receivers,
            q: self.q[at].extent(slots),
            d: self.d[at].extent(slots),
            dropped: self.count.dropped[at].0.to_vec(),
        };

        let queues = self.fabric.places.iter().enumerate().map(queue).collect();

        // Seats are numbered session by session.
        let mut seat = 0;
        let session = |session: usize| {
            let entered = self.count.entered[session];
            let first = seat;
            seat += self.trees[session].last.len();
            SessionOutcome {
                rates: entered.rates(&self.warm.entered[session], slots).to_vec(),
                entered: entered.0.to_vec(),
                waiting: self.waiting[session].extent(slots),
                receivers: (first..seat).map(|seat| self.receiver(seat, slots)).collect(),
            }
        };

        let sessions = (0..self.trees.len()).map(session).collect();
        Outcome { parameters: self.parameters, sessions, queues, series: self.series }
    }

    fn receiver(&self, seat: usize, slots: u64) -> ReceiverOutcome {
        let received = self.count.received[seat];
        let rates = received.rates(&self.warm.received[seat], slots);
        ReceiverOutcome {
            rates: rates.to_vec(),
            received: received.0.to_vec(),
            z: self.z.get(seat).map(|z| z.extent(slots)),
        }
    }
}

impl Count {
    fn new(queues: usize, receivers: usize, sessions: usize) -> Self {
        let [dropped, received, entered] =
            [queues, receivers, sessions].map(|n| vec![Total::default(); n]);
        Self { dropped, received, entered }
    }

    fn add(&mut self, fabric: &Fabric) {
        for (total, moved) in self.dropped.iter_mut().zip(fabric.moved()) {
            total.add(moved.dropped);
        }
        for (total, seat) in self.received.iter_mut().zip(&fabric.seats) {
            total.add(fabric.moved()[seat.queue].sent);
        }
        for (total, entered) in self.entered.iter_mut().zip(fabric.entered()) {
            total.add(entered);
        }
    }
}

/// Appends one sample to the series.
fn sample(series: &mut Series, fabric: &Fabric, now: &Count, before: &Count) {
    // Lengths are those of this slot, rates those since the sample before.
    let every = series.every;
    let seats = series.z.width;
    series.q.extend(fabric.queues.iter().map(|queue| queue.backlog().into()));
    series.d.extend(fabric.queues.iter().map(Queues::drop_queue));
    series.z.extend(fabric.seats.iter().take(seats).map(|seat| seat.receiver.z()));

    let rate = |(now, before): (&Total, &Total)| now.rates(before, every).iter().sum();
    series.received.extend(now.received.iter().zip(&before.received).map(rate));
    series.entered.extend(now.entered.iter().zip(&before.entered).map(rate));
}
