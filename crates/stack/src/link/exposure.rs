//! Frames of a neighbour that meet frames of nodes which it does not hear.
//!
//! A node defers to those that it hears. What is lost of its frames over a good link is lost to
//! others, and says nothing about the link: such a loss would come and go with the traffic, and
//! ways with it. Frames are numbered, so this node knows what each neighbour sends, heard or not:
//!
//! ```text
//!   time        |----------------------------------------------|
//!   x hears     ====           =======        =====               others, and this node
//!   hidden           ===  ===          ====         ====          from x
//!   x sends         ^ in here: what the nodes that it hears leave
//! ```
//!
//! The share of the rest that hidden nodes take is the share of its frames that is lost to them.

use super::neighbor::Neighbor;
use super::{FrameHeard, Link};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// Least time that is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// Time over which what is seen is averaged: collisions begin and end with traffic.
const MEAN: f64 = 0.5;
/// Delivery below which a node does not defer to another.
const HIDDEN: f64 = 0.05;
/// Least share of the time that the nodes which a node hears leave it.
const LEAST_IDLE: f64 = 0.1;
/// Share of frames that is lost to collisions, at most: the rest shows whether the node is there.
const MOST: f64 = 0.97;
/// Bytes of a hello, which collides with frames that begin during it as well.
const HELLO: f64 = 140.0;
/// How much of the length of a frame that was heard is taken over for those that were lost.
const LEARN: f64 = 0.1;

/// A frame of this node, and how long it was on the air.
#[derive(Clone, Copy, Debug)]
struct Sample {
    len: usize,
    airtime: Duration,
}

/// Airtime of this node, and of frames of any length.
#[derive(Debug, Default)]
pub(super) struct Airtimes {
    shortest: Option<Sample>,
    longest: Option<Sample>,
    /// Airtime of this node since the last look.
    own: Duration,
    looked_at: Instant,
}

/// Airtime of a frame, s: that of its preamble, and of each byte.
#[derive(Clone, Copy, Debug)]
struct Rate {
    frame: f64,
    byte: f64,
}

impl Airtimes {
    /// Notes a frame of this node.
    pub(super) fn note(&mut self, len: usize, airtime: Duration) {
        let sample = Sample { len, airtime };
        self.own += airtime;
        if self.shortest.is_none_or(|shortest| len <= shortest.len) {
            self.shortest = Some(sample);
        }
        if self.longest.is_none_or(|longest| len >= longest.len) {
            self.longest = Some(sample);
        }
    }

    /// Returns the airtime of frames, by the shortest and the longest of this node; `None` before
    /// it sent two of different length.
    fn rate(&self) -> Option<Rate> {
        let (short, long) = (self.shortest?, self.longest?);
        let bytes = (long.len - short.len) as f64;
        let byte = long.airtime.saturating_sub(short.airtime).as_secs_f64() / bytes;
        let frame = (short.airtime.as_secs_f64() - byte * short.len as f64).max(0.0);
        byte.is_finite().then_some(Rate { frame, byte })
    }
}

/// Frames that a neighbour sent, and what becomes of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Exposure {
    /// Number of the last frame that was heard, and the mean length of its frames.
    last: Option<u32>,
    len: f64,
    /// Frames and bytes that it sent since the last look.
    frames: f64,
    bytes: f64,
    /// Share of its frames that is lost to nodes which it does not hear.
    collides: f64,
}

impl Exposure {
    /// Counts a frame that was heard, and those before it that were not.
    pub(super) fn note_frame(&mut self, frame: FrameHeard) {
        let len = frame.len as f64;
        let lost = self.last.map_or(0, |last| frame.counter.saturating_sub(last.saturating_add(1)));
        self.len = if self.last.is_none() { len } else { self.len + LEARN * (len - self.len) };
        self.last = self.last.max(Some(frame.counter));
        self.frames += f64::from(lost) + 1.0;
        self.bytes += f64::from(lost) * self.len + len;
    }

    /// Returns for how long its frames since the last look would disturb a hello, s.
    fn take_airtime(&mut self, rate: Rate) -> f64 {
        let (frames, bytes) = (self.frames, self.bytes);
        (self.frames, self.bytes) = (0.0, 0.0);
        frames * (2.0 * rate.frame + HELLO * rate.byte) + bytes * rate.byte
    }

    /// Returns the share of its frames that met none of a node which it does not hear.
    pub(super) fn clear(&self) -> f64 {
        1.0 - self.collides
    }
}

/// A neighbour that sent since the last look, and the share of the time that its frames took here.
struct Sender {
    node: NodeId,
    share: f64,
}

