//! Messages of roll-outs as packets: orders and reports between operator and members, and what
//! members ask each other when the operator's node is gone.

use super::order::{Node, Number, Order, Report, SignedOrder, Standing, Step, Why};
use crate::hex::{hex, unhex_all};
use crate::release::ReleaseId;
use crate::version::Version;
use crate::word::word;
use core::time::Duration;
use ncmesh_wire::identity::{PublicKey, Signature};
use ncmesh_wire::{Reader, Truncated, Writer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeSet;

/// High half of the first byte of each packet. IP has its version there.
const MARK: u8 = 1;
const ORDER: u8 = MARK << 4;
const REPORT: u8 = MARK << 4 | 1;
const ASK: u8 = MARK << 4 | 2;
const PASSED: u8 = MARK << 4 | 3;
const NO_FLEET: u8 = MARK << 4 | 4;

const STAGE: u8 = 0;
const APPLY: u8 = 1;
const ABORT: u8 = 2;
const ROLLBACK: u8 = 3;

/// Bit of an order's flags: the version may be older than the one that runs.
const MAY_DOWNGRADE: u8 = 0x80;

/// Thing that a member lacks and asks another one for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// An order: it has heard none.
    Order,
    /// The manifest of a release.
    Manifest(ReleaseId),
    /// The image of a release.
    Image(ReleaseId),
}

/// Order that another node than the operator's tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOrder {
    /// Node of the operator, as far as the node that tells it knows.
    pub leader: Node,
    /// The order.
    pub order: SignedOrder,
}

/// A message between an operator and a member, or between two members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Order to a member.
    Order(Box<SignedOrder>),
    /// Report to an operator, with the model of the member.
    Report {
        /// The report.
        report: Report,
        /// Model of the member, which says what image it takes.
        model: String,
    },
    /// Question of a member to another one.
    Ask {
        /// The thing that it lacks.
        lacks: Lacks,
        /// Model of the member that asks.
        model: String,
    },
    /// Answer to a question.
    Passed {
        /// Whether the node has the thing and sends it.
        has: bool,
        /// Last order of the roll-out that it takes part in.
        passed: Option<Box<PassedOrder>>,
    },
    /// Answer to an order from a node that takes part in no roll-outs.
    NoFleet {
        /// Number of the order's roll-out.
        rollout: u64,
    },
}

/// The bytes are no packet of a roll-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no packet of a roll-out")]
pub struct NoPacket;

impl From<Truncated> for NoPacket {
    fn from(_: Truncated) -> Self {
        Self
    }
}

impl Packet {
    /// Returns whether a packet belongs to roll-outs, by its first byte.
    #[must_use]
    pub fn is_one(packet: &[u8]) -> bool {
        packet.first().is_some_and(|first| first >> 4 == MARK)
    }

    /// Reads a packet. Takes time and memory proportional to its length.
    ///
    /// # Errors
    /// [`NoPacket`]. Signatures are not checked.
    pub fn parse(packet: &[u8]) -> Result<Self, NoPacket> {
        let mut r = Reader::new(packet);
        let parsed = match r.u8()? {
            ORDER => Self::Order(Box::new(read_order(&mut r)?)),
            REPORT => read_report(&mut r)?,
            ASK => read_ask(&mut r)?,
            PASSED => read_passed(&mut r)?,
            NO_FLEET => Self::NoFleet { rollout: r.u64()? },
            _ => return Err(NoPacket),
        };
        if r.remaining() > 0 { Err(NoPacket) } else { Ok(parsed) }
    }

    /// Returns the packet's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);

