//! Repair of differences between the link states of two neighbours.
//!
//! Every hello carries a digest of the states that its sender knows: the exclusive or of their
//! hashes. While news travels, the digests of neighbours differ: the difference is a sum, over
//! GF(2), of what single news changed in the digest. Solving for the terms shows which news a
//! neighbour lacks, as a syndrome shows the errors in a code word, and it is told them again. If
//! news do not explain the difference, the two compare what they know: digests of ranges of node
//! ids, then of smaller ranges where they differ, down to lists of versions. Each then tells or
//! asks for what the other lacks. This is range-based set reconciliation (Meyer, SRDS 2023): the
//! frames grow with the number of differences and only with the logarithm of the size of the mesh.
//! A node that has just come up gets everything from one neighbour in this way.

use super::question::{Digested, List, Listed};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::topology::{LinkState, Topology};
use ncmesh_wire::{NodeId, Record, Writer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Longest range that is told as a list, in states. A longer one is split.
const LIST: usize = 32;
/// Number of parts into which a longer range is split.
const PARTS: usize = 16;
/// Most frames that wait.
const MAX_WAITING: usize = 64;
/// Most nodes that one frame asks for.
const MAX_WANTED: usize = 400;
/// Time before the first request for a state. Others may be about to send it.
const REQUEST_WAIT: Duration = Duration::from_millis(60);
/// Most requests for the same state.
const MAX_REQUESTS: u32 = 5;
/// Pauses between requests for the same state.
const REQUEST_PAUSES: Backoff = Backoff {
    first: Duration::from_millis(300),
    longest: Duration::from_millis(300 << (MAX_REQUESTS - 1)),
};
/// Most ranges of a neighbour that are compared more closely.
const MAX_RANGES: usize = 64;
/// Age up to which news may be what a neighbour lacks.
const NEWS_TIME: Duration = Duration::from_secs(12);
/// Most news that are remembered. It is below 64: that many random sums explain any difference.
const MAX_NEWS: usize = 50;
/// Time for which prepared terms are kept, although news grow old meanwhile.
const TERMS_TIME: Duration = Duration::from_secs(1);
/// Time in which news reach a neighbour unless they are lost.
const ON_ITS_WAY: Duration = Duration::from_millis(400);
/// Most states that are told again after one hello.
const MAX_RETOLD: usize = 8;
/// Time for which a difference may last before the nodes compare. A node that knows next to
/// nothing does not wait.
const DIFFERENCE_TIMEOUT: Duration = Duration::from_secs(4);
/// The same for a neighbour whose digest has never equalled ours, once no news come any more.
const FIRST_TIMEOUT: Duration = Duration::from_millis(500);
/// Pauses after a comparison. They double after as many failures as are to be expected before a
/// question and its answer arrive.
const PAUSES: Backoff =
    Backoff { first: Duration::from_millis(600), longest: Duration::from_millis(600 << 4) };
/// Least quality of a link over which questions help.
pub(super) const ASKING_HELPS: f64 = 0.25;
/// Expected number of answers to the comparisons with a neighbour, after which its next digest is
/// awaited.
const ENOUGH_ANSWERS: f64 = 0.2;
/// Least quality that is reckoned with.
const POOREST: f64 = 0.05;

/// Passes over all states that a neighbour may cause in a second, and at once. An honest one begins
/// a comparison in [`PAUSES`], and that takes a dozen frames in a large mesh.
const PASSES_PER_S: f64 = 10.0;
const MOST_PASSES: f64 = 40.0;
/// Least part of a pass that a question counts for: it is read and answered, too.
const LEAST_PASS: f64 = 0.1;
/// Most neighbours whose budget is kept.
const MAX_BUDGETS: usize = 1024;

/// First and last node id of a range.
pub(super) type Range = (NodeId, NodeId);

/// A frame that this node wants to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Digests of ranges.
    Compare(Vec<Range>),
    /// Versions of all states in ranges.
    Versions(Vec<Range>),
    /// Nodes whose states are wanted.
    Request(Vec<NodeId>),
}

/// Kind of a question to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Compare,
    Versions,
    Request,
}

impl Question {
    pub(super) fn kind(&self) -> Asked {
        match self {
            Self::Compare(_) => Asked::Compare,
            Self::Versions(_) => Asked::Versions,
            Self::Request(_) => Asked::Request,
        }
    }
}

/// Returns what a state adds to the digest.
pub(super) fn hash(origin: NodeId, state: Option<&LinkState>) -> u64 {
    state.map_or(0, |state| Listed::of(origin, state).hash())
}

