//! Answers of a daemon that are shown again each second, until the user interrupts it.

use crate::client::Client;
use crate::failure::Failure;
use crate::show;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time between two requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// Signals by which the user ends a command.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Listens for signals. Until then an interrupt ends the process at once.
    pub(crate) fn new(client: &Client) -> Result<Self, Failure> {
        client.block_on(async {
            let interrupt = signal(SignalKind::interrupt())?;
            Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
        })
    }

    /// Waits for `time`, or until the user ends the command. Returns whether the user did.
    pub(crate) fn come_within(&mut self, client: &Client, time: Duration) -> bool {
        client.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(time) => false,
                _ = self.interrupt.recv() => true,
                _ = self.terminate.recv() => true,
            }
        })
    }
}

/// Shows the resource `path` each second until the user ends the command. A terminal shows the
/// latest answer in place of the one before; otherwise answers follow each other. With `json` each
/// answer is a line.
pub(crate) fn watch<T: Serialize + DeserializeOwned>(
    client: &Client,
    json: bool,
    path: &str,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let mut interrupts = Interrupts::new(client)?;
    let is_terminal = io::stdout().is_terminal();
    loop {
        let answer: T = client.read(path)?;
        let read_on = if json {
            show::json_line(&answer)?
        } else if is_terminal {
            redraw(&text(&answer))?;
            true
        } else {
            show::endless_line(&format!("{}\n", text(&answer)))?
        };
        if !read_on || interrupts.come_within(client, INTERVAL) {
            return Ok(());
        }
    }
}

/// Writes the text over what the terminal shows.
fn redraw(text: &str) -> io::Result<()> {
    // Clears the rest of each line, and everything below the last. Clearing the screen first would
    // flicker.
    let lines: String = text.lines().map(|line| format!("{line}\x1b[K\n")).collect();
    let mut out = io::stdout();
    write!(out, "\x1b[H{lines}\x1b[J")?;
    out.flush()
}
