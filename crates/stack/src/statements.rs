//! Statements of nodes that engines pass on, with the signatures of their origins.
//!
//! An announcement of a file crosses the mesh from node to node, and every node writes it anew. A
//! node that hears it checks the signature, which stands behind the body, and keeps it: it is put
//! behind the same statement when that is passed on. Engines know nothing of it.

use crate::trust::{Said, Trust, Verdict};
use ncmesh_engine::Statement;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::identity::Signature;
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::BTreeMap;

/// Most signatures that are kept. A scheme passes on 256 announcements at most, and seldom as many
/// acknowledgments at a time.
const MAX_KEPT: usize = 2_048;
/// Length of the part of a hash that tells statements apart.
const DIGEST_LEN: usize = 16;

/// A statement as it was heard or is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFrame<'a> {
    pub service: ServiceId,
    pub kind: u8,
    pub statement: Statement<'a>,
}

impl InFrame<'_> {
    /// Returns what is signed: the statement, and which frames it is in.
    fn contents(&self) -> Vec<u8> {
        [&[self.service.0, self.kind][..], self.statement.contents].concat()
    }
}

/// Signature of a statement, and when it was needed last.
#[derive(Clone, Copy, Debug)]
struct Kept {
    signature: Signature,
    used: Instant,
}

/// Signatures of the statements that this node knows.
#[derive(Debug, Default)]
pub(crate) struct Statements(BTreeMap<[u8; DIGEST_LEN], Kept>);

impl Statements {
    /// Judges a statement that `sender` passed on, and keeps its signature if it is believed.
    pub(crate) fn judge(
        &mut self,
        trust: &mut Trust,
        heard: InFrame<'_>,
        signature: Option<Signature>,
        sender: NodeId,
        now: Instant,
    ) -> Verdict {
        let contents = heard.contents();
        let digest = digest(&contents);
        let origin = heard.statement.origin;

        // Each statement is heard many times, and checked once.
        if let Some(kept) = self.0.get_mut(&digest)
            && Some(kept.signature) == signature
            && !trust.is_outcast(origin, now)
        {
            kept.used = now;
            return Verdict::Believed;
        }

        let said = Said { origin, contents: &contents, signature: signature.as_ref(), sender };
        let verdict = trust.judge_statement(said, now);
        if let (Verdict::Believed, Some(signature)) = (verdict, signature)
            && trust.passes_signature_on(said, now)
        {
            self.keep(digest, signature, now);
        }
        verdict
    }

    /// Returns the signature of a statement that is about to be sent: that of its origin as it was
    /// heard, or this node's own.
    pub(crate) fn signature(
        &mut self,
        trust: &Trust,
        sent: InFrame<'_>,
        me: NodeId,
        now: Instant,
    ) -> Option<Signature> {
        let contents = sent.contents();
        let digest = digest(&contents);
        if let Some(kept) = self.0.get_mut(&digest) {
            kept.used = now;
            return Some(kept.signature);
        }

        // A signature takes long, so nothing of others is signed.
        if sent.statement.origin != me {
            return None;
        }
        let signature = trust.sign_statement(&contents)?;
        self.keep(digest, signature, now);
        Some(signature)
    }

    fn keep(&mut self, digest: [u8; DIGEST_LEN], signature: Signature, now: Instant) {
        make_room(&mut self.0, &digest, MAX_KEPT, |kept| kept.used);
        self.0.insert(digest, Kept { signature, used: now });
    }
}

