//! The sentences about what blocks of a cluster do to each other.

use super::Finding;

impl Finding {
    /// What is wrong, if it is about that.
    pub(super) fn of_clusters(&self) -> Option<String> {
        let title = self.title();
        Some(match self {
            Finding::BlockEnded { barrier, slot, ended: [x, y, z], .. } => {
                format!(
                    "{title}: an arrival at {barrier}[{slot}] of block ({x}, {y}, {z}) in the cluster may come when that has ended"
                )
            }
            Finding::MemoryGone { buffer, element, of: [x, y, z], has_begun, .. } => {
                let when = if *has_begun { "when that has ended" } else { "before that has begun" };
                format!(
                    "{title}: an access to {buffer}[{element}], which block ({x}, {y}, {z}) in the cluster has, may come {when}"
                )
            }
            _ => return None,
        })
    }
}
