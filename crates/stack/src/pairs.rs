//! Binds tunnelled packets to their sources.
//!
//! All nodes can seal frames under any id, so a frame does not show whose packet it brings. Where
//! both ends of a tunnel have identities, a tag stands behind each packet, under a key that only
//! they share. It is added before a scheme takes the packet, and taken off after a scheme has
//! handed it up: so it is the same for all schemes, whatever they code on the way.

use crate::trust::{Bond, Trust};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use ncmesh_wire::identity::{PairKey, PublicKey, TAG_LEN};
use std::collections::BTreeMap;

/// Most nodes whose keys are kept. One takes as long as a signature to make.
const MAX_PAIRS: usize = 1_024;

/// Key that this node shares with another one.
#[derive(Debug)]
struct Pair {
    /// The key of the other node that it is made of.
    peer: PublicKey,
    key: PairKey,
    used: Instant,
}

/// The node at which packets are tagged and checked.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub me: NodeId,
    pub trust: &'a Trust,
    pub now: Instant,
}

/// Keys that this node shares with others.
#[derive(Debug, Default)]
pub(crate) struct Pairs(BTreeMap<NodeId, Pair>);

impl Pairs {
    /// Returns the tag of a packet for `to`; `None` if one of both has no identity.
    pub(crate) fn tag(&mut self, end: End<'_>, to: NodeId, packet: &[u8]) -> Option<[u8; TAG_LEN]> {
        match end.trust.bond(to, end.now) {
            Bond::Keys { .. } => self.key(end, to).map(|key| key.tag(end.me, to, packet)),
            Bond::Free | Bond::Refused => None,
        }
    }

    /// Takes the tag off a packet from `from`. Returns whether the packet is that node's, as far as
    /// that can be known.
    pub(crate) fn open(&mut self, end: End<'_>, from: NodeId, packet: &mut Vec<u8>) -> bool {
        match end.trust.bond(from, end.now) {
            Bond::Free => return true,
            Bond::Refused => return false,
            Bond::Keys { .. } => {}
        }
        let Some((contents, tag)) = packet.split_last_chunk::<TAG_LEN>() else { return false };
        let key = self.key(end, from);
        let is_right = key.is_some_and(|key| key.tag(from, end.me, contents) == *tag);
        packet.truncate(packet.len() - TAG_LEN);
        is_right && !packet.is_empty()
    }

    /// Returns the key that is shared with a node.
    fn key(&mut self, end: End<'_>, node: NodeId) -> Option<&PairKey> {
        let Bond::Keys { own, peer } = end.trust.bond(node, end.now) else { return None };
        // A node may get a certificate for another key.
        if self.0.get(&node).is_none_or(|pair| pair.peer != peer) {
            make_room(&mut self.0, &node, MAX_PAIRS, |pair| pair.used);
            let key = own.pair_key(&peer)?;
            self.0.insert(node, Pair { peer, key, used: end.now });
        }
        let pair = self.0.get_mut(&node)?;
        pair.used = end.now;
        Some(&pair.key)
    }
}
