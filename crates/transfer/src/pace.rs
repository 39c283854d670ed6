//! Bounds that users set on files: on their airtime in the background, and on what their source
//! sends.
//!
//! Each file has bounds of its own, so one with a small bound holds no other. For the airtime a
//! node counts its own packets of the file and those that it hears; for the other, the source its
//! own.

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

/// Bounds on a file at one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Share of the airtime around it.
    pub airtime: Option<Background>,
    /// Data that it sends, bit/s.
    pub bps: Option<u64>,
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
        bounds: Bounds,
        airtime: Duration,
        now: Instant,
    ) {
        let Packet { flow, len } = packet;
        self.byte_time = airtime.mul_f64(1.0 / len.max(1) as f64);
        let by_airtime = bounds.airtime.map(|bound| whole(airtime, bound));
        let by_rate =
            bounds.bps.map(|bps| Duration::from_secs_f64(8.0 * len as f64 / bps.max(1) as f64));
        if let Some(takes) = by_airtime.max(by_rate) {
            self.note(flow, takes, airtime, now);
        }
    }

    /// Notes a packet that this node heard. A node that has sent none yet does not know its
    /// airtime, and has nothing to hold back.
    pub(crate) fn note_heard(&mut self, packet: Packet, bound: Background, now: Instant) {
        let airtime = self.byte_time.mul_f64(packet.len as f64);
        self.note(packet.flow, whole(airtime, bound), airtime, now);
    }

    fn note(&mut self, flow: FlowId, takes: Duration, airtime: Duration, now: Instant) {
        // The time that each packet takes of the bound begins with it, or earlier if the channel
        // was granted late.
        let earliest = now.since(Instant::default()).saturating_sub(airtime + BURST);
        let open_at = self.open_at.entry(flow).or_default();
        let begins = (*open_at).max(Instant::default() + earliest);
        *open_at = begins + takes;
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

/// Returns the time of which this airtime is the share that a file may take.
fn whole(airtime: Duration, bound: Background) -> Duration {
    airtime.mul_f64(100.0 / f64::from(bound.percent()))
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

    fn share(percent: u8) -> Bounds {
        Bounds { airtime: Background::of(percent), bps: None }
    }

    /// Sends packets of each file as fast as it may for ten seconds, one at a time. Returns how
    /// many each sent.
    fn sent<const N: usize>(bounds: [Bounds; N]) -> [u32; N] {
        let mut pace = Pace::default();
        let mut sent = [0; N];
        for ms in 0..10_000 {
            let serials = 0..N;
            let Some(i) = serials.into_iter().find(|i| pace.is_open(flow(*i as u32), at(ms)))
            else {
                continue;
            };
            let packet = Packet { flow: flow(i as u32), len: 1000 };
            pace.note_sent(packet, bounds[i], PACKET_TIME, at(ms + 1));
            sent[i] += 1;
        }
        sent
    }

    #[test]
    fn each_file_takes_its_own_bound() {
        assert!((990..=1020).contains(&sent([share(10)])[0]));
        let [thin, thick] = sent([share(1), share(50)]);
        assert!((99..=102).contains(&thin), "{thin}");
        assert!((4_900..=5_020).contains(&thick), "{thick}");
    }

    #[test]
    fn a_source_sends_no_more_than_its_limit() {
        // 1,000 bytes at 200 kbit/s take 40 ms.
        let limit = Bounds { airtime: None, bps: Some(200_000) };
        assert!((248..=252).contains(&sent([limit])[0]), "{:?}", sent([limit]));
        // The lower of two bounds holds, and a file without any takes the rest.
        let [both, free] = sent([
            Bounds { airtime: Background::of(50), ..limit },
            Bounds { airtime: None, bps: None },
        ]);
        assert!((248..=252).contains(&both) && free > 9_000, "{both}, {free}");
    }

    #[test]
    fn packets_of_others_count_for_their_file_alone() {
        let mut pace = Pace::default();
        let bound = Background::of(10).unwrap();
        let packet = Packet { flow: flow(1), len: 1000 };
        pace.note_sent(packet, share(10), PACKET_TIME, at(100));
        assert!(pace.is_open(flow(1), at(100)), "it may catch up a little");
        pace.note_sent(packet, share(10), PACKET_TIME, at(100));
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
