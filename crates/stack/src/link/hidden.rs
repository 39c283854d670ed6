//! How close the figure of a link stays to the truth beside a sender that its sender does not hear.

use super::*;
use ncmesh_engine::rng::stream;

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
        let hello = Hello::of_test(self.hellos);
        let start = StartId(1);
        if is_hello {
            let received = Received { version: 2, start, counter, at: self.now };
            self.link.handle_hello(ME, node, &hello, received, &mut self.rng);
        }

        let is_control = is_hello;
        let frame = FrameHeard { sender: node, start, len, counter, is_control, is_late: false };
        self.link.note_frame(frame, self.now);
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
