//! Roll-outs over a mesh that loses messages, in which nodes lose power and one lies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use core::time::Duration;
use ncmesh_fleet::rollout::{
    Action, ApplyError, Batch, Dropped, Exit, Facts, Lacks, Link, Member, Node, Number, Order,
    Phase, Report, Rollout, SavedMember, Settings, SignedOrder, Stage, Standing, Step, Stop, Why,
};
use ncmesh_fleet::{Digests, Head, Image, Known, Manifest, Release, ReleaseId, Trust, Version};
use ncmesh_wire::identity::SecretKey;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const OLD: &str = "image of 1.0";
const NEW: &str = "image of 1.1";
/// Keys of the operator, of another one, of the release's signer, and of a liar.
const OPERATOR: u8 = 1;
const OTHER: u8 = 2;
const SIGNER: u8 = 3;
const LIAR: u8 = 4;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&[seed; 32].into())
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn manifest(version: &str, contents: &str, signer: Option<u8>) -> Manifest {
    let (size, digests) = Digests::read(contents.as_bytes()).unwrap();
    let image = Image { model: "m".into(), file: "m.bin".into(), size, digests };
    let head = Head {
        name: "town".into(),
        version: version.parse().unwrap(),
        channel: "stable".into(),
        replaces: Vec::new(),
    };
    let mut manifest = Manifest::new(Release::new(head, vec![image]).unwrap());
    if let Some(signer) = signer {
        manifest.sign(&key(signer)).unwrap();
    }
    manifest
}

fn facts(node: u16, running: &str) -> Facts {
    Facts {
        node: Node(node),
        model: "m".into(),
        name: "town".into(),
        channel: "stable".into(),
        running: running.parse().unwrap(),
    }
}

fn member(now: Duration, node: u16, running: &str, saved: SavedMember) -> Member {
    let trust = Trust::new([key(SIGNER).public()], 1).unwrap();
    let operators = BTreeSet::from([key(OPERATOR).public(), key(OTHER).public()]);
    Member::new(now, facts(node, running), trust, operators, saved)
}

fn settings() -> Settings {
    Settings {
        stage_within: s(300),
        update_within: s(200),
        confirm_within: s(100),
        batch: Batch::Nodes(2),
        ..Settings::default()
    }
}

fn rollout(nodes: &[u16]) -> Rollout {
    let release = Known::of(&manifest("1.1", NEW, Some(SIGNER)));
    let operator = key(OPERATOR).public();
    let nodes = nodes.iter().copied().map(Node);
    Rollout::new(s(0), operator, 7, Node(1), release, nodes, settings())
}

fn order(number: Number, step: Step, of: u8, manifest: &Manifest) -> SignedOrder {
    let order = Order {
        operator: key(of).public(),
        number,
        release: manifest.release().id(),
        may_downgrade: false,
        step,
    };
    order.sign(&key(of))
}

fn actions(member: &mut Member) -> Vec<Action> {
    std::iter::from_fn(|| member.poll_action()).filter(|a| *a != Action::Save).collect()
}

/// Returns the ticket of the only action.
fn ticket(member: &mut Member) -> u64 {
    let actions = actions(member);
    match actions[..] {
        [Action::Fetch(t, _) | Action::Check(t, _) | Action::Apply(t, _) | Action::Rollback(t)] => {
            t
        }
        _ => panic!("{actions:?}"),
    }
}

/// Returns a member that has staged 1.1.
fn staged() -> Member {
    let mut member = member(s(0), 5, "1.0", SavedMember::default());
    let new = manifest("1.1", NEW, Some(SIGNER));
    let first = order(Number { rollout: 7, sequence: 1 }, Step::Stage, OPERATOR, &new);
    member.handle_order(s(0), &first).unwrap();
    assert_eq!(actions(&mut member), [Action::FetchManifest(new.release().id())]);
    member.handle_manifest(new.to_string().as_bytes());
    let fetch = ticket(&mut member);
    member.handle_fetched(s(1), fetch, Ok(()));
    let check = ticket(&mut member);
    member.handle_checked(s(2), check, true, Exit::Done);
    assert_eq!(member.phase(), Some(&Phase::Staged(None)));
    member
}

