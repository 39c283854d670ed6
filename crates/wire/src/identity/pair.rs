//! Keys that two nodes share, made of their identities, and tags by which they know their packets.

use super::key::{PublicKey, SecretKey};
use crate::id::NodeId;
use zeroize::Zeroizing;

/// Length of the tag of a packet, bytes.
pub const TAG_LEN: usize = 8;
/// Use of the keys. Those of another use would have another text.
const CONTEXT: &str = "ncmesh 2026-11-28 tags of tunnelled packets";

/// Key that two nodes share, and that no other node can compute.
pub struct PairKey(Zeroizing<[u8; 32]>);

impl SecretKey {
    /// Returns the key that the owner of this one shares with the owner of another: what both can
    /// compute, and both public keys, through the key derivation of BLAKE3. `None` if the other is
    /// no key.
    #[must_use]
    pub fn pair_key(&self, other: &PublicKey) -> Option<PairKey> {
        let shared = self.shared_with(other)?;
        // Both ends must put the keys in the same order.
        let mut publics = [self.public(), *other];
        publics.sort_unstable();
        let material = [*shared, publics[0].bytes(), publics[1].bytes()].concat();
        let material = Zeroizing::new(material);
        Some(PairKey(Zeroizing::new(blake3::derive_key(CONTEXT, &material))))
    }
}

impl PairKey {
    /// Returns the tag of a packet on its way from one of the two nodes to the other.
    #[must_use]
    pub fn tag(&self, from: NodeId, to: NodeId, packet: &[u8]) -> [u8; TAG_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&from.0.to_be_bytes()).update(&to.0.to_be_bytes()).update(packet);
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_LEN]);
        tag
    }
}

impl core::fmt::Debug for PairKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PairKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::new(&[seed; 32].into())
    }

    #[test]
    fn both_ends_have_the_same_key_and_others_have_another() {
        let tag = |own: u8, other: u8| {
            let pair = key(own).pair_key(&key(other).public()).unwrap();
            pair.tag(NodeId(1), NodeId(2), b"packet")
        };
        assert_eq!(tag(1, 2), tag(2, 1));
        assert_ne!(tag(1, 2), tag(1, 3));
        assert_ne!(tag(1, 2), tag(3, 2));
    }

    /// The golden vector of the wire format: keys of RFC 8032, 7.1, tests 1 and 2.
    #[test]
    fn golden_tag() {
        let own: SecretKey =
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60".parse().unwrap();
        let other = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let pair = own.pair_key(&other.parse().unwrap()).unwrap();
        let tag = pair.tag(NodeId(3), NodeId(5), b"ncmesh");
        assert_eq!(u64::from_be_bytes(tag), 0x782e_ae63_ae2e_f9f9);
    }

    proptest! {
        #[test]
        fn a_tag_is_of_one_packet_between_two_nodes(
            packet in prop::collection::vec(any::<u8>(), 1..100),
            bit: usize,
        ) {
            let pair = key(1).pair_key(&key(2).public()).unwrap();
            let tag = pair.tag(NodeId(1), NodeId(2), &packet);
            prop_assert_ne!(tag, pair.tag(NodeId(2), NodeId(1), &packet));
            prop_assert_ne!(tag, pair.tag(NodeId(1), NodeId(3), &packet));
            let mut other = packet.clone();
            let bit = bit % (8 * packet.len());
            other[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(tag, pair.tag(NodeId(1), NodeId(2), &other));
        }
    }
}
