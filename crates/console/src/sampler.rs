//! Messages from the state that a source tells.

use crate::schema::{Event, KEY_S, Key, Message, Meta};
use std::io;

/// Tolerance of times, s: keys that are told every 100 ms may be early or late by as much.
const TOLERANCE_S: f64 = 1e-6;

/// Destination of messages.
pub trait Sink {
    /// Takes the next message.
    ///
    /// # Errors
    /// It cannot be written.
    fn tell(&mut self, message: &Message) -> io::Result<()>;

    /// Writes what is left: no message follows.
    ///
    /// # Errors
    /// It cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Two destinations of the same messages.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        self.0.tell(message)?;
        self.1.tell(message)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()?;
        self.1.finish()
    }
}

/// Destination that may be absent.
impl<S: Sink> Sink for Option<S> {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.tell(message))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), Sink::finish)
    }
}

/// Turns the states of a source into messages: a key where one is due, else a tick.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    meta: Option<Meta>,
    before: Option<Key>,
    /// Time of the last key, s.
    keyed_s: f64,
}

impl Sampler {
    /// Returns a sampler that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the meta that was told last.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Returns the state that was told last.
    #[must_use]
    pub fn state(&self) -> Option<&Key> {
        self.before.as_ref()
    }

    /// Takes the state at an instant, and the `events` since the state before it. Passes the
    /// messages that tell it to `tell`, in their order.
    ///
    /// # Errors
    /// The first error of `tell`.
    pub fn sample<E>(
        &mut self,
        meta: &Meta,
        state: Key,
        events: impl IntoIterator<Item = Event>,
        mut tell: impl FnMut(Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_meta_new = self.meta.as_ref() != Some(meta);
        if is_meta_new {
            tell(Message::Meta(meta.clone()))?;
            self.meta = Some(meta.clone());
        }

        // Events may name what is new in the meta, and come before the tick with their effects. No
        // message comes between a meta and its key.
        let is_key_due = is_meta_new || state.time_s - self.keyed_s > KEY_S - TOLERANCE_S;
        let tick = self.before.as_ref().filter(|_| !is_key_due);
        let tick = tick.and_then(|before| state.tick_since(before).ok());

        let mut events = events.into_iter().map(Message::Event);
        if !is_meta_new {
            events.try_for_each(&mut tell)?;
        }

        // A key stands where there is no state to differ from, where one is due for readers that
        // seek, and where a tick cannot tell the change.
        if let Some(tick) = tick {
            tell(Message::Tick(tick))?;
        } else {
            self.keyed_s = state.time_s;
            tell(Message::Key(state.clone()))?;
        }

        // Events that waited for the key follow it here.
        self.before = Some(state);
        events.try_for_each(tell)
    }
}