        // The first byte says which packet it is.
        match self {
            Self::Order(signed) => write_order(&mut w, signed),
            Self::Report { report, model } => {
                let Report { node, operator, rollout, standing, why, running } = report;
                // A reason has many forms and is seldom there, so it is text. It cannot fail: no
                // reason holds a map or a number that is none.
                let why = why.as_ref().and_then(|why| serde_json::to_vec(why).ok());

                w.u8(REPORT).u16(node.0).bytes(&operator.bytes()).u64(*rollout);
                w.u8(*standing as u8).short_bytes(running.as_str().as_bytes());
                w.short_bytes(model.as_bytes()).bytes(&why.unwrap_or_default());
            }
            Self::Ask { lacks, model } => {
                match lacks {
                    Lacks::Order => w.u8(ASK).u8(0),
                    Lacks::Manifest(release) => w.u8(ASK).u8(1).bytes(&release.0),
                    Lacks::Image(release) => w.u8(ASK).u8(2).bytes(&release.0),
                };
                w.bytes(model.as_bytes());
            }
            Self::Passed { has, passed } => {
                w.u8(PASSED).u8(u8::from(*has));
                if let Some(passed) = passed {
                    w.u16(passed.leader.0);
                    write_order(&mut w, &passed.order);
                }
            }
            Self::NoFleet { rollout } => {
                w.u8(NO_FLEET).u64(*rollout);
            }
        }

        out
    }
}

fn write_order(w: &mut Writer<'_>, SignedOrder { order, signature }: &SignedOrder) {
    let Order { operator, number, release, may_downgrade, step } = order;
    w.u8(ORDER).bytes(&operator.bytes()).u64(number.rollout).u64(number.sequence);
    w.bytes(&release.0);

    let flag = if *may_downgrade { MAY_DOWNGRADE } else { 0 };
    match step {
        Step::Stage => {
            w.u8(STAGE | flag);
        }
        Step::Apply { apply, keep, within } => {
            w.u8(APPLY | flag).u64(u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
            write_nodes(w, apply);
            write_nodes(w, keep);
        }
        Step::Abort => {
            w.u8(ABORT | flag);
        }
        Step::Rollback => {
            w.u8(ROLLBACK | flag);
        }
    }
    w.bytes(&signature.0);
}

/// Writes ids in ascending order as their number and the distances between them, seven bits in a
/// byte: most ids of a mesh follow each other closely, and an order must fit one packet.
fn write_nodes(w: &mut Writer<'_>, nodes: &BTreeSet<Node>) {
    write_number(w, nodes.len() as u32);
    let mut before = 0;
    for Node(id) in nodes {
        write_number(w, u32::from(id - before));
        before = *id;
    }
}

fn write_number(w: &mut Writer<'_>, mut number: u32) {
    while number >= 0x80 {
        w.u8(number as u8 | 0x80);
        number >>= 7;
    }
    w.u8(number as u8);
}

fn read_order(r: &mut Reader<'_>) -> Result<SignedOrder, NoPacket> {
    let operator = PublicKey::new(r.array()?).ok_or(NoPacket)?;
    let number = Number { rollout: r.u64()?, sequence: r.u64()? };
    let release = ReleaseId(r.array()?);

    let kind = r.u8()?;
    let step = match kind & !MAY_DOWNGRADE {
        STAGE => Step::Stage,
        APPLY => {
            let within = Duration::from_millis(r.u64()?);
            Step::Apply { within, apply: read_nodes(r)?, keep: read_nodes(r)? }
        }
        ABORT => Step::Abort,
        ROLLBACK => Step::Rollback,
        _ => return Err(NoPacket),
    };

    let may_downgrade = kind & MAY_DOWNGRADE != 0;
    let signature = Signature(r.array()?);
    Ok(SignedOrder { order: Order { operator, number, release, may_downgrade, step }, signature })
}

fn read_nodes(r: &mut Reader<'_>) -> Result<BTreeSet<Node>, NoPacket> {
    let count = read_number(r)?;
    let mut nodes = BTreeSet::new();
    let mut before = 0_u16;
    // Each id takes a byte at least, so a false number ends with the packet.
    for _ in 0..count {
        let step = u16::try_from(read_number(r)?).map_err(|_| NoPacket)?;
        before = before.checked_add(step).filter(|_| step > 0).ok_or(NoPacket)?;
        nodes.insert(Node(before));
    }
    Ok(nodes)
}

/// Reads a number below 2^21, in its shortest form.
fn read_number(r: &mut Reader<'_>) -> Result<u32, NoPacket> {
    let mut number = 0;
    for shift in [0, 7, 14] {
        let byte = r.u8()?;
        number |= u32::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let is_padded = byte == 0 && shift > 0;
            return if is_padded { Err(NoPacket) } else { Ok(number) };
        }
    }
    Err(NoPacket)
}

