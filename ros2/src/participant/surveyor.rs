//! Tells the rules that the map moved: where their things lie by now.
//!
//! A service of this node or a client of the daemon moves memories. The node tells it of each that moved, as it was
//! committed.

use std::sync::Weak;

use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;

use super::Context;

/// A way to tell the rules. It keeps no participant alive.
#[derive(Clone)]
pub struct Surveyor(pub(super) Weak<Context>);

impl Surveyor {
    /// The map moved, and this memory with it. Never waits for a disk. `resource` is the memory as it is
    /// now, and only made if a rule knows a thing that has it.
    pub fn map_moved(&self, memory: &Ref, resource: impl FnOnce() -> Option<Value>) {
        let Some(context) = self.0.upgrade() else { return };
        if !context.ingest().rules.has_memory(memory) {
            return;
        }
        if let Some(Ok(resource)) = resource().map(Resource::from_value) {
            context.ingest().rules.map_moved(&resource);
        }
    }
}
