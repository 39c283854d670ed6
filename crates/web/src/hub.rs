//! Messages of a live mesh, for any number of listeners.
//!
//! The source tells the [`Hub`] each message once; it is written as JSON once, whoever listens. A
//! [`Listener`] begins with the latest meta and key and what came since, and goes on with what
//! comes. The queue between them is bounded: a listener that is too slow misses messages, and goes
//! on at the next key. The source never waits. A hub with a past tells that first.

use crate::past::{self, Past};
use ncmesh_console::Sink;
use ncmesh_console::schema::{EventKind, Message, TICK_S};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::time::timeout;

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
    /// Messages that the source has told.
    messages: u64,
    /// Number of the latest meta or key.
    begins_at: u64,
    /// States before the latest; `None` if they are not kept.
    past: Option<Past>,
}

/// How much of the past a listener is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// Nothing: it begins at the latest key.
    Now,
    /// All of it that is later than this, s, as far as it is kept.
    After(f64),
}

/// Messages of a live mesh. Clones share them.
#[derive(Clone, Debug)]
pub struct Hub {
    latest: Arc<Mutex<Latest>>,
    sender: Sender<Told>,
    /// Wakes the source when somebody begins to listen.
    listened: Arc<Notify>,
    /// Name that tells the messages of this source from those of another start of it.
    run: Arc<str>,
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
            run: start_name().into(),
        }
    }

    /// Returns a hub that keeps an hour of what it is told, one state for each 10 s, in at most
    /// 4 MiB.
    #[must_use]
    pub fn with_past() -> Self {
        let hub = Self::new();
        hub.lock().past = Some(Past::new());
        hub
    }

    /// Returns the name that tells the messages of this source from those of another start of it.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns a listener.
    #[must_use]
    pub fn listen(&self, wanted: Wanted) -> Listener {
        // Under the lock, so that no message is missed or comes twice.
        let latest = self.lock();
        let mut begin: VecDeque<Arc<str>> = match (wanted, &latest.past) {
            (Wanted::After(time_s), Some(past)) => past.after(time_s, latest.begins_at).into(),
            _ => VecDeque::new(),
        };

        // The meta and the key come before what changed since, as the page applies them in this
        // order.
        let now = [&latest.meta, &latest.key].into_iter().flatten();
        begin.extend(now.chain(&latest.since).map(|told| Arc::clone(&told.json)));

        // Subscribed before the lock is free again, so that nothing falls between state and queue.
        let receiver = self.sender.subscribe();
        self.listened.notify_one();
        Listener { begin, receiver, is_behind: false, has_ended: latest.has_ended }
    }

    /// Returns the number of listeners.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Returns the time between two states that the source shall tell now, s: its metas say it.
    #[must_use]
    pub fn step_s(&self) -> f64 {
        let is_for_past = self.listeners() == 0 && self.lock().past.is_some();
        if is_for_past { past::STEP_S } else { TICK_S }
    }

    /// Waits until somebody listens, or the next state of the past is due. Only one task may wait,
    /// the source.
    pub async fn wait_for_listener(&self) {
        // A permit of an earlier listener may be left over, so the count decides.
        let listens = async {
            while self.listeners() == 0 {
                self.listened.notified().await;
            }
        };

        if self.lock().past.is_none() {
            return listens.await;
        }
        // If the time is over, the past wants the state.
        let _ = timeout(Duration::from_secs_f64(past::STEP_S), listens).await;
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Every change of it is complete before anything can panic.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Hub {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        // JSON is written before the lock is taken, once for all listeners.
        let is_whole = matches!(message, Message::Meta(_) | Message::Key(_));
        let told = Told { json: serde_json::to_string(message)?.into(), is_whole };

        let mut latest = self.lock();
        latest.messages += 1;
        let number = latest.messages;
        // The past and `begins_at` count the same numbers, so no listener gets a state twice.
        if let Some(past) = &mut latest.past {
            past.take(message, number)?;
        }

        match message {
            // The key that follows is of this meta; older ones are not.
            Message::Meta(_) => {
                latest.meta = Some(told.clone());
                latest.key = None;
                latest.since.clear();
                latest.begins_at = number;
            }
            Message::Key(_) => {
                latest.key = Some(told.clone());
                latest.since.clear();
                latest.begins_at = number;
            }
            // Bounded, because a source may tell no key for long.
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

/// Returns a name that no other start of this program has: when it was.
fn start_name() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}", since.as_nanos())
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
        // The state at the beginning was taken under the lock, so nothing in the queue is older.
        if let Some(json) = self.begin.pop_front() {
            return Some(json);
        }
        if self.has_ended {
            return None;
        }
        loop {
            match self.receiver.recv().await {
                // After a gap only a whole state helps: a tick would be applied to the wrong state.
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
    use ncmesh_console::schema::{
        Event, KEY_S, Key, LinkTable, Meta, Node, NodeTable, SCHEMA, Source, Tick,
    };

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
        let mut listener = hub.listen(Wanted::Now);
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
        let mut listener = hub.listen(Wanted::Now);
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
        let mut listener = hub.listen(Wanted::Now);
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

    fn meta(nodes: u16) -> Message {
        let node = |id| Node { id, name: String::new(), position: None };
        Message::Meta(Meta {
            schema: SCHEMA,
            source: Source::Daemon,
            version: String::new(),
            scenario: None,
            seed: None,
            schemes: Vec::new(),
            bit_rate_bps: None,
            tick_s: TICK_S,
            key_s: KEY_S,
            observer: Some(1),
            nodes: (1..=nodes).map(node).collect(),
            links: Vec::new(),
            transfers: Vec::new(),
            flows: Vec::new(),
            streams: Vec::new(),
            rollouts: Vec::new(),
        })
    }

    /// Returns a state in which the first node has sent as many frames as there were seconds.
    fn state(nodes: u16, time_s: u32) -> Message {
        let mut table = NodeTable::unknown(usize::from(nodes));
        table.control[0] = Some(u64::from(time_s).into());
        let time_s = f64::from(time_s);
        let links = LinkTable::unknown(0);
        Message::Key(Key { time_s, nodes: table, links, ..Key::default() })
    }

    /// Returns all messages that a listener has now, with the states that they add up to.
    async fn told(hub: &Hub, wanted: Wanted) -> (Vec<Meta>, Vec<Key>) {
        let mut listener = hub.listen(wanted);
        let mut metas = Vec::new();
        let mut states: Vec<Key> = Vec::new();
        for _ in 0..listener.begin.len() {
            let json = listener.next().await.expect("a message");
            match serde_json::from_str(&json).expect("JSON") {
                Message::Meta(meta) => metas.push(meta),
                Message::Key(key) => states.push(key),
                Message::Tick(tick) => {
                    let mut state = states.last().expect("a key comes first").clone();
                    state.apply(&tick).expect("it fits");
                    states.push(state);
                }
                Message::Event(_) => {}
            }
        }
        (metas, states)
    }

    #[tokio::test]
    async fn a_listener_is_told_the_last_hour_in_steps() {
        let mut hub = Hub::with_past();
        tell(&mut hub, [meta(3)]);
        tell(&mut hub, (0..=7200).step_by(5).map(|time_s| state(3, time_s)));
        tell(&mut hub, [tick(7200.1)]);
        let (metas, states) = told(&hub, Wanted::After(f64::MIN)).await;
        let ticks: Vec<f64> = metas.iter().map(|meta| meta.tick_s).collect();
        assert_eq!(ticks, [past::STEP_S, TICK_S]);
        let times: Vec<f64> = states.iter().map(|state| state.time_s).collect();
        let steps = (3600..=7200).step_by(10).map(f64::from);
        assert_eq!(times, steps.chain([7200.1]).collect::<Vec<_>>());
        for state in &states {
            assert_eq!(state.nodes.control[0].map(|n| n.0), Some(state.time_s as u64));
        }

        // A listener that was here before is not told again what it has.
        let (_, states) = told(&hub, Wanted::After(7175.0)).await;
        assert_eq!(
            states.iter().map(|s| s.time_s).collect::<Vec<_>>(),
            [7180.0, 7190.0, 7200.0, 7200.1]
        );
        let (metas, states) = told(&hub, Wanted::Now).await;
        assert_eq!((metas.len(), states.len()), (1, 2));
    }

    #[tokio::test]
    async fn what_joined_in_the_past_is_there_from_then_on() {
        let mut hub = Hub::with_past();
        tell(&mut hub, [meta(1), state(1, 0), state(1, 10), meta(2), state(2, 20), state(2, 30)]);
        tell(&mut hub, [state(2, 35)]);
        let (metas, states) = told(&hub, Wanted::After(f64::MIN)).await;
        assert_eq!(metas.iter().map(|meta| meta.nodes.len()).collect::<Vec<_>>(), [1, 2, 2]);
        let rows = states.iter().map(|state| (state.time_s, state.nodes.up.len()));
        let expected = [(0.0, 1), (10.0, 1), (20.0, 2), (30.0, 2), (35.0, 2)];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn the_past_is_bounded_whatever_happens() {
        let mut hub = Hub::with_past();
        tell(&mut hub, [meta(1), state(1, 0)]);
        for step in 1..200 {
            let text = "x".repeat(100_000);
            let what = EventKind::Hint { text };
            let event = Event { time_s: f64::from(step * 10), node: None, what };
            tell(&mut hub, [Message::Event(event), state(1, step * 10)]);
        }
        let (_, states) = told(&hub, Wanted::After(f64::MIN)).await;
        assert!((30..60).contains(&states.len()), "{}", states.len());
        assert_eq!(states.last().map(|state| state.time_s), Some(1990.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_without_listeners_is_asked_again_only_for_the_past() {
        let wait = Duration::from_secs(3600);
        assert!(timeout(wait, Hub::new().wait_for_listener()).await.is_err());
        let hub = Hub::with_past();
        assert!(timeout(wait, hub.wait_for_listener()).await.is_ok());
        assert_eq!((Hub::new().step_s(), hub.step_s()), (TICK_S, past::STEP_S));
        let listener = hub.listen(Wanted::Now);
        assert_eq!(hub.step_s(), TICK_S);
        drop(listener);
    }
}
