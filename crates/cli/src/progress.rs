//! Progress of transfers: bars on a terminal, otherwise a line at every tenth and at every change
//! of state.

use crate::show;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ncmesh_node::api::types::{Receiver, State, Transfer};
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// State of one bar or line.
struct Item<'a> {
    label: &'a str,
    state: State,
    reason: Option<&'a str>,
    bytes: u64,
    size: u64,
}

/// Display of progress on standard error.
pub(crate) enum Progress {
    /// A bar for each label.
    Bars { all: MultiProgress, bars: BTreeMap<String, ProgressBar> },
    /// Lines, with the state and the tenth that were last shown for each label.
    Lines { shown: BTreeMap<String, (State, u64)> },
    /// Nothing.
    Silent,
}

impl Progress {
    /// Chooses bars if standard error is a terminal, lines if it is not, and nothing if `silent`.
    pub(crate) fn new(silent: bool) -> Self {
        if silent {
            Self::Silent
        } else if std::io::stderr().is_terminal() {
            Self::Bars { all: MultiProgress::new(), bars: BTreeMap::new() }
        } else {
            Self::Lines { shown: BTreeMap::new() }
        }
    }

    /// Prints a message.
    #[cfg(feature = "lab")]
    pub(crate) fn note(&self, what: &str) {
        match self {
            Self::Silent => {}
            Self::Lines { .. } => show::note(what),
            // Printed above the bars. Errors mean that the terminal is gone.
            Self::Bars { all, .. } => drop(all.println(what)),
        }
    }

    /// Shows one receiver of a file of `size` bytes.
    #[cfg(feature = "lab")]
    pub(crate) fn show_receiver(&mut self, name: &str, state: State, bytes: u64, size: u64) {
        self.show(&Item { label: name, state, reason: None, bytes, size });
    }

    /// Shows each receiver of a transfer this node sends.
    pub(crate) fn show_receivers(&mut self, transfer: &Transfer) {
        for receiver in &transfer.receivers {
            let Receiver { name, state, reason, bytes, .. } = receiver;
            self.show(&Item {
                label: name,
                state: *state,
                reason: reason.as_deref(),
                bytes: *bytes,
                size: transfer.size,
            });
        }
    }

    /// Shows a whole transfer.
    pub(crate) fn show_transfer(&mut self, transfer: &Transfer) {
        self.show(&Item {
            label: &format!("{} {}", transfer.id, transfer.name),
            state: transfer.state,
            reason: transfer.reason.as_deref(),
            bytes: transfer.bytes,
            size: transfer.size,
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
            // A log must not grow with every request, so only changes are printed.
            Self::Lines { shown } => {
                let step = item.tenths();
                let now = (item.state, step);
                if shown.insert(item.label.into(), now) != Some(now) {
                    let (label, state) = (item.label, item.describe());
                    show::note(&format!("{label}: {state} {} %", step * 10));
                }
            }
            Self::Bars { all, bars } => {
                let bar = bars.entry(item.label.into()).or_insert_with(|| all.add(new_bar(item)));
                bar.set_position(item.bytes);
                bar.set_message(item.describe());
                // `abandon` leaves the bar on the terminal as it is, complete or not.
                if is_final(item.state) && !bar.is_finished() {
                    bar.abandon();
                }
            }
        }
    }
}

impl Item<'_> {
    /// Returns the progress in tenths.
    fn tenths(&self) -> u64 {
        // An empty file has no bytes to count: it is done when it is complete.
        let of_nothing = 10 * u64::from(self.state == State::Complete);
        (self.bytes * 10).checked_div(self.size).unwrap_or(of_nothing)
    }

    /// Returns the state in words, with its reason.
    fn describe(&self) -> String {
        let state = state_name(self.state);
        self.reason.map_or_else(|| state.to_owned(), |reason| format!("{state}: {reason}"))
    }
}

/// Returns a state in words.
pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Invited => "waiting for an answer",
        State::Active => "under way",
        State::Verifying => "verifying",
        State::Complete => "complete",
        State::Lost => "out of reach",
        State::Withdrawn => "withdrawn",
        State::Refused => "refused",
        State::Failed => "failed",
    }
}

/// Returns whether a receiver's state does not change any more.
fn is_final(state: State) -> bool {
    !matches!(state, State::Invited | State::Active | State::Verifying | State::Lost)
}

/// Returns a bar. The time left is estimated from now on, since a transfer may be partly done.
fn new_bar(item: &Item<'_>) -> ProgressBar {
    let template =
        "{prefix:20!} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(item.size).with_style(style.progress_chars("=> "));
    bar.set_prefix(item.label.to_owned());
    bar.set_position(item.bytes);
    bar.reset_eta();
    bar
}