/// Returns the digest of the states in a range: the exclusive or of their hashes.
pub(super) fn digest(topology: &Topology, range: Range) -> u64 {
    listed(topology, range).fold(0, |digest, listed| digest ^ listed.hash())
}

/// Returns the range of all nodes.
pub(super) const ALL: Range = (NodeId(0), NodeId(u16::MAX));

fn listed(topology: &Topology, (first, last): Range) -> impl Iterator<Item = Listed> + '_ {
    topology.states_between(first, last).map(|(origin, state)| Listed::of(origin, state))
}

/// A state that was learned lately.
#[derive(Clone, Copy, Debug)]
struct News {
    origin: NodeId,
    at: Instant,
    /// Its change of our digest.
    changed: u64,
}

/// A neighbour whose states may differ from ours.
#[derive(Clone, Copy, Debug)]
struct Difference {
    /// A digest of it that nothing explains yet, and when it came.
    open: Option<(u64, Instant)>,
    /// Its latest digest.
    latest: u64,
    /// Comparisons since the digests were last alike.
    tries: u32,
    /// Comparisons since we last heard a digest.
    blind: u32,
    /// When the next comparison may begin.
    next: Instant,
}

/// Comparisons under way at one node.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// The latest news, the newest first.
    news: VecDeque<News>,
    differences: BTreeMap<NodeId, Difference>,
    /// Neighbours that have known the same as we do.
    alike: BTreeSet<NodeId>,
    /// When the next comparison may begin.
    next: Instant,
    waiting: VecDeque<(NodeId, Question)>,
    /// States that a neighbour may lack, for a digest of ours and until a time.
    terms: Option<(u64, Instant, Arc<Terms>)>,
    /// Nodes whose whole states are wanted.
    wanted: BTreeMap<NodeId, Want>,
    budgets: BTreeMap<NodeId, Budget>,
}

/// Passes over all states that a neighbour may cause now, as of a time.
#[derive(Clone, Copy, Debug)]
struct Budget {
    passes: f64,
    at: Instant,
}

/// A state that is asked for until it comes.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// The neighbour that has it.
    from: NodeId,
    due: Instant,
    /// Requests so far.
    tries: u32,
}

impl Repair {
    /// Notes what a state that was learned `changed` in our digest.
    pub(super) fn note_news(&mut self, origin: NodeId, changed: u64, at: Instant) {
        if changed != 0 {
            self.news.truncate(MAX_NEWS - 1);
            self.news.push_front(News { origin, at, changed });
        }
    }

    /// Notes the digest of a neighbour, with our own. Returns the nodes of news that it lacks
    /// although they had time to reach it.
    pub(super) fn note_digest(
        &mut self,
        neighbour: NodeId,
        theirs: u64,
        ours: u64,
        topology: &Topology,
        now: Instant,
    ) -> Vec<NodeId> {
        if theirs == ours {
            self.differences.remove(&neighbour);
            self.alike.insert(neighbour);
            return Vec::new();
        }

        // News that explain the difference are told again, without a question.
        let terms = self.all_terms(topology, ours, now);
        let new = Difference { open: None, latest: theirs, tries: 0, blind: 0, next: now };
        let difference = self.differences.entry(neighbour).or_insert(new);
        (difference.latest, difference.blind) = (theirs, 0);

        // A digest that nothing explains yet may hold news that are on their way to us. It is kept
        // until they must have come.
        match difference.open {
            Some((open, _)) if terms.explain(open ^ ours).is_none() => {}
            _ => difference.open = Some((theirs, now)),
        }

        let lacking = terms.explain(theirs ^ ours).into_iter().flatten();
        let late = lacking.filter(|news| now.since(news.at) >= ON_ITS_WAY);
        late.map(|news| news.origin).take(MAX_RETOLD).collect()
    }

    /// Returns what a neighbour may lack of all states, of which `ours` is the digest.
    fn all_terms(&mut self, topology: &Topology, ours: u64, now: Instant) -> Arc<Terms> {
        let known = self.terms.take().filter(|(digest, until, _)| *digest == ours && now < *until);
        let (digest, until, terms) = known
            .unwrap_or_else(|| (ours, now + TERMS_TIME, Arc::new(self.terms(topology, ALL, now))));
        self.terms = Some((digest, until, Arc::clone(&terms)));
        terms
    }

