//! Source rate limiting (Pacifier, III-B).
//!
//! A source that sends whenever the MAC is ready crowds out its own children. So it waits, after
//! each packet, until it overhears one of its children send, or until a timeout. The paper's
//! timeout is the time that the children need in the worst case: one packet sent by the source
//! triggers, on average, as many transmissions as the sum of their credits, and these may go out
//! one after the other.
//!
//! A packet that no child receives makes the source wait for the whole timeout, which may be many
//! times what children take. The learned wait is the mean time until a child is overheard, and
//! [`DEVIATIONS`] times its mean deviation, but no more than the paper's timeout. A source that
//! waits less than children take would measure only their shortest times. So it measures some
//! packets only, and waits for the paper's timeout after these.

use crate::planned::scheme::{ChildWait, Plan};
use ncmesh_engine::time::{Duration, Instant, seconds};
use ncmesh_engine::toolkit::average::Average;
use ncmesh_wire::NodeId;

/// One packet in this many is measured: more would cost as much as they save.
const MEASURED_EVERY: u64 = 32;
/// All packets are measured until a child was overheard this often.
const FIRST_TIMES: u32 = 16;
/// Mean deviations that are added to the mean time. More would help where all nodes hear each
/// other, fewer where few do.
const DEVIATIONS: f64 = 0.5;
/// Weight of the newest time in mean and deviation.
const WEIGHT: f64 = 1.0 / 16.0;

/// Time from a packet of the source to the first one of a child, s.
#[derive(Debug)]
struct ChildTime {
    mean: Average,
    deviation: Average,
    /// Number of times measured.
    times: u32,
    /// Number of packets sent.
    packets: u64,
    /// When the packet that is being measured left.
    since: Option<Instant>,
}

impl ChildTime {
    fn new() -> Self {
        let average = Average::new(WEIGHT);
        Self { mean: average, deviation: average, times: 0, packets: 0, since: None }
    }

    /// Returns the wait after the packet that leaves now, no more than `longest`.
    fn wait(&mut self, longest: Duration, now: Instant) -> Duration {
        self.packets += 1;
        let is_measured = self.times < FIRST_TIMES || self.packets.is_multiple_of(MEASURED_EVERY);
        self.since = is_measured.then_some(now);
        if is_measured {
            return longest;
        }
        seconds(self.mean.value() + DEVIATIONS * self.deviation.value()).min(longest)
    }

    /// Takes the time of the packet that is being measured.
    fn handle_overheard(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let time_s = now.since(since).as_secs_f64();
        if self.times > 0 {
            self.deviation.add((time_s - self.mean.value()).abs());
        }
        self.mean.add(time_s);
        self.times = self.times.saturating_add(1);
    }
}

/// Pace of a source.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// Nothing is sent before this.
    hold_until: Instant,
    /// Children that forward the packet sent last. Kept apart from the plan: the packet may have
    /// been the last of its turn.
    children: Vec<NodeId>,
    /// Sum of the children's credits.
    children_credit: f64,
    child_time: ChildTime,
}

impl RateLimiter {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            hold_until: now,
            children: Vec::new(),
            children_credit: 0.0,
            child_time: ChildTime::new(),
        }
    }

    /// Returns when the next packet may be sent.
    pub(super) fn hold_until(&self) -> Instant {
        self.hold_until
    }

    /// Notes by which plan a packet is sent.
    pub(super) fn note_filled(&mut self, plan: &Plan) {
        self.children.clone_from(&plan.children);
        self.children_credit = plan.children_credit;
    }

    /// Begins to wait for a child, after the packet has left.
    pub(super) fn wait_for_child(&mut self, wait: ChildWait, packet_time: Duration, now: Instant) {
        let longest = packet_time.mul_f64(self.children_credit * wait.factor);
        let time = if wait.is_learned { self.child_time.wait(longest, now) } else { longest };
        self.hold_until = now + time;
    }

    /// Ends the wait if `sender`, which was overheard, is a child.
    pub(super) fn handle_overheard(&mut self, sender: NodeId, now: Instant) {
        if self.children.contains(&sender) {
            self.hold_until = self.hold_until.min(now);
            self.child_time.handle_overheard(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const CHILD: NodeId = NodeId(2);

    /// Sends `packets`, 1 s apart, each answered by a child after a time of `answers`, in turn, or
    /// not at all. The paper's timeout is 80 ms. Returns the waits.
    fn waits(is_learned: bool, packets: u64, answers: &[Option<Duration>]) -> Vec<Duration> {
        let plan = Plan { children: vec![CHILD], children_credit: 2.0, ..Plan::default() };
        let wait = ChildWait { factor: 8.0, is_learned };
        let mut limiter = RateLimiter::new(Instant::default());
        let mut waits = Vec::new();
        for (n, answer) in (0..packets).zip(answers.iter().cycle()) {
            let now = Instant::from_nanos(n * 1_000_000_000);
            limiter.note_filled(&plan);
            limiter.wait_for_child(wait, 5 * MS, now);
            waits.push(limiter.hold_until().since(now));
            if let Some(time) = answer {
                limiter.handle_overheard(NodeId(9), now + *time / 2);
                limiter.handle_overheard(CHILD, now + *time);
                assert_eq!(limiter.hold_until(), now + (*time).min(waits[n as usize]));
            }
        }
        waits
    }

    #[test]
    fn the_paper_waits_for_eight_packet_times_of_each_owed_packet() {
        assert!(waits(false, 100, &[Some(10 * MS), None]).iter().all(|wait| *wait == 80 * MS));
    }

    #[test]
    fn the_learned_wait_is_mean_and_deviation_of_the_times() {
        // Every second packet is answered after 9 or 11 ms, so 32 packets give 16 times.
        let waits = waits(true, 3_000, &[Some(9 * MS), None, Some(11 * MS), None]);
        let is_measured = |n: &usize| *n < 31 || (n + 1).is_multiple_of(32);
        assert!((0..3_000).filter(is_measured).all(|n| waits[n] == 80 * MS));
        let learned = (0..3_000).filter(|n| !is_measured(n)).map(|n| waits[n].as_secs_f64() * 1e3);
        assert!(learned.into_iter().all(|ms| (9.0..13.0).contains(&ms)));
    }

    #[test]
    fn the_learned_wait_is_never_longer_than_that_of_the_paper() {
        let waits = waits(true, 200, &[Some(500 * MS), Some(5 * MS)]);
        assert!(waits.iter().all(|wait| *wait <= 80 * MS));
    }
}
