//! `ncmesh replay`: shows a recorded run, or two in step, in the browser.

use crate::failure::{Failure, Kind};
use crate::lab_args::ReplayArgs;
use crate::web::{Background, write_page};
use ncmesh_console::recording::Reader;
use ncmesh_web::{Recording, Site};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Length of the longest recording, bytes: it is kept in memory, here and by the browser.
const LONGEST: u64 = 256 << 20;

/// Runs the command. Returns when the user interrupts it.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    // Files are read before anything is shown, so that a wrong one is an error of the command.
    let recordings: Vec<Vec<u8>> =
        args.files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    if let Some(page) = &args.html {
        let recordings: Vec<&[u8]> = recordings.iter().map(Vec::as_slice).collect();
        return write_page(page, &recordings);
    }

    let site = Site::default();
    for (file, bytes) in args.files.iter().zip(recordings) {
        let name = file.file_name().unwrap_or(file.as_os_str()).display().to_string();
        site.offer(Recording { name, bytes: bytes.into() });
    }

    let background = Background::start(site, &args.listen)?;
    background.announce();
    background.wait()
}

/// Reads a recording, and checks it: a wrong file is named here, not in the browser.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed =
        |problem: String| Failure::new(Kind::File, format!("{}: {problem}", path.display()));
    let file = File::open(path).map_err(|e| failed(e.to_string()))?;
    let mut bytes = Vec::new();
    // The limit holds while the file is read, so a pipe or a device cannot fill the memory.
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(failed(format!("longer than {LONGEST} bytes")));
    }

    for message in Reader::new(bytes.as_slice()) {
        message.map_err(|e| failed(e.to_string()))?;
    }
    Ok(bytes)
}
