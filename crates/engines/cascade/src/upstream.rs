//! Upstream: which neighbour is the parent, and when it is told what this node wants.
//!
//! The parent is the next node on the shortest path from the source, by the ETX of both directions:
//! data come down a link and reports go up. A path of a few good links beats one long poor link
//! even where the poor one was lucky a few times. Where a link brings nothing back, reports take
//! another way.
//!
//! Link state measures with short frames, and a node may say hello and pass nothing on. So a parent
//! of which nothing at all is heard of this transfer is left, even if no other looks nearer.

use super::tree::METRIC;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::hop::delivery::{CountedDelivery, DeliveryPolicy};
use ncmesh_engine::toolkit::hop::report::{ReportPolicy, ReportTimer};
use ncmesh_engine::toolkit::hop::{Avoided, Choice, ChoicePolicy, Handled, Ways};
use ncmesh_engine::topology::Paths;
use ncmesh_engine::{At, Context, Port};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// When another parent takes the place of the present one. Lower, it changes more often; higher, it
/// stays at parents that have become bad.
const CHOICE: ChoicePolicy = ChoicePolicy { better: 1.3, lasting: Duration::from_secs(2) };
/// How a neighbour's packets are counted. A poor link counts by what it carries. With less
/// evidence, good parents are left after a few collisions.
const COUNT: DeliveryPolicy = DeliveryPolicy { half_life: 128.0, evidence: 32.0 };
/// ETX by which a neighbour must be nearer to the source to take the place of a poor parent, so
/// that no two nodes take each other.
const NEARER: f64 = 0.5;
/// Packets of others, for each of a neighbour's, below which its packets do not collide here.
const QUIET_BELOW: f64 = 0.25;
/// Most neighbours whose packets are counted.
const MOST_COUNTED: usize = 64;
/// Rounds of questions without an answer after which a parent counts as silent, and after which it
/// is avoided.
const SILENT: u32 = 2;
const GIVE_UP: u32 = 5;
/// Polls in a row, or rounds of questions without an answer, after which reports go by unicast.
/// Beside a connection that hid its children's reports from a relay of `building`, a file took 31 s
/// with 2, 32 with 3, 33 with 5, and up to 400 without. Alone it takes 15 s with any. Elsewhere,
/// with 1, reports wait for the MAC's repetitions: 0.96 times as fast, at the least 0.88.
const INSISTS: u32 = 3;
/// Rounds without an answer, and time since the first, after which a parent is mute if no frame of
/// this transfer was ever heard of it. One that lacks the data itself is heard to ask for them, and
/// a source that waits for its receivers waits less.
const MUTE: u32 = 3;
const MUTE_FOR: Duration = Duration::from_millis(1800);
/// How a report is sent. Copies closer to each other are lost together, and rarer ones come late:
/// half the time between them 0.98, at the least 0.81; twice 1.01.
const REPORT: ReportPolicy = ReportPolicy { loss: 0.05, copies: 4, between: 4.0 };
/// Time without data of the parent after which it is asked again, and the pauses after that.
const QUIET: Duration = Duration::from_millis(300);
const ASK_AGAIN: Backoff =
    Backoff { first: Duration::from_millis(600), longest: Duration::from_secs(5) };

/// The way up of one transfer at one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Upstream {
    pub parent: Option<NodeId>,
    /// The parent in the tree that the transfer begins with: it is the first, if it is good enough.
    pub planned: Option<NodeId>,
    choice: Choice,
    /// Packets counted of neighbours.
    links: BTreeMap<NodeId, Counted>,
    /// Neighbours that did not serve this node, or spoiled what it took from them.
    avoided: Avoided,
    /// Ones among them of which nothing was heard of this transfer while they were the parent.
    mute: Avoided,
    report: ReportTimer,
    /// Data packets of the parent in a row that asked for a report, and that were not wanted.
    polls: u32,
    unwanted: u32,
    ask_at: Option<Instant>,
    /// Rounds of questions since the parent was last heard to send data.
    asked: u32,
    /// When the parent was asked first.
    asked_at: Option<Instant>,
}

/// Frames of a neighbour: the last one, and the share that was heard.
#[derive(Clone, Copy, Debug)]
struct Counted {
    last: HeardFrame,
    heard: CountedDelivery,
}

/// A frame of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeardFrame {
    /// Its number among those of the port by which its sender sent it.
    pub number: u16,
    /// The port by which it came.
    pub port: Port,
    pub at: Instant,
}

