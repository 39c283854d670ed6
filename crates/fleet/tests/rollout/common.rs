//! Keys, releases, orders and nodes of the tests.

use core::time::Duration;
use ncmesh_fleet::rollout::{
    Action, Batch, Exit, Facts, Member, Node, Number, Order, Phase, Report, Rollout, SavedMember,
    Settings, SignedOrder, Standing, Step,
};
use ncmesh_fleet::{Digests, Head, Image, Known, Manifest, Release, Trust, Version};
use ncmesh_wire::identity::SecretKey;
use std::collections::BTreeSet;

pub(super) const OLD: &str = "image of 1.0";
pub(super) const NEW: &str = "image of 1.1";
/// Keys of the operator, of another one, of the release's signer, and of a liar.
pub(super) const OPERATOR: u8 = 1;
pub(super) const OTHER: u8 = 2;
pub(super) const SIGNER: u8 = 3;
pub(super) const LIAR: u8 = 4;

pub(super) fn key(seed: u8) -> SecretKey {
    SecretKey::new(&[seed; 32].into())
}

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn manifest(version: &str, contents: &str, signer: Option<u8>) -> Manifest {
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

pub(super) fn facts(node: u16, running: &str) -> Facts {
    Facts {
        node: Node(node),
        model: "m".into(),
        name: "town".into(),
        channel: "stable".into(),
        running: running.parse().unwrap(),
    }
}

pub(super) fn member(now: Duration, node: u16, running: &str, saved: SavedMember) -> Member {
    let trust = Trust::new([key(SIGNER).public()], 1).unwrap();
    let operators = BTreeSet::from([key(OPERATOR).public(), key(OTHER).public()]);
    Member::new(now, facts(node, running), trust, operators, saved)
}

pub(super) fn settings() -> Settings {
    Settings {
        stage_within: s(300),
        update_within: s(200),
        confirm_within: s(100),
        batch: Batch::Nodes(2),
        ..Settings::default()
    }
}

pub(super) fn rollout(nodes: &[u16]) -> Rollout {
    let release = Known::of(&manifest("1.1", NEW, Some(SIGNER)));
    let operator = key(OPERATOR).public();
    let nodes = nodes.iter().copied().map(Node);
    Rollout::new(s(0), operator, 7, Node(1), release, nodes, settings())
}

pub(super) fn order(number: Number, step: Step, of: u8, manifest: &Manifest) -> SignedOrder {
    let order = Order {
        operator: key(of).public(),
        number,
        release: manifest.release().id(),
        may_downgrade: false,
        step,
    };
    order.sign(&key(of))
}

pub(super) fn actions(member: &mut Member) -> Vec<Action> {
    std::iter::from_fn(|| member.poll_action()).filter(|a| *a != Action::Save).collect()
}

/// Returns the ticket of the only action.
pub(super) fn ticket(member: &mut Member) -> u64 {
    let actions = actions(member);
    match actions[..] {
        [Action::Fetch(t, _) | Action::Check(t, _) | Action::Apply(t, _) | Action::Rollback(t)] => {
            t
        }
        _ => panic!("{actions:?}"),
    }
}

/// Returns a member that has staged 1.1.
pub(super) fn staged() -> Member {
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

pub(super) fn apply(sequence: u64, keep: &[u16]) -> SignedOrder {
    let apply = BTreeSet::from([Node(5)]);
    let keep = keep.iter().copied().map(Node).collect();
    let step = Step::Apply { apply, keep, within: s(100) };
    let new = manifest("1.1", NEW, Some(SIGNER));
    order(Number { rollout: 7, sequence }, step, OPERATOR, &new)
}

pub(super) fn restarted(member: &Member, now: Duration, running: &str) -> Member {
    let saved = serde_json::to_string(&member.save(now)).unwrap();
    // The clock begins again.
    self::member(s(0), 5, running, serde_json::from_str(&saved).unwrap())
}

pub(super) fn reports(rollout: &mut Rollout, now: Duration, nodes: &[u16], standing: Standing) {
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
