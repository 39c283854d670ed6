//! Files of a host: what to do about every file that is announced to it or that it sends.
//!
//! The engine says what happened to a file ([`Event`]). [`Files`] decides what follows and hands
//! out [`Action`]s. The driver does them, on a disk and other threads in the daemon, at once and in
//! memory in the simulator, and tells what came of those that may fail. A file that is received
//! goes through these states:
//!
//! ```text
//! announced ─► Preparing ─prepared─► Receiving ─assembled─► Verifying ─verified─► delivered
//!                │   ▲                   │                    │   ▲  │
//!                │   └──────Waiting◄─────┘            Waiting◄┘───┘  └─ corrupt: discarded
//!                └─ no place: refused                                   no place: Kept
//! in any state:  cancelled ─► discarded
//!                withdrawn or suspended ─► closed, and what was received stays
//! ```
//!
//! An action that fails for a reason that may pass (a full disk, no descriptor left, a faulty read)
//! is tried again with a backoff, and its file is never refused for it. [`Files::waiting`] says
//! what waits and why.
//!
//! An answer to an action may come after the file has left the state that asked for it. Actions
//! carry the number of the attempt they belong to, so that a late answer does no harm.

#[cfg(test)]
mod tests;

use crate::PAUSES;
use ncmesh_engine::Event;
use ncmesh_engine::file::{GenerationSet, Manifest, Refusal};
use ncmesh_engine::time::Instant;
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most files whose inbox is remembered because it is not the configured one. After a restart,
/// those beyond it begin anew in the configured inbox.
const MAX_ELSEWHERE: usize = 1024;
/// Most attempts that are given up while their place is being prepared. Further files are refused
/// as long as the disk does not keep up.
const MAX_ABANDONED: usize = 256;
/// Most whole files that wait for another start of the host because they cannot be given their
/// names.
const MAX_KEPT: usize = 64;

/// Number of one attempt to receive a file.
pub type Attempt = u64;

/// Action of the driver. `P` is a place that files are received into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// Make or find the place of the file, and answer by
    /// [`handle_prepared`](Files::handle_prepared).
    Prepare {
        /// Attempt that the answer belongs to.
        attempt: Attempt,
        /// Where the file goes.
        place: P,
        /// The file.
        manifest: Box<Manifest>,
    },
    /// Tell the engine that the file is received, and which generations are there.
    Accept(FlowId, GenerationSet),
    /// Tell the engine that the file is not received, and why.
    Refuse(FlowId, Refusal),
    /// Close the file. Verify the whole, make it durable and give it its name. Answer by
    /// [`handle_verified`](Files::handle_verified).
    Verify {
        /// Attempt that the answer belongs to.
        attempt: Attempt,
        /// Where the file was received.
        place: P,
        /// The file.
        manifest: Box<Manifest>,
    },
    /// Tell the engine that the file is delivered.
    Delivered(FlowId),
    /// Close the file. What was received of it stays.
    Close(FlowId),
    /// Close the file and throw away what was received of it.
    Discard(FlowId, P),
    /// Remember that the file was cancelled here, so that a restart does not receive it either.
    NoteCancelled(Box<Manifest>),
    /// A file that this host sends has ended: close it and do not resume it after a restart.
    ForgetSent(FlowId),
}

/// An announced file, before the host looks for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// An earlier reception delivered it.
    Delivered,
    /// It was cancelled here.
    Cancelled,
    /// Its source is not one whose files are taken.
    Unwelcome,
}

/// Why an action on a file could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The file is not taken.
    Refused(Refusal),
    /// It may be possible later. In words, for people.
    Temporary(String),
}

/// Result of [`Action::Prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// The place, and these generations in it.
    Receiving(GenerationSet),
    /// The whole file under its name: it was delivered shortly before a crash.
    Delivered,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Preparing,
    Receiving,
    Verifying,
    /// Something failed and is tried again.
    Waiting {
        /// When.
        until: Instant,
        /// Whether the whole file is there and is to be verified, else its place is to be prepared.
        is_whole: bool,
        /// The failed operation, for people.
        problem: String,
    },
    /// Whole, but it could not be given its name. Kept for another start of the host.
    Kept,
}

#[derive(Debug)]
struct Reception<P> {
    place: P,
    manifest: Manifest,
    attempt: Attempt,
    state: State,
    /// Failures that were temporary.
    failures: u32,
}

