//! Roll-outs with bad luck, on one virtual clock: 30 % of the messages get lost, links of the tree
//! are cut, nodes and operator lose power, files are torn, disks are full, clocks jump, hooks
//! refuse or never end. In half of the runs a member lies, in some another operator has a release
//! of the same version, and in some the operator's node goes for good.

use super::common::*;
use core::time::Duration;
use ncmesh_fleet::rollout::{
    Action, Exit, Facts, Lacks, Link, Member, Node, Number, Phase, Rollout, Row, SavedMember,
    Settings, SignedOrder, Stage, Standing, Step, Why,
};
use ncmesh_fleet::{Digests, Head, Image, Known, Manifest, Release, ReleaseId, Trust};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const MODELS: [&str; 2] = ["m", "n"];
/// Longest time that a run may take.
const PATIENCE: Duration = s(12_000);
/// Releases of version 1.1, by the first words of their images.
const OURS: &str = "image of 1.1";
const RIVAL: &str = "other image of 1.1";

/// Returns a signed release with an image for each model.
fn release(of: &str) -> Manifest {
    let image = |model: &&str| {
        let (size, digests) = Digests::read(contents(of, model).as_bytes()).unwrap();
        Image { model: (*model).into(), file: format!("{model}.bin"), size, digests }
    };
    let head = Head {
        name: "town".into(),
        version: "1.1".parse().unwrap(),
        channel: "stable".into(),
        replaces: Vec::new(),
    };
    let images = MODELS.iter().map(image).collect();
    let mut manifest = Manifest::new(Release::new(head, images).unwrap());
    manifest.sign(&key(SIGNER)).unwrap();
    manifest
}

fn contents(of: &str, model: &str) -> String {
    format!("{of} for {model}")
}

/// Bad luck of a node that is the same for its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    EndlessCheck,
    AsksForTime,
    RefusesToInstall,
    StaysDead,
    BootsTheOldImage,
    NeverRestarts,
    NeverGoesBack,
}

impl Fault {
    fn drawn(number: u32) -> Self {
        match number % 60 {
            0 => Self::EndlessCheck,
            1 => Self::AsksForTime,
            2 => Self::RefusesToInstall,
            3 => Self::StaysDead,
            4 => Self::BootsTheOldImage,
            5 => Self::NeverRestarts,
            6 => Self::NeverGoesBack,
            _ => Self::None,
        }
    }
}

/// A router with two slots for images and a file.
struct Router {
    node: u16,
    /// Next node on the way to the operator's.
    parent: u16,
    model: &'static str,
    member: Option<Member>,
    saved: String,
    /// How far its clock is ahead of the world's. Another number after each start.
    ahead: Duration,
    /// Image that runs.
    runs: String,
    staged: Option<Vec<u8>>,
    /// Ends of its hooks and transfers, and when they come.
    events: Vec<(Duration, Event)>,
    back_at: Option<Duration>,
    /// Until when its link to its parent is down.
    cut_until: Duration,
    full_until: Duration,
    fault: Fault,
    /// Images of version 1.1 that it has installed.
    installed: BTreeSet<String>,
}

#[derive(Clone)]
enum Event {
    /// A manifest comes, once a node that has it can be reached.
    Manifest(ReleaseId),
    /// A false manifest comes.
    FalseManifest(Manifest),
    /// An image comes, once a node that has it can be reached.
    Image(u64, Image),
    Checked(u64, Image, Exit),
    Refused(u64, Exit),
    Restart(String),
}

/// The operator's machine.
struct Operator {
    rollout: Option<Rollout>,
    saved: String,
    ahead: Duration,
    back_at: Option<Duration>,
    /// When it goes for good, if it does.
    gone_at: Option<Duration>,
    rolls_back: bool,
}