    /// Returns what a neighbour may lack of the states in a range: the latest news, and if there
    /// are few states, each of them.
    fn terms(&self, topology: &Topology, range: Range, now: Instant) -> Terms {
        // Two tables that differ mostly differ by what just changed. Each news is a candidate, and
        // so is each state of a range that has few.
        let news = self.news.iter().take_while(move |news| now.since(news.at) < NEWS_TIME);
        let is_inside = |news: &&News| range.0 <= news.origin && news.origin <= range.1;
        let mut terms: Vec<News> = news.filter(is_inside).copied().collect();

        // States of the range have no age here, so they always count as old enough to be told.
        let states = listed(topology, range).map(|listed| News {
            origin: listed.origin,
            at: Instant::default(),
            changed: listed.hash(),
        });

        // All states of the range or none: a part of them would explain differences wrongly.
        let room = MAX_NEWS - terms.len();
        let states: Vec<News> = states.take(room + 1).collect();
        if states.len() <= room {
            terms.extend(states);
        }
        Terms::new(terms)
    }

    /// Forgets the neighbours that are not among those heard lately.
    pub(super) fn retain(&mut self, is_neighbour: impl Fn(NodeId) -> bool) {
        self.differences.retain(|node, _| is_neighbour(*node));
        self.alike.retain(|node| is_neighbour(*node));
    }

    /// Begins a comparison with a neighbour whose digest differed some time ago by more than the
    /// news that have come since, or shortly before, explain. Each step of a comparison may be
    /// lost, so only neighbours with links of the best `quality` there is are asked: the share that
    /// passes both ways. Returns the neighbour, and the nodes whose states it is to be told as
    /// [`refine`](Self::refine) says.
    pub(super) fn begin(
        &mut self,
        topology: &Topology,
        ours: u64,
        quality: impl Fn(NodeId) -> Option<f64>,
        now: Instant,
    ) -> Option<(NodeId, Vec<NodeId>)> {
        if now < self.next || self.differences.is_empty() {
            return None;
        }

        // A node that knows next to nothing compares at once. It has nothing to explain by news.
        let newcomer = topology.len() <= 2;
        let terms = self.all_terms(topology, ours, now);
        let quiet = self.news.front().is_none_or(|news| now.since(news.at) >= FIRST_TIMEOUT);

        // The best quality is known only after all were seen, so candidates are collected first.
        let mut best = 0.0f64;
        let mut open: Vec<(u32, NodeId, f64)> = Vec::new();
        for (neighbour, difference) in &mut self.differences {
            let Some((theirs, since)) = difference.open else { continue };
            if !newcomer && terms.explain(theirs ^ ours).is_some() {
                difference.open = None;
                continue;
            }
            let Some(quality) = quality(*neighbour) else { continue };
            best = best.max(quality);

            let is_first = !self.alike.contains(neighbour) && (quiet || quality < ASKING_HELPS);
            // After a comparison that did not help, the next digest that differs is enough.
            let wait = match difference.tries {
                0 if newcomer => Duration::ZERO,
                0 if is_first => FIRST_TIMEOUT,
                0 => DIFFERENCE_TIMEOUT,
                _ => Duration::ZERO,
            };

            // A neighbour that we hardly hear is asked several times for one of its digests.
            let answers = f64::from(difference.blind) * quality.max(POOREST);
            if now >= since + wait && now >= difference.next && answers < ENOUGH_ANSWERS {
                open.push((difference.tries, *neighbour, quality));
            }
        }

        open.retain(|(.., quality)| *quality >= best / 2.0);

        // The least tried goes first, so that one deaf neighbour does not hold up the others.
        let (tries, neighbour, quality) =
            open.into_iter().min_by_key(|(tries, n, _)| (*tries, *n))?;
        let doublings = (f64::from(tries) * quality.max(POOREST)) as u32;
        let next = now + PAUSES.pause(doublings);

        let difference = self.differences.get_mut(&neighbour)?;
        (difference.tries, difference.next) = (tries + 1, next);
        difference.blind += 1;
        difference.open = Some((difference.latest, now));

        // The first question covers all nodes. Answers narrow it down.
        let (first, last) = ALL;
        let differing = vec![Digested { first, last, digest: difference.latest }];
        self.next = now + PAUSES.first;
        Some((neighbour, self.refine(topology, neighbour, quality, differing, now)))
    }

    /// Takes from the budget of a neighbour the cost of an answer to its question, for which this
    /// node looks at `states` of `all` states. Returns whether there was enough.
    pub(super) fn may_answer(
        &mut self,
        neighbour: NodeId,
        states: usize,
        all: usize,
        now: Instant,
    ) -> bool {
        make_room(&mut self.budgets, &neighbour, MAX_BUDGETS, |budget| budget.at);
        let full = Budget { passes: MOST_PASSES, at: now };
        let budget = self.budgets.entry(neighbour).or_insert(full);
        let earned = PASSES_PER_S * now.since(budget.at).as_secs_f64();
        *budget = Budget { passes: (budget.passes + earned).min(MOST_PASSES), at: now };
        let cost = (states as f64 / all.max(1) as f64).clamp(LEAST_PASS, 1.0);
        let is_enough = budget.passes >= cost;
        if is_enough {
            budget.passes -= cost;
        }
        is_enough
    }