/// All files of a host. Poll [`poll_action`](Self::poll_action) after every call.
#[derive(Debug)]
pub struct Files<P> {
    /// Where files go that are announced from now on.
    inbox: Option<P>,
    /// The inbox that a restart begins with.
    configured: Option<P>,
    /// Files being received somewhere else than there; at most [`MAX_ELSEWHERE`].
    elsewhere: BTreeMap<FlowId, P>,
    /// As many as the engines receive at once, and [`MAX_KEPT`].
    receptions: BTreeMap<FlowId, Reception<P>>,
    attempts: Attempt,
    /// Attempts given up before their place was prepared, and the place to discard then, if any; at
    /// most [`MAX_ABANDONED`] and those that are received.
    abandoned: BTreeMap<Attempt, Option<P>>,
    sending: BTreeSet<FlowId>,
    /// Sent files of which a receiver ended since [`take_receiver_news`](Self::take_receiver_news).
    receiver_news: BTreeSet<FlowId>,
    actions: VecDeque<Action<P>>,
}

impl<P> Reception<P> {
    /// Waits until what failed is to be tried again.
    fn wait(&mut self, is_whole: bool, problem: String, now: Instant) {
        let until = now + PAUSES.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting { until, is_whole, problem };
    }
}

impl<P: Clone + PartialEq> Files<P> {
    /// Returns a host without files. It goes on in `elsewhere` with files that an earlier start
    /// began to receive there.
    #[must_use]
    pub fn new(inbox: Option<P>, elsewhere: BTreeMap<FlowId, P>) -> Self {
        Self {
            configured: inbox.clone(),
            inbox,
            elsewhere,
            receptions: BTreeMap::new(),
            attempts: 0,
            abandoned: BTreeMap::new(),
            sending: BTreeSet::new(),
            receiver_news: BTreeSet::new(),
            actions: VecDeque::new(),
        }
    }

    // ---- getters

    /// Returns where files go that are announced from now on.
    #[must_use]
    pub fn inbox(&self) -> Option<&P> {
        self.inbox.as_ref()
    }

    /// Returns the files being received somewhere else than in the configured inbox. A restart must
    /// know them to go on there.
    #[must_use]
    pub fn elsewhere(&self) -> &BTreeMap<FlowId, P> {
        &self.elsewhere
    }

    /// Returns the files that are being received or are kept for verification.
    pub fn receiving(&self) -> impl Iterator<Item = FlowId> {
        self.receptions.keys().copied()
    }

    /// Returns the present inbox and the one that a restart begins with.
    pub fn inboxes(&self) -> impl Iterator<Item = &P> {
        self.inbox.iter().chain(&self.configured)
    }

    /// Returns the files that wait because something failed, and what it was.
    pub fn waiting(&self) -> impl Iterator<Item = (FlowId, &str)> {
        self.receptions.iter().filter_map(|(flow, reception)| match &reception.state {
            State::Waiting { problem, .. } => Some((*flow, problem.as_str())),
            _ => None,
        })
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.receptions.values().filter_map(|reception| match reception.state {
            State::Waiting { until, .. } => Some(until),
            _ => None,
        });
        waiting.min()
    }

    /// Returns the next thing to do.
    pub fn poll_action(&mut self) -> Option<Action<P>> {
        self.actions.pop_front()
    }

    /// Takes the sent files of which a receiver ended since the last call.
    pub fn take_receiver_news(&mut self) -> BTreeSet<FlowId> {
        core::mem::take(&mut self.receiver_news)
    }

    // ---- commands

    /// Puts files into `inbox` that are announced from now on.
    pub fn use_inbox(&mut self, inbox: P) {
        self.inbox = Some(inbox);
    }

    /// Puts one file, which will be announced, into a place of its own. If too many have one, it
    /// goes to the inbox.
    pub fn expect(&mut self, flow: FlowId, place: P) {
        if self.elsewhere.len() < MAX_ELSEWHERE {
            self.elsewhere.insert(flow, place);
        }
    }

    /// Notes that this host sends a file.
    pub fn send(&mut self, flow: FlowId) {
        self.sending.insert(flow);
    }

    /// Notes again that a receiver of a sent file ended, because remembering it failed.
    pub fn restore_receiver_news(&mut self, flow: FlowId) {
        if self.sending.contains(&flow) {
            self.receiver_news.insert(flow);
        }
    }

    /// Ends a file, sent or received, that the user cancelled.
    pub fn cancel(&mut self, flow: FlowId) {
        self.forget_sent(flow);
        if let Some(reception) = self.receptions.get(&flow) {
            self.actions.push_back(Action::NoteCancelled(Box::new(reception.manifest.clone())));
        }
        self.discard(flow);
    }

