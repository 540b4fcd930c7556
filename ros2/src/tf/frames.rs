//! The names of frames, each with a small number; how many there may be is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use omir_core::validate::closest;

/// Longer names, in bytes, are refused: each is kept for good.
pub(crate) const LONGEST_NAME: usize = 255;

/// Among more names none is sought that may have been meant.
const MOST_COMPARED: usize = 200;

/// A frame that has been named; valid for one [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrameId(pub(super) u32);

impl FrameId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All names, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Frames {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, FrameId>,
}

/// As tf2 compares names: without the leading slash that ROS 1 wrote. `None` for no name at all.
///
/// tf2 takes one off and leaves the rest of several; here a name that came out is the same when it goes in.
pub(crate) fn normalised(name: &str) -> Option<&str> {
    let name = name.trim_start_matches('/');
    (!name.is_empty()).then_some(name)
}

impl Frames {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// `name` is normalised.
    pub(super) fn find(&self, name: &str) -> Option<FrameId> {
        self.ids.get(name).copied()
    }

    /// `name` is normalised, and the caller has checked that there is room.
    pub(super) fn find_or_add(&mut self, name: &str) -> FrameId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let id = FrameId(self.names.len() as u32);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    pub(super) fn name(&self, id: FrameId) -> &Arc<str> {
        &self.names[id.index()]
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The known name that `name` was most likely meant to be, unless there are too many to compare with: a
    /// message whose frame is not known comes as often as any other.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        (self.len() <= MOST_COMPARED).then(|| closest(name, self.names())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_guessed_among_a_robots_frames_and_not_among_thousands() {
        let mut frames = Frames::default();
        frames.find_or_add("base_link");
        assert_eq!(frames.nearest("base_lnik"), Some("base_link"));
        (0..MOST_COMPARED).for_each(|n| _ = frames.find_or_add(&format!("marker_{n}")));
        assert_eq!(frames.nearest("base_lnik"), None);
    }
}
