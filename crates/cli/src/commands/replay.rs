//! `ncmesh replay`: shows a recorded run in the browser.

use crate::failure::{Failure, Kind};
use crate::lab_args::ReplayArgs;
use crate::web::{Background, write_page};
use ncmesh_console::recording::Reader;
use ncmesh_web::{Recording, Site};
use std::fs::File;
use std::io::Read;

/// Length of the longest recording, bytes: it is kept in memory, here and by the browser.
const LONGEST: u64 = 256 << 20;

/// Runs the command. Returns when the user interrupts it.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let name = args.file.display();
    let failed = |problem: String| Failure::new(Kind::File, format!("{name}: {problem}"));
    let file = File::open(&args.file).map_err(|e| failed(e.to_string()))?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(failed(format!("longer than {LONGEST} bytes")));
    }

    // A wrong file is named here, not in the browser.
    for message in Reader::new(bytes.as_slice()) {
        message.map_err(|e| failed(e.to_string()))?;
    }
    if let Some(page) = &args.html {
        return write_page(page, &[&bytes]);
    }
    let name = args.file.file_name().unwrap_or(args.file.as_os_str()).display().to_string();
    let site = Site::default();
    site.offer(Recording { name, bytes: bytes.into() });
    let background = Background::start(site, &args.listen)?;
    background.announce();
    background.wait()
}
