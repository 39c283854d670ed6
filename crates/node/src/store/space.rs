//! Space that an inbox may take.
//!
//! Space is claimed as generations arrive: an announcement costs a journal of a few hundred bytes,
//! and a part file that has its length but no blocks. So a member that announces files and never
//! sends them keeps nobody else's out.

use super::made::directories;
use super::places::DIR;
use crate::config::SpaceLimits;
use crate::root::Root;
use rustix::fs::{StatVfs, fstatvfs};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Share of the file system that stays free unless `reserve` is set, and the most that this is,
/// bytes. Routers have small ones.
const RESERVED_SHARE: u64 = 20;
const MAX_RESERVE: u64 = 16_000_000;

/// Returns the bytes that the files in an inbox take, those under way included. Ignores what is not
/// a plain file, and directories that others made. Looks at nothing without a limit to check.
pub(crate) fn used(inbox: &Root, limits: &SpaceLimits) -> io::Result<u64> {
    let mut bytes = 0_u64;
    if limits.max_bytes.is_none() {
        return Ok(bytes);
    }

    // The inbox itself, the directory of parts, and those of trees; others are not the daemon's.
    let mut dirs = vec![PathBuf::new(), DIR.into()];
    let made = directories(inbox)?.into_iter().map(PathBuf::from);
    let trees = dirs.len();
    dirs.extend(made.filter(|dir| inbox.has_dir(dir).unwrap_or(false)));
    let mut at = 0;
    while let Some(dir) = dirs.get(at).cloned() {
        for name in inbox.names(Path::new(".").join(&dir))? {
            let path = dir.join(name);
            bytes = bytes.saturating_add(inbox.allocated(&path)?);
            if at >= trees && inbox.has_dir(&path)? {
                dirs.push(path);
            }
        }
        at += 1;
    }

    Ok(bytes)
}

/// Checks that `bytes` more fit an inbox whose files take `used`. `on` is a file of it.
pub(crate) fn check(on: impl AsFd, used: u64, bytes: u64, limits: &SpaceLimits) -> io::Result<()> {
    // Small file systems keep a share free, large ones a fixed number of bytes.
    let StatVfs { f_blocks, f_bavail, f_frsize, .. } = fstatvfs(on)?;
    let share = (f_blocks.saturating_mul(f_frsize) / RESERVED_SHARE).min(MAX_RESERVE);
    let reserve = limits.reserve.unwrap_or(share);

    let free = f_bavail.saturating_mul(f_frsize).saturating_sub(reserve);
    if bytes > free {
        let problem = format!("{bytes} bytes are needed, and {free} are free above the reserve");
        return Err(io::Error::new(ErrorKind::StorageFull, problem));
    }

    // The limit of the configuration comes second: a full disk is the harder bound.
    match limits.max_bytes {
        Some(most) if used.saturating_add(bytes) > most => {
            let problem = format!("{bytes} bytes are needed, and max_bytes leaves {}", {
                most.saturating_sub(used)
            });
            Err(io::Error::new(ErrorKind::QuotaExceeded, problem))
        }
        _ => Ok(()),
    }
}
