//! Progress of transfers and runs: bars on a terminal, otherwise a line at every tenth and at every
//! change of state. Programs get lines of JSON at every hundredth.

use crate::show::{self, Form};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use ncmesh_console::schema::Stage;
use ncmesh_node::api::types::{Receiver, State, Transfer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// State of one bar or line.
struct Item<'a> {
    label: &'a str,
    state: State,
    reason: Option<&'a str>,
    bytes: u64,
    size: u64,
    /// Mean rate until now, or until the end, kbit/s, as tables show it.
    kbit_s: f64,
}

/// Display of progress on standard error.
pub(crate) enum Progress {
    /// A bar for each label.
    Bars { all: MultiProgress, bars: BTreeMap<String, ProgressBar> },
    /// Lines, with the state and the tenth that were last shown for each label.
    Lines { shown: BTreeMap<String, (State, u64)> },
    /// Lines of JSON on standard output, with the state and the percentage that were last printed
    /// for each label.
    Json { shown: BTreeMap<String, (State, u64)> },
    /// Nothing.
    Silent,
}

/// A line of JSON about a run. `event` says which.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    /// A stage of the run has begun.
    #[cfg(feature = "lab")]
    Note { text: &'a str },
    /// A receiver of a file has made progress.
    Receiver { name: &'a str, state: State, bytes: u64, size: u64, kbit_s: f64 },
    /// Flows or streams run: the share of their time that is over.
    #[cfg(feature = "lab")]
    Share { share: f64 },
}

impl Progress {
    /// Chooses bars if standard error is a terminal, and lines if it is not. For programs it prints
    /// lines of JSON, or nothing if they get one document at the end.
    pub(crate) fn new(form: Form) -> Self {
        let shown = BTreeMap::new();
        match form {
            Form::Json => Self::Silent,
            Form::JsonLines => Self::Json { shown },
            Form::Text if std::io::stderr().is_terminal() => {
                Self::Bars { all: MultiProgress::new(), bars: BTreeMap::new() }
            }
            Form::Text => Self::Lines { shown },
        }
    }

    /// Prints a message.
    #[cfg(feature = "lab")]
    pub(crate) fn note(&self, what: &str) {
        match self {
            Self::Silent => {}
            Self::Json { .. } => print(&Line::Note { text: what }),
            Self::Lines { .. } => show::note(what),
            // Printed above the bars. Errors mean that the terminal is gone.
            Self::Bars { all, .. } => drop(all.println(what)),
        }
    }

    /// Shows one receiver of a file of `size` bytes.
    #[cfg(feature = "lab")]
    pub(crate) fn show_receiver(&mut self, receiver: &Receiver, size: u64) {
        self.show(&Item::of(receiver, size));
    }

    /// Shows which share of a run is done, 0 to 1.
    #[cfg(feature = "lab")]
    pub(crate) fn show_share(&mut self, label: &str, share: f64) {
        let tenths = (share * 10.0) as u64;
        match self {
            Self::Silent => {}
            Self::Json { shown } => {
                let now = (State::Active, (share * 100.0) as u64);
                if shown.insert(label.into(), now) != Some(now) {
                    print(&Line::Share { share });
                }
            }
            Self::Lines { shown } => {
                let now = (State::Active, tenths);
                if shown.insert(label.into(), now) != Some(now) {
                    show::note(&format!("{label}: {} %", tenths * 10));
                }
            }
            Self::Bars { all, bars } => {
                let new = || all.add(bar(label, 1000, "{prefix} [{bar:30}] {percent} % {eta}"));
                let bar = bars.entry(label.into()).or_insert_with(new);
                bar.set_position((share * 1000.0) as u64);
            }
        }
    }

    /// Shows each receiver of a transfer this node sends.
    pub(crate) fn show_receivers(&mut self, transfer: &Transfer) {
        for receiver in &transfer.receivers {
            self.show(&Item::of(receiver, transfer.size));
        }
    }

    /// Shows a whole transfer.
    pub(crate) fn show_transfer(&mut self, transfer: &Transfer) {
        self.show(&Item {
            label: &format!("{} {}", transfer.id, transfer.name),
            state: transfer.state,
            reason: transfer.reason.as_deref(),
            bytes: transfer.values.bytes,
            size: transfer.size,
            kbit_s: transfer.values.kbit_s,
        });
    }

    /// Removes all bars from the terminal.
    pub(crate) fn clear(&mut self) {
        if let Self::Bars { all, bars } = self {
            bars.clear();
            // Errors mean that the terminal is gone.
            let _ = all.clear();
        }
    }

    /// Shows the state of one bar or line.
    fn show(&mut self, item: &Item<'_>) {
        match self {
            Self::Silent => {}
            Self::Json { shown } => {
                let now = (item.state, item.done_of(100));
                if shown.insert(item.label.into(), now) != Some(now) {
                    let Item { label: name, state, bytes, size, kbit_s, .. } = *item;
                    print(&Line::Receiver { name, state, bytes, size, kbit_s });
                }
            }

            // A log must not grow with every request, so only changes are printed.
            Self::Lines { shown } => {
                let step = item.done_of(10);
                let now = (item.state, step);
                if shown.insert(item.label.into(), now) != Some(now) {
                    let label = item.label;
                    let state = item.describe();
                    show::note(&format!("{label}: {state} {} %", step * 10));
                }
            }
            Self::Bars { all, bars } => {
                let bar = bars.entry(item.label.into()).or_insert_with(|| all.add(new_bar(item)));
                bar.set_position(item.bytes);
                bar.set_message(format!("{:.0} kbit/s  {}", item.kbit_s, item.describe()));

                // `abandon` leaves the bar on the terminal as it is, complete or not.
                if is_final(item.state) && !bar.is_finished() {
                    bar.abandon();
                }
            }
        }
    }
}

impl<'a> Item<'a> {
    /// Returns what is shown of a receiver of a file of `size` bytes.
    fn of(receiver: &'a Receiver, size: u64) -> Self {
        Self {
            label: &receiver.name,
            state: receiver.state,
            reason: receiver.reason.as_deref(),
            bytes: receiver.values.bytes,
            size,
            kbit_s: receiver.values.kbit_s,
        }
    }

    /// Returns how many of `parts` equal parts are done.
    fn done_of(&self, parts: u64) -> u64 {
        // An empty file has no bytes to count: it is done when it is complete.
        let of_nothing = parts * u64::from(self.state == State::Complete);
        (self.bytes * parts).checked_div(self.size).unwrap_or(of_nothing)
    }

    /// Returns the state in words, with its reason.
    fn describe(&self) -> String {
        let state = state_name(self.state);
        self.reason.map_or_else(|| state.to_owned(), |reason| format!("{state}: {reason}"))
    }
}

/// Prints a line of progress. Without a reader the run goes on: its result has another line, which
/// reports the error.
fn print(line: &Line<'_>) {
    let _ = show::json_line(line);
}

/// Returns a state in words.
pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Invited => "waiting for an answer",
        State::Active => Stage::Open.words(),
        State::Verifying => Stage::Verifying.words(),
        State::Complete => Stage::Complete.words(),
        State::Lost => "out of reach",
        State::Withdrawn => Stage::Withdrawn.words(),
        State::Refused => Stage::Refused.words(),
        State::Failed => Stage::Failed.words(),
    }
}

/// Returns whether a receiver's state does not change any more.
fn is_final(state: State) -> bool {
    !matches!(state, State::Invited | State::Active | State::Verifying | State::Lost)
}

/// Returns a bar of a transfer. The time left is estimated from now on, since a transfer may be
/// partly done.
fn new_bar(item: &Item<'_>) -> ProgressBar {
    let template = "{prefix:20!} [{bar:30}] {decimal_bytes}/{decimal_total_bytes} {eta} {msg}";
    let bar = bar(item.label, item.size, template);
    bar.set_position(item.bytes);
    bar.reset_eta();
    bar
}

/// Returns a bar of this length.
fn bar(label: &str, length: u64, template: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());

    // It is drawn with the others, or not at all: by itself it would leave a line behind.
    let hidden = ProgressDrawTarget::hidden();
    let bar = ProgressBar::with_draw_target(Some(length), hidden);
    let bar = bar.with_style(style.progress_chars("=> "));
    bar.set_prefix(label.to_owned());
    bar
}