fn apply(sequence: u64, keep: &[u16]) -> SignedOrder {
    let apply = BTreeSet::from([Node(5)]);
    let keep = keep.iter().copied().map(Node).collect();
    let step = Step::Apply { apply, keep, within: s(100) };
    let new = manifest("1.1", NEW, Some(SIGNER));
    order(Number { rollout: 7, sequence }, step, OPERATOR, &new)
}

fn restarted(member: &Member, now: Duration, running: &str) -> Member {
    let saved = serde_json::to_string(&member.save(now)).unwrap();
    // The clock begins again.
    self::member(s(0), 5, running, serde_json::from_str(&saved).unwrap())
}

#[test]
fn an_order_that_is_passed_on_stages_and_ends_but_installs_nothing() {
    let new = manifest("1.1", NEW, Some(SIGNER));
    let release = new.release().id();
    let mut late = member(s(0), 5, "1.0", SavedMember::default());
    assert_eq!(late.lacks(), Some(Lacks::Order));

    // A node that hears of the roll-out by another one begins to stage.
    let report = late.handle_passed_order(s(0), &apply(2, &[])).unwrap();
    assert_eq!(report.standing, Standing::Staging);
    assert_eq!(late.lacks(), Some(Lacks::Manifest(release)));
    late.handle_manifest(new.to_string().as_bytes());
    assert_eq!(late.lacks(), Some(Lacks::Image(release)));

    let mut staged = staged();
    staged.handle_passed_order(s(9), &apply(2, &[])).unwrap();
    assert_eq!(staged.phase(), Some(&Phase::Staged(None)));
    // A false one is none, and an older one neither.
    let forged = order(Number { rollout: 9, sequence: 1 }, Step::Abort, LIAR, &new);
    assert_eq!(staged.handle_passed_order(s(9), &forged), Err(Dropped::Stranger));
    assert_eq!(staged.handle_passed_order(s(9), &apply(1, &[])), Err(Dropped::Old));
    // The same order of the operator itself installs.
    staged.handle_order(s(9), &apply(2, &[])).unwrap();
    assert_eq!(staged.phase(), Some(&Phase::Rechecking));

    let mut other = self::staged();
    let abort = order(Number { rollout: 7, sequence: 4 }, Step::Abort, OPERATOR, &new);
    other.handle_passed_order(s(9), &abort).unwrap();
    assert_eq!(other.phase(), Some(&Phase::Aborted));
}

#[test]
fn a_member_says_what_it_holds_and_keeps_the_order_over_a_restart() {
    let release = manifest("1.1", NEW, Some(SIGNER)).release().id();
    let member = staged();
    let restarted = restarted(&member, s(9), "1.0");
    for member in [&member, &restarted] {
        assert_eq!(member.held(release, "m").unwrap().file, "m.bin");
        assert_eq!(member.held(release, "other"), None);
        assert_eq!(member.held(ReleaseId([0; 32]), "m"), None);
        assert!(member.manifest(release).unwrap().contains("m.bin"));
        assert_eq!(member.manifest(ReleaseId([0; 32])), None);
        assert!(member.order().unwrap().is_signed());
        assert_eq!(member.lacks(), None);
    }
}

#[test]
fn a_node_without_a_fleet_holds_nothing_up() {
    let mut rollout = rollout(&[1, 5]);
    rollout.handle_no_fleet(s(1), Node(5));
    assert_eq!(rollout.stage(), &Stage::Pushing);
    reports(&mut rollout, s(1), &[1], Standing::Staged);
    assert_eq!(rollout.stage(), &Stage::Pushed);
    assert_eq!(rollout.waits_for(), "staged everywhere; waits for the operator");
    rollout.apply(s(2), &[], s(0), false).unwrap();
    assert_eq!(rollout.batches(), [[Node(1)]]);
}