    /// Puts a comparison with a neighbour off: one with this node is under way.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.next = self.next.max(now + PAUSES.first);
    }

    /// Asks for the whole state of `origin`, which a neighbour has, until it comes.
    pub(super) fn want(&mut self, origin: NodeId, from: NodeId, now: Instant) {
        if self.wanted.len() < MAX_WANTED || self.wanted.contains_key(&origin) {
            // Others may be about to send it.
            let want = Want { from, due: now + REQUEST_WAIT, tries: 0 };
            self.wanted.entry(origin).or_insert(want);
        }
    }

    /// Notes that the state of `origin` was learned.
    pub(super) fn note_learned(&mut self, origin: NodeId) {
        self.wanted.remove(&origin);
    }

    /// Queues the requests that are due, with those that will be soon.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        // Nothing is due yet. Otherwise requests that fall due soon go out too: they share a frame.
        if self.wanted.values().all(|want| want.due > now) {
            return;
        }

        // One frame for each neighbour: it asks for all that is wanted of it.
        let mut by_neighbour: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for (origin, want) in &mut self.wanted {
            if want.due <= now + REQUEST_WAIT {
                by_neighbour.entry(want.from).or_default().push(*origin);
                want.due = now + REQUEST_PAUSES.pause(want.tries);
                want.tries += 1;
            }
        }

        self.wanted.retain(|_, want| want.tries < MAX_REQUESTS);
        for (from, origins) in by_neighbour {
            self.ask(from, Question::Request(origins));
        }
    }

    /// Returns when, later than `after`, a request is due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.wanted.values().map(|want| want.due).filter(|due| *due > after).min()
    }

    /// Compares the ranges of which a neighbour has other digests: short ones as lists, long ones
    /// in parts. Returns the nodes whose states it is to be told instead: those that explain the
    /// difference; and over a link that hardly lets a question and its answer pass, all of a short
    /// range.
    #[must_use]
    pub(super) fn refine(
        &mut self,
        topology: &Topology,
        with: NodeId,
        quality: f64,
        digests: Vec<Digested>,
        now: Instant,
    ) -> Vec<NodeId> {
        let mut lists = Vec::new();
        let mut parts = Vec::new();
        let mut told = Vec::new();

        // Overlapping ranges would multiply the work that one short question causes.
        let in_order = apart(digests, |digested| (digested.first, digested.last));
        for Digested { first, last, digest: theirs } in in_order {
            let range = (first, last);
            let difference = theirs ^ digest(topology, range);
            if difference == 0 {
                continue;
            }

            // News that explain the difference are told, and nothing is asked.
            if let Some(lacking) = self.terms(topology, range, now).explain(difference) {
                told.extend(lacking.map(|news| news.origin));
                continue;
            }

            let nodes: Vec<NodeId> = listed(topology, range).map(|listed| listed.origin).collect();
            if nodes.len() <= LIST {
                // Only the neighbour can tell what it has and we lack.
                lists.push(range);
                if quality < ASKING_HELPS {
                    told.extend(nodes);
                }
                continue;
            }

            // Parts of as many states each. They cover the whole range: the neighbour may know
            // nodes in between.
            let size = nodes.len().div_ceil(PARTS);
            let mut first = range.0;
            for part in nodes.chunks(size) {
                let is_last = part.last() == nodes.last();
                let last = if is_last { range.1 } else { part[part.len() - 1] };
                parts.push((first, last));
                first = NodeId(last.0.saturating_add(1));
            }
        }

        // Lists end a comparison, so they go before digests that continue it.
        if !lists.is_empty() {
            self.ask(with, Question::Versions(lists));
        }
        if !parts.is_empty() {
            self.ask(with, Question::Compare(parts));
        }

        told
    }

    fn ask(&mut self, neighbour: NodeId, question: Question) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((neighbour, question));
        }
    }

    /// Returns whether a frame waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the next frame and its addressee.
    pub(super) fn pop(&mut self) -> Option<(NodeId, Question)> {
        self.waiting.pop_front()
    }

    /// Puts back what did not fit into the frame.
    pub(super) fn put_back(&mut self, neighbour: NodeId, question: Question) {
        self.waiting.push_front((neighbour, question));
    }
}

