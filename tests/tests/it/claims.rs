//! A member that claims the ends of transfers in the names of others, or takes their ids. No single
//! claim ends a transfer, makes its source report success, or costs a receiver what it has.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{ReceiverState, Refusal, Stage};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::trust::TrustMode;
use ncmesh_tests::{contents, has, links, mesh, settled};
use ncmesh_wire::frame::SIGNED;
use ncmesh_wire::identity::Signature;
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, Sealer, ServiceId, Versions, Writer};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Kinds of the frames of file schemes, and offsets in an announcement's body.
const ANNOUNCE: u8 = 0;
const ACK: u8 = 2;
const EPOCH: usize = 6;
const NUMBER: usize = 14;
const PHASE: usize = 18;
const ROOT: usize = 30;
/// Node that the member writes as. It is not in the mesh.
const MEMBER: NodeId = NodeId(77);
const LEN: usize = 600_000;

/// Every file scheme.
fn schemes() -> impl Iterator<Item = &'static str> {
    registry().of(ServiceKind::File).map(|e| e.name)
}

fn service(scheme: &str) -> ServiceId {
    registry().entries().find(|e| e.name == scheme).unwrap().id
}

/// Announcements of a mesh, as sent.
struct Tap {
    cipher: Cipher,
    last: Option<Vec<u8>>,
    signature: Option<Signature>,
}

impl Observer for Tap {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            let mut scratch = Vec::new();
            let opened = self.cipher.open(frame, &mut scratch);
            let is_file =
                |id| registry().by_id(id).is_some_and(|e| e.service() == ServiceKind::File);
            if let Ok(o) = opened
                && is_file(o.service)
                && o.kind == ANNOUNCE
                && o.header.sender != MEMBER
            {
                self.last = Some(o.body.to_vec());
                self.signature = o.signature;
            }
        }
        Ok(())
    }
}

/// A member with a radio beside every node.
struct Member {
    tap: Rc<RefCell<Tap>>,
    sealer: Sealer,
}

impl Member {
    fn new(s: &mut Simulation) -> Self {
        let tap = Tap { cipher: s.config().cipher(), last: None, signature: None };
        let tap = Rc::new(RefCell::new(tap));
        s.observe(Box::new(Rc::clone(&tap)));
        s.trust_all();
        Self { tap, sealer: Sealer::new(s.config().cipher(), MEMBER, Salt([1; 16])) }
    }

    /// Says a statement under the signature of the announcement that was heard last.
    fn say_signed(&mut self, s: &mut Simulation, at: usize, service: ServiceId, body: &[u8]) {
        let signature = self.tap.borrow().signature.expect("announcements are signed");
        let body = [body, &signature.0].concat();
        self.say(s, at, service, ANNOUNCE | SIGNED, &body);
    }

    fn say(&mut self, s: &mut Simulation, at: usize, service: ServiceId, kind: u8, body: &[u8]) {
        let mut frame = Vec::new();
        Sealer::begin(&mut frame, service, kind);
        frame.extend_from_slice(body);
        self.sealer.seal(&mut frame, Versions::OWN.newest);
        s.inject(at, &frame);
    }

    /// Returns the announcement that was heard last, with a version that leads by `lead`.
    fn announcement(&self, lead: u32) -> Vec<u8> {
        let mut body = self.tap.borrow().last.clone().expect("an announcement was heard");
        let number = u32::from_be_bytes(body[NUMBER..NUMBER + 4].try_into().unwrap());
        body[NUMBER..NUMBER + 4].copy_from_slice(&number.saturating_add(lead).to_be_bytes());
        body
    }

    /// Says to the source, node 0, that a receiver ended in `state`.
    fn claim(&mut self, s: &mut Simulation, scheme: &str, flow: FlowId, claim: Claim) {
        let mut body = Vec::new();
        let mut w = Writer::new(&mut body);
        w.node(node_id(0)).flow(flow).node(node_id(claim.of)).u64(claim.epoch).u32(claim.number);
        w.u8(claim.state.code()).u32(u32::MAX);
        self.say(s, 0, service(scheme), ACK, &body);
    }
}

/// An end that is claimed of a receiver.
#[derive(Clone, Copy)]
struct Claim {
    of: usize,
    state: ReceiverState,
    epoch: u64,
    number: u32,
}

/// A line of three nodes: source, relay, receiver.
fn line(seed: u64) -> (Simulation, Member) {
    line_that_trusts(TrustMode::Key, seed)
}

fn line_that_trusts(trust: TrustMode, seed: u64) -> (Simulation, Member) {
    let mesh = mesh(links(3, &[(0, 1, 0.1), (1, 2, 0.1)]), seed);
    let mut s = settled(SimulationConfig { trust, ..mesh });
    let member = Member::new(&mut s);
    (s, member)
}

fn stage(s: &Simulation, node: usize, flow: FlowId) -> Option<Stage> {
    let transfers = s.host(node).stack().unwrap().transfers();
    transfers.into_iter().find(|t| t.flow == flow).map(|t| t.stage)
}