impl Link {
    /// Looks at what neighbours sent. `delivery` is what the mesh knows of the links between them.
    pub(super) fn note_exposure(&mut self, now: Instant, delivery: impl Fn(NodeId, NodeId) -> f64) {
        let span = now.since(self.airtimes.looked_at);
        let Some(rate) = self.airtimes.rate().filter(|_| span >= LOOK) else { return };
        let span = span.as_secs_f64();
        let own = core::mem::take(&mut self.airtimes.own).as_secs_f64() / span;
        self.airtimes.looked_at = now;

        // A frame of a poor link is often too weak here to disturb another.
        let share_of = |n: &mut Neighbor| {
            let airtime = n.exposure.take_airtime(rate);
            airtime.min(span) / span * n.hope()
        };
        let all = self.neighbors.iter_mut();
        let all = all.map(|(node, n)| Sender { node: *node, share: share_of(n) });
        let senders: Vec<Sender> = all.filter(|sender| sender.share > 0.0).collect();

        let weight = (span / MEAN).min(1.0);
        for (node, neighbor) in &mut self.neighbors {
            let (mut hidden, mut sensed) = (0.0, own);
            for sender in senders.iter().filter(|sender| sender.node != *node) {
                let is_hidden = delivery(sender.node, *node) < HIDDEN;
                *(if is_hidden { &mut hidden } else { &mut sensed }) += sender.share;
            }
            let collides = (hidden / (1.0 - sensed).max(LEAST_IDLE)).min(MOST);
            let exposure = &mut neighbor.exposure;
            exposure.collides += weight * (collides - exposure.collides);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Hello, LinkConfig, Received};
    use super::*;
    use ncmesh_engine::rng::{stream, unit};
    use ncmesh_wire::{StartId, Versions};
    use rand_chacha::ChaCha8Rng;

    const ME: NodeId = NodeId(1);
    /// The neighbour whose link is measured, and the one that sends much.
    const MEASURED: NodeId = NodeId(2);
    const BUSY: NodeId = NodeId(3);
    /// Airtimes of a hello and of a packet at 11 Mbit/s, ms.
    const HELLO_MS: f64 = 0.294;
    const PACKET_MS: f64 = 1.156;
    /// Hellos of the measured neighbour, and looks, in a second.
    const RATE: u64 = 10;

    /// A node with two neighbours.
    struct Place {
        link: Link,
        rng: ChaCha8Rng,
        /// Whether the measured neighbour hears the busy one.
        hears: bool,
        now: Instant,
        hellos: u16,
        packets: u32,
    }

    impl Place {
        fn new(case: u64, hears: bool) -> Self {
            let now = Instant::default();
            let rng = stream(case, ME, "test", "exposure");
            let link = Link::new(LinkConfig::default(), Versions::OWN, now);
            let mut place = Self { link, rng, hears, now, hellos: 0, packets: 0 };
            place.link.note_airtime(140, Duration::from_secs(1).mul_f64(HELLO_MS / 1e3));
            place.link.note_airtime(1326, Duration::from_secs(1).mul_f64(PACKET_MS / 1e3));
            place
        }

        fn hear(&mut self, node: NodeId, len: usize, counter: u32, is_hello: bool) {
            let hello = Hello {
                interval: Duration::from_secs(1),
                short_sent: self.hellos,
                long_sent: 0,
                neighbors: 2,
                digest: 0,
                asks: Vec::new(),
                late: Vec::new(),
                knows_older: false,
                newer: 0,
                address: None,
            };
            let start = StartId(1);
            if is_hello {
                let received = Received { version: 2, start, counter, at: self.now };
                self.link.handle_hello((ME, node), &hello, received, &mut self.rng);
            }
            let frame = FrameHeard { len, counter, is_control: is_hello, is_late: false };
            self.link.note_frame((node, start), frame, self.now);
        }

        /// Lets the busy neighbour send for this share of the time, while the link delivers this
        /// share of what meets none of its packets. Returns the deliveries that were told then.
        fn pass(&mut self, seconds: u64, load: f64, delivery: f64) -> Vec<f64> {
            let step = Duration::from_secs(1) / RATE as u32;
            let packets = (load * step.as_secs_f64() * 1e3 / PACKET_MS) as u32;
            let met = if self.hears { 0.0 } else { load * (1.0 + HELLO_MS / PACKET_MS) };
            let mut told = Vec::new();
            for _ in 0..seconds * RATE {
                self.now = self.now + step;
                self.hellos += 1;
                self.packets += 1;
                self.hear(BUSY, 140, self.packets, true);
                for _ in 0..packets {
                    self.packets += 1;
                    // Some are lost, and show by their numbers alone.
                    if unit(&mut self.rng) < 0.8 {
                        self.hear(BUSY, 1326, self.packets, false);
                    }
                }
                if unit(&mut self.rng) < delivery * (1.0 - met).max(0.0) {
                    self.hear(MEASURED, 140, self.hellos.into(), true);
                }
                let hears = self.hears;
                let known = |from, to| f64::from(u8::from(hears || (from, to) != (BUSY, MEASURED)));
                self.link.review(self.now, known, |_, _| false);
                told.extend(self.link.inbound().filter(|(n, _)| *n == MEASURED).map(|(_, d)| d));
            }
            told
        }
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_hidden_flow_changes_the_figure_of_a_good_link_by_little() {
        for load in [0.2, 0.4, 0.6] {
            let changes: Vec<f64> = (0..20)
                .map(|case| {
                    let mut place = Place::new(case, false);
                    let quiet = *place.pass(60, 0.0, 1.0).last().unwrap();
                    quiet - mean(&place.pass(30, load, 1.0))
                })
                .collect();
            assert!(mean(&changes).abs() <= 0.05, "load {load}: {:.3}", mean(&changes));
        }
    }

    #[test]
    fn a_step_of_true_loss_shows_beside_a_hidden_flow() {
        for load in [0.2, 0.4] {
            let after: Vec<f64> = (0..20)
                .map(|case| {
                    let mut place = Place::new(case, false);
                    place.pass(60, load, 1.0);
                    *place.pass(5, load, 0.3).last().unwrap()
                })
                .collect();
            assert!(mean(&after) < 0.6, "load {load}: {:.3}", mean(&after));
        }
    }

    #[test]
    fn what_is_lost_while_only_nodes_that_it_hears_send_counts() {
        let mut place = Place::new(1, true);
        place.pass(60, 0.6, 1.0);
        let told = *place.pass(10, 0.6, 0.5).last().unwrap();
        assert!((0.3..0.7).contains(&told), "{told}");
    }
}
