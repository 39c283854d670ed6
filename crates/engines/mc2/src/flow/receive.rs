//! Handles the data frames of a flow.

use super::Flow;
use crate::frame::{Data, GenerationHeader};
use crate::upstream::Upstream;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::{Context, Malformed};
use ncmesh_wire::{NodeId, StartId};

impl Flow {
    /// Handles a data frame that was heard from `sender`, in its `start`. Any frame of the
    /// flow tells the state of its sender; one from a previous hop also brings a combination.
    ///
    /// # Errors
    /// Why the combination was dropped. The sender's state may have been taken in all the same.
    pub(crate) fn handle_data(
        &mut self,
        sender: NodeId,
        start: StartId,
        data: &Data<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let header = &data.header;
        self.heard_at = cx.now;

        // The source may have chosen other paths. Only the source itself knows better. A node that
        // is on them no more sends on what it has by the paths that it knows.
        let newer = header.revision.wrapping_sub(self.revision);
        let is_newer = newer != 0 && newer <= u8::MAX / 2;
        if is_newer && self.ingress.is_none() && header.paths.contains(cx.me) {
            self.use_paths(header.paths.clone(), header.revision, cx.topology, cx.me);
        }

        self.handle_state(sender, &header.state, cx.me);

        // The rest is for next hops of the sender, by the paths that it knows. It may not have
        // heard of the latest ones.
        if !header.paths.leads(sender, cx.me) {
            return Ok(());
        }
        if header.generation_size != self.shape.generation_size
            || usize::from(header.symbol_size) != self.shape.symbol_size
        {
            return Err(DropReason::Malformed);
        }

        // A combination that this node sends on has to fit its own frames.
        let needed =
            GenerationHeader::reserved(self.shape.generation_size) + self.shape.symbol_size;
        if !self.downstream.is_empty() && needed > cx.mtu {
            return Err(DropReason::Malformed);
        }

        // Note the frame, to acknowledge it. A repetition ends here.
        let is_first = match self.upstream.get_mut(&sender).filter(|known| known.is_of(start)) {
            Some(known) => known.note_frame(header, cx.me, cx.now),
            None => {
                let back = cx.topology.delivery(cx.me, sender);
                let new = Upstream::new(sender, start, header, cx.me, back, cx.now);
                self.upstream.insert(sender, new);
                true
            }
        };

        if !is_first {
            return Ok(());
        }
        self.heard += 1;
        self.absorb(data, cx)?;
        self.accept_credits(sender, header, cx.me).map_err(|Malformed| DropReason::Malformed)
    }

    /// Takes in the combination of a frame.
    fn absorb(&mut self, data: &Data<'_>, cx: &mut Context<'_>) -> Result<(), DropReason> {
        let header = &data.header;
        if header.generation < self.oldest_wanted() {
            return Err(DropReason::Stale);
        }
        self.open_generation(header.generation);

        // The source closes a generation after its packets were sent. Later frames tell its number
        // of packets, those of the next generation too, since all of its own may be on their way.
        if let Some(before) = self.generations.get_mut(&header.generation.wrapping_sub(1)) {
            before.packets = before.packets.max(header.packets_before);
        }
        let Some(generation) = self.generations.get_mut(&header.generation) else {
            return Err(DropReason::Malformed);
        };
        generation.packets = generation.packets.max(header.packets);
        generation.packets_before = generation.packets_before.max(header.packets_before);

        let Some(innovative) = generation.absorb(data.coding_vector, data.payload) else {
            return Err(DropReason::Malformed);
        };
        self.innovative += u64::from(innovative);
        cx.counters.note_payload(innovative);
        if let (true, Some(egress)) = (innovative, &mut self.egress) {
            egress.note_innovative(header.generation, cx.now);
        }
        Ok(())
    }

    /// Accepts the credits that a previous hop announces to this node, as far as packets back them.
    /// At the destination credits end.
    ///
    /// # Errors
    /// [`Malformed`] if the sender announces more than there can be.
    fn accept_credits(
        &mut self,
        sender: NodeId,
        header: &GenerationHeader,
        me: NodeId,
    ) -> Result<(), Malformed> {
        let hop = header.paths.next_hops(sender).iter().position(|hop| *hop == me);
        let (Some(hop), Some(upstream)) = (hop, self.upstream.get_mut(&sender)) else {
            return Ok(());
        };
        let result = upstream.handle_announcement(header, hop, &mut self.generations);
        if self.egress.is_none() {
            // The packet may back credits that were announced earlier, by any previous hop.
            for (number, generation) in &mut self.generations {
                match generation.accept_credits() {
                    0 => {}
                    credits => self.downstream.credits.add(*number, credits),
                }
            }
        }

        result
    }
}