fn read_report(r: &mut Reader<'_>) -> Result<Packet, NoPacket> {
    let node = Node(r.u16()?);
    let operator = PublicKey::new(r.array()?).ok_or(NoPacket)?;
    let rollout = r.u64()?;
    let standing = *Standing::ALL.get(usize::from(r.u8()?)).ok_or(NoPacket)?;

    // Both are shown to people and compared with names of the manifest.
    let running: Version = text(r.short_bytes()?)?.parse().map_err(|_| NoPacket)?;
    let model = text(r.short_bytes()?)?.to_owned();
    word("a model", &model).map_err(|_| NoPacket)?;

    let why = r.bytes(r.remaining())?;
    let why: Option<Why> = match why {
        [] => None,
        why => Some(serde_json::from_slice(why).map_err(|_| NoPacket)?),
    };
    // Reasons are shown on terminals, which obey control characters. Those that members give name
    // words of releases only.
    let is_printable = |why: &Why| why.to_string().bytes().all(|c| matches!(c, b' '..=b'~'));
    if !why.as_ref().is_none_or(is_printable) {
        return Err(NoPacket);
    }
    let report = Report { node, operator, rollout, standing, why, running };
    Ok(Packet::Report { report, model })
}

fn read_ask(r: &mut Reader<'_>) -> Result<Packet, NoPacket> {
    let lacks = match r.u8()? {
        0 => Lacks::Order,
        1 => Lacks::Manifest(ReleaseId(r.array()?)),
        2 => Lacks::Image(ReleaseId(r.array()?)),
        _ => return Err(NoPacket),
    };
    let model = text(r.bytes(r.remaining())?)?.to_owned();
    word("a model", &model).map_err(|_| NoPacket)?;
    Ok(Packet::Ask { lacks, model })
}

fn read_passed(r: &mut Reader<'_>) -> Result<Packet, NoPacket> {
    let has = match r.u8()? {
        0 => false,
        1 => true,
        _ => return Err(NoPacket),
    };
    if r.remaining() == 0 {
        return Ok(Packet::Passed { has, passed: None });
    }

    let leader = Node(r.u16()?);
    if r.u8()? != ORDER {
        return Err(NoPacket);
    }
    let order = read_order(r)?;
    Ok(Packet::Passed { has, passed: Some(Box::new(PassedOrder { leader, order })) })
}

fn text(bytes: &[u8]) -> Result<&str, NoPacket> {
    core::str::from_utf8(bytes).map_err(|_| NoPacket)
}

/// Writes an order with its signature as text, for saved states.
pub(super) fn save_order<S: Serializer>(
    order: &Option<SignedOrder>,
    s: S,
) -> Result<S::Ok, S::Error> {
    let bytes = order.clone().map(|order| Packet::Order(Box::new(order)).to_bytes());
    bytes.map(|bytes| hex(&bytes)).serialize(s)
}

