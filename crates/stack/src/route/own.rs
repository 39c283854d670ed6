//! Announcements of a node's own links: to which nodes, and when.

use super::Route;
use super::hearer::NO_LINKS;
use super::state::{self, Change, EVERYWHERE, MAX_LINKS};
use ncmesh_engine::time::{Duration, Instant, seconds};
use ncmesh_engine::topology::{LinkState, Links, side_by_side};
use ncmesh_wire::NodeId;

/// Longest pause of a node between two announcements, however much changes.
const MOST_PACE: Duration = Duration::from_secs(4);
/// Time after a start in which all links seem to change.
const SETTLING: Duration = Duration::from_secs(10);
/// Hops that a change too small for the whole mesh goes.
const NEAR: u8 = 3;
/// The same of a change that matters far away, from a node that has told too much lately.
const MIDDLE: u8 = 8;
/// Announcements to the whole mesh that a node may save up.
const MOST_FAR: f64 = 4.0;
/// Announcements of steep changes that a node may make to the whole mesh before it has the credits
/// for them. Told only to nodes nearby, those that are lost would not show in digests: they would
/// be repaired no sooner than the next credit comes.
const MOST_OWED: f64 = 4.0;
/// Nodes that may tell the whole mesh something in a second, together.
const FAR_PER_S: f64 = 10.0;
/// Part of the least usable delivery down to which a link that was announced stays.
const STAYS: f64 = 0.5;
/// Least change of a delivery that matters however poor the link is.
const LEAST_CHANGE: f64 = 0.08;
/// Ratio of two deliveries that matters.
const RATIO: f64 = 2.0;
/// Announcements to nodes nearby after which the whole mesh is told again.
const MOST_STEPS: u32 = 1000;
/// Change of a delivery that the mesh must know at once; so it must if a link appears or vanishes.
const STEEP: f64 = 0.4;
/// How much longer than a way over another neighbour a link may be, and still matter far away.
const DETOUR: f64 = 1.2;

/// Returns the part of an announcement to the whole mesh that a node may make when it starts. It
/// differs from node to node, so that those which start together do not all correct their first
/// measurements at the same time.
pub(super) fn first_credit(node: NodeId) -> f64 {
    // Multiples of the golden ratio are spread evenly (Knuth, volume 3, 6.4).
    f64::from(node.0.wrapping_mul(0x9E37)) / 65536.0
}

