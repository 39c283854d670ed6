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
//! Files in the background have no share: others get several times what they used, up to all
//! airtime. The bound of each is its engine's matter. Their frames have a mark, so that each node
//! knows them, and nothing gives way to them.
//!
//! Where the driver tells how long a channel was busy, the part that no frame of ncmesh took is
//! foreign traffic. Files leave it several times what it used, up to the share of a service of
//! weight 1, so that it can grow.
//!
//! A user may bound what all frames take of a channel together, control and those heard of other
//! nodes included. Control is counted, but never held: data has what it leaves.
//!
//! Where no other service was heard, nothing of this applies but the bounds that users set.
//! Nothing is negotiated. A neighbour that tells of services that are not there costs this node
//! what one that sends their frames would: no service gives way beyond the weights.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::transmission::DATA;
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
        /// Weight of files.
        // Where all hear each other, a TCP connection keeps half of its goodput beside a file,
        // which takes 2.1 times its time alone. With 1.4 it keeps 0.53 (2.3 times), with 1.8 0.47
        // (2.0).
        pub file: f64 = 1.5, within 0.01..=100.0;
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
/// Time that is left to an answer, in airtimes of a long frame: a pause and a short frame. With 0.6
/// a few of the small packets that are sent against a file on a line are lost, with 0.9 none. The
/// file is 2 % slower for it.
const ANSWER: f64 = 0.9;
/// Time by which data waits longer than for the last frame, at most, where all frames together took
/// more than they may: the data of others must not hold it for good.
const MOST_DEBT: Duration = Duration::from_secs(1);
/// Time for which the word of a neighbour counts, which comes with each of its hellos.
const TOLD: Duration = Duration::from_millis(2500);

/// Share of the time from which foreign traffic counts: airtimes of frames heard are estimates.
const LEAST_FOREIGN: f64 = 0.05;
/// Weight of foreign traffic against that of files.
const FOREIGN_WEIGHT: f64 = 1.0;
/// Time for which a look at the carrier counts.
const FOREIGN_COUNTS: Duration = Duration::from_secs(15);

/// Times of a radio since it was set to its channel, by its driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierTime {
    /// Time on the channel.
    pub on: Duration,
    /// Part of it in which the channel was busy, by frames of this radio or of others.
    pub busy: Duration,
}

/// The last look at the carrier.
#[derive(Clone, Copy, Debug)]
struct Look {
    carrier: CarrierTime,
    /// Airtime of all frames of ncmesh until then.
    taken: Duration,
    /// Share of the time that foreign traffic took before it.
    foreign: f64,
    at: Instant,
}

/// Share of the time that services used around a node, in 1/255, in the order of [`ServiceKind`].
pub(crate) type Uses = [u8; ServiceKind::ALL.len()];

/// Use of the time by services around a neighbour, as it told.
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

/// Frames that wait for the same reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Service(ServiceKind),
    /// Data of files in the background, and all frames of files that are no data.
    Background,
}

impl Lane {
    const ALL: usize = ServiceKind::ALL.len() + 1;

    /// Returns the lane of a frame of this kind.
    pub(crate) fn of(service: ServiceKind, kind: u8, is_background: bool) -> Self {
        // A file is there if its data are: announcements go on after its end.
        let is_said_of_file = service == ServiceKind::File && kind != DATA;
        match is_background || is_said_of_file {
            true => Self::Background,
            false => Self::Service(service),
        }
    }

    /// Returns whether its data are those of files.
    pub(crate) fn is_of_files(self) -> bool {
        matches!(self, Self::Background | Self::Service(ServiceKind::File))
    }

    fn index(self) -> usize {
        match self {
            Self::Service(service) => service as usize,
            Self::Background => ServiceKind::ALL.len(),
        }
    }
}

/// A frame that this node sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFrame {
    pub lane: Lane,
    pub len: usize,
    pub airtime: Duration,
}

/// A frame that this node heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardFrame {
    pub lane: Lane,
    pub airtime: Duration,
    /// Whether its sender hears nodes that this one does not: their answers may be lost to what
    /// this node sends.
    pub hides_answers: bool,
}

/// Use of the channel by one service, as a share of the time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    share: f64,
    at: Instant,
}

impl Use {
    /// Returns the share over about the last [`WINDOW`].
    pub(crate) fn now(&self, now: Instant) -> f64 {
        let age = now.since(self.at);
        if age >= WINDOW {
            return 0.0;
        }
        self.share * libm::exp(-age.as_secs_f64() / WINDOW.as_secs_f64())
    }