impl Upstream {
    /// Counts a frame of a neighbour, of whose frames link state `told` that this share arrives.
    pub(super) fn count(&mut self, neighbour: NodeId, frame: HeardFrame, told: f64) {
        if self.mute.forgive(neighbour) {
            self.avoided.forgive(neighbour);
        }
        if self.links.len() >= MOST_COUNTED && !self.links.contains_key(&neighbour) {
            return;
        }
        let heard = CountedDelivery::new(told, &COUNT);
        let before = HeardFrame { number: frame.number.wrapping_sub(1), ..frame };
        let counted = self.links.entry(neighbour).or_insert(Counted { last: before, heard });

        // Frames of another port have numbers of their own.
        if counted.last.port != frame.port {
            counted.last = before;
        }
        let sent = f64::from(frame.number.wrapping_sub(counted.last.number));
        counted.heard.count(sent.clamp(1.0, COUNT.half_life), 1.0);
        counted.last = frame;
    }

    /// Returns the last frame of the parent that was handled here.
    pub(super) fn handled(&self, now: Instant) -> Handled {
        let counted = self.parent.and_then(|parent| self.links.get(&parent));
        let handled = |HeardFrame { number, at, .. }| Handled { number, ago: now.since(at) };
        counted.map_or_else(Handled::default, |counted| handled(counted.last))
    }

    /// Notes a data packet of the parent: whether it asks for a report, and whether it was wanted.
    pub(super) fn hear_parent(&mut self, polls: bool, is_wanted: bool, now: Instant) {
        self.polls = if polls { self.polls.saturating_add(1) } else { 0 };
        self.asked = 0;
        self.ask_at = Some(now + QUIET);

        // The parent may send them to others, and know that this node does not want them.
        self.unwanted = if is_wanted { 0 } else { self.unwanted.saturating_add(1) };
        if polls || self.unwanted.is_power_of_two() {
            self.report(now);
        }
    }

    /// Returns whether the next report goes by unicast, which the MAC repeats: the last ones did
    /// not arrive, because nodes that this one does not hear send all the time.
    pub(super) fn insists(&self) -> bool {
        self.polls.max(self.asked) >= INSISTS
    }

    /// Lets a report go out now.
    pub(super) fn report(&mut self, now: Instant) {
        self.report.request(now);
    }

    /// Returns the parent if it is reached by a port, and to be told now what is wanted.
    pub(super) fn reports_to(&self, now: Instant, at: At<'_>) -> Option<NodeId> {
        self.parent.filter(|parent| at.reaches(*parent) && self.report.is_due(now))
    }

    /// Notes that a copy of a report is sent over a link that delivers this share of frames.
    pub(super) fn note_reported(&mut self, delivery: f64, packet_time: Duration, now: Instant) {
        if self.report.is_new() {
            let pause =
                if self.is_unheard() { ASK_AGAIN.first } else { ASK_AGAIN.pause(self.asked) };
            self.ask_at = Some(now + pause);
            self.asked_at = self.asked_at.or(Some(now));
            self.asked = self.asked.saturating_add(1);
        }

        // A parent that asks again may not have heard the report: those whom this node does not
        // hear send at the same time.
        let extra = self.polls.saturating_sub(1);
        self.report.note_sent(delivery, extra, &REPORT, packet_time, now);
    }

    /// Returns whether the parent has been silent for so long that it is to be asked again.
    pub(super) fn take_question(&mut self, now: Instant) -> bool {
        // A report that is due asks, too.
        let is_due = self.report.due().is_none() && self.ask_at.is_some_and(|at| at <= now);
        self.ask_at = self.ask_at.filter(|_| !is_due);
        is_due
    }

    /// Lets a report go out if none was sent yet, or nothing says when.
    pub(super) fn report_if_idle(&mut self, now: Instant) {
        if self.ask_at.is_none() {
            self.report(now);
        }
    }

    /// Notes that what was taken from a neighbour was forged.
    pub(super) fn avoid(&mut self, neighbour: NodeId, now: Instant) {
        self.avoided.avoid(neighbour, now);
    }

    /// Returns whether no frame of this transfer was ever heard of the parent.
    fn is_unheard(&self) -> bool {
        let is_counted = |parent: NodeId| self.links.contains_key(&parent);
        self.links.len() < MOST_COUNTED && self.parent.is_some_and(|parent| !is_counted(parent))
    }

