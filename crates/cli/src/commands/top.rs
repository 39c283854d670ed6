//! `ncmesh top`: shows peers, flows and airtime on the terminal.

use crate::client::socket;
use crate::failure::{Failure, Kind};
use crate::remote_args::Remote;
use crate::top::{Press, Top, draw};
use ncmesh_console::schema::Message;
use ncmesh_node::api::client::{ApiClient, ClientError};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;
use tokio::runtime::Builder;

/// Longest time that a key or a change waits until it is shown.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Message of the daemon, or why no more come.
type Told = Result<Message, Failure>;

/// Runs the command. Returns when the user ends it.
pub(crate) fn run(remote: &Remote) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let message = "`ncmesh top` draws on a terminal; `ncmesh peers --watch` writes lines";
        return Err(Failure::new(Kind::Usage, message));
    }

    let socket = socket(remote)?;
    let (sender, messages) = mpsc::channel();
    std::thread::Builder::new().name("messages".into()).spawn(move || listen(socket, &sender))?;

    // The first message shows that there is a daemon, before the screen is cleared.
    let ended = |_| Failure::new(Kind::NoDaemon, "the daemon has ended");
    let first = messages.recv().map_err(ended)??;

    let mut top = Top::default();
    handle(&mut top, first)?;
    let mut terminal = ratatui::try_init()?;
    // The terminal is restored before a failure is reported, which would else be drawn over.
    let shown = show(&mut terminal, &mut top, &messages);
    ratatui::restore();
    shown
}

/// Passes the daemon's messages on, until nobody takes them.
fn listen(socket: PathBuf, sender: &Sender<Told>) {
    let told = Builder::new_current_thread().enable_all().build().map(|runtime| {
        runtime.block_on(async {
            let mut messages = ApiClient::new(socket).follow("/v1/messages").await?;
            while let Some(json) = messages.next().await? {
                let message =
                    serde_json::from_str(&json).map_err(|e| ClientError::Strange(e.to_string()))?;
                if sender.send(Ok(message)).is_err() {
                    break;
                }
            }

            Ok::<(), ClientError>(())
        })
    });

    let failure = match told {
        Ok(Ok(())) => Failure::new(Kind::NoDaemon, "the daemon has ended"),
        Ok(Err(e)) => e.into(),
        Err(e) => e.into(),
    };

    // Nobody listens if the user has ended the command.
    let _ = sender.send(Err(failure));
}

/// Draws the messages and obeys keys until the user ends the command.
fn show(
    terminal: &mut DefaultTerminal,
    top: &mut Top,
    messages: &Receiver<Told>,
) -> Result<(), Failure> {
    loop {
        // Messages that have come are taken before each drawing, so a slow terminal does not lag
        // behind.
        loop {
            match messages.try_recv() {
                Ok(told) => handle(top, told?)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }

        terminal.draw(|frame| draw(top, frame))?;
        if event::poll(REDRAW_INTERVAL)?
            && let Some(press) = press(&event::read()?)
            && !top.press(press)
        {
            return Ok(());
        }
    }
}

fn handle(top: &mut Top, message: Message) -> Result<(), Failure> {
    let foreign = |_| Failure::new(Kind::NoDaemon, "the daemon is of another version of ncmesh");
    top.handle(message).map_err(foreign)
}

/// Returns what a key means.
fn press(event: &Event) -> Option<Press> {
    // Some terminals report releases, too, and each key would count twice.
    let key = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release)?;
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Press::End,
        KeyCode::Char('q') | KeyCode::Esc => Press::Quit,
        KeyCode::Tab | KeyCode::Right => Press::NextTab,
        KeyCode::BackTab | KeyCode::Left => Press::PreviousTab,
        KeyCode::Up | KeyCode::Char('k') => Press::Up,
        KeyCode::Down | KeyCode::Char('j') => Press::Down,
        KeyCode::Char('?' | 'h') => Press::Help,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    #[test]
    fn keys_mean_what_the_help_says() {
        let key = |code, modifiers| press(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = |code| key(code, KeyModifiers::NONE);
        assert_eq!(plain(KeyCode::Char('q')), Some(Press::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Press::End));
        assert_eq!(plain(KeyCode::Char('c')), None);
        assert_eq!(plain(KeyCode::Tab), Some(Press::NextTab));
        assert_eq!(plain(KeyCode::Left), Some(Press::PreviousTab));
        assert_eq!(plain(KeyCode::Char('?')), Some(Press::Help));
        assert_eq!(press(&Event::Resize(80, 24)), None);
    }
}
