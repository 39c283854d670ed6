//! What a frame says of itself, for traces: read without any node's state.

use crate::registry::REGISTRY;
use crate::{link, route};
use ncmesh_wire::{FlowId, NodeId, ServiceId};

/// What one frame is and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whose frame it is: `link`, `route` or the name of an engine.
    pub service: &'static str,
    /// Which of its frames: `probe`, `link_state`, `announcement`, `data`, `acknowledgment`.
    pub kind: &'static str,
    /// The transfer it belongs to.
    pub flow: Option<FlowId>,
    /// The batch that is coded in it.
    pub batch: Option<u32>,
}

impl Summary {
    pub(crate) fn new(service: &'static str, kind: &'static str) -> Self {
        Self { service, kind, flow: None, batch: None }
    }

    /// What a decrypted frame of (service, kind) by this sender, with these fields, says. `None` where the service
    /// is not of this program or the fields are not laid out as its frames are.
    #[must_use]
    pub fn of(sender: NodeId, service: ServiceId, kind: u8, body: &[u8]) -> Option<Self> {
        match service {
            link::SERVICE => link::summary(kind, body),
            route::SERVICE => route::summary(kind, body),
            id => {
                let engine = REGISTRY.iter().find(|e| e.id == id)?;
                (engine.read)(sender, kind, body)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden bodies of docs/wire-format.md, of which each shorter one is malformed.
    #[test]
    fn golden_bodies_are_told_apart() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = text.as_bytes().chunks(2);
            digits.map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
        };
        let flow = Some(FlowId { source: NodeId(3), serial: 0x0102_0304 });
        let announcement = [
            "0003010203040000000000000007000000098000000000000003e8200578",
            &"aa".repeat(32),
            &"bb".repeat(32),
            "05612e62696e0001000501",
        ];
        let data = "00030102030411220000000600000004020201000801800005000000550a0bff";
        let belts = "000301020304112200000006000000040205020008018000090040034001ff";
        let ack = "000800030102030400050000000000000007000000020100000001";
        let state = "0003000000000000000700000001016300020005cc0009ff";
        for (service, kind, body, says) in [
            (0, 0, "00000005001400fa03e8", Summary::new("link", "probe")),
            (1, 0, state, Summary::new("route", "link_state")),
            (
                16,
                0,
                &announcement.concat(),
                Summary { flow, ..Summary::new("pacifier", "announcement") },
            ),
            (16, 1, data, Summary { flow, batch: Some(4), ..Summary::new("pacifier", "data") }),
            (17, 1, belts, Summary { flow, batch: Some(4), ..Summary::new("more", "data") }),
            (16, 2, ack, Summary { flow, ..Summary::new("pacifier", "acknowledgment") }),
        ] {
            let body = hex(body);
            assert_eq!(Summary::of(NodeId(1), ServiceId(service), kind, &body), Some(says));
            for cut in 1..body.len() {
                assert_eq!(
                    Summary::of(NodeId(1), ServiceId(service), kind, &body[..cut]),
                    None,
                    "{says:?} {cut}"
                );
            }
            assert_eq!(Summary::of(NodeId(1), ServiceId(service), 99, &body), None);
        }
        assert_eq!(Summary::of(NodeId(1), ServiceId(15), 0, &[]), None);
    }
}