    /// Returns whether the parent was asked often enough in vain, and never heard.
    fn is_mute(&self, now: Instant) -> bool {
        let was_long_ago = self.asked_at.is_some_and(|at| now.since(at) >= MUTE_FOR);
        self.asked >= MUTE && was_long_ago && self.is_unheard()
    }

    /// Looks for the best parent towards `source`. No way around leads over a child of this node.
    /// Returns the former parent if there is a new one.
    pub(super) fn review(
        &mut self,
        cx: &Context<'_>,
        source: NodeId,
        is_child: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let is_mute = self.is_mute(cx.now);
        if let Some(parent) = self.parent.filter(|_| is_mute || self.asked >= GIVE_UP) {
            self.avoid(parent, cx.now);
            if is_mute {
                self.mute.avoid(parent, cx.now);
            }
        }

        // Compare the parent with the best node by the ETX from the source.
        let paths = cx.topology.paths_from(source, METRIC);
        let own = paths.etx(cx.me)?;
        let best = self.best(cx, &paths, own, is_child)?;
        let Some(parent) = self.parent.filter(|parent| *parent != best) else {
            self.choice.reset();
            if self.parent.is_none() {
                let limit = CHOICE.better * self.cost(cx, &paths, best);
                let planned = self.planned.filter(|p| self.cost(cx, &paths, *p) < limit);
                self.adopt(planned.unwrap_or(best), cx.now);
            }

            return None;
        };

        // A parent that is no nearer to the source than this node might be served by it.
        let is_behind = paths.etx(parent).is_none_or(|etx| etx >= own);
        let is_useless = is_behind || self.is_worthless(cx, parent);
        let is_bad = self.asked >= SILENT || self.is_bad(cx, parent);
        let ways =
            Ways { present: self.cost(cx, &paths, parent), best: self.cost(cx, &paths, best) };
        let leaves = is_useless || self.choice.leaves(ways, is_bad, &CHOICE, cx.now);
        if leaves {
            self.adopt(best, cx.now);
        }
        leaves.then_some(parent)
    }

    fn adopt(&mut self, parent: NodeId, now: Instant) {
        self.parent = Some(parent);
        self.choice.reset();
        self.asked = 0;
        self.polls = 0;
        self.asked_at = None;
        self.report = ReportTimer::default();
        self.report(now);
    }

    /// Returns the neighbour on the shortest path or, if its link is poor or it is avoided, the
    /// best of all that are clearly nearer to the source.
    fn best(
        &self,
        cx: &Context<'_>,
        paths: &Paths,
        own: f64,
        is_child: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        // The shortest path is taken unless its first link is known to be bad.
        let first = paths.parent(cx.me)?;
        let is_out = self.is_worthless(cx, first) || (self.mute.has_any(cx.now) && is_child(first));
        if !self.is_bad(cx, first) && !is_out {
            return Some(first);
        }
        let hears = cx.topology.state(cx.me).map(|state| &state.hears);
        let neighbours = hears.into_iter().flat_map(|hears| hears.keys().copied());
        let is_nearer = |n: NodeId| paths.etx(n).is_some_and(|etx| etx + NEARER <= own);
        let nearer = neighbours.clone().filter(|n| is_nearer(*n));
        let costs = nearer.chain([first]).map(|n| (self.cost(cx, paths, n), n));
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let best = best.filter(|(cost, _)| !is_out || cost.is_finite());
        let around = || self.around(cx, paths, neighbours.filter(|n| *n != first && !is_child(*n)));
        best.map(|(_, best)| best).or_else(around).or(Some(first))
    }

    /// Returns a neighbour to take where all that look nearer are worthless: the parent, or else
    /// the one with the shortest path, best one that does not lead over this node. It may take its
    /// data from a node that serves it, or find another way as this node does.
    fn around(
        &self,
        cx: &Context<'_>,
        paths: &Paths,
        others: impl Iterator<Item = NodeId>,
    ) -> Option<NodeId> {
        let usable = others.filter(|n| self.cost(cx, paths, *n).is_finite());
        let order = |node: NodeId| (self.parent != Some(node), paths.leads_over(node, cx.me));
        usable.min_by(|a, b| {
            let cost = |node: NodeId| self.cost(cx, paths, node);
            order(*a).cmp(&order(*b)).then(cost(*a).total_cmp(&cost(*b))).then(a.cmp(b))
        })
    }