#[test]
fn a_member_stages_installs_and_keeps() {
    let mut member = staged();
    member.handle_order(s(10), &apply(2, &[])).unwrap();
    let check = ticket(&mut member);
    member.handle_checked(s(11), check, true, Exit::Done);
    ticket(&mut member);

    let mut member = restarted(&member, s(40), "1.1");
    assert_eq!(member.phase(), Some(&Phase::Trial));
    let report = member.handle_order(s(10), &apply(3, &[])).unwrap();
    assert_eq!((report.standing, report.running.as_str()), (Standing::Trial, "1.1"));
    let report = member.handle_order(s(20), &apply(4, &[5])).unwrap();
    assert_eq!(report.standing, Standing::Kept);
    assert_eq!(actions(&mut member), [Action::Keep]);
    assert_eq!(member.poll_timeout(), None);
}

#[test]
fn a_member_that_hears_nothing_goes_back() {
    let mut member = staged();
    member.handle_order(s(10), &apply(2, &[])).unwrap();
    let check = ticket(&mut member);
    member.handle_checked(s(11), check, true, Exit::Done);
    let mut member = restarted(&member, s(40), "1.1");
    assert_eq!(member.poll_timeout(), Some(s(100)));
    member.handle_timeout(s(99));
    assert_eq!(member.phase(), Some(&Phase::Trial));
    member.handle_timeout(s(100));
    ticket(&mut member);
    let member = restarted(&member, s(120), "1.0");
    assert_eq!(member.phase(), Some(&Phase::RolledBack(Why::Unconfirmed)));
}

#[test]
fn a_power_cut_between_staging_and_installing_is_noticed() {
    let member = staged();
    let mut member = restarted(&member, s(9), "1.0");
    member.handle_order(s(10), &apply(2, &[])).unwrap();
    let check = ticket(&mut member);
    // The power cut tore the file.
    member.handle_checked(s(11), check, false, Exit::Done);
    assert_eq!(member.phase(), Some(&Phase::Fetching(Some(Why::Damaged))));
    assert_eq!(actions(&mut member), [Action::Discard]);
    // The image is there again after a pause.
    member.handle_timeout(member.poll_timeout().unwrap());
    let fetch = ticket(&mut member);
    member.handle_fetched(s(80), fetch, Ok(()));
    let late = check;
    member.handle_checked(s(81), late, true, Exit::Done);
    assert_eq!(member.phase(), Some(&Phase::Checking));
}

#[test]
fn hooks_refuse_ask_for_time_or_never_end() {
    let begun = || {
        let mut member = staged();
        member.handle_order(s(10), &apply(2, &[])).unwrap();
        let check = ticket(&mut member);
        (member, check)
    };
    let (mut member, check) = begun();
    member.handle_checked(s(11), check, true, Exit::of(3));
    assert_eq!(member.phase(), Some(&Phase::Failed(Why::Hook(3))));

    let (mut member, check) = begun();
    member.handle_checked(s(11), check, true, Exit::of(75));
    assert_eq!(member.phase(), Some(&Phase::Staged(Some(Why::Later))));
    for _ in 0..5 {
        let now = member.poll_timeout().unwrap();
        member.handle_timeout(now);
        let check = ticket(&mut member);
        member.handle_checked(now, check, true, Exit::Later);
    }
    assert_eq!(member.phase(), Some(&Phase::Failed(Why::Later)));

    let (mut member, check) = begun();
    member.handle_timeout(member.poll_timeout().unwrap());
    assert_eq!(member.phase(), Some(&Phase::Failed(Why::Endless)));
    member.handle_checked(s(900), check, true, Exit::Done);
    assert_eq!(actions(&mut member), []);
}