    pub(crate) fn add(&mut self, airtime: Duration, now: Instant) {
        self.share = self.now(now) + airtime.as_secs_f64() / WINDOW.as_secs_f64();
        self.at = now;
    }
}

/// How much airtime services use around this node, and when its files may send.
#[derive(Debug)]
pub(crate) struct Share {
    config: ShareConfig,
    /// Most of the channel's airtime that all frames take, and when data of any lane may be sent.
    most: f64,
    all_open_at: Instant,
    /// Airtime of all frames that were sent and heard.
    taken: Duration,
    /// Use of the channel by control.
    control: Use,
    look: Option<Look>,
    /// By lane.
    uses: [Use; Lane::ALL],
    /// The same around neighbours: what this node sends collides there with what it does not hear.
    there: [UseThere; 3],
    /// Length of the longest frame that this node has sent, and the airtime of the last such. A
    /// shorter one may take longer: the MAC repeats it if it is unicast.
    longest_len: usize,
    longest: Duration,
    /// When data of each lane may be sent.
    open_at: [Instant; Lane::ALL],
}

impl Share {
    /// Returns the sharing of a node that has heard nothing.
    pub(crate) fn new(config: ShareConfig) -> Self {
        Self {
            config,
            most: 1.0,
            all_open_at: Instant::default(),
            taken: Duration::ZERO,
            control: Use::default(),
            look: None,
            uses: Default::default(),
            there: Default::default(),
            longest_len: 0,
            longest: Duration::ZERO,
            open_at: Default::default(),
        }
    }

    /// Bounds the airtime that all frames take together.
    pub(crate) fn set_most(&mut self, most: f64) {
        self.most = most;
        self.all_open_at = Instant::default();
    }

    /// Notes what the driver tells of the carrier. Counters of a radio that was set to another
    /// channel begin again.
    pub(crate) fn note_carrier(&mut self, carrier: CarrierTime, now: Instant) {
        let before = self
            .look
            .filter(|look| look.carrier.on < carrier.on && look.carrier.busy <= carrier.busy);
        let foreign = before.map_or(0.0, |before| {
            let span = carrier.on.saturating_sub(before.carrier.on);
            let busy = carrier.busy.saturating_sub(before.carrier.busy);
            let own = self.taken.saturating_sub(before.taken);
            let foreign = busy.saturating_sub(own).as_secs_f64() / span.as_secs_f64();
            if foreign < LEAST_FOREIGN { 0.0 } else { foreign.min(1.0) }
        });
        self.look = Some(Look { carrier, taken: self.taken, foreign, at: now });
    }

    /// Returns the share of the time that files leave to foreign traffic.
    fn left_to_foreign(&self, now: Instant) -> f64 {
        let look = self.look.filter(|look| now.since(look.at) < FOREIGN_COUNTS);
        let most = FOREIGN_WEIGHT / (FOREIGN_WEIGHT + self.config.file);
        look.map_or(0.0, |look| (HEADROOM * look.foreign).min(most))
    }

    /// Returns the weight of a service.
    pub(crate) fn weight(&self, service: ServiceKind) -> f64 {
        self.config.weight(service)
    }

    /// Returns when this node may send data of a lane.
    pub(crate) fn open_at(&self, lane: Lane) -> Instant {
        self.open_at[lane.index()].max(self.all_open_at)
    }

