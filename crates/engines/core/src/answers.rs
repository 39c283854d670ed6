//! Counts and answers heard: whether what was sent was enough (CORE, sections 4 and 6; table 3).

use super::Core;
use super::frame::{Count, Feedback, UNKNOWN, Wish};
use super::receive::Heard;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::{Context, Frame};

impl Core {
    pub(super) fn hear_count(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Heard {
        let Count { serial, number, again, head, next } =
            Count::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.meter.note(frame.sender, frame.epoch, serial, cx.now);
        if next != cx.me {
            return Ok(());
        }
        self.admit(&head, frame.sender, cx)?;
        let key = head.start.key();
        self.deliver(key, cx);
        let Some(flow) = self.flows.get_mut(&key) else { return Ok(()) };
        let is_destination = flow.is_destination;
        if let Some(generation) = flow.generations.get_mut(&head.generation) {
            if !generation.questions.is_news(frame.sender, frame.epoch, number) {
                return Ok(());
            }
            let answers = is_destination || generation.answers();
            let behind = generation.sending.is_quiet() && generation.is_whole();
            if generation.done_at.is_none() && !is_destination && (!answers || behind) {
                generation.sending.ask();
            }
            if !answers && generation.done_at.is_none() {
                return Ok(());
            }
        }
        self.owe(head.name(), again, cx);
        Ok(())
    }

    pub(super) fn hear_feedback(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Heard {
        let feedback = Feedback::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.meter.learn(frame.sender, &feedback.heard, cx.now);
        self.changed = true;
        let start = feedback.start;
        if feedback.to != cx.me {
            let flow = self.flows.get(&start.key()).filter(|flow| flow.start == start);
            let was_told = flow.is_some_and(|flow| flow.previous == Some(frame.sender));
            if was_told && feedback.wish == Wish::Next {
                // It passes on what it was told.
                self.owed.heeded(|name| *name == (start, feedback.generation));
            }
            return Ok(());
        }
        let flow = self.flows.get_mut(&start.key()).filter(|flow| flow.start == start);
        let flow = flow.ok_or(DropReason::UnknownFlow)?;
        let is_source = flow.inlet.is_some();
        let generation = flow.generations.get_mut(&feedback.generation);
        let generation = generation.ok_or(DropReason::Stale)?;
        if !generation.answers.is_news(frame.sender, frame.epoch, feedback.number) {
            return Ok(());
        }
        let progress = feedback.progress;
        let passes = !is_source && !generation.answers();
        match feedback.wish {
            _ if generation.done_at.is_some() => {}
            Wish::Next => {
                generation.done_at = Some(cx.now);
                generation.sending.answer(progress, cx.now);
            }
            wish if passes => {
                generation.sending.answer(progress, cx.now);
                if wish == Wish::More {
                    generation.sending.is_wanted(progress, cx.now);
                }
                generation.passing = Some(feedback.clone());
                self.owe((start, feedback.generation), false, cx);
            }
            Wish::Stop => generation.sending.stop(progress, cx.now),
            Wish::More if !self.rules.coded => {
                self.coding.repeated += feedback.wanted.len() as u64;
                generation.sending.is_wanted(progress, cx.now);
                generation.repeat(&feedback.wanted, cx.now);
            }
            Wish::More => {
                let success = self.meter.success(cx.topology, cx.me, cx.me, frame.sender);
                let sent = |packets| self.rules.redundancy.transmissions(packets, success);
                let alone = usize::from(feedback.alone).min(generation.rank());
                let all = alone + usize::from(feedback.combined.saturating_sub(feedback.alone));
                let debt = (feedback.combined != UNKNOWN).then(|| sent(all) - sent(alone));
                generation.sending.need(sent(alone), debt, progress, cx.now);
            }
        }
        Ok(())
    }
}
