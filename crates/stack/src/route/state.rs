//! Link states on the wire.
//!
//! A state is told whole, or as the links that changed since an earlier version. A change names
//! that version: whoever has it or a later one can apply the change, because it lists every link
//! that was touched since, with its present delivery. Whoever does not asks for the whole state.

use super::profile::{self, SIGNATURE, SIGNATURE_DOC, Signing};
use ncmesh_engine::topology::{LinkState, Links, Profile};
use ncmesh_engine::{Malformed, name};
use ncmesh_wire::identity::{PublicKey, Signature};
use ncmesh_wire::layout::{Charset, Count, Is, Part};
use ncmesh_wire::record::{Named, bits, field, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, record};

/// Scope of a state that every node passes on. Smaller ones count down, and end at 0.
pub(super) const EVERYWHERE: u8 = 63;
/// Length of a whole state without its name and links, bytes.
const WHOLE_LEN: usize = Head::LEN + Whole::LEN + 1;
/// Length of a change without its links, bytes.
const CHANGE_LEN: usize = Head::LEN + Since::LEN + 1;
/// Length of a link, bytes.
const LINK_LEN: usize = ToldLink::LEN;
/// Count of links that announces a profile, or a signature of a change; the true count follows it.
const PROFILE: u8 = u8::MAX;
/// Length of what a signature of a change adds to it, bytes.
const SIGNED_LEN: usize = Signature::LEN + 1;
/// Most links of a state.
pub(super) const MAX_LINKS: usize = PROFILE as usize - 1;

record! {
    /// Front of a state.
    struct Head {
        /// the node that the state is of
        origin: NodeId = field("state.origin", "Origin"),
        byte {
            /// whether all links follow
            whole: bool = bits(0x80, "state.whole", "Whole"),
            /// whether it is passed on at once
            urgent: bool = bits(0x40, "state.urgent", "Urgent"),
            /// how many more times it is passed on; 63 means everywhere
            scope: u8 = bits(EVERYWHERE, "state.scope", "Scope"),
        }
        /// of the version within the epoch
        seq: u32 = field("state.number", "Number"),
        /// how many versions ago the latest one was that goes everywhere
        since_base: u16 = field("state.since_base", "Since base"),
    }
}

record! {
    /// Head of a whole state, before its links and its profile.
    struct Whole<'a> {
        /// of the origin
        epoch: u64 = field("state.epoch", "Epoch"),
        /// of the origin, see below
        name: &'a [u8] = field("state.name", "Name").text(Charset::Any),
    }
}

record! {
    /// Head of a change, before its links.
    struct Since {
        /// of the origin
        epoch_bits: u16 = field("state.epoch_bits", "Epoch, low bits").hex(),
        /// how many versions ago the links began to change that follow
        since: u16 = field("state.since", "Since"),
    }
}

record! {
    /// A link.
    struct ToldLink {
        /// a node that the origin hears
        node: NodeId = field("link.node", "Node"),
        /// share of its frames that arrives at the origin; 0 in a change: not heard any more
        quantum: u8 = field("link.delivery", "Delivery").scaled(255),
    }
}

const COUNT: Named = field("state.count", "Links");
const COUNT_DOC: &str = "how many follow; 255 stands before a profile in a whole state, before a \
                         signature in a change, and their number behind it";

/// A state in a hello.
pub(crate) const STATE: Part = Part::Group {
    name: "state",
    label: "Link state",
    text: "Link state {state.number} of {state.origin}",
    parts: &[
        Part::Include(Head::PARTS),
        Part::When(
            Is("state.whole", 1),
            &[
                Part::Include(Whole::PARTS),
                COUNT.part::<u8>(COUNT_DOC),
                Part::When(
                    Is(COUNT.name, PROFILE as u64),
                    &[
                        Part::Group {
                            name: "profile",
                            label: "Profile",
                            text: "Profile",
                            parts: profile::PARTS,
                        },
                        COUNT.part::<u8>(COUNT_DOC),
                    ],
                ),
            ],
        ),
        Part::When(
            Is("state.whole", 0),
            &[
                Part::Include(Since::PARTS),
                COUNT.part::<u8>(COUNT_DOC),
                Part::When(
                    Is(COUNT.name, PROFILE as u64),
                    &[SIGNATURE.part::<Signature>(SIGNATURE_DOC), COUNT.part::<u8>(COUNT_DOC)],
                ),
            ],
        ),
        Part::Repeat(
            Count::Field(COUNT.name),
            &[group("link", "Link", "Link from {link.node}: {link.delivery}").part::<ToldLink>("")],
        ),
    ],
};