#[test]
fn orders_of_strangers_and_old_ones_change_nothing() {
    let mut member = staged();
    let new = manifest("1.1", NEW, Some(SIGNER));
    let stranger = order(Number { rollout: 9, sequence: 1 }, Step::Abort, LIAR, &new);
    assert_eq!(member.handle_order(s(3), &stranger), Err(Dropped::Stranger));
    let mut forged = stranger;
    forged.order.operator = key(OPERATOR).public();
    assert_eq!(member.handle_order(s(3), &forged), Err(Dropped::Signature));
    let old = order(Number { rollout: 6, sequence: 99 }, Step::Abort, OPERATOR, &new);
    assert_eq!(member.handle_order(s(3), &old), Err(Dropped::Old));
    assert_eq!(member.phase(), Some(&Phase::Staged(None)));
}

#[test]
fn manifests_that_do_not_count_are_waited_out() {
    let mut member = member(s(0), 5, "1.0", SavedMember::default());
    let new = manifest("1.1", NEW, Some(SIGNER));
    let first = order(Number { rollout: 7, sequence: 1 }, Step::Stage, OPERATOR, &new);
    member.handle_order(s(0), &first).unwrap();
    for wrong in [
        manifest("1.1", NEW, None),
        manifest("1.1", NEW, Some(LIAR)),
        manifest("1.2", NEW, Some(SIGNER)),
    ] {
        member.handle_manifest(wrong.to_string().as_bytes());
        assert_eq!(member.phase(), Some(&Phase::Wanting));
    }
    let why = member.report().unwrap().why.unwrap();
    assert_eq!(why.to_string(), "0 of the 1 signatures that are needed");
    member.handle_manifest(new.to_string().as_bytes());
    assert_eq!(member.phase(), Some(&Phase::Fetching(None)));

    // A replay: the operator's order for a version that has been overtaken.
    let old = manifest("1.0.5", "older", Some(SIGNER));
    let second = order(Number { rollout: 8, sequence: 1 }, Step::Stage, OPERATOR, &old);
    member.handle_order(s(0), &second).unwrap();
    member.handle_manifest(old.to_string().as_bytes());
    let report = member.handle_order(s(1), &second).unwrap();
    assert_eq!(report.why.unwrap().to_string(), "version 1.0.5 is older than 1.1");
}

#[test]
fn two_operators_are_noticed() {
    let mut member = staged();
    let other = manifest("1.2", "image of 1.2", Some(SIGNER));
    let second = order(Number { rollout: 3, sequence: 1 }, Step::Stage, OTHER, &other);
    let report = member.handle_order(s(20), &second).unwrap();
    let operator = key(OPERATOR).public().to_string();
    assert_eq!(report.why, Some(Why::Busy { operator, rollout: 7 }));
    assert_eq!(member.phase(), Some(&Phase::Staged(None)));

    let mut rollout = rollout(&[5]);
    let report = Report { operator: key(OPERATOR).public(), rollout: 7, ..report };
    rollout.handle_report(s(1), &report);
    assert!(matches!(rollout.stage(), Stage::Stopped(Stop::Other(Node(5), _))));
    assert!(rollout.waits_for().contains("is under way there"), "{}", rollout.waits_for());

    // The first operator is silent for an hour.
    let report = member.handle_order(s(3601), &second).unwrap();
    assert_eq!(report.standing, Standing::Staging);
}

fn reports(rollout: &mut Rollout, now: Duration, nodes: &[u16], standing: Standing) {
    for node in nodes {
        let report = Report {
            node: Node(*node),
            operator: key(OPERATOR).public(),
            rollout: 7,
            standing,
            why: None,
            running: "1.0".parse::<Version>().unwrap(),
        };
        rollout.handle_report(now, &report);
    }
}

