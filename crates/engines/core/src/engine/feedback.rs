//! Count and feedback frames heard: whether what was sent was enough (CORE, sections 4 and 6, and
//! table 3).

use super::{Core, FEEDBACK_METRIC, Handled};
use crate::frame::{CountFrame, FeedbackFrame, RelayedFeedback, Request, UNKNOWN};
use crate::generation::Stage;
use crate::sending::Missing;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::hop::passing::{Addresses, is_passed_on};
use ncmesh_engine::{Context, Frame};
use ncmesh_wire::{NodeId, StartId};

impl Core {
    /// Handles a poll of the previous hop: queues feedback, or polls the next hop in turn.
    pub(super) fn handle_count(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Handled {
        let count = CountFrame::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.meter.note_serial(frame.sender, frame.start, count.serial, cx.now);
        if count.next_hop != cx.me {
            return Ok(());
        }

        // The count may close the generation, so that its last packets can be handed up.
        let id = count.header.id;
        self.admit(&count.header, frame, cx)?;
        self.deliver(id, cx);

        let Some(flow) = self.flows.get_mut(&id.flow) else { return Ok(()) };
        let is_destination = flow.is_destination();
        if let Some(generation) = flow.generations.get_mut(&id.number) {
            if !generation.count_filter.accept(frame.sender, frame.start, count.number) {
                return Ok(());
            }

            // A relay that leaves requests to the source cannot answer before the next hop does.
            // One that could answer asks too if it has full rank and the next hop has long been
            // silent: else nobody would.
            let answers = is_destination || generation.answers_requests();
            let is_stuck = generation.sending.polling.is_silent() && generation.has_full_rank();
            if generation.is_open() && !is_destination && (!answers || is_stuck) {
                generation.sending.polling.request();
            }
            if generation.is_open() && !answers {
                return Ok(());
            }
        }

        self.queue_feedback(id, count.again, cx);
        Ok(())
    }

    /// Handles feedback of the next hop, or overhears that of another node.
    pub(super) fn handle_feedback(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Handled {
        let feedback = FeedbackFrame::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        let author = frame.sender;
        let next_hop = feedback.to;
        self.pass_on(cx, RelayedFeedback { next_hop, author, feedback: feedback.clone() });
        self.take_feedback(cx, author, frame.start, feedback)
    }

    /// Handles feedback that went over other nodes, or passes it on.
    pub(super) fn handle_relayed(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Handled {
        let relayed = RelayedFeedback::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.pass_on(cx, relayed.clone());
        self.take_feedback(cx, relayed.author, frame.start, relayed.feedback)
    }

    /// Passes feedback on if this node is on its way.
    fn pass_on(&mut self, cx: &mut Context<'_>, relayed: RelayedFeedback) {
        let RelayedFeedback { next_hop, author, ref feedback } = relayed;
        let to = feedback.to;
        let key = (feedback.id, author, to);
        if is_passed_on(cx.topology, cx.me, Addresses { author, next_hop, to }, FEEDBACK_METRIC)
            && !self.passing.admit(key, relayed, cx.now)
        {
            cx.counters.drop(DropReason::Full);
        }
    }

    /// Handles what a node says, with the start of the one that was heard to say so.
    fn take_feedback(
        &mut self,
        cx: &mut Context<'_>,
        author: NodeId,
        start: StartId,
        feedback: FeedbackFrame,
    ) -> Handled {
        let id = feedback.id;
        self.meter.record_reports(author, &feedback.links, cx.now);
        self.regions_outdated = true;

        // The previous hop passes on to its own previous hop that the destination is done. So it
        // has received this node's feedback.
        if feedback.to != cx.me {
            let flow = self.flows.get(&id.flow);
            let was_told = flow.is_some_and(|flow| flow.previous_hop == Some(author));
            if was_told && feedback.request == Request::NextGeneration {
                self.feedback.drop_acknowledged(|known| *known == id);
            }
            return Ok(());
        }

        let flow = self.flows.get_mut(&id.flow).ok_or(DropReason::UnknownFlow)?;
        let is_source = flow.is_source();
        let generation = flow.generations.get_mut(&id.number).ok_or(DropReason::Stale)?;
        if !generation.feedback_filter.accept(author, start, feedback.number)
            || !generation.is_open()
        {
            return Ok(());
        }

        let progress = feedback.progress;
        let forwards_requests = !is_source && !generation.answers_requests();
        match feedback.request {
            // The previous hop is told later, when the generation is released.
            Request::NextGeneration => {
                generation.stage = Stage::Decoded { at: cx.now };
                generation.sending.polling.handle_answer(progress, cx.now);
            }

            // A relay that leaves requests to the source only passes them on.
            request if forwards_requests => {
                let polling = &mut generation.sending.polling;
                match request {
                    Request::More => polling.handle_request(progress, cx.now),
                    Request::Stop | Request::NextGeneration => {
                        polling.handle_answer(progress, cx.now);
                    }
                }

                generation.forwarded_feedback = Some(feedback);
                self.queue_feedback(id, false, cx);
            }

            Request::Stop => generation.sending.handle_stop(progress, cx.now),

            // Without coding, exactly the missing packets go again.
            Request::More if !self.parameters.codes_within_flows => {
                self.coding_status.repeated += feedback.missing_numbers.len() as u64;
                generation.sending.polling.handle_request(progress, cx.now);
                generation.enqueue_again(&feedback.missing_numbers, cx.now);
            }

            // With coding, any packets of the generation do. The credit is the number of
            // transmissions of which enough arrive. It is limited by this node's rank, as more
            // packets would not be innovative.
            Request::More => {
                let success = self.meter.success(cx.topology, cx.me, cx.me, author);
                let transmissions =
                    |packets| self.parameters.redundancy.transmissions(packets, success);
                let unknown = feedback.missing_combined.saturating_sub(feedback.missing_alone);
                let alone = usize::from(feedback.missing_alone).min(generation.rank());
                let combined = alone + usize::from(unknown);
                let surcharge = (feedback.missing_combined != UNKNOWN)
                    .then(|| transmissions(combined) - transmissions(alone));
                let missing = Missing { alone: transmissions(alone), surcharge };
                generation.sending.handle_more(missing, progress, cx.now);
            }
        }

        Ok(())
    }
}