impl Route {
    /// Returns the links of this node's own state: all, or the best that fit into a frame. A link
    /// that was announced before is replaced only by one that is better by a change worth
    /// announcing; otherwise links of like worth would come and go.
    pub(super) fn best_that_fit(&self, heard: impl Iterator<Item = (NodeId, f64)>) -> Links {
        let said = self.topology.state(self.me).map(|state| &state.hears);
        let is_said = |node: &NodeId| said.is_some_and(|said| said.contains_key(node));

        // A link that was announced stays while it is nearly usable.
        let least = self.config.min_delivery;
        let enough = |node: &NodeId| if is_said(node) { STAYS * least } else { least };

        let heard = heard.filter(|(node, d)| *d >= enough(node));
        let heard = heard.map(|(node, d)| (node, d.max(least)));
        let worth =
            |(node, d): &(NodeId, f64)| d + if is_said(node) { self.config.change } else { 0.0 };

        // Deliveries are told in quanta, so links are ranked as the mesh will read them.
        let carried = heard.map(|(node, d)| (node, state::delivery(state::quantum(d))));
        let mut heard: Vec<(NodeId, f64)> = carried.filter(|(_, d)| *d > 0.0).collect();
        heard.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.0.cmp(&b.0)));

        // Signature, name and profile take room that links could have.
        let is_signed = self.trust.signs();
        heard.truncate(state::links_that_fit(self.longest, &self.name, &self.profile, is_signed));
        heard.into_iter().collect()
    }

    /// Announces the links of this node if they have changed by enough: to the whole mesh, or to
    /// the nodes nearby. To tell the whole mesh costs a credit. The larger the mesh is, the more
    /// slowly credits come. A few steep changes are told on credit, and a link without which there
    /// is no way to the neighbour is told in any case.
    pub(super) fn announce_if_worth(&mut self, hears: Links, now: Instant) {
        let Some(at) = self.announced_at else {
            return self.announce(hears, EVERYWHERE, true, now);
        };
        let rate = FAR_PER_S / (self.topology.len() as f64).max(FAR_PER_S);
        let free = self.far.0 + rate * now.since(self.far.1).as_secs_f64();
        self.far = (free.min(MOST_FAR), now);

        let since = now.since(at);
        if since < seconds(self.config.min_interval_s) {
            return;
        }

        // Links that have changed by much since the mesh was told, and may be on a shortest path:
        // no way over one other neighbour is clearly shorter. A link that is gone counts however
        // poor it was, or the mesh would never learn of it.
        let far_change = self.config.far_change;
        let changed = changes(&self.base, &hears);
        let changed = changed.filter(|(_, by)| by.matters(far_change) || by.is_gone());
        let changed = changed.map(|(node, by)| (node, by, self.detour(node, &hears)));
        let airtime = |node| self.topology.airtime(node, self.me);
        let is_essential = |(node, by, detour): &(NodeId, Deliveries, f64)| {
            airtime(*node) / by.high() <= DETOUR * detour
        };
        let essential: Vec<(NodeId, Deliveries, f64)> = changed.filter(is_essential).collect();

        let told = self.topology.state(self.me);
        let many_steps = told.is_some_and(|told| self.seq - told.base >= MOST_STEPS);
        let matters_far = !essential.is_empty() || self.is_unlike_told || many_steps;
        let is_bridge =
            essential.iter().any(|(_, by, detour)| by.low() == 0.0 && detour.is_infinite());

        // A fresh change outranks the announcement credit.
        let just_now = changes(told.map_or(&NO_LINKS, |told| &told.hears), &hears);
        let just_now: Vec<Deliveries> = just_now
            .filter(|(_, by)| by.matters(far_change))
            .filter(|(node, _)| essential.iter().any(|(other, ..)| other == node))
            .map(|(_, by)| by)
            .collect();
        let urgent = just_now.iter().any(|by| by.is_steep());

        let settled = now >= self.started + SETTLING;
        if !(urgent && settled) && since < self.pace {
            return;
        }

        // A steep change may overdraw the credit. A bridge is told whatever the credit is.
        let is_steep = settled && essential.iter().any(|(_, by, _)| by.is_steep());
        let least = if is_steep { 1.0 - MOST_OWED } else { 1.0 };
        if matters_far && (self.far.0 >= least || is_bridge) {
            self.far.0 = (self.far.0 - 1.0).max(-MOST_OWED);
            return self.announce(hears, EVERYWHERE, urgent, now);
        }

        // By a change too small for the whole mesh, nodes nearby still choose better paths.
        let change = self.config.change;
        let matters_near =
            told.is_none_or(|told| changes(&told.hears, &hears).any(|(_, by)| by.matters(change)));
        if matters_near && (!just_now.is_empty() || since >= seconds(self.config.near_interval_s)) {
            let scope = if just_now.is_empty() { NEAR } else { MIDDLE };
            self.announce(hears, scope, urgent, now);
        }
    }

    /// Returns the length of the best way from `node` to here over one other neighbour.
    fn detour(&self, node: NodeId, hears: &Links) -> f64 {
        let over = |(via, last): (&NodeId, &f64)| {
            let first = self.topology.airtime(node, *via) / self.topology.delivery(node, *via);
            let last = self.topology.airtime(*via, self.me) / last;
            if *via == node { f64::INFINITY } else { first + last }
        };
        hears.iter().map(over).fold(f64::INFINITY, f64::min)
    }

    fn announce(&mut self, mut hears: Links, scope: u8, urgent: bool, now: Instant) {
        // While changes keep coming, pauses double.
        let least = seconds(self.config.min_interval_s);
        let quiet = self.announced_at.is_none_or(|at| now.since(at) >= 4 * self.pace);
        self.pace = if quiet { least } else { (2 * self.pace).min(MOST_PACE) };
        self.announced_at = Some(now);

        self.seq += 1;
        let before = self.topology.state(self.me).filter(|known| known.version.0 == self.epoch);
        let since = before.map(|known| known.base);
        let whole = core::mem::take(&mut self.is_unlike_told);
        let known = before.map_or(&NO_LINKS, |known| &known.hears);

        // Links that have hardly changed stay as they were told: the frame is shorter.
        for (node, delivery) in &mut hears {
            let is_alike = |told: &&f64| (*told - *delivery).abs() < self.config.change / 2.0;
            *delivery = known.get(node).filter(is_alike).copied().unwrap_or(*delivery);
        }

        let touched = known.keys().chain(hears.keys()).filter(|n| known.get(n) != hears.get(n));
        self.touched.extend(touched.copied().collect::<Vec<_>>());

        // Few touched links are told as a change, which is short; many as a whole state.
        let links = self
            .touched
            .iter()
            .map(|node| (*node, hears.get(node).map_or(0, |delivery| state::quantum(*delivery))));
        let links: Vec<state::Link> = links.collect();

        // The base is the last state told to all: changes are told against it.
        let everywhere = scope == EVERYWHERE;
        let base = if everywhere { self.seq } else { since.unwrap_or(self.seq) };
        if everywhere {
            self.base.clone_from(&hears);
            self.touched.clear();
        }

        let name = self.name.clone();
        let profile = self.profile.clone();
        let state = LinkState { version: (self.epoch, self.seq), base, name, profile, hears };
        let is_signed = self.trust.signs();

        // A change is shorter, but carries no profile, and builds on a state that may be false.
        let short = !whole
            && links.len() <= MAX_LINKS
            && state::change_len(links.len(), is_signed) < state::whole_len(&state, is_signed);
        let change = since.filter(|_| short).map(|since| Change { since, links });

        self.store(self.me, Some(state), now);
        self.sign_own();
        self.spread.announce(self.me, (scope, urgent), change, now);
    }
}