#[test]
fn a_roll_out_goes_batch_by_batch_and_survives_restarts() {
    let line = |a, b| Link { ends: [Node(a), Node(b)], cost: 1.0 };
    let links = [line(1, 2), line(2, 3), line(2, 4)];
    let mut rollout = rollout(&[1, 2, 3, 4]);
    reports(&mut rollout, s(1), &[1, 2, 3], Standing::Staged);
    assert_eq!(rollout.apply(s(2), &links, s(0), false), Err(ApplyError::Missing(vec![Node(4)])));
    assert_eq!(rollout.waits_for(), "staging at nodes 4");
    reports(&mut rollout, s(1), &[4], Standing::Staged);
    assert_eq!(*rollout.stage(), Stage::Pushed);
    rollout.apply(s(2), &links, s(0), false).unwrap();
    assert_eq!(rollout.batches(), [vec![Node(3), Node(4)], vec![Node(2)], vec![Node(1)]]);

    let before = rollout.poll_order(s(2)).unwrap().number;
    let saved = serde_json::to_string(&rollout.save(s(52))).unwrap();
    let mut rollout = Rollout::restore(serde_json::from_str(&saved).unwrap(), s(0)).unwrap();
    assert!(rollout.poll_order(s(0)).unwrap().number > before);
    reports(&mut rollout, s(1), &[3, 4], Standing::Trial);
    let Step::Apply { keep, .. } = rollout.poll_order(s(1)).unwrap().step else { panic!() };
    assert_eq!(keep.len(), 2);
    // A node whose turn has not come is not kept.
    reports(&mut rollout, s(1), &[2], Standing::Trial);
    reports(&mut rollout, s(1), &[3, 4], Standing::Kept);
    assert_eq!(*rollout.stage(), Stage::Applying(1));
    let Step::Apply { keep, .. } = rollout.poll_order(s(1)).unwrap().step else { panic!() };
    assert_eq!(keep.len(), 2);
    rollout.handle_timeout(s(201));
    assert_eq!(*rollout.stage(), Stage::Stopped(Stop::NotBack(vec![Node(2)])));
    assert_eq!(rollout.poll_order(s(201)).unwrap().step, Step::Abort);
}

#[test]
fn a_kept_image_is_told_to_the_platform_again_after_a_restart() {
    let mut member = staged();
    member.handle_order(s(10), &apply(2, &[])).unwrap();
    let check = ticket(&mut member);
    member.handle_checked(s(11), check, true, Exit::Done);
    let mut member = restarted(&member, s(40), "1.1");
    member.handle_order(s(20), &apply(4, &[5])).unwrap();
    // The power goes before the hook has run.
    let mut member = restarted(&member, s(21), "1.1");
    assert_eq!(actions(&mut member), [Action::Keep]);
    let report = member.report().unwrap();
    assert_eq!((report.standing, report.rollout), (Standing::Kept, 7));
    assert_eq!(member.version().unwrap().as_str(), "1.1");
}

#[test]
fn an_operator_confirms_by_hand_and_takes_late_nodes_in() {
    let mut rollout = rollout(&[2]);
    rollout.adjust(Settings { by_hand: true, ..settings() });
    reports(&mut rollout, s(1), &[2], Standing::Staged);
    assert_eq!(*rollout.stage(), Stage::Pushed);
    rollout.include(s(2), Node(3));
    assert_eq!(rollout.waits_for(), "waits for the operator; missing: 3");
    reports(&mut rollout, s(3), &[3], Standing::Staged);
    rollout.apply(s(4), &[], s(0), false).unwrap();
    rollout.include(s(5), Node(4));
    assert_eq!(rollout.rows().len(), 2);

    // A trial lasts until the operator says so.
    let keeps = |rollout: &mut Rollout, at| match rollout.poll_order(at).unwrap().step {
        Step::Apply { keep, .. } => keep.len(),
        other => panic!("{other:?}"),
    };
    reports(&mut rollout, s(6), &[2, 3], Standing::Trial);
    assert_eq!(keeps(&mut rollout, s(20)), 0);
    assert_eq!(rollout.confirm(s(21)), 2);
    assert_eq!(keeps(&mut rollout, s(21)), 2);
    reports(&mut rollout, s(22), &[2, 3], Standing::Kept);
    assert_eq!(*rollout.stage(), Stage::Done);
}

