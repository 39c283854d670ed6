//! `ncmesh completions` and `ncmesh man`, generated from the same description as `--help`.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Kind};
use crate::show;
use clap::CommandFactory;

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ncmesh", &mut script);
    show::line(String::from_utf8_lossy(&script).trim_end())
}

/// Writes the man pages.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir));
    written.map_err(|e| {
        Failure::new(Kind::File, format!("{} cannot be written: {e}", args.dir.display()))
    })
}
