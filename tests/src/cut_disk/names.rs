//! The names in one folder, and which of them are certain.

use std::collections::BTreeMap;

use crate::random::Random;

/// Meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A file, by its number.
    File(usize),
    /// A folder.
    Folder,
}

/// One change to the names.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    Add { name: String, node: Node },
    Rename { from: String, to: String, file: usize },
    Remove { name: String, file: usize },
}

/// The names in one folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    durable: BTreeMap<String, Node>,
    waiting: Vec<Change>,
    current: BTreeMap<String, Node>,
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Add { name, node } => {
                names.insert(name.clone(), *node);
            }
            Self::Rename { from, to, file } => {
                if names.get(from) == Some(&Node::File(*file)) {
                    names.remove(from);
                }
                names.insert(to.clone(), Node::File(*file));
            }
            Self::Remove { name, file } => {
                if names.get(name) == Some(&Node::File(*file)) {
                    names.remove(name);
                }
            }
        }
    }

    /// Returns true if the two speak of a file or a name in common: such changes keep their order.
    fn concerns(&self, other: &Self) -> bool {
        let (a, b) = (self.subjects(), other.subjects());
        a.0.is_some() && a.0 == b.0 || a.1.iter().any(|name| b.1.contains(name))
    }

    fn subjects(&self) -> (Option<usize>, Vec<&str>) {
        match self {
            Self::Add { name, node: Node::File(file) } | Self::Remove { name, file } => {
                (Some(*file), vec![name])
            }
            Self::Add { name, node: Node::Folder } => (None, vec![name]),
            Self::Rename { from, to, file } => (Some(*file), vec![from, to]),
        }
    }
}

impl Names {
    /// The names as a reader sees them.
    pub(super) fn current(&self) -> &BTreeMap<String, Node> {
        &self.current
    }

    pub(super) fn add(&mut self, name: &str, node: Node) {
        self.change(Change::Add { name: name.to_owned(), node });
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, file: usize) {
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), file });
    }

    pub(super) fn remove(&mut self, name: &str, file: usize) {
        self.change(Change::Remove { name: name.to_owned(), file });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.waiting.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.current.clone();
        self.waiting.clear();
    }

    /// Moves the numbers of all files up. Nothing may be waiting.
    pub(super) fn renumber(&mut self, by: usize) {
        for names in [&mut self.current, &mut self.durable] {
            for node in names.values_mut() {
                if let Node::File(file) = node {
                    *file += by;
                }
            }
        }
    }

    /// Takes in a name that is certain.
    pub(super) fn adopt(&mut self, name: String, node: Node) {
        self.current.insert(name.clone(), node);
        self.durable.insert(name, node);
    }

    /// The states that may be found after a cut; see [`super::CutDisk::survivors`].
    pub(super) fn survivors(&self, seed: u64, random: &mut Random) -> BTreeMap<String, Node> {
        match seed {
            super::ONLY_SYNCED => return self.durable.clone(),
            super::EVERYTHING => return self.current.clone(),
            _ => {}
        }
        let mut names = self.durable.clone();
        let mut waiting: Vec<&Change> = self.waiting.iter().collect();
        while !waiting.is_empty() {
            let at = random.below(waiting.len());
            if waiting[..at].iter().any(|earlier| earlier.concerns(waiting[at])) {
                continue;
            }
            let change = waiting.remove(at);
            if random.chance(50) {
                change.apply(&mut names);
            }
        }
        names
    }
}
