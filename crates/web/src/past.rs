//! The past of a live mesh at a coarse step, in bounded memory.
//!
//! A source tells its whole state in a key, at least every few seconds. The past takes a key each
//! `STEP_S`, and keeps what changed since the one before it, as a tick. The oldest state is kept
//! whole: when the tick behind it is dropped, it is added to that state first. In the past's own
//! meta the time between ticks is `STEP_S`, so that readers can tell its steps from gaps.

use ncmesh_console::schema::{Event, Key, Message, Meta};
use std::collections::VecDeque;
use std::sync::Arc;

/// Time between two states, s.
pub(crate) const STEP_S: f64 = 10.0;

/// Time that is kept, s.
const SPAN_S: f64 = 3600.0;

/// Most bytes of messages that are kept. An hour of a quiet mesh of some hundred links has less;
/// of a larger or restless one, less time is kept.
const MOST_BYTES: usize = 4 << 20;

/// Keys come every 5 s, a little early or late.
const TOLERANCE_S: f64 = 0.5;

/// States and events that are kept, oldest first.
#[derive(Debug)]
pub(crate) struct Past {
    /// Oldest state, with its meta; `None` before the first key.
    base: Option<Whole>,
    entries: VecDeque<Entry>,
    /// Length of the entries, bytes.
    bytes: usize,
    /// Latest meta, and whether no state was taken since it came.
    meta: Option<Meta>,
    is_meta_new: bool,
    /// Latest state that was taken.
    latest: Option<Key>,
}

/// A state with its meta.
#[derive(Clone, Debug)]
struct Whole {
    meta: Meta,
    key: Key,
    /// Number of the message of the source that it is from.
    number: u64,
}

/// A message that was kept.
#[derive(Debug)]
struct Entry {
    /// Number of the message of the source that it is from.
    number: u64,
    json: Arc<str>,
}

impl Past {
    pub(crate) fn new() -> Self {
        Self {
            base: None,
            entries: VecDeque::new(),
            bytes: 0,
            meta: None,
            is_meta_new: false,
            latest: None,
        }
    }

    /// Takes the source's message of this number.
    pub(crate) fn take(&mut self, message: &Message, number: u64) -> serde_json::Result<()> {
        match message {
            Message::Meta(meta) => {
                let meta = Some(Meta { tick_s: STEP_S, ..meta.clone() });
                // Sources repeat their meta; only one that differs has to be told again.
                self.is_meta_new |= self.meta != meta;
                self.meta = meta;
                Ok(())
            }
            Message::Key(key) => self.take_key(key, number),
            Message::Event(event) => self.take_event(event, number),
            // The past has ticks of its own, between states that are `STEP_S` apart.
            Message::Tick(_) => Ok(()),
        }
    }

    fn take_key(&mut self, key: &Key, number: u64) -> serde_json::Result<()> {
        let Some(meta) = &self.meta else { return Ok(()) };

        // The first state is the base that ticks are added to.
        let Some(before) = &self.latest else {
            self.base = Some(Whole { meta: meta.clone(), key: key.clone(), number });
            self.is_meta_new = false;
            self.latest = Some(key.clone());
            return Ok(());
        };

        // Sources tell keys more often than the past keeps them.
        if key.time_s - before.time_s < STEP_S - TOLERANCE_S {
            return Ok(());
        }
        // Something may have joined or got a name, or a counter fell.
        let tick = key.tick_since(before).ok().filter(|_| !self.is_meta_new);
        if let Some(tick) = tick {
            self.push(&Message::Tick(tick), number)?;
        } else {
            self.push(&Message::Meta(meta.clone()), number)?;
            self.push(&Message::Key(key.clone()), number)?;
        }

        self.is_meta_new = false;
        self.latest = Some(key.clone());

        // The new entry may be longer than the oldest, so several may have to go.
        while self.is_too_much(key.time_s) {
            self.drop_oldest()?;
        }
        Ok(())
    }

    fn take_event(&mut self, event: &Event, number: u64) -> serde_json::Result<()> {
        if self.latest.is_some() {
            self.push(&Message::Event(event.clone()), number)?;
        }
        Ok(())
    }

    fn push(&mut self, message: &Message, number: u64) -> serde_json::Result<()> {
        let json: Arc<str> = serde_json::to_string(message)?.into();
        self.bytes += json.len();
        self.entries.push_back(Entry { number, json });
        Ok(())
    }

    fn is_too_much(&self, now_s: f64) -> bool {
        let oldest_s = self.base.as_ref().map_or(now_s, |base| base.key.time_s);
        !self.entries.is_empty() && (self.bytes > MOST_BYTES || now_s - oldest_s > SPAN_S)
    }

    /// Drops the oldest state: the one behind it becomes the oldest.
    fn drop_oldest(&mut self) -> serde_json::Result<()> {
        // A meta or an event moves no state, so one entry may not be enough.
        let mut is_moved = false;
        while !is_moved && let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.json.len();
            is_moved = self.base.as_mut().map_or(Ok(true), |base| base.add(&entry))?;
        }
        Ok(())
    }

    /// Returns the past after `after_s`, without what the source told from message `until` on: a
    /// meta, the first state after that time, and what follows.
    pub(crate) fn after(&self, after_s: f64, until: u64) -> Vec<Arc<str>> {
        let mut told = Vec::new();
        let Some(mut first) = self.base.clone() else { return told };

        // The source still has this state and what follows, and tells it to the listener.
        if first.number >= until {
            return told;
        }

        // Steps before the wanted time are added up, so that the first state told is whole.
        let mut entries = self.entries.iter().take_while(|entry| entry.number < until);
        while first.key.time_s <= after_s {
            let Some(entry) = entries.next() else { return told };
            if first.add(entry).is_err() {
                return told;
            }
        }

        for message in [Message::Meta(first.meta), Message::Key(first.key)] {
            told.extend(serde_json::to_string(&message).map(Into::into));
        }
        told.extend(entries.map(|entry| Arc::clone(&entry.json)));
        told
    }
}

impl Whole {
    /// Adds an entry. Returns whether it made this the next state.
    fn add(&mut self, entry: &Entry) -> serde_json::Result<bool> {
        self.number = entry.number;
        let message = serde_json::from_str(&entry.json)?;

        let is_state = matches!(message, Message::Key(_) | Message::Tick(_));
        match message {
            Message::Meta(meta) => self.meta = meta,
            Message::Key(key) => self.key = key,
            Message::Tick(tick) => {
                // It was made of this state and the next, so it fits.
                let _ = self.key.apply(&tick);
            }
            Message::Event(_) => {}
        }

        Ok(is_state)
    }
}