struct World {
    rng: ChaCha8Rng,
    now: Duration,
    routers: BTreeMap<u16, Router>,
    operator: Operator,
    releases: Vec<Manifest>,
    has_liar: bool,
    has_rival: bool,
    seen: Vec<SignedOrder>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let count = 3 + (rng.next_u32() % 6) as u16;
        let nodes: Vec<u16> = (1..=count).collect();
        let routers = nodes.iter().map(|node| {
            let parent = 1 + (rng.next_u32() % u32::from((*node - 1).max(1))) as u16;
            let router = Router {
                node: *node,
                parent,
                model: MODELS[rng.next_u32() as usize % 2],
                member: None,
                saved: serde_json::to_string(&SavedMember::default()).unwrap(),
                ahead: s(0),
                runs: OLD.into(),
                staged: None,
                events: Vec::new(),
                back_at: Some(s(u64::from(rng.next_u32() % 200))),
                cut_until: s(0),
                full_until: s(u64::from(rng.next_u32() % 4 / 3) * 150),
                fault: Fault::drawn(rng.next_u32()),
                installed: BTreeSet::new(),
            };
            (*node, router)
        });
        let routers = routers.collect();

        let releases = vec![release(OURS), release(RIVAL)];
        let operator = key(OPERATOR).public();
        let known = Known::of(&releases[0]);
        let nodes = nodes.into_iter().map(Node);
        // Longer than nodes stay off.
        let patient = Settings { update_within: s(500), confirm_within: s(250), ..settings() };
        let rollout = Rollout::new(s(0), operator, 7, Node(1), known, nodes, patient);
        let operator = Operator {
            saved: serde_json::to_string(&rollout.save(s(0))).unwrap(),
            rollout: Some(rollout),
            ahead: s(0),
            back_at: None,
            gone_at: rng.next_u32().is_multiple_of(8).then(|| s(u64::from(rng.next_u32() % 600))),
            rolls_back: rng.next_u32().is_multiple_of(4),
        };
        let has_liar = rng.next_u32().is_multiple_of(2);
        let has_rival = rng.next_u32().is_multiple_of(8);
        let now = s(0);
        Self { rng, now, routers, operator, releases, has_liar, has_rival, seen: Vec::new() }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }

    fn soon(&mut self, most: u32) -> Duration {
        self.now + s(2 + u64::from(self.rng.next_u32() % most))
    }

    /// Returns a clock's lead that has nothing to do with the one before: it jumps.
    fn jump(&mut self) -> Duration {
        s(u64::from(self.rng.next_u32() % 100_000))
    }

    fn some_node(&mut self) -> u16 {
        1 + (self.rng.next_u32() as usize % self.routers.len()) as u16
    }

    /// Returns whether messages pass between two nodes now: no link between them is cut, and all
    /// nodes between them are on.
    fn are_linked(&self, a: u16, b: u16) -> bool {
        let up = |node: u16| {
            let next = |node: &u16| (*node != 1).then(|| self.routers[node].parent);
            std::iter::successors(Some(node), next).collect::<Vec<_>>()
        };
        let from = up(a);
        let to = up(b);
        let meeting = from.iter().find(|node| to.contains(node));
        let below = |way: &[u16]| {
            let rest = way.iter().take_while(|node| Some(*node) != meeting);
            rest.copied().collect::<Vec<_>>()
        };
        let links = [below(&from), below(&to)].concat();
        let relays = links.iter().chain(meeting).filter(|node| **node != a && **node != b);
        let is_on = |node: &u16| self.routers[node].member.is_some();
        links.iter().all(|node| self.routers[node].cut_until <= self.now)
            && relays.into_iter().all(is_on)
    }

    fn step(&mut self) {
        self.now += s(2);
        let orders = self.operate();
        for node in self.routers.keys().copied().collect::<Vec<_>>() {
            self.live(node);
            for order in &orders {
                if self.are_linked(1, node) {
                    self.tell(node, order);
                }
            }
            self.ask(node);
        }
        if self.has_liar && self.chance(5) {
            self.lie();
        }
        if self.has_rival && self.chance(5) {
            self.compete();
        }
    }

    /// One step of the operator's machine. Returns the orders that are on their way, also those of
    /// the liar.
    fn operate(&mut self) -> Vec<SignedOrder> {
        let now = self.now;
        let cuts = self.chance(1);
        let is_saved = self.chance(70);
        let off = self.soon(100);
        let jump = self.jump();
        let links: Vec<Link> = self.routers.values().map(Router::link).collect();
        let operator = &mut self.operator;
        if operator.gone_at.is_some_and(|at| at <= now) {
            operator.rollout = None;
            operator.back_at = None;
        } else if operator.back_at.is_some_and(|at| at <= now) {
            operator.back_at = None;
            operator.ahead = jump;
            let saved = serde_json::from_str(&operator.saved).unwrap();
            operator.rollout = Some(Rollout::restore(saved, now + jump).unwrap());
        }

        let local = now + operator.ahead;
        let order = operator.rollout.as_mut().and_then(|rollout| {
            rollout.handle_timeout(local);
            if *rollout.stage() == Stage::Pushed {
                // Without any node there is nothing to do, which the roll-out says.
                let _ = rollout.apply(local, &links, s(0), true);
            }
            if *rollout.stage() == Stage::Done && operator.rolls_back {
                rollout.rollback(local);
            }
            let order = rollout.poll_order(local);
            // The state on the disk may be a moment old.
            if is_saved {
                operator.saved = serde_json::to_string(&rollout.save(local)).unwrap();
            }
            order
        });
        if cuts && operator.rollout.take().is_some() {
            operator.back_at = Some(off);
        }

        let order = order.map(|order| order.sign(&key(OPERATOR)));
        let mut orders: Vec<SignedOrder> = order.into_iter().collect();
        self.seen.extend(orders.clone());
        if self.has_liar && self.chance(10) {
            orders.extend(self.false_order());
        }
        orders
    }

    /// Returns an order that must not count: one of a stranger, or an old one.
    fn false_order(&mut self) -> Option<SignedOrder> {
        if self.chance(50) || self.seen.is_empty() {
            let evil = manifest("1.9", "evil", Some(LIAR));
            let number = Number { rollout: 99, sequence: 1 };
            return Some(order(number, Step::Stage, LIAR, &evil));
        }
        let at = self.rng.next_u32() as usize % self.seen.len();
        self.seen.get(at).cloned()
    }

    /// A report in the name of another node.
    fn lie(&mut self) {
        let standings = [
            Standing::Staged,
            Standing::Trial,
            Standing::Kept,
            Standing::Staging,
            Standing::Failed,
        ];
        let node = self.some_node();
        let most = if self.chance(90) { 4 } else { 5 };
        let standing = standings[self.rng.next_u32() as usize % most];
        let local = self.now + self.operator.ahead;
        if let Some(rollout) = &mut self.operator.rollout {
            reports(rollout, local, &[node], standing);
        }
    }

    /// Another operator has a release of the same version, and wants it installed.
    fn compete(&mut self) {
        let node = self.some_node();
        let step = match self.chance(50) {
            true => Step::Stage,
            false => {
                let apply = self.routers.keys().copied().map(Node).collect();
                Step::Apply { apply, keep: BTreeSet::new(), within: s(100) }
            }
        };
        let number = Number { rollout: 50, sequence: self.now.as_secs() };
        let order = order(number, step, OTHER, &self.releases[1]);
        let now = self.now;
        let router = self.routers.get_mut(&node).unwrap();
        if let Some(member) = &mut router.member {
            // Its answer is for the other operator.
            let _ = member.handle_order(now + router.ahead, &order);
        }
        self.act(node);
    }

    fn tell(&mut self, node: u16, order: &SignedOrder) {
        let is_lost = self.chance(30);
        let now = self.now;
        let router = self.routers.get_mut(&node).unwrap();
        let Some(member) = router.member.as_mut().filter(|_| !is_lost) else { return };
        let answer = member.handle_order(now + router.ahead, order);
        self.act(node);

        let local = self.now + self.operator.ahead;
        if let (Ok(report), false) = (answer, self.chance(30))
            && let Some(rollout) = &mut self.operator.rollout
        {
            rollout.handle_report(local, &report);
        }
    }

    /// Asks another node for what this one lacks, as one does whose operator is gone.
    fn ask(&mut self, node: u16) {
        let other = self.some_node();
        let asks = self.chance(20) && other != node && self.are_linked(node, other);
        let lies = self.has_liar && self.chance(20);
        let lacks = self.routers[&node].member.as_ref().and_then(Member::lacks);
        let (Some(lacks), true) = (lacks, asks) else { return };
        let passed = match lies {
            true => self.false_order(),
            false => self.routers[&other].member.as_ref().and_then(Member::order).cloned(),
        };
        let text = match (lacks, &self.routers[&other].member) {
            (Lacks::Manifest(release), Some(member)) => member.manifest(release).map(str::to_owned),
            _ => None,
        };

        let now = self.now;
        let router = self.routers.get_mut(&node).unwrap();
        let Some(member) = &mut router.member else { return };
        if let Some(order) = passed {
            // Only the operator itself is answered.
            let _ = member.handle_passed_order(now + router.ahead, &order);
        }
        if let Some(text) = text {
            member.handle_manifest(text.as_bytes());
        }
        self.act(node);
    }

    /// One step of a router: power, disk and links come and go, and hooks end.
    fn live(&mut self, node: u16) {
        let now = self.now;
        let kills = self.chance(1);
        let tears = self.chance(30);
        let cuts = self.chance(1);
        let off = self.soon(200);
        let jump = self.jump();
        let router = self.routers.get_mut(&node).unwrap();
        if cuts {
            router.cut_until = off;
        }
        if kills && router.member.is_some() {
            router.power_off(Some(off), tears);
        }
        if router.back_at.is_some_and(|at| at <= now) {
            router.boot(now, jump);
        }

        let due = router.events.iter().filter(|(at, _)| *at <= now);
        let due: Vec<Event> = due.map(|(_, event)| event.clone()).collect();
        router.events.retain(|(at, _)| *at > now);
        for event in due {
            self.end(node, event);
        }
        let router = self.routers.get_mut(&node).unwrap();
        if let Some(member) = &mut router.member {
            member.handle_timeout(now + router.ahead);
        }
        self.act(node);
    }

    /// Returns whether a node gets a file now, from the operator or from a node that holds it.
    fn is_served(&self, node: u16, release: ReleaseId, has: impl Fn(&Member) -> bool) -> bool {
        // The operator has the files of its own release only.
        let by_operator =
            self.operator.rollout.is_some() && release == self.releases[0].release().id();
        let mut holders = self
            .routers
            .values()
            .filter(|router| router.node != node && router.member.as_ref().is_some_and(&has));
        by_operator && self.are_linked(1, node)
            || holders.any(|router| self.are_linked(router.node, node))
            // The other operator is everywhere.
            || release == self.releases[1].release().id()
    }

    fn end(&mut self, node: u16, event: Event) {
        let now = self.now;
        let again = self.soon(20);
        let reboot = self.soon(40);
        let is_false = self.has_liar && self.chance(20);
        let is_torn = self.chance(50);
        let (is_there, file) = match &event {
            Event::Manifest(id) => {
                let manifest = self.releases.iter().find(|m| m.release().id() == *id);
                let text = manifest.map(|m| m.to_string().into_bytes());
                (self.is_served(node, *id, |other| other.manifest(*id).is_some()), text)
            }
            Event::Image(_, image) => self.image(node, image),
            _ => (true, None),
        };

        let router = self.routers.get_mut(&node).unwrap();
        let running = router.version();
        let Some(member) = &mut router.member else { return };
        let local = now + router.ahead;
        match event {
            Event::Manifest(id) if is_there && router.full_until > now => {
                member.handle_no_space(local);
                router.events.push((again, Event::Manifest(id)));
            }
            Event::Manifest(id) if !is_there => {
                if member.lacks() == Some(Lacks::Manifest(id)) {
                    router.events.push((again, Event::Manifest(id)));
                }
            }
            Event::Manifest(_) => member.handle_manifest(&file.unwrap_or_default()),
            Event::FalseManifest(evil) => member.handle_manifest(evil.to_string().as_bytes()),
            Event::Image(ticket, _) if router.full_until > now => {
                member.handle_fetched(local, ticket, Err(Why::Space));
            }
            Event::Image(ticket, image) if !is_there => {
                router.events.push((again, Event::Image(ticket, image)));
            }
            Event::Image(ticket, _) => {
                let mut file = file.unwrap_or_default();
                if is_false && is_torn {
                    file.truncate(5);
                } else if is_false {
                    file = b"evil".into();
                }
                router.staged = Some(file);
                member.handle_fetched(local, ticket, Ok(()));
            }
            Event::Checked(ticket, image, exit) => {
                let file = router.staged.clone().unwrap_or_default();
                member.handle_checked(local, ticket, image.is(&file[..]).unwrap(), exit);
            }
            Event::Refused(ticket, exit) => {
                member.handle_applied(local, ticket, exit, running.parse().unwrap());
            }
            Event::Restart(runs) => {
                let is_dead = router.fault == Fault::StaysDead && runs != OLD;
                if runs != OLD {
                    router.installed.insert(runs.clone());
                }
                router.runs = runs;
                router.power_off((!is_dead).then_some(reboot), false);
            }
        }
    }

    /// Returns whether a node gets an image now, and the image.
    fn image(&self, node: u16, image: &Image) -> (bool, Option<Vec<u8>>) {
        let of = |of: &&str| contents(of, &image.model).into_bytes();
        let files: Vec<Vec<u8>> = [OURS, RIVAL].iter().map(of).collect();
        let place = files.iter().position(|file| image.is(&file[..]).unwrap());
        let Some(place) = place else { return (false, None) };
        let release = self.releases[place].release().id();
        let is_there =
            self.is_served(node, release, |other| other.held(release, &image.model).is_some());
        (is_there, files.into_iter().nth(place))
    }

    /// Does what a member asks for.
    fn act(&mut self, node: u16) {
        loop {
            let router = self.routers.get_mut(&node).unwrap();
            let Some(action) = router.member.as_mut().and_then(Member::poll_action) else { return };
            let is_false = self.has_liar && self.chance(20);
            let at = self.soon(20);
            let now = self.now;
            let lies = self.chance(50);
            let router = self.routers.get_mut(&node).unwrap();
            let fault = router.fault;
            let event = match action {
                Action::Save => {
                    let member = router.member.as_ref().unwrap();
                    let saved = member.save(now + router.ahead);
                    router.saved = serde_json::to_string(&saved).unwrap();
                    continue;
                }
                Action::FetchManifest(release) => {
                    if is_false {
                        let evil = manifest("1.1", "evil", lies.then_some(LIAR));
                        router.events.push((at, Event::FalseManifest(evil)));
                    }
                    Event::Manifest(release)
                }
                Action::Fetch(ticket, image) => Event::Image(ticket, image),
                Action::Check(..) if fault == Fault::EndlessCheck => continue,
                Action::Check(ticket, image) => {
                    let code = if fault == Fault::AsksForTime && lies { 75 } else { 0 };
                    Event::Checked(ticket, image, Exit::of(code))
                }
                Action::Apply(ticket, image) => {
                    // The rule that no run may break.
                    let file = router.staged.clone().unwrap();
                    let signed = [OURS, RIVAL].map(|of| contents(of, router.model).into_bytes());
                    assert!(signed.contains(&file), "{file:?}");
                    assert!(image.is(&file[..]).unwrap());
                    match fault {
                        Fault::RefusesToInstall => Event::Refused(ticket, Exit::of(1)),
                        Fault::BootsTheOldImage => Event::Restart(OLD.into()),
                        Fault::NeverRestarts => continue,
                        _ => Event::Restart(String::from_utf8(file).unwrap()),
                    }
                }
                Action::Rollback(_) if fault == Fault::NeverGoesBack => continue,
                Action::Rollback(_) => Event::Restart(OLD.into()),
                Action::Keep => continue,
                Action::Discard => {
                    router.staged = None;
                    continue;
                }
            };
            router.events.push((at, event));
        }
    }

    /// Returns whether something is still to happen.
    fn is_open(&self) -> bool {
        let changes = |router: &Router| {
            let phase = router.member.as_ref().and_then(Member::phase);
            matches!(phase, Some(Phase::Applying | Phase::Trial | Phase::RollingBack(_)))
        };
        let Operator { rollout, back_at, gone_at, .. } = &self.operator;
        let is_led = rollout.as_ref().is_some_and(|rollout| rollout.poll_timeout().is_some());
        // Without an operator a run goes on until all that may still happen has had its time.
        let is_fresh = gone_at.is_some_and(|at| self.now < at + s(1200));
        is_led || back_at.is_some() || is_fresh || self.routers.values().any(changes)
    }

    /// Returns nodes that are neither done nor say why.
    fn silent(&self) -> Vec<u16> {
        let silent = |router: &&Router| {
            let Some(report) = router.member.as_ref().and_then(Member::report) else {
                return false;
            };
            let speaks = report.why.is_some()
                || matches!(report.standing, Standing::Staged | Standing::Kept | Standing::Aborted);
            // A file that is read, or a hook that runs, has a time limit.
            let is_timed = router.member.as_ref().unwrap().poll_timeout().is_some();
            !speaks && !is_timed
        };
        self.routers.values().filter(silent).map(|router| router.node).collect()
    }
}