/// A link in a state: neighbour, and delivery in units of 1/255.
pub(super) type Link = (NodeId, u8);

/// A state as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told<'a> {
    pub origin: NodeId,
    /// How many more times it is passed on.
    pub scope: u8,
    /// Whether it is passed on at once, and not with the next hello.
    pub urgent: bool,
    pub seq: u32,
    pub base: u32,
    pub form: Form<'a>,
    /// Signature of the origin, over the whole state.
    pub signature: Option<Signature>,
    /// Key of the origin, if the sender took it to be new.
    pub key: Option<PublicKey>,
    /// The links, not yet parsed.
    links: &'a [u8],
}

/// How much of a state is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    /// All of it.
    Whole { epoch: u64, name: &'a [u8], profile: Profile },
    /// The links that were touched since version `since` of the epoch that ends in these bits.
    Change { epoch_bits: u16, since: u32 },
}

impl<'a> Told<'a> {
    /// Reads the next state.
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let Head { origin, whole, urgent, scope, seq, since_base } = Head::read(r)?;
        // Versions are written as differences to the newest one, since they are close together.
        let base = seq.wrapping_sub(since_base.into());
        let mut signature = None;
        let mut key = None;
        let mut count: u8;

        // The byte behind the head is a number of links, or a mark that a profile precedes it.
        let form = if whole {
            let Whole { epoch, name } = Whole::read(r)?;
            count = COUNT.read(r)?;
            let mut profile = Profile::default();
            if count == PROFILE {
                let signed = profile::read(r)?;
                profile = signed.profile;
                signature = signed.signing.map(|signing| signing.signature);
                key = signed.signing.and_then(|signing| signing.key);
                count = COUNT.read(r)?;
            }
            Form::Whole { epoch, name, profile }
        } else {
            let Since { epoch_bits, since } = Since::read(r)?;
            count = COUNT.read(r)?;
            if count == PROFILE {
                signature = Some(SIGNATURE.read(r)?);
                count = COUNT.read(r)?;
            }
            Form::Change { epoch_bits, since: seq.wrapping_sub(since.into()) }
        };

        // No node could pass on more: the number would be the mark.
        if usize::from(count) > MAX_LINKS {
            return Err(Malformed);
        }
        let links = r.bytes(LINK_LEN * usize::from(count))?;
        Ok(Self { origin, scope, urgent, seq, base, form, signature, key, links })
    }

    /// Returns the links that it tells; a delivery of 0 in a change means that the link is gone.
    pub(super) fn links(&self) -> impl Iterator<Item = Link> + '_ {
        self.links.chunks_exact(LINK_LEN).map(|l| (NodeId(u16::from_be_bytes([l[0], l[1]])), l[2]))
    }

    /// Returns the whole state that it tells, if it does.
    pub(super) fn whole(&self) -> Option<LinkState> {
        let Form::Whole { epoch, name, ref profile } = self.form else { return None };
        let hears = self.links().map(|(node, quantum)| (node, delivery(quantum))).collect();
        let version = (epoch, self.seq);
        let name = name::heard(name);
        let profile = profile.clone();
        Some(LinkState { version, base: self.base, name, profile, hears })
    }

    /// Returns `known` with the change that this tells; `None` if it does not apply to it.
    pub(super) fn applied_to(&self, known: &LinkState) -> Option<LinkState> {
        let Form::Change { epoch_bits, since } = self.form else { return None };
        let (epoch, seq) = known.version;
        if epoch as u16 != epoch_bits || seq < since || seq >= self.seq {
            return None;
        }
        let mut state = known.clone();
        state.version = (epoch, self.seq);
        state.base = self.base;
        apply(&mut state.hears, self.links());
        (state.hears.len() <= MAX_LINKS).then_some(state)
    }
}

/// Changes links; a delivery of 0 removes one.
fn apply(hears: &mut Links, links: impl Iterator<Item = Link>) {
    for (node, quantum) in links {
        if quantum == 0 {
            hears.remove(&node);
        } else {
            hears.insert(node, delivery(quantum));
        }
    }
}

/// Links that were touched since an earlier version, kept to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub since: u32,
    pub links: Vec<Link>,
}

/// Returns the length of a whole state in a frame, without a key, bytes.
pub(super) fn whole_len(state: &LinkState, is_signed: bool) -> usize {
    head_len(&state.name, &state.profile, is_signed) + LINK_LEN * state.hears.len()
}

