//! Members and operators, step by step.

use super::common::*;
use ncmesh_fleet::ReleaseId;
use ncmesh_fleet::rollout::{
    Action, ApplyError, Dropped, Exit, Lacks, Link, Node, Number, Phase, Report, Rollout,
    SavedMember, Settings, Stage, Standing, Step, Stop, Why,
};

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
fn a_node_without_space_for_the_manifest_says_so_and_wants_it_again() {
    let mut member = member(s(0), 5, "1.0", SavedMember::default());
    let new = manifest("1.1", NEW, Some(SIGNER));
    let first = order(Number { rollout: 7, sequence: 1 }, Step::Stage, OPERATOR, &new);
    member.handle_order(s(0), &first).unwrap();
    assert_eq!(member.report().unwrap().why, Some(Why::Manifest));
    member.handle_no_space(s(1));
    member.handle_no_space(s(30));
    assert_eq!(member.report().unwrap().why, Some(Why::Space));
    assert_eq!((member.lacks(), member.poll_timeout()), (None, Some(s(61))));

    member.handle_timeout(s(61));
    assert_eq!(member.report().unwrap().why, Some(Why::Manifest));
    assert_eq!(member.lacks(), Some(Lacks::Manifest(new.release().id())));
    member.handle_manifest(new.to_string().as_bytes());
    assert_eq!((member.phase(), member.poll_timeout()), (Some(&Phase::Fetching(None)), None));
    // One that has its manifest is told so by its image.
    member.handle_no_space(s(62));
    assert_eq!(member.report().unwrap().why, Some(Why::Image));
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