fn digest(contents: &[u8]) -> [u8; DIGEST_LEN] {
    let mut digest = [0; DIGEST_LEN];
    digest.copy_from_slice(&blake3::hash(contents).as_bytes()[..DIGEST_LEN]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Claim, FirstUse, Pin, TrustConfig};
    use ncmesh_engine::topology::LinkState;
    use ncmesh_wire::identity::{Purpose, SecretKey};
    use proptest::prelude::*;

    const ORIGIN: NodeId = NodeId(3);
    const OTHER: NodeId = NodeId(9);
    const SERVICE: ServiceId = ServiceId(19);

    /// The announcement of the wire format's golden vectors.
    fn announcement() -> Vec<u8> {
        let head = "000301020304000000000000000700000009800a00000000000003e8200578";
        let text = format!("{head}{}{}05612e62696e0001000501", "aa".repeat(32), "bb".repeat(32));
        let digit = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        (0..text.len() / 2).map(digit).collect()
    }

    /// Key of RFC 8032, 7.1, test 1.
    fn key() -> SecretKey {
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60".parse().unwrap()
    }

    /// A node that trusts on first use and has pinned the origin.
    fn trust(me: NodeId, own: SecretKey) -> Trust {
        let pins = vec![Pin { node: ORIGIN, name: "n3".into(), key: key().public() }];
        Trust::new(TrustConfig::FirstUse(Box::new(FirstUse { key: own, pins })), me, "me")
    }

    fn in_frame(contents: &[u8]) -> InFrame<'_> {
        InFrame { service: SERVICE, kind: 0, statement: Statement { origin: ORIGIN, contents } }
    }

    /// The golden vector of the wire format.
    #[test]
    fn golden_signed_announcement() {
        let announcement = announcement();
        let own = Trust::new(
            TrustConfig::FirstUse(Box::new(FirstUse { key: key(), pins: Vec::new() })),
            ORIGIN,
            "n3",
        );
        let mut statements = Statements::default();
        let sent = in_frame(&announcement);
        let signature = statements.signature(&own, sent, ORIGIN, Instant::default()).unwrap();
        let contents = [&[19, 0][..], &announcement].concat();
        assert_eq!(signature, key().sign(Purpose::Statement, &contents));
        let hex: String = signature.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN);

        // Another node passes it on, and signs nothing of it itself.
        let me = SecretKey::new(&[9; 32].into());
        let mut trust = trust(OTHER, me);
        let mut passed_on = Statements::default();
        let now = Instant::default();
        assert_eq!(passed_on.signature(&trust, sent, OTHER, now), None);
        let verdict = passed_on.judge(&mut trust, sent, Some(signature), OTHER, now);
        assert_eq!(verdict, Verdict::Believed);
        assert_eq!(passed_on.signature(&trust, sent, OTHER, now), Some(signature));
    }

    const GOLDEN: &str = "\
        8cd5a1c95ffc8d734a8a4c5b7dbbe4de4050287340fa2968163877c2692849c3\
        1114dc01d3f66c77cfc335344e30b598ea89e0518fbf9f7aadbe4f0f299f4a0d";

    proptest! {
        /// One bit of a statement or of its signature makes it another one.
        #[test]
        fn what_was_altered_is_not_believed(bit in 0..8 * 111_usize, is_signature: bool) {
            let mut contents = announcement();
            let mut signature = key().sign(Purpose::Statement, &in_frame(&contents).contents());
            let bytes = if is_signature { &mut signature.0[..] } else { &mut contents[..] };
            let bit = bit % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);

            let mut trust = trust(OTHER, SecretKey::new(&[9; 32].into()));
            let mut statements = Statements::default();
            let heard = in_frame(&contents);
            let now = Instant::default();
            for signature in [Some(signature), None] {
                let verdict = statements.judge(&mut trust, heard, signature, OTHER, now);
                prop_assert_eq!(verdict, Verdict::Refused);
            }
            prop_assert!(statements.0.is_empty());
        }
    }

    /// A node without an identity believes what others say in any case, but passes on no signature
    /// that is not right: nor does it put one behind what it says itself.
    #[test]
    fn false_signatures_are_not_passed_on() {
        let now = Instant::default();
        let announcement = announcement();
        let heard = in_frame(&announcement);
        for me in [OTHER, ORIGIN] {
            let mut trust = Trust::new(TrustConfig::Key, me, "me");
            let mut statements = Statements::default();
            let signature = Some(Signature([7; Signature::LEN]));
            let verdict = statements.judge(&mut trust, heard, signature, OTHER, now);
            assert_eq!(verdict, Verdict::Believed);
            assert_eq!(statements.signature(&trust, heard, me, now), None);
        }
    }

    #[test]
    fn a_node_without_an_identity_passes_on_right_signatures() {
        let now = Instant::default();
        let mut trust = Trust::new(TrustConfig::Key, OTHER, "me");
        let state = LinkState::default();
        let signature = key().sign(Purpose::LinkState, b"a state");
        let claim = Claim {
            origin: ORIGIN,
            state: &state,
            signature: Some(&signature),
            key: Some(key().public()),
            sender: OTHER,
            is_name_borne: false,
        };
        assert_eq!(trust.judge(claim, b"a state", now), Verdict::Believed);

        let announcement = announcement();
        let heard = in_frame(&announcement);
        let signature = Some(key().sign(Purpose::Statement, &heard.contents()));
        let mut statements = Statements::default();
        statements.judge(&mut trust, heard, signature, OTHER, now);
        assert_eq!(statements.signature(&trust, heard, OTHER, now), signature);
    }

    #[test]
    fn signatures_of_many_statements_take_bounded_memory() {
        let mut statements = Statements::default();
        for number in 0..5_000_u32 {
            let digest = digest(&number.to_be_bytes());
            statements.keep(digest, Signature([0; Signature::LEN]), Instant::default());
        }
        assert_eq!(statements.0.len(), MAX_KEPT);
    }
}