/// Begins a transfer to the last node and runs until that has some of it.
fn begun(s: &mut Simulation, scheme: &'static str) -> FlowId {
    let last = s.len() - 1;
    let flow = s.send_file(scheme, 0, Some(&[last]), contents(LEN)).unwrap();
    let end = s.now() + Duration::from_secs(60);
    let some = |s: &Simulation| {
        let transfers = s.host(last).stack().unwrap().transfers();
        transfers.iter().any(|t| t.flow == flow && t.bytes > 60_000)
    };
    assert!(s.run_until(end, some), "{scheme}: nothing arrives");
    assert!(!has(s, last, flow), "{scheme}: it is over already");
    flow
}

/// Asserts that the last node gets the file, that the source does not report the end before, and
/// that it does then.
fn assert_arrives(s: &mut Simulation, scheme: &str, flow: FlowId, about: &str) {
    let last = s.len() - 1;
    let end = s.now() + Duration::from_secs(240);
    while !has(s, last, flow) {
        s.run_for(Duration::from_millis(50));
        assert!(s.now() < end, "{scheme}, {about}: it does not arrive");
        let stage = stage(s, 0, flow);
        assert!(
            stage == Some(Stage::Open) || has(s, last, flow),
            "{scheme}, {about}: the source says {stage:?} too early"
        );
    }
    assert_eq!(s.host(last).storage().received(flow), contents(LEN), "{scheme}, {about}");
    let is_over = |s: &Simulation| stage(s, 0, flow) == Some(Stage::Complete);
    assert!(s.run_until(s.now() + Duration::from_secs(60), is_over), "{scheme}, {about}: no end");
}

#[test]
fn an_end_that_is_claimed_of_a_receiver_ends_nothing() {
    let refused = ReceiverState::Refused(Refusal::NotAllowed);
    for scheme in schemes() {
        for (state, ahead) in [
            (ReceiverState::Complete, false),
            (ReceiverState::Complete, true),
            (refused, false),
            (refused, true),
        ] {
            let (mut s, mut member) = line(1);
            let flow = begun(&mut s, scheme);
            let epoch = if ahead { u64::MAX } else { s.host(2).stack().unwrap().epoch() };
            let number = if ahead { u32::MAX } else { 5000 };
            member.claim(&mut s, scheme, flow, Claim { of: 2, state, epoch, number });
            assert_arrives(&mut s, scheme, flow, &format!("{state:?} ahead {ahead}"));
        }
    }
}

#[test]
fn an_end_that_is_claimed_of_the_source_ends_nothing() {
    for scheme in schemes() {
        for (phase, lead, at) in
            [(1, 1, 2), (2, 1, 2), (2, 5000, 1), (1, u32::MAX, 2), (2, u32::MAX, 0)]
        {
            let (mut s, mut member) = line(2);
            let flow = begun(&mut s, scheme);
            let mut body = member.announcement(lead);
            body[PHASE] = phase;
            member.say(&mut s, at, service(scheme), ANNOUNCE, &body);
            assert_arrives(&mut s, scheme, flow, &format!("phase {phase} by {lead} at {at}"));
            // A version that the source is about to use is overtaken by it.
            let is_told = s.host(0).stack().unwrap().is_impersonated();
            assert!(is_told || lead == 1, "{scheme}: nothing is said");
        }
    }
}

#[test]
fn an_epoch_that_the_source_never_had_is_not_believed() {
    for scheme in schemes() {
        let (mut s, mut member) = line(3);
        let flow = begun(&mut s, scheme);
        let mut body = member.announcement(1);
        body[EPOCH..NUMBER].copy_from_slice(&u64::MAX.to_be_bytes());
        body[PHASE] = 2;
        for at in 0..3 {
            member.say(&mut s, at, service(scheme), ANNOUNCE, &body);
        }
        assert_arrives(&mut s, scheme, flow, "epoch from afar");
    }
}

#[test]
fn a_false_root_replaces_no_transfer() {
    for scheme in schemes() {
        let (mut s, mut member) = line(4);
        let flow = begun(&mut s, scheme);
        let mut body = member.announcement(1000);
        body[ROOT] ^= 1;
        for at in 0..3 {
            member.say(&mut s, at, service(scheme), ANNOUNCE, &body);
        }
        assert_arrives(&mut s, scheme, flow, "false root");
    }
}

/// The member is faster than the source: the receiver hears of the false file first.
#[test]
fn a_false_root_that_comes_first_does_not_stay() {
    for scheme in schemes() {
        let (mut s, mut member) = line(5);
        s.set_loss(1, 2, 1.0).unwrap();
        let flow = s.send_file(scheme, 0, Some(&[2]), contents(LEN)).unwrap();
        s.run_for(Duration::from_secs(1));
        let mut body = member.announcement(1000);
        body[ROOT] ^= 1;
        member.say(&mut s, 2, service(scheme), ANNOUNCE, &body);
        s.run_for(Duration::from_millis(100));
        s.set_loss(1, 2, 0.1).unwrap();
        assert_arrives(&mut s, scheme, flow, "false root first");
    }
}

