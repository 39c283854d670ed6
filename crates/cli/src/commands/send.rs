//! `ncmesh send`: sends a file and shows its progress.

use crate::args::SendArgs;
use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::progress::{Progress, state_name};
use crate::remote_args::Remote;
use crate::show::{self, Form, Table};
use crate::source::Source;
use ncmesh_console::schema::{ReceivedValues, Values};
use ncmesh_engine::Background;
use ncmesh_node::api::types::{All, Recipients, SendRequest, Started, State, Transfer};
use ncmesh_node::tree::pack::Filter;
use std::time::{Duration, Instant};

/// Time between two requests for the transfer.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: SendArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let to = recipients(args.to)?;
    let for_all = matches!(to, Recipients::All(_));
    let background = args.airtime.or(args.background.then_some(Background::UNBOUNDED));

    // Contents have no name that the daemon could see, so one must be known before they are handed
    // over: that may take long.
    let filter = Filter { include: args.include, exclude: args.exclude };
    let source = Source::open_all(&args.files, &filter)?;
    let name = match &source {
        // The slash at the end says that it is a directory.
        Source::Contents { is_tree: true, name: own, .. } => {
            let named = args.name.map(|name| format!("{}/", name.trim_end_matches('/')));
            named.or_else(|| own.clone())
        }
        Source::Contents { name: own, .. } => args.name.or_else(|| own.clone()),
        Source::File(_) => args.name,
    };
    let path = match source {
        Source::File(path) => path,
        Source::Contents { .. } if name.is_none() => {
            let message = "what is sent has no name: say --name NAME";
            return Err(Failure::new(Kind::Usage, message));
        }
        Source::Contents { file, .. } => client.spool(file)?,
    };

    let request = SendRequest {
        path,
        to,
        name,
        scheme: Some(args.scheme),
        background: background.map(Background::percent),
        limit_bps: args.limit,
        priority: args.priority,
    };

    let started: Started = client.post("/v1/transfers", &request)?;
    if args.no_wait {
        return if remote.json { show::json(&started) } else { show::line(&started.id) };
    }

    let transfer = follow(&client, &started.id, args.timeout, remote.json)?;
    if remote.json {
        show::json(&transfer)?;
    } else {
        show::line(&summary(&transfer))?;
    }
    verdict(&transfer, for_all)
}

/// Returns the receivers that `--to` names.
pub(super) fn recipients(to: Vec<String>) -> Result<Recipients, Failure> {
    // A comma at the end, as a script may leave it, names nobody.
    let to: Vec<String> = to.into_iter().filter(|name| !name.is_empty()).collect();
    match to.as_slice() {
        [] => Err(Failure::new(Kind::Usage, "--to names nobody; give names, ids or `all`")),
        [all] if all == "all" => Ok(Recipients::All(All::All)),
        several if several.iter().any(|name| name == "all") => {
            Err(Failure::new(Kind::Usage, "--to all stands alone; leave the other names out"))
        }
        _ => Ok(Recipients::Named(to)),
    }
}