    /// Returns the first time later than `after` at which data of a lane may be sent again.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.open_at.into_iter().chain([self.all_open_at]);
        times.filter(|at| *at > after).min()
    }

    /// Notes a frame of control that this node sent or heard.
    pub(crate) fn note_control(&mut self, airtime: Duration, now: Instant) {
        self.taken += airtime;
        self.control.add(airtime, now);
    }

    /// Notes a frame that this node sent.
    pub(crate) fn note_sent(&mut self, frame: SentFrame, now: Instant) {
        if frame.len >= self.longest_len {
            self.longest_len = frame.len;
            self.longest = frame.airtime;
        }
        self.note(frame.lane, frame.airtime, now);
    }

    /// Notes a frame that this node heard.
    pub(crate) fn note_heard(&mut self, frame: HeardFrame, now: Instant) {
        self.note(frame.lane, frame.airtime, now);
        if frame.hides_answers && self.leaves_gaps(now) {
            let opens_at = now + self.longest.mul_f64(ANSWER);
            for lane in [Lane::Service(ServiceKind::File), Lane::Background] {
                let open_at = &mut self.open_at[lane.index()];
                *open_at = (*open_at).max(opens_at);
            }
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
        let used = ServiceKind::ALL.map(|service| self.used(service, now));
        let are_several = used.iter().filter(|share| **share > 0.0).count() > 1;
        are_several.then(|| used.map(|share| (share.min(1.0) * 255.0).ceil() as u8))
    }

    /// Returns whether files leave gaps for answers: there are some, and other services are near.
    pub(crate) fn leaves_gaps(&self, now: Instant) -> bool {
        let is_near = |lane: Lane| self.uses[lane.index()].now(now) > 0.0;
        let file = ServiceKind::File;
        (is_near(Lane::Service(file)) || is_near(Lane::Background))
            && self.left_to_others(file, now) > 0.0
    }

    fn note(&mut self, lane: Lane, airtime: Duration, now: Instant) {
        self.charge_all(airtime, now);
        self.uses[lane.index()].add(airtime, now);
        let left = match lane {
            Lane::Service(service) => self.left_to_others(service, now),
            Lane::Background => self.left_to_services(now),
        };

        let most = match lane {
            Lane::Service(ServiceKind::File) | Lane::Background => self.config.most_file,
            Lane::Service(_) => 1.0,
        };

        let foreign = if lane.is_of_files() { self.left_to_foreign(now) } else { 0.0 };
        let share = (1.0 - left - foreign).max(LEAST).min(most);
        if share < 1.0 {
            let open_at = &mut self.open_at[lane.index()];
            *open_at = after(*open_at, airtime, share, now);
        }
    }

    /// Charges a frame of data to the bound of all. Control goes in any case, so data have what it
    /// leaves of the bound, and a little beside any amount of it.
    fn charge_all(&mut self, airtime: Duration, now: Instant) {
        self.taken += airtime;
        if self.most < 1.0 {
            let rate = (self.most - self.control.now(now)).max(LEAST.min(self.most));
            let latest = now + MOST_DEBT + airtime.mul_f64(1.0 / rate);
            self.all_open_at = after(self.all_open_at, airtime, rate, now).min(latest);
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

    /// Returns the share of the time that files in the background leave to all services.
    fn left_to_services(&self, now: Instant) -> f64 {
        let left = |service| HEADROOM * self.used_around(service, now);
        ServiceKind::ALL.into_iter().map(left).sum::<f64>().min(1.0)
    }

    /// Returns the share of the time that is left to others than `service`; 0 if there are none.
    fn left_to_others(&self, service: ServiceKind, now: Instant) -> f64 {
        let others = ServiceKind::ALL.into_iter().filter(|other| *other != service);
        let present = others.filter_map(|other| {
            let used = self.used_around(other, now);
            (used > 0.0).then_some((self.weight(other), used))
        });

        let weights = self.weight(service) + present.clone().map(|(weight, _)| weight).sum::<f64>();
        let left = |(weight, used): (f64, f64)| (HEADROOM * used).min(weight / weights);
        present.map(left).sum()
    }
}

/// Returns when the next frame may be sent after one that just ended, so that such frames take this
/// share of the time. It takes its share of a time that begins with the frame, or earlier if the
/// channel was granted late.
fn after(open_at: Instant, airtime: Duration, share: f64, now: Instant) -> Instant {
    let catching_up = now.since(Instant::default()).saturating_sub(airtime + BURST);
    let begins = open_at.max(Instant::default() + catching_up);
    begins + airtime.mul_f64(1.0 / share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn send(share: &mut Share, lane: Lane, now: Instant) {
        share.note_sent(SentFrame { lane, len: 1500, airtime: FRAME }, now);
    }

    fn hear(share: &mut Share, lane: Lane, now: Instant) {
        share.note_heard(HeardFrame { lane, airtime: FRAME, hides_answers: true }, now);
    }

    /// Sends frames of a file as fast as it may for two seconds, beside a service that uses `used`
    /// of the time. Returns the share of the second second that the file got.
    fn share_beside(config: ShareConfig, other: ServiceKind, used: f64) -> f64 {
        let mut share = Share::new(config);
        let mut sent = Duration::ZERO;
        let mut others_at = 0.0;
        for ms in 0..2000 {
            if used > 0.0 && ms as f64 >= others_at {
                send(&mut share, Lane::Service(other), at(ms));
                others_at += 1.0 / used;
            } else if share.open_at(Lane::Service(ServiceKind::File)) <= at(ms) {
                send(&mut share, Lane::Service(ServiceKind::File), at(ms + 1));
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

    /// Sends data of files and tunnels in turns as soon as it may, beside control that takes
    /// `control` of the time. Returns the share of the last eight of ten seconds that all took.
    fn share_of_all(most: f64, control: f64) -> f64 {
        let mut share = Share::new(ShareConfig::default());
        share.set_most(most);
        let mut sent = Duration::ZERO;
        let mut said = 0.0;
        for ms in 0..10_000 {
            let service = if ms % 2 == 0 { ServiceKind::File } else { ServiceKind::Tunnel };
            if f64::from(ms as u32) * control > said {
                share.note_control(FRAME, at(ms + 1));
                said += 1.0;
            } else if share.open_at(Lane::Service(service)) <= at(ms) {
                send(&mut share, Lane::Service(service), at(ms + 1));
            } else {
                continue;
            }
            sent += if ms >= 2000 { FRAME } else { Duration::ZERO };
        }
        sent.as_secs_f64() / 8.0
    }

    #[test]
    fn all_frames_together_take_what_the_user_allows_and_control_is_never_held() {
        for control in [0.0, 0.05, 0.2] {
            let all = share_of_all(0.3, control);
            assert!((0.27..0.32).contains(&all), "{all} beside control of {control}");
        }

        // Control takes more than all may: data still moves, a little.
        let all = share_of_all(0.1, 0.4);
        assert!((0.41..0.43).contains(&all), "{all}");
        // Without a bound only the share of the file holds it, in a fifth of its turns.
        let all = share_of_all(1.0, 0.0);
        assert!((0.89..0.91).contains(&all), "{all}");
    }

    /// Sends a file as fast as it may for 20 s, in which the driver tells each second that foreign
    /// traffic took `foreign` of the time beside it. Returns the share of the last ten seconds that
    /// the file got.
    fn share_beside_foreign(foreign: f64) -> f64 {
        let mut share = Share::new(ShareConfig::default());
        let mut busy = 0.0;
        let mut sent = 0;
        for ms in 0..20_000 {
            if ms % 1000 == 0 {
                let busy = Duration::from_secs_f64(busy / 1e3);
                let on = Duration::from_millis(ms);
                share.note_carrier(CarrierTime { on, busy }, at(ms));
            }
            busy += foreign;
            if share.open_at(Lane::Service(ServiceKind::File)) <= at(ms) {
                send(&mut share, Lane::Service(ServiceKind::File), at(ms + 1));
                busy += 1.0;
                sent += u32::from(ms >= 10_000);
            }
        }
        f64::from(sent) / 10_000.0
    }

    #[test]
    fn files_yield_to_foreign_traffic_and_keep_their_weight() {
        let [none, little, some, much] = [0.0, 0.03, 0.1, 0.6].map(share_beside_foreign);
        assert!(none > 0.99 && little > 0.99, "{none} {little}");
        assert!((0.58..0.62).contains(&some), "{some}");
        assert!((0.58..0.62).contains(&much), "{much}");
    }

    #[test]
    fn a_carrier_that_is_not_looked_at_or_counts_anew_says_nothing() {
        let mut share = Share::new(ShareConfig::default());
        let carrier =
            |on, busy| CarrierTime { on: Duration::from_secs(on), busy: Duration::from_secs(busy) };
        share.note_carrier(carrier(100, 50), at(0));
        assert_eq!(share.left_to_foreign(at(0)), 0.0, "nothing to compare with");
        share.note_carrier(carrier(110, 58), at(10_000));
        assert!(share.left_to_foreign(at(11_000)) > 0.3);
        assert_eq!(share.left_to_foreign(at(26_000)), 0.0, "long ago");
        for odd in [carrier(1, 1), carrier(1, 0), carrier(5, 0), carrier(5, 0)] {
            share.note_carrier(odd, at(27_000));
            assert_eq!(share.left_to_foreign(at(27_000)), 0.0, "{odd:?}");
        }
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
                hear(&mut share, Lane::Service(ServiceKind::File), at(ms));
                file_at += 4;
            } else if share.open_at(Lane::Service(ServiceKind::Tunnel)) <= at(ms) {
                send(&mut share, Lane::Service(ServiceKind::Tunnel), at(ms + 1));
                sent += u32::from(ms >= 1000);
            }
        }
        // The file has a weight of 1.5.
        assert!((375..425).contains(&sent), "{sent}");
    }

    #[test]
    fn an_answer_gets_its_gap_while_another_service_is_near() {
        let mut share = Share::new(ShareConfig::default());
        let file = HeardFrame {
            lane: Lane::Service(ServiceKind::File),
            airtime: FRAME,
            hides_answers: true,
        };
        send(&mut share, Lane::Service(ServiceKind::File), at(10));
        share.note_heard(file, at(20));
        assert!(
            share.open_at(Lane::Service(ServiceKind::File)) <= at(20),
            "alone, it leaves no gap"
        );
        let seen = HeardFrame { hides_answers: false, ..file };
        let packet =
            HeardFrame { lane: Lane::Service(ServiceKind::Tunnel), airtime: FRAME / 10, ..seen };
        share.note_heard(packet, at(30));
        share.note_heard(seen, at(40));
        assert!(
            share.open_at(Lane::Service(ServiceKind::File)) <= at(40),
            "it would hear the answer"
        );
        share.note_heard(file, at(50));
        assert!(share.open_at(Lane::Service(ServiceKind::File)) > at(50));
        share.note_heard(file, at(1100));
        assert!(
            share.open_at(Lane::Service(ServiceKind::File)) <= at(1100),
            "the other service is gone"
        );
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
            if share.open_at(Lane::Service(ServiceKind::Tunnel)) <= at(ms) {
                send(&mut share, Lane::Service(ServiceKind::Tunnel), at(ms + 1));
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
        (0..200).for_each(|ms| send(&mut share, Lane::Service(ServiceKind::File), at(ms)));
        assert_eq!(share.uses(at(200)), None);
        (200..210).for_each(|ms| send(&mut share, Lane::Service(ServiceKind::Stream), at(ms)));
        let [file, tunnel, stream] = share.uses(at(210)).unwrap();
        assert!((40..52).contains(&file) && tunnel == 0 && stream == 3, "{file}, {stream}");
        // A neighbour tells it itself.
        share.note_told(Told { by: NodeId(2), uses: [0, 200, 0] }, at(210));
        assert_eq!(share.uses(at(210)).unwrap()[1], 0);
    }

    /// Sends frames of a file in the background as fast as it may for two seconds, beside another
    /// lane that uses `used` of the time. Returns the share of the second second that it got.
    fn background_beside(other: Lane, used: f64) -> f64 {
        let mut share = Share::new(ShareConfig::default());
        let mut sent = Duration::ZERO;
        let mut others_at = 0.0;
        for ms in 0..2000 {
            if used > 0.0 && ms as f64 >= others_at {
                send(&mut share, other, at(ms));
                others_at += 1.0 / used;
            } else if share.open_at(Lane::Background) <= at(ms) {
                send(&mut share, Lane::Background, at(ms + 1));
                sent += if ms >= 1000 { FRAME } else { Duration::ZERO };
            }
        }
        sent.as_secs_f64()
    }

    #[test]
    fn a_file_in_the_background_takes_what_others_leave() {
        let file = Lane::Service(ServiceKind::File);
        let tunnel = Lane::Service(ServiceKind::Tunnel);
        let alone = background_beside(tunnel, 0.0);
        assert!(alone > 0.99, "{alone}");
        let [thin, thick] = [background_beside(tunnel, 0.01), background_beside(file, 0.5)];
        assert!((0.9..0.99).contains(&thin), "{thin}");
        assert!((0.01..0.04).contains(&thick), "{thick}");
    }

    #[test]
    fn nothing_gives_way_to_a_file_in_the_background_or_to_what_a_file_says() {
        let mut share = Share::new(ShareConfig::default());
        let tunnel = Lane::Service(ServiceKind::Tunnel);
        let said = Lane::of(ServiceKind::File, DATA + 1, false);
        for ms in 0..500 {
            hear(&mut share, Lane::of(ServiceKind::File, DATA, true), at(ms));
            hear(&mut share, said, at(ms));
            send(&mut share, tunnel, at(ms));
        }
        assert!(share.open_at(tunnel) <= at(500));
        assert_eq!(share.uses(at(500)), None, "one service is here");
    }

    proptest! {
        #[test]
        fn files_wait_no_longer_than_the_frames_near_them_allow(
            frames in prop::collection::vec((0..Lane::ALL, any::<bool>()), 1..200),
        ) {
            let mut share = Share::new(ShareConfig::default());
            let mut heard = Duration::ZERO;
            for (i, (lane, is_own)) in frames.into_iter().enumerate() {
                let now = at(i as u64);
                let service = ServiceKind::ALL.get(lane).copied();
                let lane = service.map_or(Lane::Background, Lane::Service);
                heard += FRAME;
                match is_own {
                    true => send(&mut share, lane, now),
                    false => hear(&mut share, lane, now),
                }
                // Each frame costs its airtime divided by the least share, and a gap.
                let most = heard.mul_f64(1.0 / LEAST) + FRAME;
                for lane in [Lane::Service(ServiceKind::File), Lane::Background] {
                    prop_assert!(share.open_at(lane).since(now) <= most);
                }
            }
        }
    }
}
