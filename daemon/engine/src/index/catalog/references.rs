//! References between resources: who mentions an entity, depends on it, or is a part of a record.

use omird_store::RefKey;

use crate::index::doc::DocId;
use crate::index::facts::Facts;

type ByTarget = hashbrown::HashMap<RefKey, Vec<DocId>>;

/// Rows by what they refer to, each list in ascending order.
#[derive(Debug, Default)]
pub(super) struct References {
    mentions: ByTarget,
    /// Relationships that end with the entity.
    dependents: ByTarget,
    /// Records that are a part of the record.
    children: ByTarget,
}

fn of<'a>(lists: &'a ByTarget, target: &RefKey) -> &'a [DocId] {
    lists.get(target).map_or(&[], Vec::as_slice)
}

impl References {
    /// Adds the references of a version.
    pub(super) fn add(&mut self, id: DocId, facts: &Facts) {
        for key in &facts.mentions {
            self.mentions.entry(*key).or_default().push(id);
        }
        for key in &facts.required {
            self.dependents.entry(*key).or_default().push(id);
        }
        if let Some(key) = facts.parent {
            self.children.entry(key).or_default().push(id);
        }
    }

    /// Forgets all references to something: a new thing under its name starts without any.
    pub(super) fn remove(&mut self, target: &RefKey) {
        self.mentions.remove(target);
        self.dependents.remove(target);
        self.children.remove(target);
    }

    /// Calls `f` with each entity that was mentioned, and with the rows that mention it.
    pub(super) fn each_mentioned(&self, mut f: impl FnMut(&RefKey, &[DocId])) {
        self.mentions.iter().for_each(|(entity, docs)| f(entity, docs));
    }

    pub(super) fn mentions(&self, target: &RefKey) -> &[DocId] {
        of(&self.mentions, target)
    }

    pub(super) fn dependents(&self, target: &RefKey) -> &[DocId] {
        of(&self.dependents, target)
    }

    pub(super) fn children(&self, target: &RefKey) -> &[DocId] {
        of(&self.children, target)
    }
}