    /// Returns whether a neighbour serves nothing, or false packets.
    fn is_worthless(&self, cx: &Context<'_>, neighbour: NodeId) -> bool {
        self.mute.contains(neighbour, cx.now) || cx.counters.blame.is_avoided(neighbour, cx.now)
    }

    /// Returns the ETX from the source to this node by a parent.
    fn cost(&self, cx: &Context<'_>, paths: &Paths, parent: NodeId) -> f64 {
        if self.is_avoided(cx, parent) {
            return f64::INFINITY;
        }

        // A poor link counts by what it carries, any other by what link state measured in quiet.
        let told = cx.topology.delivery(parent, cx.me);
        let down = self.poor_delivery(cx, parent).unwrap_or(told);
        let up = cx.topology.delivery(cx.me, parent);
        // False packets are found and left out, and take the place of true ones.
        let share = cx.counters.blame.true_share(parent, cx.now);
        let link = cx.topology.airtime(parent, cx.me) / (METRIC.success(down, up) * share);
        paths.etx(parent).map_or(f64::INFINITY, |etx| etx + link)
    }

    fn is_bad(&self, cx: &Context<'_>, parent: NodeId) -> bool {
        let is_false = CHOICE.better * cx.counters.blame.true_share(parent, cx.now) < 1.0;
        is_false || self.is_avoided(cx, parent) || self.poor_delivery(cx, parent).is_some()
    }

    fn is_avoided(&self, cx: &Context<'_>, neighbour: NodeId) -> bool {
        self.avoided.contains(neighbour, cx.now) || cx.counters.blame.is_avoided(neighbour, cx.now)
    }

    /// Returns the share of a neighbour's packets that arrives, if it is far less than link state
    /// tells.
    fn poor_delivery(&self, cx: &Context<'_>, neighbour: NodeId) -> Option<f64> {
        let promised = cx.topology.delivery(neighbour, cx.me);
        let counted = self.links.get(&neighbour)?.heard;
        let others = self.links.iter().filter(|(node, _)| **node != neighbour);
        let of_others: f64 = others.map(|(_, other)| other.heard.counted()).sum();
        counted.poor(promised, of_others < QUIET_BELOW * counted.counted(), &COUNT)
    }

