//! `ncmesh transfers`: shows the transfers of a node.

use crate::args::TransfersArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::progress::{Progress, state_name};
use crate::remote_args::Remote;
use crate::show::{self, Form, Table};
use crate::watch::Interrupts;
use ncmesh_console::schema::Unit;
use ncmesh_node::api::types::{Direction, State, Transfer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two requests for the transfers.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &TransfersArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    if args.json_stream || args.watch && remote.json {
        return watch_json(&client);
    }
    if args.watch {
        return watch(&client);
    }
    let transfers: Vec<Transfer> = client.read("/v1/transfers")?;
    if remote.json {
        return show::json(&transfers);
    }
    if transfers.is_empty() {
        return show::line("no transfers; `ncmesh send FILE --to all` begins one");
    }
    show::line(&table(&transfers))
}

/// Shows progress until the command is interrupted or the daemon ends.
fn watch(client: &Client) -> Result<(), Failure> {
    let mut progress = Progress::new(Form::Text);
    let mut interrupts = Interrupts::new(client)?;
    loop {
        let transfers: Vec<Transfer> = client.read("/v1/transfers")?;
        for transfer in &transfers {
            progress.show_transfer(transfer);
        }
        if interrupts.come_within(client, POLL_INTERVAL) {
            return Ok(());
        }
    }
}

/// Prints a line for each transfer and for each of its changes.
fn watch_json(client: &Client) -> Result<(), Failure> {
    let mut shown = BTreeMap::new();
    let mut interrupts = Interrupts::new(client)?;
    loop {
        let transfers: Vec<Transfer> = client.read("/v1/transfers")?;
        for transfer in transfers {
            // The time of a transfer runs on, which is no change.
            let now = timeless(&transfer);
            if shown.get(&transfer.id) == Some(&now) {
                continue;
            }

            // Nobody reads any more.
            if !show::json_line(&transfer)? {
                return Ok(());
            }
            shown.insert(transfer.id, now);
        }

        if interrupts.come_within(client, POLL_INTERVAL) {
            return Ok(());
        }
    }
}

/// Returns the transfer without the fields that change with the clock alone.
fn timeless(transfer: &Transfer) -> Transfer {
    let mut transfer = transfer.clone();
    let receivers = transfer.receivers.iter_mut().map(|receiver| &mut receiver.values);
    for values in receivers.chain([&mut transfer.values]) {
        values.seconds = 0.0;
        values.kbit_s = 0.0;
    }
    transfer
}

/// Returns a table of the transfers.
fn table(transfers: &[Transfer]) -> String {
    let mut table = Table::new(["ID", "FILE", "SIZE", "WAY", "WITH", "DONE", "RATE", "STATE"]);
    for t in transfers {
        let (way, with) = match t.direction {
            Direction::Sending => ("to", receivers(t)),
            Direction::Receiving => ("from", t.source.clone()),
        };

        // An empty file is done from the start.
        let done = if t.size == 0 { 100.0 } else { t.values.bytes as f64 * 100.0 / t.size as f64 };
        let reason = t.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        table.row([
            t.id.clone(),
            t.name.clone(),
            show::bytes(t.size),
            way.into(),
            with,
            format!("{done:.0} %"),
            Unit::KilobitRate.show(t.values.kbit_s),
            format!("{}{reason}", state_name(t.state)),
        ]);
    }

    table.to_string()
}

/// Returns the name of the only receiver, or how many of several have the file.
fn receivers(t: &Transfer) -> String {
    let complete = t.receivers.iter().filter(|r| r.state == State::Complete).count();
    match t.receivers.as_slice() {
        [only] => only.name.clone(),
        several => format!("{complete} of {} have it", several.len()),
    }
}
