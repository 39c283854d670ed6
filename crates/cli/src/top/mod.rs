//! State and screen of `ncmesh top`, made from the console's messages.

#[cfg(test)]
mod tests;
mod view;

use ncmesh_console::schema::{
    Count, EventKind, Key, Message, Meta, NodeTable, OLDEST_SCHEMA, SCHEMA,
};
use std::collections::VecDeque;

pub(crate) use view::draw;

/// Time over which rates are taken, s: long enough to be read, short enough to follow.
const WINDOW_S: f64 = 3.0;

/// Most states that are kept for it. A source that ticks faster has a shorter window.
const MOST_STATES: usize = 64;

/// Most lines of what happened that are kept.
const MOST_EVENTS: usize = 100;

/// Page of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Peers,
    Flows,
    Airtime,
}

impl Tab {
    pub(crate) const ALL: [Self; 3] = [Self::Peers, Self::Flows, Self::Airtime];

    /// Returns its name.
    fn name(self) -> &'static str {
        match self {
            Self::Peers => "Peers",
            Self::Flows => "Flows",
            Self::Airtime => "Airtime",
        }
    }

    /// Returns the tab `places` to the right; the first follows the last.
    fn after(self, places: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + places) % Self::ALL.len()]
    }
}

/// Meaning of a key that the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    /// Ends the help, or else the command.
    Quit,
    /// Ends the command.
    End,
    NextTab,
    PreviousTab,
    Up,
    Down,
    Help,
}

/// The mesh as it was told, and what the user looks at.
#[derive(Debug, Default)]
pub(crate) struct Top {
    meta: Option<Meta>,
    /// The latest states, oldest first, of one start of the source.
    states: VecDeque<Key>,
    /// Latest events as lines of text, the newest last.
    events: VecDeque<String>,
    tab: Tab,
    /// Number of rows above those that are shown.
    scrolled: usize,
    shows_help: bool,
}

/// The source has another version of the messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign;

impl Top {
    /// Takes a message of the source.
    pub(crate) fn handle(&mut self, message: Message) -> Result<(), Foreign> {
        match message {
            // A source of another version may mean other things by the same fields.
            Message::Meta(meta) if !(OLDEST_SCHEMA..=SCHEMA).contains(&meta.schema) => {
                return Err(Foreign);
            }
            Message::Meta(meta) => self.meta = Some(meta),
            Message::Key(key) => {
                // Counters of a source that was started again begin at zero.
                if self.states.back().is_some_and(|last| key.time_s < last.time_s) {
                    self.states.clear();
                }
                self.push(key);
            }
            Message::Tick(tick) => {
                // Ticks before the first key have nothing to change.
                let Some(mut key) = self.states.back().cloned() else { return Ok(()) };
                key.apply(&tick).map_err(|_| Foreign)?;
                self.push(key);
            }
            Message::Event(event) => {
                let node = event.node.map(|node| self.name(node)).unwrap_or_default();
                if let Some(text) = self.describe(&event.what) {
                    self.events.push_back(format!("{:>7.1} s  {node} {text}", event.time_s));
                }
                // The list holds what a screen may show, so that a run of days does not fill the
                // memory.
                if self.events.len() > MOST_EVENTS {
                    self.events.pop_front();
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, key: Key) {
        let is_old = |state: &Key| state.time_s < key.time_s - WINDOW_S;
        while self.states.front().is_some_and(is_old) || self.states.len() >= MOST_STATES {
            self.states.pop_front();
        }
        self.states.push_back(key);
    }

    /// Takes what the user pressed. Returns whether to go on.
    pub(crate) fn press(&mut self, press: Press) -> bool {
        match press {
            Press::End => return false,
            Press::Quit if !self.shows_help => return false,
            Press::Quit => self.shows_help = false,
            Press::Help => self.shows_help = !self.shows_help,
            Press::NextTab => (self.tab, self.scrolled) = (self.tab.after(1), 0),
            Press::PreviousTab => {
                self.tab = self.tab.after(Tab::ALL.len() - 1);
                self.scrolled = 0;
            }
            Press::Up => self.scrolled = self.scrolled.saturating_sub(1),
            // The next drawing knows how many rows there are, and takes back what is too far.
            Press::Down => self.scrolled += 1,
        }
        true
    }

    /// Returns the name of a node; its id while the name is unknown.
    fn name(&self, id: u16) -> String {
        let nodes = self.meta.iter().flat_map(|meta| &meta.nodes);
        let named = nodes.filter(|node| node.id == id).find(|node| !node.name.is_empty());
        named.map_or_else(|| id.to_string(), |node| node.name.clone())
    }

    /// Returns what happened in words; `None` if it is of no interest.
    fn describe(&self, what: &EventKind) -> Option<String> {
        Some(match what {
            EventKind::NodeUp => "is up".into(),
            EventKind::NodeDown => "is down".into(),
            EventKind::NeighborUp { neighbor } => format!("hears {}", self.name(*neighbor)),
            EventKind::NeighborDown { neighbor } => {
                format!("hears {} no more", self.name(*neighbor))
            }
            EventKind::Transfer { transfer, stage } => {
                let file = self.meta.as_ref()?.transfers.get(*transfer as usize)?;
                format!("{}: {}", file.name, stage.words())
            }
            EventKind::ReceiverDone { transfer, receiver } => {
                let file = self.meta.as_ref()?.transfers.get(*transfer as usize)?;
                format!("{} has {}", self.name(*receiver), file.name)
            }
            EventKind::Hint { text } => format!("hint: {text}"),
            EventKind::Drops { reason, frames, seconds } => {
                format!("dropped {frames} frames in {seconds:.0} s: {reason}")
            }
            EventKind::End => "the run has ended".into(),
        })
    }

    /// Returns the latest state and the one at the beginning of the window, if they differ in time.
    fn window(&self) -> Option<[&Key; 2]> {
        let [first, last] = [self.states.front()?, self.states.back()?];
        (last.time_s > first.time_s).then_some([first, last])
    }

    /// Returns by how much a counter grew in a second.
    fn rate(&self, counter: impl Fn(&Key) -> Option<Count>) -> Option<f64> {
        // A counter that fell belongs to another start of the source: there is no rate then.
        let [first, last] = self.window()?;
        let grown = counter(last)?.0.checked_sub(counter(first).unwrap_or_default().0)?;
        Some(grown as f64 / (last.time_s - first.time_s))
    }

    /// Returns the share of the time that a node was on the air with control, data and coded
    /// frames. `None` if that is not known.
    fn airtime(&self, node: usize) -> Option<[f64; 3]> {
        // A daemon knows its own airtime only. Without that of control frames nothing is known.
        self.states.back()?.nodes.control_us.get(node)?.as_ref()?;
        let share = |column: fn(&NodeTable) -> &[Option<Count>]| {
            let us = self.rate(|key| *column(&key.nodes).get(node)?);
            us.unwrap_or(0.0) / 1e6
        };

        Some([
            share(|nodes| &nodes.control_us),
            share(|nodes| &nodes.data_us),
            share(|nodes| &nodes.coded_us),
        ])
    }
}
