//! What falls due with time, and after whatever happened.

use super::flow::Flow;
use super::generation::Generation;
use super::regions::{Passage, Regions};
use super::{Core, Key};
use ncmesh_engine::Context;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::IDLE;

impl Core {
    /// To be called after whatever happened.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) {
        if self.topology != cx.topology.version() {
            self.topology = cx.topology.version();
            self.reroute(cx);
        }
        self.serve_sources(cx);
        self.release(cx);
        self.flows.retain(|_, flow| flow.idle(cx.now) < IDLE);
        if core::mem::take(&mut self.changed) {
            self.meter.age(cx.now);
            self.regions = Regions::of(&self.passages(), &self.rules, &self.meter, cx);
        }
        self.part();
    }

    fn reroute(&mut self, cx: &Context<'_>) {
        self.changed = true;
        for (key, flow) in self.flows.iter_mut().filter(|(_, flow)| !flow.is_destination) {
            flow.next = self.next_hops.towards(cx.topology, cx.me, key.1);
        }
    }

    fn passages(&self) -> Vec<Passage> {
        let passage = |(key, flow): (&Key, &Flow)| {
            Some(Passage { flow: *key, previous: flow.previous?, next: flow.next? })
        };
        self.flows.iter().filter_map(passage).collect()
    }

    fn serve_sources(&mut self, cx: &mut Context<'_>) {
        for (key, flow) in self.flows.iter_mut().filter(|(_, flow)| flow.inlet.is_some()) {
            flow.generations.retain(|_, generation| generation.done_at.is_none());
            for _ in 0..flow.give_up(&self.rules, cx.now) {
                self.tallies.lost(key.0, key.1);
            }
            let next = flow.next;
            let success =
                next.map_or(1.0, |next| self.meter.success(cx.topology, cx.me, cx.me, next));
            let credits = self.rules.redundancy.each(usize::from(self.rules.room), success);
            flow.take_in(&self.rules, credits, cx.now);
        }
    }

    // ---- synchronised generations (6.1)

    /// Tells those before this relay that generations are done, once the flow they were combined with has come as far.
    fn release(&mut self, cx: &mut Context<'_>) {
        let mut released = Vec::new();
        for flow in self.flows.values().filter(|flow| flow.inlet.is_none()) {
            for (number, generation) in &flow.generations {
                if self.released_at(generation).is_some_and(|at| at <= cx.now) {
                    released.push((flow.start, *number));
                }
            }
        }
        for (start, number) in released {
            if let Some(flow) = self.flows.get_mut(&start.key()) {
                flow.release(number);
            }
            self.owe((start, number), false, cx);
        }
    }

    /// From when on a generation that is done need not wait for another flow.
    fn released_at(&self, generation: &Generation) -> Option<Instant> {
        let done_at = generation.done_at.filter(|_| !generation.released)?;
        let other = self.awaited(generation).filter(|_| self.rules.synchronise);
        let Some(other) = other else { return Some(done_at) };
        // It is not worth more than half the time of a generation, nor to wait for who is silent.
        let half = done_at.since(generation.begun_at) / 2;
        let answered_at = other.sending.answered_at().unwrap_or(other.begun_at);
        let silent_at = other.heard_at.max(answered_at) + self.rules.wait();
        Some((done_at + half).min(silent_at))
    }

    /// The generation that one was combined with, if it is more than half through.
    fn awaited(&self, generation: &Generation) -> Option<&Generation> {
        let (start, number) = generation.sending.with()?;
        let flow = self.flows.get(&start.key()).filter(|flow| flow.start == start)?;
        let other = flow.generations.get(&number).filter(|other| other.done_at.is_none())?;
        (2 * other.rank() > usize::from(other.head.count)).then_some(other)
    }

    /// What was combined with a generation that is done, or that nobody answers for, goes alone.
    fn part(&mut self) {
        let mut apart = Vec::new();
        for (key, flow) in &self.flows {
            for (number, generation) in &flow.generations {
                let Some((start, other)) = generation.sending.with() else { continue };
                let flow = self.flows.get(&start.key()).filter(|flow| flow.start == start);
                let other = flow.and_then(|flow| flow.generations.get(&other));
                let open = |g: &Generation| g.done_at.is_none() && !g.sending.is_quiet();
                let goes_on =
                    other.is_some_and(open) && self.regions.between(key, &start.key()).is_some();
                if !goes_on && generation.done_at.is_none() {
                    apart.push((*key, *number));
                }
            }
        }
        for (key, number) in apart {
            let flow = self.flows.get_mut(&key);
            if let Some(generation) = flow.and_then(|flow| flow.generations.get_mut(&number)) {
                generation.sending.part();
            }
        }
    }

    // ---- time

    pub(super) fn next_timeout(&self, after: Instant) -> Option<Instant> {
        let flows = self.flows.values();
        flows.flat_map(|flow| self.timeouts(flow, after)).filter(|at| *at > after).min()
    }

    fn timeouts<'a>(
        &'a self,
        flow: &'a Flow,
        after: Instant,
    ) -> impl Iterator<Item = Instant> + 'a {
        let each = move |generation: &'a Generation| {
            let held = generation.has_credit();
            let held = held.then(|| generation.sending.since() + self.rules.hold());
            let polls = flow.polls_at(generation, &self.rules);
            [held, polls, self.released_at(generation)]
        };
        let generations = flow.generations.values().flat_map(each).flatten();
        let coming = flow.heard_at + self.rules.hold() * 2;
        generations.chain(flow.poll_timeout(&self.rules, after)).chain([coming])
    }
}