    /// Ends the reception of a file whose source does not return. It is received anew if it is
    /// announced again.
    pub fn give_up(&mut self, flow: FlowId) {
        self.discard(flow);
    }

    // ---- handle

    /// Tries again what failed and is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for reception in self.receptions.values_mut() {
            let State::Waiting { until, is_whole, .. } = reception.state else { continue };
            if until > now {
                continue;
            }

            // A new attempt, so that an answer that is still to come of the old one changes
            // nothing.
            self.attempts += 1;
            reception.attempt = self.attempts;
            let attempt = reception.attempt;
            let place = reception.place.clone();
            let manifest = Box::new(reception.manifest.clone());
            self.actions.push_back(if is_whole {
                reception.state = State::Verifying;
                Action::Verify { attempt, place, manifest }
            } else {
                reception.state = State::Preparing;
                Action::Prepare { attempt, place, manifest }
            });
        }
    }

    /// Takes an event of the engine. Returns it if it is not about files. `known` says what is
    /// known of an announced file.
    pub fn handle_event(
        &mut self,
        event: Event,
        now: Instant,
        known: impl FnOnce(&Manifest) -> Option<Known>,
    ) -> Option<Event> {
        match event {
            Event::Announced(manifest) => {
                let known = known(&manifest);
                self.handle_announced(manifest, known);
            }
            Event::Assembled(flow) => self.handle_assembled(flow),
            // The generations on the disk are what counts. Preparing the place again finds out
            // which are there.
            Event::Unwritable(flow) => {
                self.actions.push_back(Action::Close(flow));
                if let Some(reception) = self.receptions.get_mut(&flow) {
                    reception.wait(false, "a generation could not be written".into(), now);
                }
            }
            // Received generations stay, for when the file is announced again. Nothing proves that
            // its source has withdrawn it.
            Event::Withdrawn(flow) | Event::Suspended(flow) => {
                if let Some(reception) = self.receptions.remove(&flow) {
                    self.abandon(&reception, false);
                }
                self.actions.push_back(Action::Close(flow));
            }
            Event::ReceiverDone(flow, _) | Event::ReceiverObjected(flow, _) => {
                self.receiver_news.insert(flow);
            }
            // A receiver may still object.
            Event::SendEnded(_) => {}
            Event::SendConfirmed(flow) | Event::SendFailed(flow, _) => self.forget_sent(flow),
            other => return Some(other),
        }
        None
    }

    fn handle_announced(&mut self, manifest: Box<Manifest>, known: Option<Known>) {
        let flow = manifest.flow;
        match known {
            // The engine asks for its verification, which `handle_assembled` confirms at once.
            Some(Known::Delivered) => return self.accept_all(&manifest),
            Some(Known::Cancelled) => return self.refuse(flow, Refusal::Cancelled),
            Some(Known::Unwelcome) => return self.refuse(flow, Refusal::NotAllowed),
            None => {}
        }

        // A file that was begun in another inbox goes on there.
        let place = self.elsewhere.get(&flow).or(self.inbox.as_ref());
        let Some(place) = place.cloned() else { return self.refuse(flow, Refusal::NoInbox) };
        if self.abandoned.len() >= MAX_ABANDONED {
            return self.refuse(flow, Refusal::Busy);
        }
        if self.configured.as_ref() != Some(&place) && self.elsewhere.len() < MAX_ELSEWHERE {
            self.elsewhere.insert(flow, place.clone());
        }

        self.attempts += 1;
        let attempt = self.attempts;
        let reception = Reception {
            place: place.clone(),
            manifest: Manifest::clone(&manifest),
            attempt,
            state: State::Preparing,
            failures: 0,
        };

        // A file that is announced again begins again. Its earlier attempt may still be under way.
        if let Some(earlier) = self.receptions.insert(flow, reception) {
            self.abandon(&earlier, false);
        }
        self.actions.push_back(Action::Prepare { attempt, place, manifest });
    }

    /// Takes the answer to [`Action::Prepare`]. Returns whether the place is to be opened; if not,
    /// nothing is written to it.
    pub fn handle_prepared(
        &mut self,
        flow: FlowId,
        attempt: Attempt,
        answer: Result<Prepared, Obstacle>,
        now: Instant,
    ) -> bool {
        let Some(reception) = self.reception_in(flow, attempt, &State::Preparing) else {
            // Cancelled meanwhile: what was prepared since then goes too.
            let place = self.abandoned.remove(&attempt).flatten();
            let place = place.filter(|_| !self.receptions.contains_key(&flow));
            self.actions.extend(place.map(|place| Action::Discard(flow, place)));
            return false;
        };

        match answer {
            Ok(Prepared::Receiving(have)) => {
                reception.state = State::Receiving;
                self.actions.push_back(Action::Accept(flow, have));
                true
            }
            Ok(Prepared::Delivered) => {
                // The engine takes all generations as there and asks for the verification of the
                // whole.
                reception.state = State::Receiving;
                let generations = reception.manifest.geometry.generations();
                self.actions.push_back(Action::Accept(flow, GenerationSet::all(generations)));
                false
            }

            // It is tried again later. The source goes on with others meanwhile.
            Err(Obstacle::Temporary(problem)) => {
                reception.wait(false, problem, now);
                false
            }
            Err(Obstacle::Refused(why)) => {
                self.receptions.remove(&flow);
                self.elsewhere.remove(&flow);
                self.refuse(flow, why);
                false
            }
        }
    }

    fn handle_assembled(&mut self, flow: FlowId) {
        // Without a reception it was delivered before this start.
        let Some(reception) = self.receptions.get_mut(&flow) else {
            return self.actions.push_back(Action::Delivered(flow));
        };
        reception.state = State::Verifying;
        let attempt = reception.attempt;
        let place = reception.place.clone();
        let manifest = Box::new(reception.manifest.clone());
        self.actions.push_back(Action::Verify { attempt, place, manifest });
    }

    /// Takes the answer to [`Action::Verify`]. Returns whether the file is delivered by it.
    pub fn handle_verified(
        &mut self,
        flow: FlowId,
        attempt: Attempt,
        answer: Result<(), Obstacle>,
        now: Instant,
    ) -> bool {
        let Some(reception) = self.reception_in(flow, attempt, &State::Verifying) else {
            return false;
        };

        match answer {
            Ok(()) => {
                self.discard(flow);
                self.actions.push_back(Action::Delivered(flow));
                return true;
            }

            Err(Obstacle::Temporary(problem)) => reception.wait(true, problem, now),
            // Each generation was proved when it came, so the disk has changed the file since.
            Err(Obstacle::Refused(Refusal::Corrupt)) => {
                self.discard(flow);
                self.refuse(flow, Refusal::Corrupt);
            }
            Err(Obstacle::Refused(why)) => {
                reception.state = State::Kept;
                self.bound_kept(flow);
                self.refuse(flow, why);
            }
        }

        false
    }

    // ---- inside

    /// Returns the reception that an answer belongs to.
    fn reception_in(
        &mut self,
        flow: FlowId,
        attempt: Attempt,
        state: &State,
    ) -> Option<&mut Reception<P>> {
        let reception = self.receptions.get_mut(&flow)?;
        (reception.attempt == attempt && reception.state == *state).then_some(reception)
    }

    /// Forgets a reception, and discards what was received.
    fn discard(&mut self, flow: FlowId) {
        self.elsewhere.remove(&flow);
        if let Some(reception) = self.receptions.remove(&flow) {
            self.abandon(&reception, true);
            self.actions.push_back(Action::Discard(flow, reception.place));
        }
    }

    /// Forgets a file that waits for another start, besides `newest`, if there are too many. What
    /// is there of it stays.
    fn bound_kept(&mut self, newest: FlowId) {
        let is_kept = |reception: &Reception<P>| reception.state == State::Kept;
        let kept = || self.receptions.iter().filter(|(_, reception)| is_kept(reception));
        let other = kept().map(|(flow, _)| *flow).find(|flow| *flow != newest);
        if kept().count() > MAX_KEPT
            && let Some(other) = other
        {
            self.receptions.remove(&other);
        }
    }

    /// Expects an answer to `Prepare` that comes too late.
    fn abandon(&mut self, reception: &Reception<P>, discards: bool) {
        if reception.state == State::Preparing {
            let place = discards.then(|| reception.place.clone());
            self.abandoned.insert(reception.attempt, place);
        }
    }

    fn forget_sent(&mut self, flow: FlowId) {
        if self.sending.remove(&flow) {
            self.receiver_news.remove(&flow);
            self.actions.push_back(Action::ForgetSent(flow));
        }
    }

    fn accept_all(&mut self, manifest: &Manifest) {
        let all = GenerationSet::all(manifest.geometry.generations());
        self.actions.push_back(Action::Accept(manifest.flow, all));
    }

    fn refuse(&mut self, flow: FlowId, why: Refusal) {
        self.actions.push_back(Action::Refuse(flow, why));
    }
}
