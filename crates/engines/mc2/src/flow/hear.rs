//! What a flow makes of a data frame that was heard.

use super::Flow;
use crate::frame::{Data, Header};
use crate::paths::MAX_NODES;
use crate::upstream::Upstream;
use ncmesh_engine::Context;
use ncmesh_engine::counters::DropReason;
use ncmesh_wire::NodeId;

impl Flow {
    /// A data frame of the flow was heard from `sender`, in its start `epoch`.
    ///
    /// # Errors
    /// Why it was dropped, though what its sender says of itself may have been read.
    pub(crate) fn hear(
        &mut self,
        (sender, epoch): (NodeId, u64),
        data: &Data<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let header = &data.header;
        self.heard_at = cx.now;
        let newer = header.revision.wrapping_sub(self.revision);
        if newer != 0 && newer <= u8::MAX / 2 && self.inlet.is_none() {
            self.follow(header.paths.clone(), header.revision, cx.topology, cx.me);
        }
        self.stand(sender, &header.standing, cx.me);
        // Its sender may not have heard of the latest paths yet.
        if !header.paths.leads(sender, cx.me) {
            return Ok(());
        }
        if header.room != self.room || usize::from(header.symbol) != self.symbol {
            return Err(DropReason::Malformed);
        }
        // What is made of it must fit a frame of this node, with all that may stand in one.
        let longest = Header::longest(MAX_NODES, self.room) + self.symbol;
        if !self.downstream.is_empty() && longest > cx.mtu {
            return Err(DropReason::Malformed);
        }
        let first = match self.upstream.get_mut(&sender).filter(|known| known.is_of(epoch)) {
            Some(known) => known.note(header, cx.me, cx.now),
            None => {
                let back = (cx.me, cx.topology.delivery(cx.me, sender));
                let known = Upstream::new((sender, epoch), header, back, cx.now);
                self.upstream.insert(sender, known);
                true
            }
        };
        if !first {
            return Ok(());
        }
        self.heard += 1;
        self.absorb(sender, data, cx)
    }

    fn absorb(
        &mut self,
        sender: NodeId,
        data: &Data<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let header = &data.header;
        if header.generation < self.oldest() {
            return Err(DropReason::Stale);
        }
        self.open(header.generation);
        if let Some(before) = self.generations.get_mut(&header.generation.wrapping_sub(1)) {
            before.size = before.size.max(header.size_before);
        }
        let Some(generation) = self.generations.get_mut(&header.generation) else {
            return Err(DropReason::Malformed);
        };
        generation.size = generation.size.max(header.size);
        generation.size_before = generation.size_before.max(header.size_before);
        let Some(innovative) = generation.absorb(data.coefficients, data.payload) else {
            return Err(DropReason::Malformed);
        };
        self.innovative += u64::from(innovative);
        if let (true, Some(outlet)) = (innovative, &mut self.outlet) {
            outlet.note(header.generation, cx.now);
        }
        if self.take_credits(sender, header, cx.me) { Ok(()) } else { Err(DropReason::Malformed) }
    }

    /// Takes in what an upstream frame announces to this node, as far as packets back it. The destination's credits end
    /// with it. Says whether the sender was honest.
    fn take_credits(&mut self, sender: NodeId, header: &Header, me: NodeId) -> bool {
        let hop = header.paths.next_hops(sender).iter().position(|hop| *hop == me);
        let (Some(hop), Some(upstream)) = (hop, self.upstream.get_mut(&sender)) else {
            return true;
        };
        let honest = upstream.learn(header, hop, &mut self.generations);
        if self.outlet.is_none() {
            for (number, generation) in &mut self.generations {
                match generation.accept() {
                    0 => {}
                    credits => self.downstream.credits.add(*number, credits),
                }
            }
        }
        honest
    }
}
