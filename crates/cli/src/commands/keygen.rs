//! `ncmesh keygen`: makes a network key.

use crate::args::KeygenArgs;
use crate::failure::{Failure, Kind};
use crate::show;
use ncmesh_wire::Key;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(args: &KeygenArgs) -> Result<(), Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
    let key = Key::new(bytes).to_hex();
    let Some(file) = &args.file else { return show::line(&key) };
    write(file, &key).map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::AlreadyExists => "; a key in use is not overwritten, remove it first",
            _ => "",
        };

        Failure::new(Kind::File, format!("{} cannot be written: {e}{hint}", file.display()))
    })
}

/// Writes the key to a new file that only its owner may read.
fn write(file: &Path, key: &str) -> io::Result<()> {
    // Created with its mode, not changed afterwards: at no moment can others read it.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{key}")
}
