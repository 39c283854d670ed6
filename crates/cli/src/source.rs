//! Source of a file to send: a path that the daemon opens itself, or contents that this process
//! hands over.
//!
//! `/dev/stdin`, `/dev/fd/63` (a shell's `<(...)`) and `/proc/self/...` are other files in the
//! daemon. Of pipes and of files that the kernel makes up, such as those of `/proc`, no file system
//! knows the length. The contents of all these are handed over, and so is a directory, packed.

use crate::client::absolute;
use crate::failure::{Failure, Kind};
use crate::show;
use ncmesh_node::tree::pack::{Filter, PackError, Pattern, pack};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Directories whose files the kernel makes up, for the process that opens them.
const MADE_UP: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Most symbolic links on the way to a file, as in Linux.
const MAX_LINKS: usize = 40;

/// Source of a file to send.
pub(crate) enum Source {
    /// A file that the daemon opens.
    File(PathBuf),
    /// Contents that are handed over.
    Contents {
        /// The open file.
        file: Box<dyn Read + Send>,
        /// Its own name, if it has one.
        name: Option<String>,
        /// Whether it is a packed directory.
        is_tree: bool,
    },
}

impl Source {
    /// Opens what the command line names: a file, or directories and files that are packed.
    pub(crate) fn open_all(files: &[PathBuf], filter: &Filter) -> Result<Self, Failure> {
        let is_plain = filter.include.is_empty() && filter.exclude.is_empty();
        match files {
            [file] if is_plain && !file.is_dir() => Self::open(file),
            _ if files.iter().any(|file| file == Path::new("-")) => {
                let message = "- is standard input, which is sent alone";
                Err(Failure::new(Kind::Usage, message))
            }
            _ => Self::pack(files, filter),
        }
    }

    /// Packs files and directories.
    fn pack(files: &[PathBuf], filter: &Filter) -> Result<Self, Failure> {
        let failed = |e: PackError| Failure::new(Kind::File, e.to_string());
        // Files that the kernel makes up have neither sizes nor an end.
        for file in files {
            if made_up(&absolute(file)?).is_some() {
                let problem = format!("{} is not a regular file", file.display());
                return Err(Failure::new(Kind::File, problem));
            }
        }

        let tree = pack(files, filter).map_err(failed)?;
        for path in tree.left_out() {
            let path = path.display();
            show::note(&format!("left out: {path} is neither a plain file nor a directory"));
        }

        // A directory has a name of its own, even if it is given as `.`; several paths have none.
        let name = match files {
            [dir] => fs::canonicalize(dir).ok().and_then(|path| {
                path.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}/"))
            }),
            _ => None,
        };
        Ok(Self::Contents { file: Box::new(tree), name, is_tree: true })
    }

    /// Opens a file; `-` is standard input.
    fn open(file: &Path) -> Result<Self, Failure> {
        if file == Path::new("-") {
            let file = Box::new(io::stdin());
            return Ok(Self::Contents { file, name: None, is_tree: false });
        }

        // Only a file that is the same one in the daemon can be opened there.
        let path = absolute(file)?;
        let place = made_up(&path);
        let is_descriptor = place.as_deref().is_some_and(is_descriptor);
        if place.is_none() && !has_hidden_length(&path) {
            return Ok(Self::File(path));
        }

        let failed = |e: io::Error| {
            Failure::new(Kind::File, format!("{} cannot be read: {e}", path.display()))
        };
        // A device such as `/dev/zero` may have no end, and a directory has no contents.
        let kind = fs::metadata(&path).map_err(failed)?.file_type();
        if !is_descriptor && !kind.is_file() && !kind.is_fifo() {
            let problem = format!("{} is not a regular file", path.display());
            return Err(Failure::new(Kind::File, problem));
        }

        // The name of a descriptor is a number, which is no name for receivers.
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let name = name.filter(|_| !is_descriptor);
        let file = Box::new(File::open(&path).map_err(failed)?);
        Ok(Self::Contents { file, name, is_tree: false })
    }
}

/// Reads a pattern of names or paths.
pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|e| format!("{e}; a pattern is for instance '*.jpg'"))
}

/// Returns the path below [`MADE_UP`] that a path leads to, by symbolic links, too.
fn made_up(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // Links in the directories on the way are resolved, those of the file one by one: what a
        // descriptor leads to need not have a path.
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        let parent = parent.unwrap_or_else(|| path.clone());
        let resolved = path.file_name().map_or_else(|| path.clone(), |name| parent.join(name));
        if MADE_UP.iter().any(|dir| resolved.starts_with(dir)) && !resolved.starts_with("/dev/shm")
        {
            return Some(resolved);
        }
        path = parent.join(fs::read_link(&resolved).ok()?);
    }

    None
}

/// Returns whether a path is a descriptor of this process, whose own name says nothing.
fn is_descriptor(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).skip(1).collect();
    matches!(
        parts[..],
        ["dev", "stdin" | "stdout" | "stderr"] | ["dev", "fd", _] | ["proc", .., "fd", _]
    )
}

/// Returns whether no file system knows how long a file is: a pipe, or an empty file that is not.
fn has_hidden_length(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    let reads = || File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|n| n > 0);
    metadata.file_type().is_fifo() || metadata.is_file() && metadata.len() == 0 && reads()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_that_only_this_process_can_read_are_handed_over() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        symlink("/dev/stdin", dir.path().join("in")).unwrap();
        symlink(dir.path().join("in"), dir.path().join("in2")).unwrap();
        symlink("/proc", dir.path().join("p")).unwrap();
        symlink("plain", dir.path().join("link")).unwrap();
        let name = |path: &Path| match Source::open(path).unwrap() {
            Source::File(_) => None,
            Source::Contents { name, .. } => Some(name),
        };
        let handed_over = |path: &str| name(Path::new(path));
        assert_eq!(handed_over("-"), Some(None));
        assert_eq!(handed_over("/dev/stdin"), Some(None));
        assert_eq!(handed_over("/dev/fd/0"), Some(None));
        assert_eq!(handed_over("/proc/self/fd/0"), Some(None));
        assert_eq!(handed_over("/dev/../dev/fd/0"), Some(None));
        assert_eq!(handed_over("/proc/self/status"), Some(Some("status".into())));
        assert_eq!(handed_over("/proc/cpuinfo"), Some(Some("cpuinfo".into())));
        assert_eq!(name(&dir.path().join("in2")), Some(None));
        assert_eq!(name(&dir.path().join("p/cpuinfo")), Some(Some("cpuinfo".into())));
        for file in [&plain, &dir.path().join("link"), &dir.path().join("absent")] {
            assert_eq!(name(file), None, "{file:?}");
        }
        assert!(Source::open(Path::new("/dev/zero")).is_err(), "it has no end");
        assert!(Source::open(Path::new("/proc")).is_err());
    }
}
