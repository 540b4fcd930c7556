//! The names of frames, each with a small number; how many there may be is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use omir_core::validate::closest;

/// Longer names, in bytes, are refused: each is kept for good.
pub(crate) const LONGEST_NAME: usize = 255;

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

/// As tf2 compares names: without the one leading slash that ROS 1 wrote. `None` for no name at all.
pub(crate) fn normalised(name: &str) -> Option<&str> {
    let name = name.strip_prefix('/').unwrap_or(name);
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

    /// The known name that `name` was most likely meant to be.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        closest(name, self.names())
    }
}
