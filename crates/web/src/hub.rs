//! Messages of a live mesh, for any number of listeners.
//!
//! The source tells the [`Hub`] each message once; it is written as JSON once, whoever listens. A
//! [`Listener`] begins with the latest meta and key and what came since, and goes on with what
//! comes. The queue between them is bounded: a listener that is too slow misses messages, and goes
//! on at the next key. The source never waits.

use ncmesh_console::Sink;
use ncmesh_console::schema::{EventKind, Message};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Messages that a listener may be behind: about a minute.
const QUEUE: usize = 1024;

/// Most messages that are kept since the latest key. Events beyond it are not shown to listeners
/// that come later.
const SINCE_KEY: usize = 4096;

/// A message as listeners get it.
#[derive(Clone, Debug)]
struct Told {
    /// Its JSON.
    json: Arc<str>,
    /// Whether it stands alone: a meta, or a key.
    is_whole: bool,
}

/// The first messages of a listener.
#[derive(Debug, Default)]
struct Latest {
    meta: Option<Told>,
    key: Option<Told>,
    since: Vec<Told>,
    has_ended: bool,
}

/// Messages of a live mesh. Clones share them.
#[derive(Clone, Debug)]
pub struct Hub {
    latest: Arc<Mutex<Latest>>,
    sender: Sender<Told>,
    /// Wakes the source when somebody begins to listen.
    listened: Arc<Notify>,
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// Returns a hub that was told nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            latest: Arc::default(),
            sender: broadcast::channel(QUEUE).0,
            listened: Arc::default(),
        }
    }

    /// Returns a listener.
    #[must_use]
    pub fn listen(&self) -> Listener {
        // Under the lock, so that no message is missed or comes twice.
        let latest = self.lock();
        let begin = [&latest.meta, &latest.key].into_iter().flatten();
        let begin = begin.chain(&latest.since).map(|told| Arc::clone(&told.json)).collect();
        let receiver = self.sender.subscribe();
        self.listened.notify_one();
        Listener { begin, receiver, is_behind: false, has_ended: latest.has_ended }
    }

    /// Returns the number of listeners.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Waits until somebody listens. Only one task may wait, the source.
    pub async fn wait_for_listener(&self) {
        while self.listeners() == 0 {
            self.listened.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Every change of it is complete before anything can panic.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Hub {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        let is_whole = matches!(message, Message::Meta(_) | Message::Key(_));
        let told = Told { json: serde_json::to_string(message)?.into(), is_whole };
        let mut latest = self.lock();
        match message {
            // The key that follows is of this meta; older ones are not.
            Message::Meta(_) => {
                *latest = Latest { meta: Some(told.clone()), ..Latest::default() };
            }
            Message::Key(_) => {
                latest.key = Some(told.clone());
                latest.since.clear();
            }
            Message::Tick(_) | Message::Event(_) if latest.since.len() < SINCE_KEY => {
                latest.since.push(told.clone());
            }
            Message::Tick(_) | Message::Event(_) => {}
        }
        latest.has_ended |= matches!(message, Message::Event(e) if e.what == EventKind::End);

        // An error means that nobody listens.
        let _ = self.sender.send(told);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A listener of a [`Hub`].
#[derive(Debug)]
pub struct Listener {
    /// Its first messages.
    begin: VecDeque<Arc<str>>,
    receiver: Receiver<Told>,
    /// Whether messages were missed, and no key came since.
    is_behind: bool,
    has_ended: bool,
}

impl Listener {
    /// Returns the next message as JSON. Waits for one, and returns `None` when none can come any
    /// more.
    pub async fn next(&mut self) -> Option<Arc<str>> {
        if let Some(json) = self.begin.pop_front() {
            return Some(json);
        }
        if self.has_ended {
            return None;
        }
        loop {
            match self.receiver.recv().await {
                Ok(told) if told.is_whole || !self.is_behind => {
                    self.is_behind = false;
                    return Some(told.json);
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_console::schema::{Event, Key, Tick};

    fn key(time_s: f64) -> Message {
        Message::Key(Key { time_s, ..Key::default() })
    }

    fn tick(time_s: f64) -> Message {
        Message::Tick(Tick { time_s, ..Tick::default() })
    }

    fn tell(hub: &mut Hub, messages: impl IntoIterator<Item = Message>) {
        messages.into_iter().for_each(|message| hub.tell(&message).expect("memory"));
    }

    /// Returns the time and type of the next message.
    async fn next(listener: &mut Listener) -> (String, f64) {
        let json = listener.next().await.expect("a message");
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let kind = value["type"].as_str().expect("a type").to_owned();
        (kind, value["time_s"].as_f64().expect("a time"))
    }

    #[tokio::test]
    async fn a_listener_begins_at_the_latest_key() {
        let mut hub = Hub::new();
        tell(&mut hub, [key(0.0), tick(0.1), key(5.0), tick(5.1)]);
        let mut listener = hub.listen();
        tell(&mut hub, [tick(5.2)]);
        for expected in [("key", 5.0), ("tick", 5.1), ("tick", 5.2)] {
            let (kind, time_s) = next(&mut listener).await;
            assert_eq!((kind.as_str(), time_s), expected);
        }
    }

    #[tokio::test]
    async fn a_slow_listener_goes_on_at_the_next_key_and_the_source_never_waits() {
        let mut hub = Hub::new();
        tell(&mut hub, [key(0.0)]);
        let mut listener = hub.listen();
        let missed = u32::try_from(3 * QUEUE).expect("small");
        tell(&mut hub, (0..missed).map(|n| tick(f64::from(n))));
        tell(&mut hub, [key(9000.0), tick(9000.1)]);
        assert_eq!(next(&mut listener).await, ("key".to_owned(), 0.0));
        assert_eq!(next(&mut listener).await, ("key".to_owned(), 9000.0));
        assert_eq!(next(&mut listener).await, ("tick".to_owned(), 9000.1));
    }

    #[tokio::test]
    async fn after_the_end_nothing_comes_and_a_listener_that_left_is_forgotten() {
        let mut hub = Hub::new();
        let end = Event { time_s: 1.0, node: None, what: EventKind::End };
        tell(&mut hub, [key(0.0), Message::Event(end)]);
        let mut listener = hub.listen();
        assert_eq!(hub.listeners(), 1);
        assert_eq!(next(&mut listener).await.0, "key");
        assert_eq!(next(&mut listener).await.0, "event");
        assert!(listener.next().await.is_none());
        drop(listener);
        assert_eq!(hub.listeners(), 0);
    }

    #[tokio::test]
    async fn what_is_kept_since_a_key_is_bounded() {
        let mut hub = Hub::new();
        tell(&mut hub, [key(0.0)]);
        tell(&mut hub, (0..20_000).map(|n| tick(f64::from(n))));
        assert_eq!(hub.lock().since.len(), SINCE_KEY);
    }
}
