//! Silence of a neighbour that others may have heard.

use super::*;
use ncmesh_engine::rng::stream;
use ncmesh_wire::{LongAddress, ShortAddress};

const ME: NodeId = NodeId(1);
/// The neighbour that falls silent.
const SILENT: NodeId = NodeId(2);
/// Share of frames that arrives over every link.
const DELIVERY: f64 = 0.8;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A node, and what it hears.
struct Lone {
    link: Link,
    rng: ChaCha8Rng,
    /// Hellos that each of its neighbours has sent.
    sent: u16,
}

impl Lone {
    /// A node that has heard four of five hellos of each of `neighbours` for a minute.
    fn settled(neighbours: &[u16]) -> Self {
        let rng = stream(1, ME, "test", "link");
        let mut lone =
            Self { link: Link::new(LinkConfig::default(), Versions::OWN, at(0)), rng, sent: 0 };
        for second in 0..=60 {
            lone.sent += 1;
            for node in neighbours.iter().filter(|node| (second + u64::from(**node)) % 5 != 0) {
                lone.hear(NodeId(*node), &[], 1000 * second);
            }
            lone.review(1000 * second);
        }
        lone
    }

    /// Hears a hello of a neighbour that misses others.
    fn hear(&mut self, node: NodeId, late: &[NodeId], ms: u64) {
        let hello = Hello { neighbours: 5, late: late.to_vec(), ..Hello::of_test(self.sent) };
        let start = StartId(1);
        let received = Received { version: 2, start, counter: u32::from(self.sent), at: at(ms) };
        self.link.handle_hello(ME, node, &hello, received, &mut self.rng);
        let frame = FrameHeard {
            sender: node,
            start,
            len: 80,
            counter: self.sent.into(),
            is_control: true,
            is_late: false,
        };
        self.link.note_frame(frame, at(ms));
    }

    fn review(&mut self, ms: u64) -> Vec<NodeId> {
        self.link.review(at(ms), |_, _| DELIVERY, |_, _| false).0
    }
}

#[test]
fn a_neighbour_that_most_miss_is_asked_although_one_heard_it_by_luck() {
    // Seconds of silence until the neighbour is asked, if `missing` of six others miss it.
    let asked_after = |missing: u16| {
        let mut lone = Lone::settled(&[2, 3, 4, 5, 6, 7, 8]);
        for second in 1..10 {
            lone.sent += 1;
            for node in 3..=8 {
                let late: &[NodeId] = if node < 3 + missing { &[SILENT] } else { &[] };
                lone.hear(NodeId(node), late, 60_000 + 1000 * second + 200);
            }
            lone.review(60_000 + 1000 * second + 300);
            if lone.link.questionable.contains(&SILENT) {
                return second;
            }
        }
        u64::MAX
    };
    let all = asked_after(6);
    let most = asked_after(5);
    let few = asked_after(2);
    assert!(all <= 2 && most <= 2, "asked after {all} and {most} s");
    assert!(few > most, "asked after {few} s");
}

#[test]
fn a_neighbour_is_where_its_latest_hello_says() {
    let me = ME;
    let neighbour = NodeId(2);
    let told = |link: &mut Link, counter: u32, address: Option<RadioAddress>| {
        let mut rng = stream(1, ME, "test", "link");
        link.set_address(address);
        let hello = link.hello(0, None, at(0), &mut rng);
        let received = Received { version: 2, start: StartId(1), counter, at: at(0) };
        link.handle_hello(me, neighbour, &hello, received, &mut rng);
        link.address_of(neighbour)
    };
    let mut link = Link::new(LinkConfig::default(), Versions::OWN, at(0));
    let first = Some(RadioAddress::Short(ShortAddress([10, 0, 0, 1])));
    let second = Some(RadioAddress::Long(LongAddress([2, 0, 0, 0, 0, 2, 0, 0])));
    assert_eq!(link.address_of(neighbour), None);
    assert_eq!(told(&mut link, 5, first), first);
    assert_eq!(told(&mut link, 6, second), second);
    // It was overtaken on its way.
    assert_eq!(told(&mut link, 4, first), second);
    assert_eq!(told(&mut link, 7, None), None);
}
