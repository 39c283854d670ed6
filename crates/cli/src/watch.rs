//! Answers of a daemon that are shown again each second, until the user interrupts it.

use crate::client::Client;
use crate::failure::Failure;
use crate::show;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::future;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time between two requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// Signals by which the user ends a command.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed; `None` if the command was told to outlive it, as by `nohup`.
    hangup: Option<Signal>,
}

impl Interrupts {
    /// Listens for signals. Until then an interrupt ends the process at once.
    pub(crate) fn new(client: &Client) -> Result<Self, Failure> {
        client.block_on(async {
            let interrupt = signal(SignalKind::interrupt())?;
            let terminate = signal(SignalKind::terminate())?;
            let hangup = match ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            };

            Ok(Self { interrupt, terminate, hangup })
        })
    }

    /// Waits for `time`, or until the user ends the command. Returns whether the user did.
    pub(crate) fn come_within(&mut self, client: &Client, time: Duration) -> bool {
        let Self { interrupt, terminate, hangup } = self;
        client.block_on(async {
            // Where hangups are ignored this branch waits for ever, and the others decide.
            let hung_up = async {
                match hangup {
                    Some(hangup) => hangup.recv().await,
                    None => future::pending().await,
                }
            };

            tokio::select! {
                () = tokio::time::sleep(time) => false,
                _ = interrupt.recv() => true,
                _ = terminate.recv() => true,
                _ = hung_up => true,
            }
        })
    }
}

/// Returns whether this process was started with hangups ignored.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    // Bit 0 is that of signal 1, the hangup.
    bits.is_some_and(|bits| bits & 1 != 0)
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
