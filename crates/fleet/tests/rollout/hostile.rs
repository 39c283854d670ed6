//! Bad input: what others send, what disks return, and clocks that jump.

use super::common::*;
use core::time::Duration;
use ncmesh_fleet::Manifest;
use ncmesh_fleet::rollout::{
    Action, Dropped, Facts, Link, Member, Node, Number, Phase, Rollout, SavedMember, SignedOrder,
    Stage, Standing, Step, Stop,
};
use std::collections::BTreeSet;

fn stage(of: u8, rollout: u64, manifest: &Manifest) -> SignedOrder {
    order(Number { rollout, sequence: 1 }, Step::Stage, of, manifest)
}

/// Returns why a member does not take the release of its roll-out.
fn reason(member: &Member) -> String {
    let report = member.report().unwrap();
    assert_eq!(report.standing, Standing::Refused, "{report:?}");
    report.why.unwrap().to_string()
}

/// Returns a member that has been told to stage this release, with its manifest.
fn told(mut member: Member, of: u8, rollout: u64, manifest: &Manifest) -> Member {
    member.handle_order(s(0), &stage(of, rollout, manifest)).unwrap();
    member.handle_manifest(manifest.to_string().as_bytes());
    member
}

#[test]
fn one_signature_too_few_is_waited_out_also_over_a_restart() {
    let trust = || ncmesh_fleet::Trust::new([SIGNER, 9].map(|of| key(of).public()), 2).unwrap();
    let operators = BTreeSet::from([key(OPERATOR).public()]);
    let start = |saved| Member::new(s(0), facts(5, "1.0"), trust(), operators.clone(), saved);
    let mut new = manifest("1.1", NEW, Some(SIGNER));
    let mut member = told(start(SavedMember::default()), OPERATOR, 7, &new);
    assert_eq!(member.phase(), Some(&Phase::Wanting));
    let why = member.report().unwrap().why.unwrap().to_string();
    assert_eq!(why, "1 of the 2 signatures that are needed");

    // The one key twice is one key.
    assert!(
        new.sign(&key(SIGNER)).is_err() || {
            member.handle_manifest(new.to_string().as_bytes());
            member.phase() == Some(&Phase::Wanting)
        }
    );
    let mut member =
        start(serde_json::from_value(serde_json::to_value(member.save(s(0))).unwrap()).unwrap());
    new.sign(&key(9)).unwrap();
    member.handle_manifest(new.to_string().as_bytes());
    assert_eq!(member.phase(), Some(&Phase::Fetching(None)));
}

#[test]
fn an_older_release_is_refused_also_if_the_state_is_all_that_knows_the_newer_one() {
    // It has kept 1.1, and its version file is gone back to 1.0 by hand.
    let mut kept = staged();
    kept.handle_order(s(3), &apply(2, &[])).unwrap();
    let check = ticket(&mut kept);
    kept.handle_checked(s(4), check, true, ncmesh_fleet::rollout::Exit::Done);
    let mut kept = restarted(&kept, s(9), "1.1");
    kept.handle_order(s(1), &apply(3, &[5])).unwrap();
    let old = manifest("1.0.5", "older", Some(SIGNER));
    let replayed = told(restarted(&kept, s(9), "1.0"), OPERATOR, 8, &old);
    assert_eq!(reason(&replayed), "version 1.0.5 is older than 1.1");

    // The operator may say so, and no member can.
    let mut allowed = restarted(&kept, s(9), "1.0");
    let mut order = stage(OPERATOR, 8, &old);
    order.order.may_downgrade = true;
    assert_eq!(allowed.handle_order(s(0), &order), Err(Dropped::Signature));
    let order = order.order.sign(&key(OPERATOR));
    allowed.handle_order(s(0), &order).unwrap();
    allowed.handle_manifest(old.to_string().as_bytes());
    assert_eq!(allowed.phase(), Some(&Phase::Fetching(None)));
}

#[test]
fn a_model_without_an_image_is_refused_and_holds_up_no_other() {
    let facts = Facts { model: "other".into(), ..facts(6, "1.0") };
    let trust = ncmesh_fleet::Trust::new([key(SIGNER).public()], 1).unwrap();
    let operators = BTreeSet::from([key(OPERATOR).public()]);
    let member = Member::new(s(0), facts, trust, operators, SavedMember::default());
    let new = manifest("1.1", NEW, Some(SIGNER));
    let mut member = told(member, OPERATOR, 7, &new);
    assert!(reason(&member).contains("other"), "{}", reason(&member));
    assert!(actions(&mut member).iter().all(|action| !matches!(action, Action::Fetch(..))));

    let mut rollout = rollout(&[5, 6]);
    reports(&mut rollout, s(1), &[5], Standing::Staged);
    rollout.handle_report(s(1), &member.report().unwrap());
    assert_eq!(rollout.waits_for(), "waits for the operator; missing: 6");
    rollout.apply(s(2), &[], s(0), true).unwrap();
    assert_eq!(rollout.batches(), [[Node(5)]]);
}