/// A router with two slots for images and a file.
struct Router {
    node: u16,
    member: Option<Member>,
    saved: String,
    runs: &'static str,
    staged: Option<Vec<u8>>,
    /// Ends of its hooks and transfers, and when they come.
    events: Vec<(Duration, Event)>,
    back_at: Option<Duration>,
    cut_until: Duration,
    full_until: Duration,
    fault: u32,
}

#[derive(Clone)]
enum Event {
    Manifest(Manifest),
    Fetched(u64, Vec<u8>),
    Full(u64),
    Checked(u64, Image, Exit),
    Refused(u64, Exit),
    Restart(&'static str),
}

struct World {
    rng: ChaCha8Rng,
    now: Duration,
    routers: BTreeMap<u16, Router>,
    rollout: Rollout,
    new: Manifest,
    has_liar: bool,
    seen: Vec<SignedOrder>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let count = 3 + (rng.next_u32() % 4) as u16;
        let nodes: Vec<u16> = (1..=count).collect();
        let routers = nodes.iter().map(|node| {
            let router = Router {
                node: *node,
                member: None,
                saved: serde_json::to_string(&SavedMember::default()).unwrap(),
                runs: OLD,
                staged: None,
                events: Vec::new(),
                back_at: Some(s(u64::from(rng.next_u32() % 200))),
                cut_until: s(0),
                full_until: s(u64::from(rng.next_u32() % 4 / 3) * 150),
                fault: rng.next_u32() % 24,
            };
            (*node, router)
        });
        let routers = routers.collect();
        let new = manifest("1.1", NEW, Some(SIGNER));
        let has_liar = rng.next_u32() % 2 == 0;
        let rollout = rollout(&nodes);
        Self { rng, now: s(0), routers, rollout, new, has_liar, seen: Vec::new() }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }

    fn soon(&mut self, most: u32) -> Duration {
        self.now + s(2 + u64::from(self.rng.next_u32() % most))
    }

    fn step(&mut self) {
        self.now += s(2);
        let now = self.now;
        self.rollout.handle_timeout(now);
        if *self.rollout.stage() == Stage::Pushed {
            // Without any node there is nothing to do, which the roll-out says.
            let line = |a| Link { ends: [Node(1), Node(a)], cost: 1.0 };
            let links: Vec<Link> = self.routers.keys().map(|node| line(*node)).collect();
            let _ = self.rollout.apply(now, &links, s(0), true);
        }
        // The operator's machine loses power, and its clock begins elsewhere for all that it knows.
        if self.chance(1) {
            let saved = serde_json::to_string(&self.rollout.save(now)).unwrap();
            self.rollout = Rollout::restore(serde_json::from_str(&saved).unwrap(), now).unwrap();
        }

        let order = self.rollout.poll_order(now).map(|order| order.sign(&key(OPERATOR)));
        let mut orders: Vec<SignedOrder> = order.into_iter().collect();
        self.seen.extend(orders.clone());
        if self.has_liar && self.chance(10) {
            let evil = manifest("1.9", "evil", Some(LIAR));
            let number = Number { rollout: 99, sequence: 1 };
            orders.push(self::order(number, Step::Stage, LIAR, &evil));
            let at = self.rng.next_u32() as usize % self.seen.len();
            orders.push(self.seen[at].clone());
        }
        for node in self.routers.keys().copied().collect::<Vec<_>>() {
            self.live(node);
            for order in &orders {
                self.tell(node, order);
            }
        }
        if self.has_liar && self.chance(5) {
            self.lie();
        }
    }