/// Shows progress until the transfer ends or the timeout expires.
fn follow(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    silent: bool,
) -> Result<Transfer, Failure> {
    let started = Instant::now();
    let mut progress = Progress::new(Form::of(silent, false));
    loop {
        let transfer = client.transfer(id)?;
        progress.show_receivers(&transfer);
        if transfer.ended || timeout.is_some_and(|limit| started.elapsed() >= limit) {
            progress.clear();
            return Ok(transfer);
        }

        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns a table of the receivers, and a line about the transfer.
fn summary(transfer: &Transfer) -> String {
    let mut table = Table::new(["RECEIVER", "STATE"]);
    table.columns(ReceivedValues::FIELDS);
    for r in &transfer.receivers {
        let reason = r.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let which = [r.name.clone(), format!("{}{reason}", state_name(r.state))];
        table.row(which.into_iter().chain(show::cells(&r.values)));
    }

    let scheme = transfer.scheme.as_ref().map(|scheme| {
        let reason = transfer.scheme_reason.as_ref().map(|reason| format!(" ({reason})"));
        format!(", by {scheme}{}", reason.unwrap_or_default())
    });

    let background = transfer.background.map(|percent| match percent {
        100 => ", in the background".into(),
        _ => format!(", in the background with at most {percent} % of the airtime"),
    });

    let limit = transfer.limit_bps.map(|bps| format!(", at most {:.1} kbit/s", bps as f64 / 1e3));
    format!(
        "{table}\n{}: {} sent {:.2} times over by the source{}{}{}",
        transfer.id,
        show::bytes(transfer.size),
        transfer.sent.source_redundancy.unwrap_or(0.0),
        scheme.unwrap_or_default(),
        background.unwrap_or_default(),
        limit.unwrap_or_default()
    )
}

/// Succeeds if all receivers have the file. With `for_all`, receivers may refuse, and one that has
/// the file is enough.
fn verdict(transfer: &Transfer, for_all: bool) -> Result<(), Failure> {
    let complete = transfer.receivers.iter().filter(|r| r.state == State::Complete).count();
    let all = transfer.receivers.len();
    let incomplete = |why: &str| {
        let message = format!("{complete} of {all} receivers have the file; {why}");
        Err(Failure::new(Kind::Incomplete, message))
    };

    // A transfer is complete when every receiver has the file or has refused it. A transfer that
    // has not ended goes on without this command.
    match (transfer.state, transfer.ended) {
        (State::Complete, _) if complete == all => Ok(()),
        (State::Complete, _) if for_all && complete > 0 => Ok(()),
        (State::Complete, _) => incomplete("the others do not take it"),
        (_, false) => incomplete(&format!(
            "the transfer goes on: `ncmesh transfers` shows it, `ncmesh cancel {}` ends it",
            transfer.id
        )),
        (state, true) => incomplete(transfer.reason.as_deref().unwrap_or(state_name(state))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_console::schema::SourceValues;
    use ncmesh_node::api::types::{Direction, Receiver};

    fn transfer(state: State, ended: bool, receivers: &[State]) -> Transfer {
        let receiver = |(at, state): (usize, &State)| Receiver {
            id: at as u16 + 2,
            name: format!("n{}", at + 2),
            state: *state,
            reason: None,
            values: ReceivedValues { seconds: 1.0, ..ReceivedValues::default() },
        };
        Transfer {
            id: "1-00000001".into(),
            name: "f".into(),
            path: None,
            size: 1,
            hash: String::new(),
            source: "n1".into(),
            scheme: Some("cascade".into()),
            background: None,
            limit_bps: None,
            scheme_reason: Some("auto: the best on every measured mesh".into()),
            direction: Direction::Sending,
            state,
            reason: None,
            ended,
            values: ReceivedValues { seconds: 1.0, ..ReceivedValues::default() },
            receivers: receivers.iter().enumerate().map(receiver).collect(),
            sent: SourceValues::default(),
            forwarders: Vec::new(),
        }
    }

    #[test]
    fn the_summary_says_which_scheme_and_why() {
        let mut sent = transfer(State::Complete, true, &[State::Complete]);
        let says = |transfer: &Transfer| summary(transfer).lines().last().unwrap().to_owned();
        let over = "1-00000001: 1 B sent 0.00 times over by the source";
        let auto = ", by cascade (auto: the best on every measured mesh)";
        assert_eq!(says(&sent), format!("{over}{auto}"));
        sent.scheme_reason = None;
        assert_eq!(says(&sent), format!("{over}, by cascade"));
        sent.background = Some(100);
        assert_eq!(says(&sent), format!("{over}, by cascade, in the background"));
        sent.background = Some(10);
        let bounded = ", by cascade, in the background with at most 10 % of the airtime";
        assert_eq!(says(&sent), format!("{over}{bounded}"));
        sent.limit_bps = Some(200_000);
        assert_eq!(says(&sent), format!("{over}{bounded}, at most 200.0 kbit/s"));
    }

    #[test]
    fn refusals_count_only_for_named_receivers() {
        use State::{Active, Complete, Failed, Lost, Refused};
        let some = transfer(Complete, true, &[Complete, Refused]);
        assert!(verdict(&some, true).is_ok());
        let failure = format!("{:?}", verdict(&some, false).unwrap_err());
        assert!(failure.contains("Incomplete") && failure.contains("1 of 2"), "{failure}");
        for for_all in [false, true] {
            assert!(verdict(&transfer(Complete, true, &[Complete; 2]), for_all).is_ok());
            for (state, ended, receivers) in [
                (Complete, true, [Refused, Refused]),
                (Active, false, [Complete, Lost]),
                (Failed, true, [Complete, Refused]),
            ] {
                assert!(verdict(&transfer(state, ended, &receivers), for_all).is_err());
            }
        }
    }
}
