//! The golden vectors of the wire format.

#![allow(clippy::unwrap_used, reason = "tests of the wire format fail where it unwraps")]

use ncmesh_wire::{NodeId, ServiceId};

/// Frame without its outer header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Body {
    /// The node that sent it.
    pub sender: NodeId,
    /// Its service.
    pub service: ServiceId,
    /// Its kind.
    pub kind: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Titles of the golden vectors in the wire format: sender, service and kind.
const GOLDEN: [(&str, u16, u8, u8); 50] = [
    ("Hello.", 3, 0, 0),
    ("Hello with states.", 3, 0, 0),
    ("Hello with profiles.", 3, 0, 0),
    ("Probe.", 3, 0, 1),
    ("Comparison.", 3, 0, 2),
    ("Versions.", 3, 0, 3),
    ("Request.", 3, 0, 4),
    ("Announcement.", 3, 16, 0),
    ("Data.", 3, 16, 1),
    ("Data with belts.", 3, 17, 1),
    ("Data in a tree.", 3, 19, 1),
    ("Report.", 9, 18, 3),
    ("Acknowledgment.", 5, 16, 2),
    ("Check request.", 5, 16, 4),
    ("Check.", 3, 16, 5),
    ("`cascade` data.", 8, 26, 1),
    ("`cascade` data, systematic.", 3, 26, 1),
    ("`cascade` report.", 9, 26, 3),
    ("`forward` data.", 1, 20, 1),
    ("`forward` queue.", 2, 20, 2),
    ("`braid` data.", 2, 27, 1),
    ("`braid` report.", 4, 27, 2),
    ("`braid` pair.", 2, 27, 3),
    ("`mc2` data.", 2, 22, 1),
    ("`mc2` report.", 4, 22, 2),
    ("`mc2` request.", 4, 22, 3),
    ("`core_nc` data, combined.", 3, 23, 1),
    ("`core_nc` count.", 1, 23, 2),
    ("`core_nc` feedback.", 4, 23, 3),
    ("`core_nc` relayed feedback.", 4, 23, 4),
    ("xor, one packet.", 2, 21, 1),
    ("xor, two packets.", 2, 21, 1),
    ("xor, report.", 1, 21, 2),
    ("xor, request.", 1, 21, 3),
    ("multirate, data.", 1, 24, 1),
    ("multirate, report.", 2, 24, 2),
    ("multirate, announcement.", 1, 24, 3),
    ("`delta` data.", 3, 28, 1),
    ("`delta` report.", 3, 28, 2),
    ("`delta` announcement.", 1, 28, 3),
    ("`stream_tree` data.", 1, 29, 1),
    ("`stream_tree` report.", 2, 29, 2),
    ("`stream_tree` announcement.", 1, 29, 3),
    ("Hello with signed states.", 3, 0, 0),
    ("Keys wanted.", 3, 0, 5),
    ("Keys.", 3, 0, 6),
    ("Certificates.", 3, 0, 7),
    ("Revocations.", 3, 0, 8),
    ("Known lists.", 3, 0, 9),
    ("Hello with a signed state and its key.", 3, 0, 0),
];

/// Returns the golden vectors of the wire format, with their titles.
///
/// # Panics
/// If the document has another vector, or lacks one.
#[must_use]
pub fn golden() -> Vec<(&'static str, Body)> {
    let document = include_str!("../../../docs/reference/wire-format.md");
    let section = document.split("## Golden vectors").nth(1).unwrap();
    let mut bodies = Vec::new();
    // The first paragraph introduces them; the first vector is that of the outer frame.
    for paragraph in section.split("\n**").skip(2) {
        let title = paragraph.split("**").next().unwrap();
        let (known, sender, service, kind) =
            GOLDEN.iter().find(|(known, ..)| *known == title).expect(title);
        let block = paragraph.split("```").nth(1).unwrap();
        // A packet of xor at its second hop, and the same at its first, are two bodies.
        let first_hop = block.find("\n01 01 ").unwrap_or(block.len());
        let (one, other) = block.split_at(first_hop);
        for (text, sender) in [(one, *sender), (other, 1)] {
            if !text.trim().is_empty() {
                let service = ServiceId(*service);
                let sender = NodeId(sender);
                bodies.push((*known, Body { sender, service, kind: *kind, bytes: hex(text) }));
            }
        }
    }
    assert_eq!(bodies.len(), GOLDEN.len() + 1);
    bodies
}

/// Returns what fuzzing of a stack begins with: a file for each golden vector, with its name. The
/// fuzz target `stack` says how frames follow each other in a file.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |(index, (title, body)): (usize, (&str, Body))| {
        let letters = title.chars().filter(|c| c.is_ascii_alphanumeric() || *c == ' ');
        let name = letters.collect::<String>().to_lowercase().replace(' ', "-");
        let service = body.service.0.saturating_sub(15);
        let units = body.bytes.len().div_ceil(12);
        let length = if units < 11 { body.bytes.len() } else { 128 + units };
        let head = [0, service, body.kind, 10, length as u8];
        (format!("{index:02}-{name}"), [&head[..], &body.bytes].concat())
    };
    golden().into_iter().enumerate().map(seed).collect()
}

/// Returns the bytes of hexadecimal digits between white space.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
