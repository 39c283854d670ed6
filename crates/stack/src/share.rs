//! Airtime shared among services, by all nodes that hear each other.
//!
//! A file takes all airtime that there is, and each frame of it may hit a short answer that its
//! sender cannot hear. So services give way to one another:
//!
//! 1. A node notes how much of the last second the frames of each service took, its own and those
//!    that it heard. While others were there, a service takes no more than the rest: others get
//!    several times what they used, so that they can grow, up to their share by weight.
//!    Frames of relays count, for they take the same air, so the share holds along a whole path.
//!    Hellos tell what a node hears of the services around it, if there are several: its neighbours
//!    give way to what they do not hear, too, for their frames collide with it there.
//! 2. After a frame of a node that hears others which this one does not hear, its files leave the
//!    time of an answer.
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
use ncmesh_wire::NodeId;

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
/// Time for which it counts what a neighbour told. Neighbours tell it with each hello.
const TOLD: Duration = Duration::from_millis(2500);
const SERVICES: [ServiceKind; 3] = [ServiceKind::File, ServiceKind::Tunnel, ServiceKind::Stream];

/// Share of the time that services used around a node, in 1/255, in the order of [`ServiceKind`].
pub(crate) type Uses = [u8; 3];

/// What a neighbour told of the services around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub by: NodeId,
    pub uses: Uses,
}

/// The greatest use of a service around a neighbour.
#[derive(Clone, Copy, Debug, Default)]
struct UseThere {
    by: Option<NodeId>,
    share: f64,
    told_at: Instant,
}

impl UseThere {
    fn now(&self, now: Instant) -> f64 {
        let is_valid = self.by.is_some() && now.since(self.told_at) < TOLD;
        if is_valid { self.share } else { 0.0 }
    }
}

/// A frame that this node heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardFrame {
    pub service: ServiceKind,
    pub airtime: Duration,
    /// Whether its sender may get an answer that this node does not hear.
    pub hides_answers: bool,
}

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

/// How much airtime services use around this node, and when its files may send.
#[derive(Debug)]
pub(crate) struct Share {
    config: ShareConfig,
    /// By service.
    uses: [Use; 3],
    /// The same around neighbours: what this node sends collides there with what it does not hear.
    there: [UseThere; 3],
    /// Airtime of the longest frame that this node has sent.
    longest: Duration,
    /// When data of each service may be sent.
    open_at: [Instant; 3],
}

