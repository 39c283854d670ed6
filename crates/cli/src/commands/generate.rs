//! `ncmesh completions` and `ncmesh man`, made from the same description as `--help`.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Kind};
use clap::CommandFactory;
use std::io;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "ncmesh", &mut io::stdout());
    Ok(())
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir));
    written.map_err(|e| {
        Failure::new(Kind::File, format!("{} cannot be written: {e}", args.dir.display()))
    })
}
