//! Packets of two flows combined, and what was overheard to take them apart (CORE, section 4).

use super::frame::{Head, Name, Part};
use ncmesh_code::{Combination, Field, Separated, Separator};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::Coder;
use std::collections::{BTreeMap, VecDeque};

/// Generations of other flows kept at most; the one longest silent makes room.
const MAX_OVERHEARD: usize = 16;
/// Generations with which one of this node's is combined, kept at most; the oldest makes room.
const MAX_MIXTURES: usize = 4;

/// Coding vector and payload, both of the length of their generation.
pub(super) type Packet = Combination;

/// What was overheard of flows that this node takes no part in.
#[derive(Debug, Default)]
pub(super) struct Overheard {
    generations: BTreeMap<Name, (Head, Coder, Instant)>,
}

impl Overheard {
    /// Keeps a packet. Says whether it was innovative; `None` if it is of another shape than those before.
    pub(super) fn keep(&mut self, head: &Head, packet: &Packet, now: Instant) -> Option<bool> {
        let name = head.name();
        if !self.generations.contains_key(&name) {
            self.make_room();
            let coder = Coder::new(head.room, usize::from(head.symbol), false)?;
            self.generations.insert(name, (*head, coder, now));
        }
        let (_, coder, at) = self.generations.get_mut(&name)?;
        *at = now;
        coder.absorb(&packet.0, &packet.1)
    }

    fn make_room(&mut self) {
        if self.generations.len() < MAX_OVERHEARD {
            return;
        }
        let silent = self.generations.iter().min_by_key(|(_, (.., at))| *at).map(|(name, _)| *name);
        silent.and_then(|name| self.generations.remove(&name));
    }

    /// What is kept of a generation.
    pub(super) fn of(&self, name: &Name) -> Option<&Coder> {
        self.generations.get(name).map(|(_, coder, _)| coder)
    }

    /// Generations kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.generations.len()
    }
}

/// One generation of this node's combined with one of another flow.
#[derive(Debug)]
struct Mixture {
    with: Name,
    separator: Separator,
    /// Packets that the other generation has.
    count: u8,
}

/// All such of one generation.
#[derive(Debug, Default)]
pub(super) struct Mixtures {
    mixtures: VecDeque<Mixture>,
}

impl Mixtures {
    /// Whether packets were combined with this generation.
    pub(super) fn contain(&self, with: &Name) -> bool {
        self.mixtures.iter().any(|mixture| mixture.with == *with)
    }

    /// Begins to keep combinations of a generation of `head` with another. `None` where they have no shape.
    pub(super) fn begin(&mut self, head: &Head, other: &Head) -> Option<()> {
        if self.mixtures.len() >= MAX_MIXTURES {
            self.mixtures.pop_front();
        }
        let separator = separator(head, other)?;
        self.mixtures.push_back(Mixture { with: other.name(), separator, count: other.count });
        Some(())
    }

    /// A combination with another generation came. `None` if it is of another shape.
    pub(super) fn insert(
        &mut self,
        head: &Head,
        mine: &[u8],
        other: &Part,
        payload: &[u8],
    ) -> Option<Separated> {
        let mixture = self.mixtures.iter_mut().find(|m| m.with == other.head.name())?;
        mixture.count = mixture.count.max(other.head.count);
        separate(&mut mixture.separator, head, (mine, &other.vector), payload)
    }

    /// More is known of another generation. What follows from that, if anything does.
    pub(super) fn learn(&mut self, head: &Head, with: &Name, packet: &Packet) -> Option<Packet> {
        let mixture = self.mixtures.iter_mut().find(|m| m.with == *with)?;
        let none = vec![0; usize::from(head.room)];
        match separate(&mut mixture.separator, head, (&none, &packet.0), &packet.1)? {
            Separated::Wanted(packet) => Some(packet),
            Separated::Kept | Separated::Redundant => None,
        }
    }

    /// How much of the generation it was last combined with is not known, in packets.
    pub(super) fn unknown(&self) -> Option<usize> {
        let mixture = self.mixtures.back()?;
        Some(usize::from(mixture.count).saturating_sub(mixture.separator.rank()))
    }
}

fn separator(head: &Head, other: &Head) -> Option<Separator> {
    let payload = usize::from(head.symbol.max(other.symbol));
    Separator::new(Field::Gf256, usize::from(head.room), usize::from(other.room), payload).ok()
}

/// Inserts a packet into a separator of a generation of `head`. `None` where it is of another shape, or what follows is
/// longer than a packet of that generation can be.
fn separate(
    separator: &mut Separator,
    head: &Head,
    (mine, other): (&[u8], &[u8]),
    payload: &[u8],
) -> Option<Separated> {
    let mut padded = payload.to_vec();
    if padded.len() > separator.payload_size() {
        return None;
    }
    padded.resize(separator.payload_size(), 0);
    match separator.insert(mine, other, &padded).ok()? {
        Separated::Wanted((vector, mut payload)) => {
            let beyond = payload.split_off(usize::from(head.symbol));
            let fits = beyond.iter().all(|byte| *byte == 0);
            fits.then_some(Separated::Wanted((vector, payload)))
        }
        other => Some(other),
    }
}

/// Takes the packet of a generation of `head` out of one combination at once, with what is known of the other generation,
/// and keeps nothing.
pub(super) fn separate_at_once(
    head: &Head,
    mine: &[u8],
    other: &Part,
    payload: &[u8],
    known: Option<&Coder>,
) -> Option<Packet> {
    let mut mixtures = Mixtures::default();
    mixtures.begin(head, &other.head)?;
    let name = other.head.name();
    for row in known.into_iter().flat_map(Coder::rows) {
        mixtures.learn(head, &name, &row);
    }
    match mixtures.insert(head, mine, other, payload)? {
        Separated::Wanted(packet) => Some(packet),
        Separated::Kept | Separated::Redundant => None,
    }
}