    /// A report in somebody's name.
    fn lie(&mut self) {
        let standings = [
            Standing::Staged,
            Standing::Trial,
            Standing::Kept,
            Standing::Staging,
            Standing::Failed,
        ];
        let node = 1 + (self.rng.next_u32() as usize % self.routers.len()) as u16;
        let standing =
            standings[self.rng.next_u32() as usize % if self.chance(90) { 4 } else { 5 }];
        reports(&mut self.rollout, self.now, &[node], standing);
    }

    fn tell(&mut self, node: u16, order: &SignedOrder) {
        let lost = self.chance(30);
        let now = self.now;
        let Some(router) = self.routers.get_mut(&node) else { return };
        if lost || router.cut_until > now {
            return;
        }
        let Some(member) = &mut router.member else { return };
        let answer = member.handle_order(now, order);
        self.act(node);
        if let (Ok(report), false) = (answer, self.chance(30)) {
            self.rollout.handle_report(now, &report);
        }
    }

    /// One step of a router: power, disk and links come and go, and hooks end.
    fn live(&mut self, node: u16) {
        let now = self.now;
        let kills = self.chance(1);
        let tears = self.chance(30);
        let cuts = self.chance(1);
        let off = self.soon(200);
        let router = self.routers.get_mut(&node).unwrap();
        if cuts {
            router.cut_until = off;
        }
        if kills && router.member.is_some() {
            router.power_off(Some(off), tears);
        }
        if router.back_at.is_some_and(|at| at <= now) {
            router.back_at = None;
            let running = if router.runs == NEW { "1.1" } else { "1.0" };
            let saved = serde_json::from_str(&router.saved).unwrap();
            router.member = Some(member(now, router.node, running, saved));
        }
        let due = router.events.iter().filter(|(at, _)| *at <= now);
        let due: Vec<Event> = due.map(|(_, event)| event.clone()).collect();
        router.events.retain(|(at, _)| *at > now);
        for event in due {
            self.end(node, event);
        }
        let router = self.routers.get_mut(&node).unwrap();
        if let Some(member) = &mut router.member {
            member.handle_timeout(now);
        }
        self.act(node);
    }

    fn end(&mut self, node: u16, event: Event) {
        let now = self.now;
        let reboot = self.soon(40);
        let router = self.routers.get_mut(&node).unwrap();
        let Some(member) = &mut router.member else { return };
        match event {
            Event::Manifest(manifest) => member.handle_manifest(manifest.to_string().as_bytes()),
            Event::Full(ticket) => member.handle_fetched(now, ticket, Err(Why::Space)),
            Event::Fetched(ticket, file) => {
                router.staged = Some(file);
                member.handle_fetched(now, ticket, Ok(()));
            }
            Event::Checked(ticket, image, exit) => {
                let file = router.staged.clone().unwrap_or_default();
                member.handle_checked(now, ticket, image.is(&file[..]).unwrap(), exit);
            }
            Event::Refused(ticket, exit) => {
                let running = if router.runs == NEW { "1.1" } else { "1.0" };
                member.handle_applied(now, ticket, exit, running.parse().unwrap());
            }
            Event::Restart(runs) => {
                router.runs = runs;
                // One fault: the node never comes back.
                let is_dead = router.fault == 3 && runs == NEW;
                router.power_off((!is_dead).then_some(reboot), false);
            }
        }
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
                    router.saved = serde_json::to_string(&member.save(now)).unwrap();
                    continue;
                }
                Action::FetchManifest(_) if is_false => {
                    let evil = manifest("1.1", "evil", lies.then_some(LIAR));
                    // The true one comes later.
                    router.events.push((at, Event::Manifest(evil)));
                    Event::Manifest(self.new.clone())
                }
                Action::FetchManifest(_) => Event::Manifest(self.new.clone()),
                Action::Fetch(ticket, _) if router.full_until > now => Event::Full(ticket),
                Action::Fetch(ticket, _) if is_false && lies => {
                    Event::Fetched(ticket, b"evil".into())
                }
                Action::Fetch(ticket, _) if is_false => Event::Fetched(ticket, NEW[..5].into()),
                Action::Fetch(ticket, _) => Event::Fetched(ticket, NEW.into()),
                Action::Check(..) if fault == 0 => continue,
                Action::Check(ticket, image) => {
                    let code = if fault == 1 && lies { 75 } else { 0 };
                    Event::Checked(ticket, image, Exit::of(code))
                }
                Action::Apply(ticket, image) => {
                    // The rule that no run may break.
                    assert_eq!(router.staged.as_deref(), Some(NEW.as_bytes()));
                    assert!(image.is(NEW.as_bytes()).unwrap());
                    match fault {
                        2 => Event::Refused(ticket, Exit::of(1)),
                        4 => Event::Restart(OLD),
                        5 => continue,
                        _ => Event::Restart(NEW),
                    }
                }
                Action::Rollback(_) if fault == 6 => continue,
                Action::Rollback(_) => Event::Restart(OLD),
                Action::Keep => continue,
                Action::Discard => {
                    router.staged = None;
                    continue;
                }
            };
            router.events.push((at, event));
        }
    }
}

