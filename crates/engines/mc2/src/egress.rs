//! A flow's destination: hands packets up in order, and asks for packets that do not come (MC2,
//! 3.2, 3.3).
//!
//! Hop-by-hop recovery usually brings every generation. Where it does not, since a node failed or
//! credits were lost, the destination requests more combinations from the source (the paper's
//! pseudo end-to-end recovery). A request costs airtime, and what it asks for comes twice if it was
//! only late. So the first timeout of a generation adapts to the pauses that ended by themselves,
//! and timeouts back off as those of TCP do (RFC 6298, 5.5 to 5.7). A generation that is not
//! complete goes through these states:
//!
//! ```text
//!   waiting --no news for the timeout--> request due --sent--> waiting, timeout doubled
//!      |                                      |
//!      |<------------- news ------------------+
//!      +--timeout after the last request--> given up
//! ```

use crate::config::Mc2Config;
use crate::generation::Generation;
use ncmesh_engine::time::{Duration, Instant};
use std::collections::BTreeMap;

/// The first timeout in units of the longest recent pause that ended without a request.
const PAUSES_PER_TIMEOUT: u32 = 2;
/// Longest timeout in units of the configured one.
const MAX_TIMEOUT_FACTOR: u32 = 32;
/// Share of the longest pause that remains with each innovative packet.
const PAUSE_DECAY: f64 = 1.0 - 1.0 / 256.0;

/// State that only a flow's destination has.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Generation of the packet to hand up next.
    generation: u32,
    /// Index of that packet in it.
    index: u8,
    /// Generations from that one on that have been heard of or lie before one that has.
    recoveries: BTreeMap<u32, Recovery>,
    /// Longest recent time without news of a generation that was not asked for.
    longest_pause: Duration,
    /// Timeout that the latest request leads to. It stays until a generation comes complete without
    /// a request: pauses that a request ended say nothing, and the timeout that led to the request
    /// was too short.
    backed_off: Duration,
}

/// Recovery of a generation that is not complete.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// When the latest innovative packet of it, or of one before it, arrived.
    news_at: Instant,
    /// Requests that were sent.
    requests: u32,
    /// Timeout that led to the latest request.
    previous_timeout: Duration,
    /// Timeout that leads to the request which is due now, if one is.
    due: Option<Duration>,
}

/// Timeouts of a destination at present.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// Time until a generation is asked for first.
    first: Duration,
    longest: Duration,
}

/// Content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeededPackets {
    pub generation: u32,
    /// Number of the request for this generation.
    pub serial: u8,
    /// Packets that are missing.
    pub missing: u8,
}

impl Egress {
    /// Returns a destination that begins with the generation `first`. Nothing is known of those
    /// before.
    pub(crate) fn new(first: u32) -> Self {
        Self {
            generation: first,
            index: 0,
            recoveries: BTreeMap::new(),
            longest_pause: Duration::ZERO,
            backed_off: Duration::ZERO,
        }
    }

    /// Returns the generation before which all are complete or given up.
    pub(crate) fn oldest(&self) -> u32 {
        self.generation
    }

    /// Notes an innovative packet of a generation.
    pub(crate) fn note_innovative(&mut self, generation: u32, now: Instant) {
        // Generations before it have begun too, whether or not anything of them arrived.
        let fresh = Recovery::new(now);
        for earlier in self.generation..generation {
            self.recoveries.entry(earlier).or_insert(fresh);
        }

        // Learn how long pauses are that end by themselves.
        let recovery = self.recoveries.entry(generation).or_insert(fresh);
        let was_requested = recovery.requests > 0;
        let pause = if was_requested { Duration::ZERO } else { now.since(recovery.news_at) };
        self.longest_pause = self.longest_pause.mul_f64(PAUSE_DECAY).max(pause);

        // Nodes send the oldest generation first. So later ones have had no turn yet, and their
        // timeouts begin anew as well.
        for (_, recovery) in self.recoveries.range_mut(generation..) {
            recovery.news_at = now;
            recovery.due = None;
        }
    }

    /// Hands up the decoded packets that are next in order.
    pub(crate) fn deliver(
        &mut self,
        generations: &mut BTreeMap<u32, Generation>,
        mut hand_up: impl FnMut(Vec<u8>),
    ) {
        while let Some(generation) = generations.get_mut(&self.generation) {
            while let Some(packet) = generation.packet(self.index) {
                self.index += 1;
                hand_up(packet);
            }

            if generation.packets == 0 || self.index < generation.packets {
                return;
            }

            // It is complete. If nothing was asked for, timeouts are long enough again.
            let recovery = self.recoveries.get(&self.generation);
            let was_requested = recovery.is_some_and(|recovery| recovery.requests > 0);
            if !was_requested {
                self.backed_off = Duration::ZERO;
            }
            self.next_generation();
        }
    }