impl Router {
    fn link(&self) -> Link {
        Link { ends: [Node(self.parent), Node(self.node)], cost: 1.0 }
    }

    fn version(&self) -> &'static str {
        if self.runs == OLD { "1.0" } else { "1.1" }
    }

    fn boot(&mut self, now: Duration, ahead: Duration) {
        self.back_at = None;
        self.ahead = ahead;
        let facts = Facts { model: self.model.into(), ..facts(self.node, self.version()) };
        let trust = Trust::new([key(SIGNER).public()], 1).unwrap();
        let operators = BTreeSet::from([key(OPERATOR).public(), key(OTHER).public()]);
        let saved = serde_json::from_str(&self.saved).unwrap();
        self.member = Some(Member::new(now + ahead, facts, trust, operators, saved));
    }

    fn power_off(&mut self, back_at: Option<Duration>, tears: bool) {
        self.member = None;
        self.events.clear();
        self.back_at = back_at;
        if let (true, Some(file)) = (tears, &mut self.staged) {
            file.truncate(4);
        }
    }
}

#[test]
fn no_run_installs_what_is_not_signed_and_whole_and_each_ends_with_a_reason() {
    let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
    let mut from_holders = 0;
    for seed in 0..100 {
        let mut world = World::new(seed);
        while world.is_open() && world.now < PATIENCE {
            world.step();
        }
        let says = world.operator.rollout.as_ref().map(Rollout::waits_for);
        assert!(world.now < PATIENCE, "seed {seed} hangs: {says:?}");

        // Two images of one version never run on one node.
        for router in world.routers.values() {
            assert!(router.installed.len() <= 1, "seed {seed}: {:?}", router.installed);
        }
        assert_eq!(world.silent(), [0; 0], "seed {seed}");

        let Some(rollout) = &world.operator.rollout else {
            let has = |router: &&Router| router.staged.is_some();
            from_holders += world.routers.values().filter(has).count();
            *ends.entry("without an operator").or_default() += 1;
            continue;
        };
        let end = match rollout.stage() {
            Stage::Done => "done",
            Stage::RolledBack => "rolled back",
            Stage::Stopped(_) => "stopped",
            other => panic!("seed {seed}: {other:?}, {says:?}"),
        };
        *ends.entry(end).or_default() += 1;
        assert!(!says.unwrap().is_empty());
        if world.has_liar {
            continue;
        }

        // The operator knows why a node is not updated.
        for (node, Row { standing, why, .. }) in rollout.rows() {
            let needs = matches!(
                standing,
                Some(Standing::Refused | Standing::Failed | Standing::RolledBack)
            );
            assert!(!needs || why.is_some(), "seed {seed}: node {node:?} {standing:?}");
        }
        let mut updated = rollout.batches().iter().flatten();
        let runs = |of: &str, node: &Node| {
            let router = &world.routers[&node.0];
            router.runs == contents(of, router.model)
        };
        match rollout.stage() {
            Stage::Done => assert!(updated.all(|node| runs(OURS, node)), "seed {seed}"),
            Stage::RolledBack => assert!(!updated.any(|node| runs(OURS, node)), "seed {seed}"),
            _ => {}
        }
    }
    // The runs are of all kinds, or they would show little.
    assert!(ends.len() == 4 && ends.values().all(|count| *count >= 3), "{ends:?}");
    assert!(from_holders > 0);
}