impl Share {
    /// Returns the sharing of a node that has heard nothing.
    pub(crate) fn new(config: ShareConfig) -> Self {
        let uses = [Use::default(); 3];
        let open_at = [Instant::default(); 3];
        let there = [UseThere::default(); 3];
        Self { config, uses, there, longest: Duration::ZERO, open_at }
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
    pub(crate) fn note_sent(&mut self, service: ServiceKind, airtime: Duration, now: Instant) {
        self.longest = self.longest.max(airtime);
        self.note(service, airtime, now);
    }

    /// Notes a frame that this node heard.
    pub(crate) fn note_heard(&mut self, frame: HeardFrame, now: Instant) {
        self.note(frame.service, frame.airtime, now);
        let files = ServiceKind::File;
        if frame.hides_answers && self.is_shared(files, now) {
            let open_at = &mut self.open_at[files as usize];
            *open_at = (*open_at).max(now + self.longest.mul_f64(ANSWER));
        }
    }

    /// Notes what a neighbour told.
    pub(crate) fn note_told(&mut self, told: Told, now: Instant) {
        for (there, share) in self.there.iter_mut().zip(told.uses) {
            let share = f64::from(share) / 255.0;
            if there.by == Some(told.by) || share >= there.now(now) {
                *there = UseThere { by: Some(told.by), share, told_at: now };
            }
        }
    }

    /// Returns what this node tells its neighbours: what services use here, if there are several.
    pub(crate) fn uses(&self, now: Instant) -> Option<Uses> {
        let used = SERVICES.map(|service| self.used(service, now));
        let are_several = used.iter().filter(|share| **share > 0.0).count() > 1;
        are_several.then(|| used.map(|share| (share.min(1.0) * 255.0).ceil() as u8))
    }

    /// Returns whether this node sends or hears `service`, and others are near.
    pub(crate) fn is_shared(&self, service: ServiceKind, now: Instant) -> bool {
        self.used(service, now) > 0.0 && self.left_to_others(service, now) > 0.0
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

    /// Returns the share of the time that a service used here.
    fn used(&self, service: ServiceKind, now: Instant) -> f64 {
        self.uses[service as usize].now(now)
    }

    /// Returns the share of the time that a service used here, or around a neighbour.
    fn used_around(&self, service: ServiceKind, now: Instant) -> f64 {
        self.used(service, now).max(self.there[service as usize].now(now))
    }

    /// Returns the share of the time that is left to others than `service`; 0 if there are none.
    fn left_to_others(&self, service: ServiceKind, now: Instant) -> f64 {
        let others = SERVICES.into_iter().filter(|other| *other != service);
        let present = others.filter_map(|other| {
            let used = self.used_around(other, now);
            (used > 0.0).then_some((self.weight(other), used))
        });
        let weights = self.weight(service) + present.clone().map(|(weight, _)| weight).sum::<f64>();
        let left = |(weight, used): (f64, f64)| (HEADROOM * used).min(weight / weights);
        present.map(left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn hear(share: &mut Share, service: ServiceKind, now: Instant) {
        share.note_heard(HeardFrame { service, airtime: FRAME, hides_answers: true }, now);
    }

    /// Sends frames of a file as fast as it may for two seconds, beside a service that uses `used`
    /// of the time. Returns the share of the second second that the file got.
    fn share_beside(config: ShareConfig, other: ServiceKind, used: f64) -> f64 {
        let mut share = Share::new(config);
        let mut sent = Duration::ZERO;
        let mut others_at = 0.0;
        for ms in 0..2000 {
            if used > 0.0 && ms as f64 >= others_at {
                share.note_sent(other, FRAME, at(ms));
                others_at += 1.0 / used;
            } else if share.open_at(ServiceKind::File) <= at(ms) {
                share.note_sent(ServiceKind::File, FRAME, at(ms + 1));
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
                hear(&mut share, ServiceKind::File, at(ms));
                file_at += 4;
            } else if share.open_at(ServiceKind::Tunnel) <= at(ms) {
                share.note_sent(ServiceKind::Tunnel, FRAME, at(ms + 1));
                sent += u32::from(ms >= 1000);
            }
        }
        // The file has a weight of 1.4.
        assert!((390..440).contains(&sent), "{sent}");
    }

    #[test]
    fn an_answer_gets_its_gap_while_another_service_is_near() {
        let mut share = Share::new(ShareConfig::default());
        let file = HeardFrame { service: ServiceKind::File, airtime: FRAME, hides_answers: true };
        share.note_sent(ServiceKind::File, FRAME, at(10));
        share.note_heard(file, at(20));
        assert!(share.open_at(ServiceKind::File) <= at(20), "alone, it leaves no gap");
        let seen = HeardFrame { hides_answers: false, ..file };
        let packet = HeardFrame { service: ServiceKind::Tunnel, airtime: FRAME / 10, ..seen };
        share.note_heard(packet, at(30));
        share.note_heard(seen, at(40));
        assert!(share.open_at(ServiceKind::File) <= at(40), "it would hear the answer");
        share.note_heard(file, at(50));
        assert!(share.open_at(ServiceKind::File) > at(50));
        share.note_heard(file, at(1100));
        assert!(share.open_at(ServiceKind::File) <= at(1100), "the other service is gone");
    }

    #[test]
    fn a_service_that_only_a_neighbour_hears_gets_its_share() {
        let mut share = Share::new(ShareConfig { file: 1.0, ..ShareConfig::default() });
        let mut sent = 0;
        for ms in 0..4000 {
            // The neighbour hears a file, and this node's own packets.
            if ms % 1000 == 0 && ms < 2000 {
                share.note_told(Told { by: NodeId(2), uses: [64, 255, 0] }, at(ms));
                share.note_told(Told { by: NodeId(3), uses: [1, 255, 0] }, at(ms));
            }
            if share.open_at(ServiceKind::Tunnel) <= at(ms) {
                share.note_sent(ServiceKind::Tunnel, FRAME, at(ms + 1));
                sent += u32::from((1000..2000).contains(&ms));
            }
        }
        assert!((480..=520).contains(&sent), "{sent}");
        assert_eq!(share.left_to_others(ServiceKind::Tunnel, at(4000)), 0.0, "told long ago");
    }

    #[test]
    fn a_node_tells_what_services_use_if_there_are_several() {
        let mut share = Share::new(ShareConfig::default());
        assert_eq!(share.uses(at(0)), None);
        (0..200).for_each(|ms| share.note_sent(ServiceKind::File, FRAME, at(ms)));
        assert_eq!(share.uses(at(200)), None);
        (200..210).for_each(|ms| share.note_sent(ServiceKind::Stream, FRAME, at(ms)));
        let [file, tunnel, stream] = share.uses(at(210)).unwrap();
        assert!((40..52).contains(&file) && tunnel == 0 && stream == 3, "{file}, {stream}");
        // What others told is theirs to tell.
        share.note_told(Told { by: NodeId(2), uses: [0, 200, 0] }, at(210));
        assert_eq!(share.uses(at(210)).unwrap()[1], 0);
    }

    proptest! {
        #[test]
        fn files_wait_no_longer_than_the_frames_near_them_allow(
            frames in prop::collection::vec((0..3_usize, any::<bool>()), 1..200),
        ) {
            let mut share = Share::new(ShareConfig::default());
            let mut heard = Duration::ZERO;
            for (i, (service, is_own)) in frames.into_iter().enumerate() {
                let now = at(i as u64);
                heard += FRAME;
                match is_own {
                    true => share.note_sent(SERVICES[service], FRAME, now),
                    false => hear(&mut share, SERVICES[service], now),
                }
                // Each frame costs its airtime divided by the least share, and a gap.
                let most = heard.mul_f64(1.0 / LEAST) + FRAME;
                prop_assert!(share.open_at(ServiceKind::File).since(now) <= most);
            }
        }
    }
}