/// Returns the length of a change in a frame, bytes.
pub(super) fn change_len(links: usize, is_signed: bool) -> usize {
    CHANGE_LEN + LINK_LEN * links + if is_signed { SIGNED_LEN } else { 0 }
}

/// Returns the length of a whole state without its links, bytes.
fn head_len(name: &str, profile: &Profile, is_signed: bool) -> usize {
    let is_told = is_signed || !profile.is_empty();
    let profile_len = if is_told { profile::len(profile, is_signed) + 1 } else { 0 };
    WHOLE_LEN + name.len() + profile_len
}

/// Returns how many links of a node with this name and profile fit into `room` bytes.
pub(super) fn links_that_fit(room: usize, name: &str, profile: &Profile, is_signed: bool) -> usize {
    (room.saturating_sub(head_len(name, profile, is_signed)) / LINK_LEN).min(MAX_LINKS)
}

/// How far a state goes, and whether at once.
pub(super) type Reach = (u8, bool);

/// Returns what the signature of a state is over: the state told whole, without how far it goes,
/// which changes on the way.
pub(super) fn signed_contents(origin: NodeId, state: &LinkState) -> Vec<u8> {
    let mut contents = Vec::new();
    write_whole(&mut contents, origin, (0, false), state, None);
    contents
}

/// Appends a state, whole.
pub(super) fn write_whole(
    out: &mut Vec<u8>,
    origin: NodeId,
    reach: Reach,
    state: &LinkState,
    signing: Option<Signing>,
) {
    let (epoch, seq) = state.version;
    let (scope, urgent) = reach;
    let since_base = back(seq, state.base);
    let mut w = Writer::new(out);
    Head { origin, whole: true, urgent, scope, seq, since_base }.put(&mut w);
    Whole { epoch, name: state.name.as_bytes() }.put(&mut w);

    // The mark stands where the number of links would. Without profile and signature it is saved.
    if signing.is_some() || !state.profile.is_empty() {
        w.u8(PROFILE);
        profile::write(&mut w, &state.profile, signing);
    }

    w.u8(state.hears.len() as u8);
    for (node, delivery) in &state.hears {
        ToldLink { node: *node, quantum: quantum(*delivery) }.put(&mut w);
    }
}

/// Appends a change that leads to `state`.
pub(super) fn write_change(
    out: &mut Vec<u8>,
    origin: NodeId,
    reach: Reach,
    state: &LinkState,
    change: &Change,
    signature: Option<&Signature>,
) {
    let (epoch, seq) = state.version;
    let (scope, urgent) = reach;
    let since_base = back(seq, state.base);
    let mut w = Writer::new(out);
    Head { origin, whole: false, urgent, scope, seq, since_base }.put(&mut w);

    // Low bits of the epoch suffice: the receiver must hold the state that this builds on.
    Since { epoch_bits: epoch as u16, since: back(seq, change.since) }.put(&mut w);

    // A signature covers the state that results, not the change.
    if let Some(signature) = signature {
        w.u8(PROFILE);
        SIGNATURE.put(signature, &mut w);
    }

    w.u8(change.links.len() as u8);
    for (node, quantum) in &change.links {
        ToldLink { node: *node, quantum: *quantum }.put(&mut w);
    }
}

/// Returns how far an earlier version lies back. A node announces anew long before this is cut.
fn back(seq: u32, earlier: u32) -> u16 {
    u16::try_from(seq.wrapping_sub(earlier)).unwrap_or(u16::MAX)
}