/// The deliveries of a link before and after a change; 0 where it is not there.
#[derive(Clone, Copy, Debug)]
struct Deliveries {
    before: f64,
    after: f64,
}

impl Deliveries {
    fn low(self) -> f64 {
        self.before.min(self.after)
    }

    fn high(self) -> f64 {
        self.before.max(self.after)
    }

    /// Returns whether the link has changed by at least `least`; or, if it is poor, by so much that
    /// it has become another.
    fn matters(self, least: f64) -> bool {
        let change = self.high() - self.low();
        change >= least || (change >= LEAST_CHANGE && self.high() >= RATIO * self.low())
    }

    /// Returns whether the mesh must know at once.
    fn is_steep(self) -> bool {
        self.low() == 0.0 || self.high() - self.low() >= STEEP
    }

    fn is_gone(self) -> bool {
        self.after == 0.0
    }
}

/// Returns the links that differ.
fn changes<'a>(
    before: &'a Links,
    after: &'a Links,
) -> impl Iterator<Item = (NodeId, Deliveries)> + 'a {
    let differing = side_by_side(before, after).filter(|link| link.before != link.after);
    differing.map(|link| {
        let before = link.before.unwrap_or(0.0);
        let after = link.after.unwrap_or(0.0);
        (link.node, Deliveries { before, after })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Origin, RouteConfig};
    use crate::trust::TrustConfig;
    use ncmesh_engine::topology::{Position, Profile};

    const ME: NodeId = NodeId(1);

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    fn origin() -> Origin {
        Origin {
            node: ME,
            epoch: 1,
            name: "n1".into(),
            profile: Profile::default(),
            trust: TrustConfig::Key,
        }
    }

    /// A node of a mesh of 400, a minute after its start, with all its credits spent.
    fn poor() -> Route {
        let mut route = Route::new(RouteConfig::default(), origin(), 1400, at(0));
        for node in 2..=400 {
            let state = LinkState { version: (1, 1), base: 1, ..LinkState::default() };
            route.store(NodeId(node), Some(state), at(1));
        }
        route.announce_if_worth(links(0.9), at(2));
        route.far = (0.0, at(60));
        route
    }

    fn links(delivery: f64) -> Links {
        [(NodeId(2), 0.9), (NodeId(3), delivery)].into_iter().collect()
    }

    /// Returns how many of ten changes of a link to and fro, one a second, go to the whole mesh.
    fn told_everywhere(route: &mut Route, deliveries: [f64; 2]) -> usize {
        let mut told = 0;
        for second in 0..10 {
            let before = route.topology.state(ME).map(|state| state.base);
            route.announce_if_worth(links(deliveries[second % 2]), at(61 + second as u64));
            told += usize::from(route.topology.state(ME).map(|state| state.base) != before);
        }
        told
    }

    #[test]
    fn another_profile_is_told_to_the_whole_mesh_once() {
        let mut route = Route::new(RouteConfig::default(), origin(), 1400, at(0));
        route.announce_if_worth(links(0.9), at(2));
        let profile = Profile { position: Position::plan([1.0, 2.0, 3.0]), ..Profile::default() };
        route.set_profile(profile.clone());
        for second in [20, 40] {
            route.announce_if_worth(links(0.9), at(second));
            let told = route.topology.state(ME).unwrap();
            assert_eq!((told.version.1, told.base, &told.profile), (2, 2, &profile));
        }
        // A change would leave the profile out.
        assert!(route.spread.told(ME).is_some_and(|(_, change)| change.is_none()));
    }

    #[test]
    fn a_few_steep_changes_are_told_to_all_on_credit() {
        assert_eq!(told_everywhere(&mut poor(), [0.3, 0.9]), MOST_OWED as usize);
        assert_eq!(told_everywhere(&mut poor(), [0.65, 0.9]), 0);
        // The node repays its credit before it tells the whole mesh anything else.
        let mut route = poor();
        told_everywhere(&mut route, [0.3, 0.9]);
        route.announce_if_worth(links(0.65), at(100));
        assert!(route.far.0 < -1.0, "{}", route.far.0);
    }
}
