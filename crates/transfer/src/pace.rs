//! Bound that users set on the airtime of files in the background.
//!
//! Each file has its own bound, so one with a small bound holds no other. A node counts its own
//! packets of the file and those that it hears.

use ncmesh_engine::Background;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;

/// Time that a file may catch up where the channel was granted late.
const BURST: Duration = Duration::from_millis(10);

/// Data packet of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub flow: FlowId,
    /// Bytes of the frame's body.
    pub len: usize,
}

/// When each bounded file may send again.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    open_at: BTreeMap<FlowId, Instant>,
    /// Airtime of a byte, by the last packet that this node sent.
    byte_time: Duration,
}

impl Pace {
    /// Returns whether a file may send.
    pub(crate) fn is_open(&self, flow: FlowId, now: Instant) -> bool {
        self.open_at.get(&flow).is_none_or(|at| *at <= now)
    }

    /// Notes a packet that this node sent.
    pub(crate) fn note_sent(
        &mut self,
        packet: Packet,
        bound: Background,
        airtime: Duration,
        now: Instant,
    ) {
        self.byte_time = airtime.mul_f64(1.0 / packet.len.max(1) as f64);
        self.note(packet.flow, bound, airtime, now);
    }

    /// Notes a packet that this node heard. A node that has sent none yet does not know its
    /// airtime, and has nothing to hold back.
    pub(crate) fn note_heard(&mut self, packet: Packet, bound: Background, now: Instant) {
        let airtime = self.byte_time.mul_f64(packet.len as f64);
        self.note(packet.flow, bound, airtime, now);
    }

    fn note(&mut self, flow: FlowId, bound: Background, airtime: Duration, now: Instant) {
        // Each packet takes its share of a time that begins with it, or earlier if the channel was
        // granted late.
        let earliest = now.since(Instant::default()).saturating_sub(airtime + BURST);
        let open_at = self.open_at.entry(flow).or_default();
        let begins = (*open_at).max(Instant::default() + earliest);
        *open_at = begins + airtime.mul_f64(100.0 / f64::from(bound.percent()));
    }

    /// Returns the first time later than `after` at which a file may send again.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.open_at.values().copied().filter(|at| *at > after).min()
    }

    /// Forgets files that wait for nothing.
    pub(crate) fn forget_open(&mut self, now: Instant) {
        self.open_at.retain(|_, at| *at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    const PACKET_TIME: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn flow(serial: u32) -> FlowId {
        FlowId { source: NodeId(1), serial }
    }

    /// Sends packets of each file as fast as it may for ten seconds, one at a time. Returns how
    /// many each sent.
    fn sent<const N: usize>(percents: [u8; N]) -> [u32; N] {
        let mut pace = Pace::default();
        let mut sent = [0; N];
        for ms in 0..10_000 {
            let serials = 0..N;
            let Some(i) = serials.into_iter().find(|i| pace.is_open(flow(*i as u32), at(ms)))
            else {
                continue;
            };
            let packet = Packet { flow: flow(i as u32), len: 1000 };
            let bound = Background::of(percents[i]).unwrap();
            pace.note_sent(packet, bound, PACKET_TIME, at(ms + 1));
            sent[i] += 1;
        }
        sent
    }

    #[test]
    fn each_file_takes_its_own_bound() {
        assert!((990..=1020).contains(&sent([10])[0]));
        let [thin, thick] = sent([1, 50]);
        assert!((99..=102).contains(&thin), "{thin}");
        assert!((4_900..=5_020).contains(&thick), "{thick}");
    }

    #[test]
    fn packets_of_others_count_for_their_file_alone() {
        let mut pace = Pace::default();
        let bound = Background::of(10).unwrap();
        let packet = Packet { flow: flow(1), len: 1000 };
        pace.note_sent(packet, bound, PACKET_TIME, at(100));
        assert!(pace.is_open(flow(1), at(100)), "it may catch up a little");
        pace.note_sent(packet, bound, PACKET_TIME, at(100));
        assert!(!pace.is_open(flow(1), at(100)));
        assert!(pace.is_open(flow(1), at(110)));
        pace.note_heard(Packet { flow: flow(2), len: 2000 }, bound, at(110));
        assert!(pace.is_open(flow(1), at(110)));
        assert!(!pace.is_open(flow(2), at(117)));
        assert!(pace.is_open(flow(2), at(130)));
        assert_eq!(pace.poll_timeout(at(115)).unwrap(), at(118));

        pace.forget_open(at(130));
        assert_eq!(pace.poll_timeout(at(0)), None);
    }
}