    fn next_generation(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.index = 0;
        self.recoveries = self.recoveries.split_off(&self.generation);
    }

    /// Decides which generations to ask for, and gives up those that were asked for too often or
    /// are before `oldest`. Returns how many packets are given up.
    pub(crate) fn check_timeouts(
        &mut self,
        generations: &BTreeMap<u32, Generation>,
        oldest: u32,
        config: &Mc2Config,
        now: Instant,
    ) -> u64 {
        let newest = self.recoveries.keys().next_back().copied().unwrap_or(0);
        let timeouts = self.timeouts(config);
        for (number, recovery) in &mut self.recoveries {
            let delivered = if *number == self.generation { usize::from(self.index) } else { 0 };
            let has_later = *number < newest;
            let lacks_packets = generations
                .get(number)
                .is_none_or(|generation| generation.lacks_packets(has_later, delivered));
            let due = recovery.due.or_else(|| recovery.expired(timeouts, now));
            recovery.due = due.filter(|_| lacks_packets);
        }

        let mut lost = 0;
        while let Some(recovery) = self.recoveries.get(&self.generation) {
            let is_given_up =
                recovery.requests >= config.requests && recovery.expired(timeouts, now).is_some();
            if self.generation >= oldest && !is_given_up {
                break;
            }

            // At least as many packets are lost; their number may not be known.
            let generation = generations.get(&self.generation);
            let packets = generation.map_or(1, |g| g.packets.max(g.rank() as u8));
            lost += u64::from(packets.max(1).saturating_sub(self.index));
            self.next_generation();
        }

        lost
    }

    /// Returns the timeouts as they are now.
    fn timeouts(&self, config: &Mc2Config) -> Timeouts {
        let shortest = Duration::from_millis(u64::from(config.request_ms));
        let longest = shortest * MAX_TIMEOUT_FACTOR;
        let adapted = self.backed_off.max(self.longest_pause * PAUSES_PER_TIMEOUT);
        Timeouts { first: adapted.clamp(shortest, longest), longest }
    }

    /// Returns what to ask for now.
    pub(crate) fn next_request(
        &self,
        generations: &BTreeMap<u32, Generation>,
        config: &Mc2Config,
    ) -> Option<NeededPackets> {
        let is_due =
            |recovery: &Recovery| recovery.due.is_some() && recovery.requests < config.requests;
        let (number, recovery) = self.recoveries.iter().find(|(_, recovery)| is_due(recovery))?;

        // A generation counts as full until its number of packets is known.
        let generation = generations.get(number);
        let packets = generation.map_or(0, |generation| generation.packets);
        let packets = if packets > 0 { packets } else { config.generation };
        let rank = generation.map_or(0, Generation::rank);
        Some(NeededPackets {
            generation: *number,
            serial: recovery.requests as u8,
            missing: packets.saturating_sub(rank as u8).max(1),
        })
    }

    /// Notes that a request for a generation was sent, and doubles the timeout.
    pub(crate) fn note_request(&mut self, generation: u32, now: Instant) {
        if let Some(recovery) = self.recoveries.get_mut(&generation) {
            let previous_timeout = recovery.due.unwrap_or_default();
            let requests = recovery.requests + 1;
            *recovery = Recovery { news_at: now, requests, previous_timeout, due: None };
            self.backed_off = self.backed_off.max(previous_timeout * 2);
        }
    }

    /// Returns the first time later than `after` at which a timeout expires.
    pub(crate) fn poll_timeout(&self, config: &Mc2Config, after: Instant) -> Option<Instant> {
        let timeouts = self.timeouts(config);
        let recoveries = self.recoveries.values();
        let times = recoveries.map(|recovery| recovery.news_at + recovery.timeout(timeouts));
        times.filter(|at| *at > after).min()
    }
}

impl Recovery {
    fn new(now: Instant) -> Self {
        Self { news_at: now, requests: 0, previous_timeout: Duration::ZERO, due: None }
    }

    /// Returns the time without news after which the generation is asked for next. The toolkit's
    /// backoff does not fit: it doubles a fixed pause, and this one the timeout that was used.
    fn timeout(&self, timeouts: Timeouts) -> Duration {
        if self.requests == 0 {
            timeouts.first
        } else {
            (self.previous_timeout * 2).min(timeouts.longest)
        }
    }

    /// Returns the timeout if it has expired.
    fn expired(&self, timeouts: Timeouts, now: Instant) -> Option<Duration> {
        let timeout = self.timeout(timeouts);
        (now >= self.news_at + timeout).then_some(timeout)
    }
}