#[test]
fn of_two_images_under_one_version_the_second_is_refused() {
    let other = manifest("1.1", "another image of 1.1", Some(SIGNER));
    // The first operator is silent for an hour, and the second has an image of its own.
    let mut member = staged();
    let second = stage(OTHER, 3, &other);
    member.handle_order(s(3601), &second).unwrap();
    member.handle_manifest(other.to_string().as_bytes());
    let why = reason(&member);
    assert!(why.contains("1.1"), "{why}");
    assert!(actions(&mut member).iter().all(|action| !matches!(action, Action::Fetch(..))));
}

#[test]
fn ten_thousand_releases_leave_one_job_and_one_number_behind() {
    // A member announces releases: it is no operator, and passes on what it likes.
    let mut member = staged();
    let before = serde_json::to_string(&member.save(s(0))).unwrap().len();
    let evil = manifest("9.9", "evil", Some(LIAR));
    for number in 0..10_000 {
        let false_order = stage(LIAR, number, &evil);
        assert_eq!(member.handle_order(s(1), &false_order), Err(Dropped::Stranger));
        assert_eq!(member.handle_passed_order(s(1), &false_order), Err(Dropped::Stranger));
    }
    member.handle_manifest(evil.to_string().as_bytes());
    assert_eq!(actions(&mut member), []);

    // An operator's key that fell into wrong hands: each order replaces the one before.
    for number in 8..108 {
        let release = manifest(&format!("2.{number}"), "evil", Some(SIGNER));
        member = told(member, OPERATOR, number, &release);
    }
    let after = serde_json::to_string(&member.save(s(0))).unwrap().len();
    assert!(after < before + 500, "{before} bytes grew to {after}");
}

#[test]
fn a_clock_that_jumps_between_two_starts_neither_ends_nor_lengthens_a_trial() {
    let mut member = staged();
    member.handle_order(s(10), &apply(2, &[])).unwrap();
    let check = ticket(&mut member);
    member.handle_checked(s(11), check, true, ncmesh_fleet::rollout::Exit::Done);
    let saved = member.save(s(40));
    for start in [s(0), s(1_000_000_000), Duration::MAX - s(2000)] {
        let saved = serde_json::from_value(serde_json::to_value(&saved).unwrap()).unwrap();
        let mut member = self::member(start, 5, "1.1", saved);
        assert_eq!(member.poll_timeout(), Some(start + s(100)));
        member.handle_timeout(start + s(99));
        assert_eq!(member.phase(), Some(&Phase::Trial), "{start:?}");
        member.handle_timeout(start + s(100));
        assert!(matches!(member.phase(), Some(Phase::RollingBack(_))), "{start:?}");
    }

    // The operator's clock: time that is left is saved, not a time of day.
    let mut rollout = rollout(&[5]);
    reports(&mut rollout, s(1), &[5], Standing::Staged);
    rollout.apply(s(2), &[], s(0), false).unwrap();
    let saved = serde_json::to_string(&rollout.save(s(102))).unwrap();
    let start = s(1_000_000_000);
    let mut later = Rollout::restore(serde_json::from_str(&saved).unwrap(), start).unwrap();
    later.handle_timeout(start + s(99));
    assert_eq!(later.stage(), &Stage::Applying(0));
    later.handle_timeout(start + s(100));
    assert_eq!(later.stage(), &Stage::Stopped(Stop::NotBack(vec![Node(5)])));
}

#[test]
fn saved_states_that_were_torn_or_edited_lead_to_no_installation() {
    let mut member = staged();
    member.handle_order(s(3), &apply(2, &[])).unwrap();
    let text = serde_json::to_string(&member.save(s(3))).unwrap();

    // The manifest in the state has lost its signatures: the job is forgotten.
    let (signed, _) = text.split_once("---").unwrap();
    let (_, rest) = text.rsplit_once("\\n\"").unwrap();
    let unsigned = format!("{signed}---\\n\"{rest}");
    let saved: SavedMember = serde_json::from_str(&unsigned).unwrap();
    let mut member = self::member(s(0), 5, "1.0", saved);
    assert_eq!(member.phase(), None);
    assert_eq!(actions(&mut member), []);

    // A state that says that all is staged while the file is torn: it is read before it runs.
    let saved: SavedMember = serde_json::from_str(&text).unwrap();
    let mut member = self::member(s(0), 5, "1.0", saved);
    member.handle_order(s(4), &apply(4, &[])).unwrap();
    let check = ticket(&mut member);
    member.handle_checked(s(5), check, false, ncmesh_fleet::rollout::Exit::Done);
    assert!(actions(&mut member).iter().all(|action| !matches!(action, Action::Apply(..))));

    // An operator's state with a batch that is not there, or a node that nobody knows.
    let line = Link { ends: [Node(1), Node(5)], cost: 1.0 };
    let mut rollout = rollout(&[1, 5]);
    reports(&mut rollout, s(1), &[1, 5], Standing::Staged);
    rollout.apply(s(2), &[line], s(0), false).unwrap();
    let text = serde_json::to_string(&rollout.save(s(2))).unwrap();
    let edited = text.replace("{\"applying\":0}", "{\"applying\":7}");
    assert_ne!(edited, text);
    assert!(Rollout::restore(serde_json::from_str(&edited).unwrap(), s(0)).is_none());
    let edited = text.replace("\"batches\":[[5", "\"batches\":[[77");
    assert_ne!(edited, text);
    assert!(Rollout::restore(serde_json::from_str(&edited).unwrap(), s(0)).is_none());
}