impl Router {
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
    for seed in 0..100 {
        let mut world = World::new(seed);
        let undone = |world: &World| {
            let changes = |router: &Router| {
                let phase = router.member.as_ref().and_then(Member::phase);
                matches!(phase, Some(Phase::Applying | Phase::Trial | Phase::RollingBack(_)))
            };
            world.rollout.poll_timeout().is_some() || world.routers.values().any(changes)
        };
        while undone(&world) && world.now < s(6000) {
            world.step();
        }

        let says = world.rollout.waits_for();
        assert!(world.now < s(6000), "seed {seed} hangs: {says}");
        let end = match world.rollout.stage() {
            Stage::Done => "done",
            Stage::Stopped(_) => "stopped",
            other => panic!("seed {seed}: {other:?}, {says}"),
        };
        *ends.entry(end).or_default() += 1;
        assert!(!says.is_empty());
        if *world.rollout.stage() == Stage::Done && !world.has_liar {
            let updated = world.rollout.batches().iter().flatten();
            assert!(updated.clone().all(|node| world.routers[&node.0].runs == NEW), "seed {seed}");
        }
    }
    // The runs are of both kinds, or they would show little.
    assert!(ends.len() == 2 && ends.values().all(|count| *count >= 10), "{ends:?}");
}

#[test]
fn an_update_begins_when_its_time_has_come() {
    let mut rollout = rollout(&[1, 5]);
    reports(&mut rollout, s(1), &[1, 5], Standing::Staged);
    rollout.apply(s(10), &[], s(100), false).unwrap();
    assert_eq!((rollout.stage(), rollout.begins_at()), (&Stage::Scheduled, Some(s(110))));
    assert_eq!(rollout.poll_order(s(10)).unwrap().step, Step::Stage);
    assert_eq!(rollout.apply(s(20), &[], s(0), false), Err(ApplyError::Stage));

    // A restart with another clock keeps the time that is left.
    let saved = serde_json::to_string(&rollout.save(s(40))).unwrap();
    let mut other = Rollout::restore(serde_json::from_str(&saved).unwrap(), s(7)).unwrap();
    assert_eq!(other.begins_at(), Some(s(77)));
    other.handle_timeout(s(76));
    assert_eq!(other.stage(), &Stage::Scheduled);
    other.handle_timeout(s(77));
    assert_eq!(other.stage(), &Stage::Applying(0));
    rollout.abort(s(50));
    assert_eq!(rollout.stage(), &Stage::Stopped(Stop::Operator));
}
