//! Words of the API for stages of roll-outs and for how far nodes are.

use ncmesh_fleet::rollout::{Stage, Standing};

/// Returns the word of the API for a stage, and the batch that is updated, from 1.
pub(super) fn stage_word(stage: &Stage) -> (&'static str, Option<usize>) {
    match stage {
        Stage::Pushing => ("pushing", None),
        Stage::Pushed => ("pushed", None),
        Stage::Scheduled => ("scheduled", None),
        Stage::Applying(at) => ("applying", Some(at + 1)),
        Stage::Done => ("done", None),
        Stage::Stopped(_) => ("stopped", None),
        Stage::RollingBack => ("rolling_back", None),
        Stage::RolledBack => ("rolled_back", None),
    }
}

/// Returns the word of the API for how far a node is.
pub(super) fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Staging => "staging",
        Standing::Staged => "staged",
        Standing::Applying => "applying",
        Standing::Trial => "trial",
        Standing::Kept => "kept",
        Standing::RollingBack => "rolling_back",
        Standing::RolledBack => "rolled_back",
        Standing::Refused => "refused",
        Standing::Failed => "failed",
        Standing::Aborted => "aborted",
        Standing::NoFleet => "has_no_fleet",
    }
}