/// Returns `delivery` in the units of frames.
pub(super) fn quantum(delivery: f64) -> u8 {
    (delivery.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Returns the delivery that receivers of a frame know.
pub(super) fn delivery(quantum: u8) -> f64 {
    f64::from(quantum) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::topology::Position;
    use ncmesh_wire::identity::{Purpose, SecretKey};

    fn state(version: (u64, u32), base: u32, hears: &[(u16, f64)]) -> LinkState {
        let hears = hears.iter().map(|(node, d)| (NodeId(*node), *d)).collect();
        LinkState { version, base, name: "c".into(), hears, ..LinkState::default() }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The golden vectors of the wire format.
    #[test]
    fn golden_states() {
        let known = state((7, 3), 2, &[(5, 0.8), (9, 1.0)]);
        let mut out = Vec::new();
        write_whole(&mut out, NodeId(3), (EVERYWHERE, true), &known, None);
        assert_eq!(
            hex(&out),
            "0003ff0000000300010000000000000007016302\
                               0005cc0009ff"
        );
        assert_eq!(out.len(), whole_len(&known, false));
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        assert_eq!((told.origin, told.scope, told.urgent), (NodeId(3), EVERYWHERE, true));
        assert_eq!(told.whole(), Some(known.clone()));

        let later = state((7, 5), 2, &[(5, 0.6)]);
        let change = Change { since: 2, links: vec![(NodeId(5), 153), (NodeId(9), 0)] };
        let mut out = Vec::new();
        write_change(&mut out, NodeId(3), (3, false), &later, &change, None);
        assert_eq!(hex(&out), "0003030000000500030007000302000599000900");
        assert_eq!(out.len(), change_len(2, false));
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        assert_eq!(told.applied_to(&known), Some(later));
    }

    /// The golden vectors of the wire format.
    #[test]
    fn golden_positions() {
        let plan = Position::plan([1.5, -2.0, 0.25]);
        let earth = Position::earth(52.5, -13.25);
        for (position, golden) in [
            (
                plan,
                "00038300000003000100000000000000070163ff01 800005dc 7ffff830 800000fa 01000500",
            ),
            (earth, "00038300000003000100000000000000070163ff02 54efc640 636407e0 01000500"),
        ] {
            let mut known = state((7, 3), 2, &[(5, 0.0)]);
            known.profile.position = position;
            let mut out = Vec::new();
            write_whole(&mut out, NodeId(3), (3, false), &known, None);
            assert_eq!(hex(&out), golden.replace(' ', ""));
            assert_eq!(out.len(), whole_len(&known, false));
            let told = Told::read(&mut Reader::new(&out)).unwrap();
            assert_eq!(told.whole(), Some(known.clone()));
            // Later changes leave the profile as it is.
            let mut later = state((7, 4), 2, &[(5, 1.0)]);
            later.profile = known.profile.clone();
            let change = Change { since: 3, links: vec![(NodeId(5), 255)] };
            out.clear();
            write_change(&mut out, NodeId(3), (3, false), &later, &change, None);
            let told = Told::read(&mut Reader::new(&out)).unwrap();
            assert_eq!(told.applied_to(&known), Some(later));
        }
    }

    /// The golden vectors of the wire format, signed by the key that RFC 8032, 7.1, test 1 has.
    #[test]
    fn golden_signed_states() {
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key: SecretKey = secret.parse().unwrap();
        let known = state((7, 3), 2, &[(5, 0.8), (9, 1.0)]);
        let later = state((7, 5), 2, &[(5, 0.6)]);
        let sign = |state| key.sign(Purpose::LinkState, &signed_contents(NodeId(3), state));
        let signing = Some(Signing { signature: sign(&known), key: None });
        let mut out = Vec::new();
        write_whole(&mut out, NodeId(3), (EVERYWHERE, true), &known, signing);
        let golden = format!("0003ff0000000300010000000000000007 0163 ff08 {WHOLE} 020005cc0009ff");
        assert_eq!(hex(&out), golden.replace(' ', ""));
        assert_eq!(out.len(), whole_len(&known, true));
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        assert_eq!(told.whole(), Some(known.clone()));
        assert_eq!((told.signature, told.key), (Some(sign(&known)), None));

        let signing = Some(Signing { signature: sign(&known), key: Some(key.public()) });
        let mut out = Vec::new();
        write_whole(&mut out, NodeId(3), (EVERYWHERE, true), &known, signing);
        let public = key.public();
        let golden =
            format!("0003ff0000000300010000000000000007 0163 ff18 {WHOLE} {public} 020005cc0009ff");
        assert_eq!(hex(&out), golden.replace(' ', ""));
        assert_eq!(out.len(), whole_len(&known, true) + profile::KEY_LEN);
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        assert_eq!((told.signature, told.key), (Some(sign(&known)), Some(public)));
        assert_eq!(told.whole(), Some(known.clone()));

        let change = Change { since: 2, links: vec![(NodeId(5), 153), (NodeId(9), 0)] };
        let mut out = Vec::new();
        write_change(&mut out, NodeId(3), (3, false), &later, &change, Some(&sign(&later)));
        let golden = format!("000303000000050003 00070003 ff {CHANGE} 02000599000900");
        assert_eq!(hex(&out), golden.replace(' ', ""));
        assert_eq!(out.len(), change_len(2, true));
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        assert_eq!(told.applied_to(&known), Some(later));
        assert!(told.signature.is_some());
        for cut in 0..out.len() {
            assert!(Told::read(&mut Reader::new(&out[..cut])).is_err());
        }
    }

    /// Signatures of the golden vectors.
    const WHOLE: &str = "\
        76ac21274e014a93a90f1bd70c9654d4b7d467e4619307e792787315c6d87d40\
        f2249ff38cfef26abc811cc4329bbb07598b6794ae4913a63a6e4d3e196c880a";
    const CHANGE: &str = "\
        0c6881150a93d9828b4c25872f19347bddf5fe9ce22639859096673d6e236aa8\
        d6cf745bd5872b3fa557c85de5d5888fe08c34ef3f2db7fbfb18868129a0590f";

    /// How far a state goes changes on the way, all else breaks its signature.
    #[test]
    fn a_signature_is_over_the_state_and_not_over_how_far_it_goes() {
        let known = state((7, 3), 2, &[(5, 0.8), (9, 1.0)]);
        let contents = signed_contents(NodeId(3), &known);
        let mut out = Vec::new();
        write_whole(&mut out, NodeId(3), (EVERYWHERE, true), &known, None);
        let told = Told::read(&mut Reader::new(&out)).unwrap().whole().unwrap();
        assert_eq!(signed_contents(NodeId(3), &told), contents);
        assert_ne!(signed_contents(NodeId(4), &told), contents);
        for other in [
            state((8, 3), 2, &[(5, 0.8), (9, 1.0)]),
            state((7, 4), 2, &[(5, 0.8), (9, 1.0)]),
            state((7, 3), 3, &[(5, 0.8), (9, 1.0)]),
            state((7, 3), 2, &[(5, 0.8)]),
            state((7, 3), 2, &[(5, 0.8), (9, 0.9)]),
            LinkState { name: "d".into(), ..known.clone() },
        ] {
            assert_ne!(signed_contents(NodeId(3), &other), contents, "{other:?}");
        }
    }

    #[test]
    fn places_that_do_not_exist_are_malformed() {
        let mut known = state((7, 3), 2, &[]);
        known.profile.position = Position::earth(90.0, 180.0);
        let mut out = Vec::new();
        write_whole(&mut out, NodeId(3), (3, false), &known, None);
        let profile = out.len() - 10;
        assert_eq!(out[profile], 2);
        // One step too far north or east, and bits that mean nothing.
        for (at, byte) in [(4, out[profile + 4] + 1), (8, out[profile + 8] + 1), (0, 0x82)] {
            let mut bad = out.clone();
            bad[profile + at] = byte;
            assert_eq!(Told::read(&mut Reader::new(&bad)), Err(Malformed), "{at} {byte}");
        }
    }

    #[test]
    fn a_change_applies_only_to_what_it_was_made_from_or_to_what_came_between() {
        let mut out = Vec::new();
        let change = Change { since: 4, links: vec![(NodeId(5), 51)] };
        write_change(&mut out, NodeId(3), (3, false), &state((7, 8), 4, &[]), &change, None);
        let told = Told::read(&mut Reader::new(&out)).unwrap();
        for (version, applies) in [
            ((7, 3), false),
            ((7, 4), true),
            ((7, 7), true),
            ((7, 8), false),
            ((7, 9), false),
            ((8, 4), false),
        ] {
            let known = state(version, 4, &[(1, 1.0)]);
            assert_eq!(told.applied_to(&known).is_some(), applies, "{version:?}");
        }
    }

    #[test]
    fn truncation_is_noticed_at_every_byte() {
        let mut out = Vec::new();
        let mut told = state((1, 7), 7, &[(2, 1.0), (9, 0.2)]);
        told.profile.position = Position::plan([1.0, 2.0, 3.0]);
        write_whole(&mut out, NodeId(4), (2, false), &told, None);
        for cut in 0..out.len() {
            assert!(Told::read(&mut Reader::new(&out[..cut])).is_err());
        }
    }

    #[test]
    fn a_name_that_would_garble_a_terminal_is_made_harmless_and_fits_again() {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        w.node(NodeId(3)).u8(0x80).u32(1).u16(0).u64(7).short_bytes(&[0x1B; 255]).u8(0);
        let state = Told::read(&mut Reader::new(&out)).unwrap().whole().unwrap();
        assert_eq!(state.name, "\u{FFFD}".repeat(63));
        let mut again = Vec::new();
        write_whole(&mut again, NodeId(3), (0, false), &state, None);
        assert_eq!(again.len(), whole_len(&state, false));
        assert_eq!(Told::read(&mut Reader::new(&again)).unwrap().whole(), Some(state));
    }
}
