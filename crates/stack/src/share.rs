//! Airtime shared among services, by all nodes that hear each other.
//!
//! A file takes all airtime that there is, and each frame of it may hit a short answer that its
//! sender cannot hear. So services give way to one another:
//!
//! 1. A node notes how much of the last second the frames of each service took, its own and those
//!    that it heard. While others were there, a service takes no more than the rest: others get
//!    several times what they used, so that they can grow, up to their share by weight.
//!    Frames of relays count, for they take the same air, so the share holds along a whole path.
//! 2. After a frame that a node heard, its files leave the time of an answer: the node that sent
//!    the frame has neighbours that this one does not hear.
//! 3. A silence that an engine keeps holds for the files of its node, too: otherwise they would
//!    fill the gap that was left for an answer.
//!
//! ```text
//!   a             b             c        a and c do not hear each other
//!   | file        |             |
//!   |------------>| file        |
//!   |<------------|------------>|
//!   | gap         |<--- report -|
//!   | file        |             |
//!   |------------>|             |
//! ```
//!
//! Where no other service was heard, nothing of this applies but the bound that a user sets.
//! Nothing is negotiated: only frames count, which a node cannot claim without sending them.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::{Duration, Instant};

ncmesh_engine::settings! {
    /// `[share]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ShareConfig {
        /// Weight of tunnels. Where all services have much to send, each gets airtime by its
        /// weight.
        pub tunnel: f64 = 1.0, within 0.01..=100.0;
        /// Weight of live streams.
        pub stream: f64 = 1.0, within 0.01..=100.0;
        /// Weight of files. With the least one they yield to all else at once.
        // With 1.4 a TCP connection keeps half of its goodput beside a file. With 1 it keeps 0.6,
        // and the file takes three times as long as alone.
        pub file: f64 = 1.4, within 0.01..=100.0;
        /// Most of the airtime that files around this node take, also where nothing runs beside
        /// them.
        pub most_file: f64 = 1.0, within 0.01..=1.0;
    }
}

impl ShareConfig {
    /// Returns the weight of a service.
    #[must_use]
    pub fn weight(&self, service: ServiceKind) -> f64 {
        match service {
            ServiceKind::File => self.file,
            ServiceKind::Tunnel => self.tunnel,
            ServiceKind::Stream => self.stream,
        }
    }
}

/// Time over which the use of the channel is averaged. Services that were silent for as long do not
/// count.
const WINDOW: Duration = Duration::from_secs(1);
/// Times of what others used that is left to them. It trades the time in which a flow grows beside
/// a file for airtime that thin flows leave unused.
const HEADROOM: f64 = 4.0;
/// Least share of the time that is left to files, so that none stalls for good.
const LEAST: f64 = 0.02;
/// Time that files may catch up where the channel was granted late.
const BURST: Duration = Duration::from_millis(10);
/// Time that is left to an answer, in airtimes of a long frame: a pause and a short frame.
const ANSWER: f64 = 0.6;
/// Part of a long frame's airtime that a frame without any bytes takes: pause, preamble, header.
const FIXED: f64 = 0.2;

/// Use of the channel by one service, as a share of the time.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    share: f64,
    at: Instant,
}

impl Use {
    /// Returns the share over about the last [`WINDOW`].
    fn now(&self, now: Instant) -> f64 {
        let age = now.since(self.at);
        if age >= WINDOW {
            return 0.0;
        }
        self.share * (-age.as_secs_f64() / WINDOW.as_secs_f64()).exp()
    }

    fn add(&mut self, airtime: Duration, now: Instant) {
        self.share = self.now(now) + airtime.as_secs_f64() / WINDOW.as_secs_f64();
        self.at = now;
    }
}

/// The longest frame that this node has sent.
#[derive(Clone, Copy, Debug)]
struct Longest {
    bytes: usize,
    airtime: Duration,
}

