//! Places of what is under way in an inbox.

use ncmesh_wire::FlowId;
use std::path::{Path, PathBuf};

/// Directory for files under way in an inbox.
pub(super) const DIR: &str = ".ncmesh";

/// Places of one reception in its inbox.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub part: PathBuf,
    pub journal: PathBuf,
    /// A file of a tree before it has its name.
    pub aside: PathBuf,
}

impl Places {
    pub(super) fn new(flow: FlowId) -> Self {
        let dir = Path::new(DIR);
        Self {
            part: dir.join(format!("{flow}.part")),
            journal: dir.join(format!("{flow}.journal")),
            aside: dir.join(format!("{flow}.aside")),
        }
    }
}