#[test]
fn a_transfer_keeps_its_service() {
    let schemes: Vec<_> = schemes().collect();
    for (at, scheme) in schemes.iter().enumerate() {
        let other = schemes[(at + 1) % schemes.len()];
        let (mut s, mut member) = line(6);
        let flow = begun(&mut s, scheme);
        for phase in [0, 1, 2] {
            let mut body = member.announcement(1000 + u32::from(phase));
            body[ROOT] ^= 1;
            body[PHASE] = phase;
            for node in 0..3 {
                member.say(&mut s, node, service(other), ANNOUNCE, &body);
            }
            s.run_for(Duration::from_millis(100));
        }
        assert_arrives(&mut s, scheme, flow, &format!("under {other}"));
    }
}

/// The id is taken under another service before the source announces it.
#[test]
fn a_service_that_comes_first_does_not_stay() {
    for (scheme, other) in [("cascade", "pacifier"), ("more", "cascade")] {
        let (mut s, mut member) = line(7);
        s.set_loss(1, 2, 1.0).unwrap();
        let flow = s.send_file(scheme, 0, Some(&[2]), contents(LEN)).unwrap();
        s.run_for(Duration::from_secs(1));
        let body = member.announcement(1000);
        member.say(&mut s, 2, service(other), ANNOUNCE, &body);
        s.run_for(Duration::from_millis(100));
        s.set_loss(1, 2, 0.1).unwrap();
        assert_arrives(&mut s, scheme, flow, &format!("{other} first"));
    }
}

#[test]
fn a_receiver_that_was_busy_is_asked_again() {
    for scheme in schemes() {
        let (mut s, mut member) = line(8);
        let flow = s.send_file(scheme, 0, Some(&[2]), contents(1000)).unwrap();
        s.run_for(Duration::from_secs(10));
        assert!(has(&s, 2, flow), "{scheme}");
        let mut template = member.announcement(1);
        template[PHASE] = 0;
        // More than are received at once, and fewer than announcements are kept.
        for other in 0..100_u32 {
            let mut body = template.clone();
            body[..2].copy_from_slice(&200_u16.to_be_bytes());
            body[2..6].copy_from_slice(&other.to_be_bytes());
            member.say(&mut s, 2, service(scheme), ANNOUNCE, &body);
        }
        s.run_for(Duration::from_millis(100));
        let flow = s.send_file(scheme, 0, Some(&[2]), contents(LEN)).unwrap();
        s.run_for(Duration::from_secs(3));
        assert_arrives(&mut s, scheme, flow, "busy");
    }
}

/// Ends and files that a member claims in the names of nodes with identities are not even disputed.
#[test]
fn with_identities_no_claim_in_the_name_of_another_node_is_read() {
    let untrusted = |s: &Simulation, node: usize| {
        s.host(node).stack().unwrap().counters().dropped(DropReason::Untrusted)
    };
    let refused = ReceiverState::Refused(Refusal::NotAllowed);
    for trust in [TrustMode::FirstUse, TrustMode::Network] {
        for scheme in schemes() {
            let (mut s, mut member) = line_that_trusts(trust, 9);
            let flow = begun(&mut s, scheme);
            let before: Vec<u64> = (0..3).map(|node| untrusted(&s, node)).collect();

            for state in [ReceiverState::Complete, refused] {
                let epoch = s.host(2).stack().unwrap().epoch();
                let claim = Claim { of: 2, state, epoch, number: 5000 };
                member.claim(&mut s, scheme, flow, claim);
            }
            let mut lies = 0;
            for (lead, phase, root) in [(1, 1, 0), (2, 2, 0), (5000, 2, 0), (1000, 0, 1)] {
                let mut body = member.announcement(lead);
                body[PHASE] = phase;
                body[ROOT] ^= root;
                for at in 0..3 {
                    member.say(&mut s, at, service(scheme), ANNOUNCE, &body);
                    member.say_signed(&mut s, at, service(scheme), &body);
                }
                lies += 2;
            }

            let dropped: Vec<u64> = (0..3).map(|node| untrusted(&s, node) - before[node]).collect();
            assert_eq!(dropped, [lies + 2, lies, lies], "{trust:?}, {scheme}");
            assert_eq!(stage(&s, 0, flow), Some(Stage::Open), "{trust:?}, {scheme}");
            assert_arrives(&mut s, scheme, flow, &format!("{trust:?}"));
            let is_told = s.host(0).stack().unwrap().is_impersonated();
            assert!(!is_told, "{trust:?}, {scheme}: lies are answered");
        }
    }
}

/// A signature is of one statement, under one service.
#[test]
fn with_identities_a_signature_fits_no_other_service() {
    let (mut s, mut member) = line_that_trusts(TrustMode::FirstUse, 10);
    begun(&mut s, "cascade");
    let body = member.announcement(0);
    let dropped =
        |s: &Simulation| s.host(1).stack().unwrap().counters().dropped(DropReason::Untrusted);
    let before = dropped(&s);
    member.say_signed(&mut s, 1, service("cascade"), &body);
    assert_eq!(dropped(&s), before);
    member.say_signed(&mut s, 1, service("pacifier"), &body);
    assert_eq!(dropped(&s), before + 1);
}