/// How much airtime services use around this node, and when its files may send.
#[derive(Debug)]
pub(crate) struct Share {
    config: ShareConfig,
    /// By service.
    uses: [Use; 3],
    longest: Option<Longest>,
    /// When data of each service may be sent.
    open_at: [Instant; 3],
}

impl Share {
    /// Returns the sharing of a node that has heard nothing.
    pub(crate) fn new(config: ShareConfig) -> Self {
        let uses = [Use::default(); 3];
        let open_at = [Instant::default(); 3];
        Self { config, uses, longest: None, open_at }
    }

    /// Returns the weight of a service.
    pub(crate) fn weight(&self, service: ServiceKind) -> f64 {
        self.config.weight(service)
    }

    /// Returns when this node may send data of a service.
    pub(crate) fn open_at(&self, service: ServiceKind) -> Instant {
        self.open_at[service as usize]
    }

    /// Returns the first time later than `after` at which data of a service may be sent again.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.open_at.into_iter().filter(|at| *at > after).min()
    }

    /// Notes a frame that this node sent.
    pub(crate) fn note_sent(
        &mut self,
        service: ServiceKind,
        bytes: usize,
        airtime: Duration,
        now: Instant,
    ) {
        if self.longest.is_none_or(|longest| longest.bytes <= bytes) {
            self.longest = Some(Longest { bytes, airtime });
        }
        self.note(service, airtime, now);
    }

    /// Notes a frame that this node heard.
    pub(crate) fn note_heard(&mut self, service: ServiceKind, bytes: usize, now: Instant) {
        // Before it has sent anything, it has no measure, and no files that could give way.
        let Some(Longest { bytes: most, airtime }) = self.longest else { return };
        let length = (bytes as f64 / most.max(1) as f64).min(1.0);
        self.note(service, airtime.mul_f64(FIXED + (1.0 - FIXED) * length), now);
        let files = ServiceKind::File;
        if self.used(files, now) > 0.0 && self.left_to_others(files, now) > 0.0 {
            let open_at = &mut self.open_at[files as usize];
            *open_at = (*open_at).max(now + airtime.mul_f64(ANSWER));
        }
    }

    fn note(&mut self, service: ServiceKind, airtime: Duration, now: Instant) {
        self.uses[service as usize].add(airtime, now);
        let most = if service == ServiceKind::File { self.config.most_file } else { 1.0 };
        let share = (1.0 - self.left_to_others(service, now)).min(most).max(LEAST);
        if share < 1.0 {
            // A frame takes its share of a time that begins with the frame, or earlier if the
            // channel was granted late.
            let catching_up = now.since(Instant::default()).saturating_sub(airtime + BURST);
            let open_at = &mut self.open_at[service as usize];
            let begins = (*open_at).max(Instant::default() + catching_up);
            *open_at = begins + airtime.mul_f64(1.0 / share);
        }
    }

    /// Returns the share of the time that a service used.
    fn used(&self, service: ServiceKind, now: Instant) -> f64 {
        self.uses[service as usize].now(now)
    }

    /// Returns the share of the time that is left to others than `service`; 0 if none of them was
    /// heard.
    fn left_to_others(&self, service: ServiceKind, now: Instant) -> f64 {
        let all = [ServiceKind::File, ServiceKind::Tunnel, ServiceKind::Stream];
        let is_present = |other: &ServiceKind| *other != service && self.used(*other, now) > 0.0;
        let present = || all.into_iter().filter(is_present);
        let weights = self.weight(service) + present().map(|o| self.weight(o)).sum::<f64>();
        let left = |other| (HEADROOM * self.used(other, now)).min(self.weight(other) / weights);
        present().map(left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: usize = 1500;
    const FRAME: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    /// Sends frames of a file as fast as it may for two seconds, beside a service that uses `used`
    /// of the time. Returns the share of the second second that the file got.
    fn share_beside(config: ShareConfig, other: ServiceKind, used: f64) -> f64 {
        let mut share = Share::new(config);
        let mut sent = Duration::ZERO;
        let mut others_at = 0.0;
        for ms in 0..2000 {
            if used > 0.0 && ms as f64 >= others_at {
                share.note_sent(other, LONG, FRAME, at(ms));
                others_at += 1.0 / used;
            } else if share.open_at(ServiceKind::File) <= at(ms) {
                share.note_sent(ServiceKind::File, LONG, FRAME, at(ms + 1));
                sent += if ms >= 1000 { FRAME } else { Duration::ZERO };
            }
        }
        sent.as_secs_f64()
    }

    #[test]
    fn a_file_alone_has_all_airtime_or_as_much_as_its_user_allows() {
        let all = share_beside(ShareConfig::default(), ServiceKind::Tunnel, 0.0);
        assert!(all > 0.99, "{all}");
        let bounded = ShareConfig { most_file: 0.3, ..ShareConfig::default() };
        let some = share_beside(bounded, ServiceKind::Tunnel, 0.0);
        assert!((0.28..0.32).contains(&some), "{some}");
    }

    #[test]
    fn a_thin_flow_costs_a_file_little_and_a_thick_one_as_much_as_weights_say() {
        let beside = |file, used| {
            let config = ShareConfig { file, ..ShareConfig::default() };
            share_beside(config, ServiceKind::Stream, used)
        };
        let [thin, thick, light] = [beside(1.0, 0.02), beside(1.0, 0.5), beside(0.25, 0.6)];
        assert!((0.85..0.95).contains(&thin), "{thin}");
        assert!((0.45..0.52).contains(&thick), "{thick}");
        assert!((0.17..0.22).contains(&light), "{light}");
    }

    #[test]
    fn a_thick_flow_leaves_room_for_a_file_that_begins() {
        let mut share = Share::new(ShareConfig::default());
        let mut sent = 0;
        let mut file_at = 0;
        for ms in 0..2000 {
            if ms >= file_at {
                share.note_heard(ServiceKind::File, LONG, at(ms));
                file_at += 4;
            } else if share.open_at(ServiceKind::Tunnel) <= at(ms) {
                share.note_sent(ServiceKind::Tunnel, LONG, FRAME, at(ms + 1));
                sent += u32::from(ms >= 1000);
            }
        }
        // The file has a weight of 1.4.
        assert!((390..440).contains(&sent), "{sent}");
    }

    #[test]
    fn an_answer_gets_its_gap_while_another_service_is_near() {
        let mut share = Share::new(ShareConfig::default());
        share.note_sent(ServiceKind::File, LONG, FRAME, at(10));
        share.note_heard(ServiceKind::File, LONG, at(20));
        assert!(share.open_at(ServiceKind::File) <= at(20), "alone, it leaves no gap");
        share.note_heard(ServiceKind::Tunnel, 100, at(30));
        share.note_heard(ServiceKind::File, LONG, at(40));
        assert!(share.open_at(ServiceKind::File) > at(40));
        share.note_heard(ServiceKind::File, LONG, at(1100));
        assert!(share.open_at(ServiceKind::File) <= at(1100), "the other service is gone");
    }

    proptest! {
        #[test]
        fn files_wait_no_longer_than_the_frames_near_them_allow(
            frames in prop::collection::vec((0..3_usize, any::<bool>(), 0..3000_usize), 1..200),
        ) {
            let services = [ServiceKind::File, ServiceKind::Tunnel, ServiceKind::Stream];
            let mut share = Share::new(ShareConfig::default());
            let mut heard = Duration::ZERO;
            for (i, (service, is_own, bytes)) in frames.into_iter().enumerate() {
                let now = at(i as u64);
                heard += FRAME;
                match is_own {
                    true => share.note_sent(services[service], bytes, FRAME, now),
                    false => share.note_heard(services[service], bytes, now),
                }
                // Each frame costs its airtime divided by the least share, and a gap.
                let most = heard.mul_f64(1.0 / LEAST) + FRAME;
                prop_assert!(share.open_at(ServiceKind::File).since(now) <= most);
            }
        }
    }
}
