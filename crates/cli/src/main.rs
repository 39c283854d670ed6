//! The `ncmesh` command: runs a node, talks to a running one, or runs scenarios.
//!
//! [`args`] describes the command line, [`commands`] has one module for each subcommand. Commands
//! end with a [`failure::Failure`], which decides the exit code.

mod args;
mod client;
mod commands;
mod failure;
#[cfg(feature = "lab")]
mod lab_args;
#[cfg(feature = "lab")]
mod plan;
mod progress;
mod seconds;
mod show;
mod stream_args;
#[cfg(feature = "lab")]
mod traces;
#[cfg(feature = "lab")]
mod web;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.code()
        }
    }
}

/// Runs the command that the command line names.
fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { remote, command } = cli;
    match command {
        Command::Node(args) => commands::node::run(&args),
        Command::Send(args) => commands::send::run(&remote, args),
        Command::Receive(args) => commands::receive::run(&remote, &args),
        Command::Transfers(args) => commands::transfers::run(&remote, &args),
        Command::Stream(args) => commands::stream::run(&remote, args),
        Command::Peers => commands::peers::run(&remote),
        Command::Status => commands::status::run(&remote),
        Command::Cancel(args) => commands::cancel::run(&remote, &args),
        Command::Reload => commands::reload::run(&remote),
        Command::Traceroute(args) => commands::traceroute::run(&remote, &args),
        Command::Tunnel(args) => commands::tunnel::run(&remote, args),
        Command::Keygen(args) => commands::keygen::run(&args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => commands::lab::run(remote.json, &args),
        #[cfg(feature = "lab")]
        Command::Simulate(args) => commands::simulate::run(remote.json, args),
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
