//! The `ncmesh` command: runs a node, talks to a running one, or runs scenarios.
//!
//! A program with schemes of its own is this command and they: it calls [`main`] with them
//! (`examples/own-scheme`).
//!
//! `args` describes the command line, `commands` has one module for each subcommand. Commands end
//! with a `failure::Failure`, which decides the exit code.

mod airtime;
mod args;
mod client;
mod commands;
#[cfg(feature = "lab")]
mod comparison;
mod failure;
mod fleet_args;
#[cfg(feature = "lab")]
mod lab_args;
mod network_args;
mod number;
#[cfg(feature = "lab")]
mod plan;
mod progress;
mod remote_args;
mod schemes;
mod seconds;
mod show;
mod source;
mod stream_args;
#[cfg(feature = "top")]
mod top;
#[cfg(feature = "lab")]
mod traces;
mod watch;
#[cfg(feature = "lab")]
mod web;

use args::{Cli, ClientCommand, Command};
use clap::{CommandFactory, FromArgMatches};
use failure::{Failure, Kind};
use ncmesh_engine::registry::Entry;
use remote_args::Remote;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command, which knows the schemes `own` besides those of this project.
#[must_use]
pub fn main(own: &[Entry]) -> ExitCode {
    // Before anything else: the command line names all schemes.
    if let Err(error) = ncmesh_engines::add(own) {
        let failure = Failure::new(Kind::Usage, error.to_string());
        failure.report();
        return failure.code();
    }

    let matches = number::with_negatives(Cli::command()).get_matches_from(arguments());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.code()
        }
    }
}

/// Returns the words of the command line, with `~/` behind an option's `=` as the user's home: a
/// shell leaves it as it is there.
fn arguments() -> impl Iterator<Item = OsString> {
    let home = std::env::var("HOME").unwrap_or_default();
    std::env::args_os().map(move |word| {
        // Words that are no text, such as names of files, pass through unchanged.
        match word.to_str().and_then(|word| word.split_once("=~/")) {
            Some((option, rest)) if is_option(option) && !home.is_empty() => {
                format!("{option}={home}/{rest}").into()
            }
            _ => word,
        }
    })
}

/// Returns whether a word is the name of an option.
fn is_option(word: &str) -> bool {
    let name = word.strip_prefix("--").unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// Runs the command that the command line names.
fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { remote, json, command } = cli;
    // Before other commands these options would do nothing, though the user expects something.
    if let (false, Some(option)) = (command.asks_daemon(), remote.given()) {
        let message = format!("{option} is for commands that talk to a daemon: leave it out");
        return Err(Failure::new(Kind::Usage, message));
    }

    match command {
        Command::Client(command) => ask(command, Remote { json, ..remote }),
        Command::Node(args) => commands::node::run(&args),
        Command::Keygen(args) => commands::keygen::run(&args),
        Command::Network(command) => commands::network::run(json, command),
        Command::Fleet(command) => commands::fleet::run(Remote { json, ..remote }, command),
        Command::Schemes => commands::schemes::run(json),
        #[cfg(feature = "lab")]
        Command::Lab(args) => commands::lab::run(json, &args),
        #[cfg(feature = "lab")]
        Command::Simulate(args) => commands::simulate::run(json, args),
        #[cfg(feature = "lab")]
        Command::Replay(args) => commands::replay::run(&args),
        #[cfg(feature = "lab")]
        Command::Demo(args) => commands::demo::run(&args),
        #[cfg(feature = "manual")]
        Command::Completions(args) => commands::generate::completions(&args),
        #[cfg(feature = "manual")]
        Command::Man(args) => commands::generate::man(&args),
    }
}

/// Runs a command that talks to a daemon. `before` are the options before its name.
fn ask(command: ClientCommand, before: Remote) -> Result<(), Failure> {
    match command {
        ClientCommand::Send(c) => commands::send::run(&c.remote.or(before), c.args),
        ClientCommand::Receive(c) => commands::receive::run(&c.remote.or(before), &c.args),
        ClientCommand::Transfers(c) => commands::transfers::run(&c.remote.or(before), &c.args),
        ClientCommand::Stream(command) => commands::stream::run(before, command),
        ClientCommand::Peers(c) => commands::peers::run(&c.remote.or(before), &c.args),
        ClientCommand::Status(c) => commands::status::run(&c.remote.or(before), &c.args),
        #[cfg(feature = "top")]
        ClientCommand::Top(c) => commands::top::run(&c.remote.or(before)),
        ClientCommand::Doctor(c) => commands::doctor::run(&c.args, &c.remote.or(before)),
        ClientCommand::Traceroute(c) => commands::traceroute::run(&c.remote.or(before), &c.args),
        ClientCommand::Bandwidth(c) => commands::bandwidth::run(&c.remote.or(before), c.args),
        ClientCommand::Reload(c) => commands::reload::run(&c.remote.or(before)),
        ClientCommand::Cancel(c) => commands::cancel::run(&c.remote.or(before), &c.args),
        ClientCommand::Tunnel(c) => commands::tunnel::run(&c.remote.or(before), c.args),
    }
}