/// Reads an order that was saved.
pub(super) fn saved_order<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<SignedOrder>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let packet = unhex_all(&text).and_then(|bytes| Packet::parse(&bytes).ok());
    match packet {
        Some(Packet::Order(order)) => Ok(Some(*order)),
        _ => Err(de::Error::custom("this is no order")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::identity::SecretKey;
    use proptest::prelude::*;

    fn order(step: Step) -> Packet {
        let key = SecretKey::new(&[1; 32].into());
        let order = Order {
            operator: key.public(),
            number: Number { rollout: 0x0102, sequence: 3 },
            release: ReleaseId([5; 32]),
            may_downgrade: true,
            step,
        };
        Packet::Order(Box::new(order.sign(&key)))
    }

    fn report(why: Option<Why>) -> Packet {
        let operator = SecretKey::new(&[1; 32].into()).public();
        let running = "1.0".parse().unwrap();
        let standing = Standing::Staging;
        let report = Report { node: Node(9), operator, rollout: 0x0102, standing, why, running };
        Packet::Report { report, model: "wdr4300".into() }
    }

    fn passed() -> Packet {
        let Packet::Order(order) = order(Step::Stage) else { unreachable!() };
        let passed = PassedOrder { leader: Node(9), order: *order };
        Packet::Passed { has: true, passed: Some(Box::new(passed)) }
    }

    fn nodes(ids: &[u16]) -> BTreeSet<Node> {
        ids.iter().copied().map(Node).collect()
    }

    #[test]
    fn golden_roll_outs() {
        let key = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
        let head = format!("10{key}00000000000001020000000000000003{}", "05".repeat(32));
        let apply = nodes(&[1, 2, 300]);
        let step = Step::Apply { apply, keep: nodes(&[2]), within: Duration::from_secs(1) };
        for (packet, expected) in [
            (order(Step::Stage), format!("{head}80")),
            (order(step), format!("{head}8100000000000003e8030101aa020102")),
        ] {
            let bytes = packet.to_bytes();
            let unsigned = &bytes[..bytes.len() - Signature::LEN];
            assert_eq!(hex(unsigned), expected);
            assert_eq!(Packet::parse(&bytes), Ok(packet));
        }

        let bytes = report(Some(Why::Hook(3))).to_bytes();
        let why = hex(b"{\"hook\":3}");
        let expected = format!("110009{key}00000000000001020003312e3007776472343330 30{why}");
        assert_eq!(hex(&bytes), expected.replace(' ', ""));

        let release = "05".repeat(32);
        let ask = Packet::Ask { lacks: Lacks::Image(ReleaseId([5; 32])), model: "m".into() };
        assert_eq!(hex(&ask.to_bytes()), format!("1202{release}6d"));
        let none = Packet::Passed { has: false, passed: None };
        assert_eq!(hex(&none.to_bytes()), "1300");
        assert_eq!(hex(&Packet::NoFleet { rollout: 0x0102 }.to_bytes()), "140000000000000102");
    }

    #[test]
    fn packets_are_read_as_they_were_written_and_whole() {
        let all: Vec<u16> = (1..=400).collect();
        let apply =
            Step::Apply { apply: nodes(&all), keep: nodes(&all), within: Duration::from_secs(600) };
        let why = Why::Busy { operator: "ab".into(), rollout: 7 };
        for packet in [
            order(apply),
            order(Step::Abort),
            order(Step::Rollback),
            report(None),
            report(Some(why)),
            report(Some(Why::Space)),
            passed(),
            Packet::Passed { has: true, passed: None },
            Packet::Ask { lacks: Lacks::Order, model: "m".into() },
            Packet::Ask { lacks: Lacks::Manifest(ReleaseId([5; 32])), model: "m".into() },
            Packet::NoFleet { rollout: 7 },
        ] {
            let bytes = packet.to_bytes();
            // 400 nodes in one packet of the smallest MTU that IPv6 allows.
            assert!(Packet::is_one(&bytes) && bytes.len() <= 1232, "{}", bytes.len());
            assert_eq!(Packet::parse(&bytes), Ok(packet));
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(Packet::parse(&longer), Err(NoPacket), "{longer:?}");
        }
        for text in ["\x1b[2J", "a\nb", "\u{202e}"] {
            let hostile = report(Some(Why::Release(text.into())));
            assert_eq!(Packet::parse(&hostile.to_bytes()), Err(NoPacket), "{text:?}");
        }
        let stage = order(Step::Stage).to_bytes();
        for length in 0..stage.len() {
            assert_eq!(Packet::parse(&stage[..length]), Err(NoPacket), "{length}");
        }
        assert!(!Packet::is_one(&[0x45]) && !Packet::is_one(&[]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            kind in 0x10_u8..0x15, bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [&[kind][..], &bytes].concat();
            // Reasons of reports are JSON, which has many forms of one value.
            if let Ok(packet) = Packet::parse(&bytes) && !matches!(packet, Packet::Report { .. }) {
                prop_assert_eq!(packet.to_bytes(), bytes);
            }
        }
    }
}