/// At most 64 terms that a neighbour may lack, prepared for the question which of them sum up to a
/// difference over GF(2): with the pivots of Gaussian elimination, one for each highest bit, each a
/// sum of terms, and which.
#[derive(Debug)]
struct Terms {
    news: Vec<News>,
    pivots: [(u64, u64); 64],
}

impl Terms {
    fn new(news: Vec<News>) -> Self {
        let mut terms = Self { news, pivots: [(0, 0); 64] };
        for index in 0..terms.news.len() {
            let rest = terms.reduce(terms.news[index].changed, 1 << index);
            if rest.0 != 0 {
                terms.pivots[rest.0.ilog2() as usize] = rest;
            }
        }
        terms
    }

    /// Returns the terms that sum up to `bits`; `None` if none do. Hashes are hardly ever
    /// dependent, so there is one answer at most.
    fn explain(&self, bits: u64) -> Option<impl Iterator<Item = &News>> {
        let (left, which) = self.reduce(bits, 0);
        let chosen = move |(index, _): &(usize, &News)| which >> index & 1 == 1;
        (left == 0).then(|| self.news.iter().enumerate().filter(chosen).map(|(_, news)| news))
    }

    fn reduce(&self, mut bits: u64, mut which: u64) -> (u64, u64) {
        while bits != 0 && self.pivots[bits.ilog2() as usize].0 != 0 {
            let pivot = self.pivots[bits.ilog2() as usize];
            bits ^= pivot.0;
            which ^= pivot.1;
        }
        (bits, which)
    }
}

/// Writes as much of a question as fits into a body of `mtu` bytes. Returns the rest.
pub(super) fn write(
    out: &mut Vec<u8>,
    mtu: usize,
    to: NodeId,
    question: Question,
    topology: &Topology,
) -> Option<Question> {
    let start = out.len();
    Writer::new(out).node(to);

    let room = |out: &Vec<u8>| mtu.saturating_sub(out.len() - start);
    match question {
        Question::Compare(mut ranges) => {
            // A digest for each range: the neighbour answers where its own differs.
            let rest = ranges.split_off(ranges.len().min(room(out) / Digested::LEN));
            for range in ranges {
                let (first, last) = range;
                let digested = Digested { first, last, digest: digest(topology, range) };
                digested.put(&mut Writer::new(out));
            }
            (!rest.is_empty()).then_some(Question::Compare(rest))
        }
        Question::Versions(ranges) => {
            for (index, range) in ranges.iter().enumerate() {
                // A list is read as complete, so one that does not fit waits for the next frame.
                let states: Vec<Listed> = listed(topology, *range).take(LIST).collect();
                if room(out) < List::LEN + Listed::LEN * states.len() {
                    return Some(Question::Versions(ranges[index..].to_vec()))
                        .filter(|_| index > 0);
                }

                let (first, last) = *range;
                List { first, last, states }.put(&mut Writer::new(out));
            }
            None
        }
        Question::Request(mut origins) => {
            let rest = origins.split_off(origins.len().min(room(out) / 2));
            for origin in origins {
                Writer::new(out).node(origin);
            }
            (!rest.is_empty()).then_some(Question::Request(rest))
        }
    }
}

/// Returns the ranges of a question that are in order and apart, as those of an honest neighbour
/// are: together they cost one pass over the states.
pub(super) fn apart<T>(parts: Vec<T>, range: impl Fn(&T) -> Range) -> impl Iterator<Item = T> {
    let mut end: Option<NodeId> = None;
    parts.into_iter().take(MAX_RANGES).filter(move |part| {
        let (first, last) = range(part);
        let is_apart = first <= last && end.is_none_or(|end| end < first);
        end = if is_apart { Some(last) } else { end };
        is_apart
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A sum of random hashes tells which news a neighbour lacks.
        #[test]
        fn a_sum_of_hashes_shows_its_terms(seed: u64, lacking in 0u64..1 << 40) {
            let news = |i: u16| News {
                origin: NodeId(i),
                at: Instant::default(),
                changed: Listed { origin: NodeId(i), epoch: seed, base: u32::from(i) }.hash(),
            };
            let terms = Terms::new((0..40).map(news).collect());
            let lacked = (0..40).filter(|i| lacking >> i & 1 == 1);
            let sum = lacked.clone().fold(0, |sum, i| sum ^ news(i).changed);
            let found: Vec<NodeId> = terms.explain(sum).unwrap().map(|news| news.origin).collect();
            prop_assert_eq!(found, lacked.map(NodeId).collect::<Vec<_>>());
            prop_assert!(terms.explain(sum ^ news(99).changed).is_none());
        }
    }
}
