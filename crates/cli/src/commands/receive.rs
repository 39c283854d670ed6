//! `ncmesh receive`: shows files as they arrive.

use crate::args::ReceiveArgs;
use crate::client::{Client, absolute};
use crate::failure::{Failure, Kind};
use crate::progress::{Progress, state_name};
use crate::remote_args::Remote;
use crate::show::{self, Form};
use ncmesh_node::api::types::{Direction, Inbox, State, Transfer};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time between two requests for the transfers.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &ReceiveArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;

    // Receptions that ended before the command started are not shown.
    let mut seen: BTreeSet<String> = ended(&client)?.into_iter().map(|t| t.id).collect();
    let inbox = choose_inbox(&client, args.dir.as_deref())?;
    show::note(&format!("receiving into {inbox}; Ctrl-C ends the display, not the reception"));

    let mut progress = Progress::new(Form::of(remote.json, false));
    loop {
        for transfer in incoming(&client)? {
            if seen.contains(&transfer.id) {
                continue;
            }
            progress.show_transfer(&transfer);

            // Each reception is reported once, when it has ended. Without a reader of the output
            // there is no use in waiting for more.
            if transfer.ended {
                progress.clear();
                seen.insert(transfer.id.clone());
                let is_complete = transfer.state == State::Complete;
                if args.stdout && is_complete {
                    let path = transfer.path.unwrap_or_default();
                    if !path.is_dir() {
                        return write_out(&path);
                    }
                    show::note(&format!("{} is a directory: it stays there", path.display()));
                    continue;
                }
                let read_on = report(remote, &transfer)?;
                if !read_on || args.once && is_complete {
                    return Ok(());
                }
            }
        }

        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Writes the contents of a received file to standard output.
fn write_out(path: &Path) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::new(Kind::File, format!("{}: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    match io::copy(&mut file, &mut io::stdout().lock()) {
        // The reader has enough.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        copied => copied.map(drop).map_err(failed),
    }
}

/// Prints how a reception ended. Returns whether the reader of the output is still there.
fn report(remote: &Remote, transfer: &Transfer) -> Result<bool, Failure> {
    if remote.json {
        return show::json_line(transfer);
    }
    if let (State::Complete, Some(path)) = (transfer.state, &transfer.path) {
        return show::endless_line(&path.display().to_string());
    }

    // Other ends go to standard error: standard output has paths of complete files only.
    let why = transfer.reason.as_deref().unwrap_or(state_name(transfer.state));
    show::note(&format!("{} from {}: {why}", transfer.name, transfer.source));
    Ok(true)
}

/// Makes `dir` the daemon's inbox, or returns the present one.
fn choose_inbox(client: &Client, dir: Option<&Path>) -> Result<String, Failure> {
    let inbox: Inbox = match dir {
        None => client.read("/v1/inbox")?,
        Some(dir) => {
            // The daemon has another working directory.
            let dir = Some(absolute(dir)?);
            client.put("/v1/inbox", &Inbox { dir })?
        }
    };

    let dir = inbox.dir.ok_or_else(|| {
        Failure::new(Kind::File, "the daemon has no inbox; name one with --dir DIR")
    })?;
    Ok(dir.display().to_string())
}

/// Returns the transfers that the node receives.
fn incoming(client: &Client) -> Result<Vec<Transfer>, Failure> {
    let all: Vec<Transfer> = client.read("/v1/transfers")?;
    Ok(all.into_iter().filter(|t| t.direction == Direction::Receiving).collect())
}

/// Returns the receptions that have ended.
fn ended(client: &Client) -> Result<Vec<Transfer>, Failure> {
    Ok(incoming(client)?.into_iter().filter(|t| t.ended).collect())
}