    /// Returns the times at which it has something to do.
    pub(super) fn timeouts(&self) -> impl Iterator<Item = Instant> {
        self.report.due().into_iter().chain(self.ask_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::counters::Counters;
    use ncmesh_engine::rng::stream;
    use ncmesh_engine::storage::MemoryStorage;
    use ncmesh_engine::testing::directed;
    use ncmesh_engine::topology::Topology;
    use std::collections::VecDeque;

    const ME: NodeId = NodeId(4);
    const SOURCE: NodeId = NodeId(1);
    const GOOD: NodeId = NodeId(2);
    const FAIR: NodeId = NodeId(3);

    /// Two ways from node 1 to node 4: over node 2, and over node 3, whose last link delivers
    /// `fair`.
    fn mesh(good: f64, fair: f64) -> Topology {
        let links = [(1, 2, 0.9), (1, 3, 0.9), (2, 4, good), (3, 4, fair)];
        let back = links.map(|(a, b, d)| (b, a, d));
        directed(&[links, back].concat())
    }

    fn review(up: &mut Upstream, topology: &Topology, seconds: u64) -> Option<NodeId> {
        let cx = Context {
            now: Instant::default() + Duration::from_secs(seconds),
            me: ME,
            epoch: 1,
            mtu: 1500,
            at: At::ONLY,
            topology,
            rng: &mut stream(1, ME, "upstream", "test"),
            counters: &mut Counters::default(),
            events: &mut VecDeque::new(),
            storage: &mut MemoryStorage::default(),
        };
        up.review(&cx, SOURCE, |_| false)
    }

    /// Sends all copies of the report at hand.
    fn report(up: &mut Upstream, now: Instant) {
        while up.report.due().is_some() {
            up.note_reported(0.5, Duration::from_millis(1), now);
        }
    }

    #[test]
    fn reports_that_do_not_arrive_go_by_unicast_at_last() {
        let now = Instant::default();
        let mut up = Upstream::default();
        review(&mut up, &mesh(0.9, 0.7), 1);
        for _ in 1..INSISTS {
            report(&mut up, now);
            up.report(now);
        }
        assert!(!up.insists());
        report(&mut up, now);
        assert!(up.insists(), "the parent does not answer");
        up.hear_parent(true, true, now);
        assert!(!up.insists());
        (1..INSISTS).for_each(|_| up.hear_parent(true, true, now));
        assert!(up.insists(), "it asks for what it was told");
    }

    #[test]
    fn the_parent_changes_when_another_is_better_for_some_checks() {
        let mut up = Upstream::default();
        assert_eq!(review(&mut up, &mesh(0.9, 0.7), 1), None);
        assert_eq!(up.parent, Some(GOOD));
        // A little better is not enough, and once is not.
        assert_eq!((2..20).find_map(|s| review(&mut up, &mesh(0.7, 0.75), s)), None);
        assert_eq!(review(&mut up, &mesh(0.4, 0.9), 20), None);
        assert_eq!(review(&mut up, &mesh(0.7, 0.75), 21), None);
        let left = (22..30).map(|s| review(&mut up, &mesh(0.4, 0.9), s));
        assert_eq!(left.collect::<Vec<_>>()[..3], [None, None, Some(GOOD)]);
        assert_eq!(up.parent, Some(FAIR));
    }

    #[test]
    fn a_silent_parent_is_left_at_once_if_another_is_better_and_at_last_in_any_case() {
        let mut up = Upstream::default();
        review(&mut up, &mesh(0.9, 0.7), 1);
        let ask = |up: &mut Upstream, now: Instant| {
            up.report(now);
            report(up, now);
        };
        let now = Instant::default() + Duration::from_secs(1);
        (0..SILENT).for_each(|_| ask(&mut up, now));
        assert_eq!(review(&mut up, &mesh(0.9, 0.7), 2), None);
        assert_eq!(review(&mut up.clone(), &mesh(0.4, 0.9), 2), Some(GOOD));
        (SILENT..GIVE_UP).for_each(|_| ask(&mut up, now));
        // Node 3 is nearer to the source than this node, if not as near as it could be.
        assert_eq!(review(&mut up, &mesh(0.9, 0.7), 3), Some(GOOD));
        assert_eq!(up.parent, Some(FAIR));
    }

    #[test]
    fn a_link_that_carries_far_less_than_told_counts_by_what_it_carries() {
        let mut up = Upstream::default();
        let mesh = mesh(0.9, 0.8);
        review(&mut up, &mesh, 1);
        // Every tenth packet of the parent arrives.
        let frame = |number| HeardFrame { number, port: Port::FIRST, at: Instant::default() };
        (1..=20).for_each(|n| up.count(GOOD, frame(10 * n), 0.9));
        assert_eq!(review(&mut up, &mesh, 2), Some(GOOD));
        assert_eq!(up.parent, Some(FAIR));
    }

    #[test]
    fn data_that_is_not_wanted_is_answered_and_silence_asked_about() {
        let mut up = Upstream::default();
        let now = Instant::default() + Duration::from_secs(1);
        review(&mut up, &mesh(0.9, 0.7), 1);
        assert_eq!(up.reports_to(now, At::ONLY), Some(GOOD));
        report(&mut up, now);
        assert_eq!(up.reports_to(now + Duration::from_secs(9), At::ONLY), None);
        up.hear_parent(false, true, now);
        assert!(!up.take_question(now + QUIET / 2) && up.take_question(now + QUIET));
        assert!(!up.take_question(now + QUIET));
        up.report(now + QUIET);
        assert_eq!(up.reports_to(now + QUIET, At::ONLY), Some(GOOD));
        report(&mut up, now);
        let later = now + Duration::from_secs(1);
        up.hear_parent(false, false, later);
        assert_eq!(up.reports_to(later, At::ONLY), Some(GOOD));
    }

    #[test]
    fn frames_of_two_ports_are_counted_apart() {
        let mut up = Upstream::default();
        let second = Port::new(1).unwrap();
        for n in 1..=200 {
            // The ways change now and then, and nothing is lost.
            let port = if n % 10 < 5 { Port::FIRST } else { second };
            let number = if port == second { 7000 + n } else { n };
            up.count(GOOD, HeardFrame { number, port, at: Instant::default() }, 0.9);
        }
        assert!(up.links[&GOOD].heard.value() > 0.95, "{:?}", up.links[&GOOD].heard);
    }
}
