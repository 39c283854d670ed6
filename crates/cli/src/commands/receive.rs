//! `ncmesh receive`.

use crate::args::{ReceiveArgs, Remote};
use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::progress::{Progress, state_name};
use crate::show;
use ncmesh_node::api::types::{Direction, Inbox, State, Transfer};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Time between two looks at the transfers.
const LOOK: Duration = Duration::from_millis(300);

pub(crate) fn run(remote: &Remote, args: &ReceiveArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let mut seen: BTreeSet<String> = ended(&client)?.into_iter().map(|t| t.id).collect();
    let inbox = choose_inbox(&client, args.dir.as_deref())?;
    eprintln!("receiving into {inbox}; Ctrl-C ends the display, not the reception");
    let mut progress = Progress::new(remote.json);
    loop {
        for transfer in incoming(&client)? {
            if seen.contains(&transfer.id) {
                continue;
            }
            progress.show_transfer(&transfer);
            if transfer.ended {
                progress.clear();
                seen.insert(transfer.id.clone());
                let received = report(remote, &transfer)?;
                if received && args.once {
                    return Ok(());
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Shows how a reception ended; says whether the file is there.
fn report(remote: &Remote, transfer: &Transfer) -> Result<bool, Failure> {
    let received = transfer.state == State::Complete;
    if remote.json {
        show::json(transfer)?;
    } else if let (true, Some(path)) = (received, &transfer.path) {
        show::line(&path.display().to_string())?;
    } else {
        let why = transfer.reason.as_deref().unwrap_or(state_name(transfer.state));
        eprintln!("{} from {}: {why}", transfer.name, transfer.source);
    }
    Ok(received)
}

fn choose_inbox(client: &Client, dir: Option<&Path>) -> Result<String, Failure> {
    let inbox: Inbox = match dir {
        None => client.read("/v1/inbox")?,
        Some(dir) => {
            let dir = std::path::absolute(dir)
                .map_err(|e| Failure::new(Kind::File, format!("{}: {e}", dir.display())))?;
            client.put("/v1/inbox", &Inbox { dir: Some(dir) })?
        }
    };
    let dir = inbox.dir.ok_or_else(|| {
        Failure::new(Kind::File, "the daemon has no inbox; name one with --dir DIR")
    })?;
    Ok(dir.display().to_string())
}

fn incoming(client: &Client) -> Result<Vec<Transfer>, Failure> {
    let all: Vec<Transfer> = client.read("/v1/transfers")?;
    Ok(all.into_iter().filter(|t| t.direction == Direction::Receiving).collect())
}

fn ended(client: &Client) -> Result<Vec<Transfer>, Failure> {
    Ok(incoming(client)?.into_iter().filter(|t| t.ended).collect())
}
