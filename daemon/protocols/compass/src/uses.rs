//! Uses of memories by tasks, in memory until a task is written anyway. A task that ends well makes the memories that it used
//! often worth more.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;

/// Tasks that are kept in mind, and memories of each.
const MOST_TASKS: usize = 1024;
const MOST_OF_TASK: usize = 64;

/// Uses of a memory, by its id.
pub(crate) type Counts = BTreeMap<String, u32>;

/// A name that one tenant knows.
type Owned = (String, String);

#[derive(Debug, Default)]
struct Notes {
    /// The task that an agent worked on last.
    at_work: HashMap<Owned, String>,
    of_task: HashMap<Owned, Counts>,
}

/// The uses since a task was written last.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Notes>);

fn owned(tenant: &str, name: &str) -> Owned {
    (tenant.to_owned(), name.to_owned())
}

impl Uses {
    fn with<T>(&self, f: impl FnOnce(&mut Notes) -> T) -> T {
        f(&mut self.0.lock())
    }

    /// Notes the task that an agent works on.
    pub(crate) fn works_on(&self, tenant: &str, agent: &str, task: &str) {
        self.with(|notes| {
            if notes.at_work.len() >= MOST_TASKS {
                notes.at_work.clear();
            }
            notes.at_work.insert(owned(tenant, agent), task.to_owned());
        });
    }

    /// Counts memories as used for a task: the one that is named, else the one that the agent worked on last.
    pub(crate) fn note<'a>(
        &self,
        tenant: &str,
        agent: &str,
        task: Option<&str>,
        memories: impl IntoIterator<Item = &'a str>,
    ) {
        self.with(|notes| {
            let last = || notes.at_work.get(&owned(tenant, agent)).cloned();
            let Some(task) = task.map(str::to_owned).or_else(last) else { return };
            if notes.of_task.len() >= MOST_TASKS {
                notes.of_task.clear();
            }
            let counts = notes.of_task.entry((tenant.to_owned(), task)).or_default();
            memories
                .into_iter()
                .for_each(|memory| *counts.entry(memory.to_owned()).or_default() += 1);
            keep_most_used(counts);
        });
    }

    /// Returns the uses by a task that are not written yet, with those that are.
    pub(crate) fn added_to(&self, written: &Counts, tenant: &str, task: &str) -> Counts {
        let mut all = written.clone();
        self.with(|notes| {
            for (memory, count) in notes.of_task.get(&owned(tenant, task)).into_iter().flatten() {
                let known = all.entry(memory.clone()).or_default();
                *known = known.saturating_add(*count);
            }
        });
        keep_most_used(&mut all);
        all
    }

    /// Lets go of the uses by a task: they are written.
    pub(crate) fn written(&self, tenant: &str, task: &str) {
        self.with(|notes| notes.of_task.remove(&owned(tenant, task)));
    }
}

/// Drops the least used beyond the bound.
fn keep_most_used(counts: &mut Counts) {
    while counts.len() > MOST_OF_TASK {
        let least = counts.iter().min_by_key(|(_, count)| **count).map(|(name, _)| name.clone());
        let Some(least) = least else { return };
        counts.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_belong_to_the_task_that_is_worked_on() {
        let uses = Uses::default();
        uses.note("t", "a", None, ["m"]);
        assert!(uses.added_to(&Counts::new(), "t", "x").is_empty(), "nobody knows which task");
        uses.works_on("t", "a", "x");
        uses.note("t", "a", None, ["m", "n"]);
        uses.note("t", "a", Some("y"), ["m"]);
        let known = Counts::from([("m".to_owned(), 2)]);
        let expected = Counts::from([("m".to_owned(), 3), ("n".to_owned(), 1)]);
        assert_eq!(uses.added_to(&known, "t", "x"), expected);
        assert!(uses.added_to(&Counts::new(), "u", "x").is_empty(), "another tenant");
        uses.written("t", "x");
        assert_eq!(uses.added_to(&known, "t", "x"), known);
    }

    #[test]
    fn the_most_used_stay() {
        let uses = Uses::default();
        let names: Vec<String> = (0..MOST_OF_TASK + 5).map(|at| format!("m{at:03}")).collect();
        uses.note("t", "a", Some("x"), ["often", "often"]);
        uses.note("t", "a", Some("x"), names.iter().map(String::as_str));
        let all = uses.added_to(&Counts::new(), "t", "x");
        assert_eq!((all.len(), all.get("often")), (MOST_OF_TASK, Some(&2)));
    }
}
