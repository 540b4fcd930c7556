//! In which order resources are sent, and how many at a time.
//!
//! Every reference must resolve in the request or in the store, so what is referred to goes first:
//! Entities, Episodes (which refer to Entities), Relationships (to both), then MemoryRecords, parents
//! before children. Records whose parents form a circle refer to each other and travel together.
//! No request holds a resource twice: of two versions in one document the later one is sent later.

use std::collections::{BTreeMap, HashMap, HashSet};

use omir_core::reference::{Ref, ResourceType};

/// Resources in one request, at most.
pub const MOST_RESOURCES: usize = 256;
/// Bytes in one request, at most; a single larger resource travels alone.
pub const MOST_BYTES: usize = 512 * 1024;

/// The key of the order.
#[derive(Debug, Clone)]
pub struct Item {
    /// Name of the resource.
    pub name: Ref,
    /// Id of its parent MemoryRecord.
    pub parent: Option<String>,
    /// Its size when encoded.
    pub bytes: usize,
}

/// Positions in `items`, request by request.
#[must_use]
pub fn plan(items: &[Item]) -> Vec<Vec<usize>> {
    let mut batches = Vec::new();
    let mut open = Batch::default();
    for unit in units(items) {
        let bytes: usize = unit.iter().map(|&at| items[at].bytes).sum();
        let full = open.positions.len() + unit.len() > MOST_RESOURCES
            || open.bytes + bytes > MOST_BYTES
            || unit.iter().any(|&at| open.names.contains(&items[at].name));
        if full && !open.positions.is_empty() {
            batches.push(std::mem::take(&mut open).positions);
        }
        open.bytes += bytes;
        open.names.extend(unit.iter().map(|&at| &items[at].name));
        open.positions.extend(unit);
    }
    if !open.positions.is_empty() {
        batches.push(open.positions);
    }
    batches
}

#[derive(Default)]
struct Batch<'a> {
    positions: Vec<usize>,
    names: HashSet<&'a Ref>,
    bytes: usize,
}

/// Groups that must not be split, in sending order: single resources, and circles of parents.
fn units(items: &[Item]) -> Vec<Vec<usize>> {
    let mut units = Vec::with_capacity(items.len());
    for kind in [ResourceType::Entity, ResourceType::Episode, ResourceType::Relationship] {
        let of_kind = (0..items.len()).filter(|&at| items[at].name.kind == kind);
        units.extend(of_kind.map(|at| vec![at]));
    }
    units.extend(family_order(items));
    units
}

/// MemoryRecords, ancestors first, otherwise in their order.
fn family_order(items: &[Item]) -> Vec<Vec<usize>> {
    let records = (0..items.len()).filter(|&at| items[at].name.kind == ResourceType::MemoryRecord);
    // The first of several versions is the one that children wait for.
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for at in records.clone() {
        by_id.entry(items[at].name.id.as_str()).or_insert(at);
    }
    let mut sent = vec![false; items.len()];
    let mut order = Vec::new();
    for start in records {
        let mut path: Vec<usize> = Vec::new();
        let mut on_path: BTreeMap<usize, usize> = BTreeMap::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|&at| !sent[at]) {
            if let Some(&entry) = on_path.get(&at) {
                // A circle: its members become one unit, sent before those that hang on it.
                let circle = path.split_off(entry);
                for &member in &circle {
                    sent[member] = true;
                }
                order.push(circle);
                break;
            }
            on_path.insert(at, path.len());
            path.push(at);
            next = items[at].parent.as_deref().and_then(|parent| by_id.get(parent).copied());
        }
        for at in path.into_iter().rev() {
            sent[at] = true;
            order.push(vec![at]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, parent: Option<&str>) -> Item {
        Item { name: name.parse().unwrap(), parent: parent.map(str::to_owned), bytes: 100 }
    }

    fn names(items: &[Item]) -> Vec<Vec<String>> {
        let sent = |batch: Vec<usize>| {
            let names = batch.into_iter().map(|at| items[at].name.to_string());
            names.collect()
        };
        plan(items).into_iter().map(sent).collect()
    }

    #[test]
    fn what_is_referred_to_goes_first() {
        let items = [
            item("MemoryRecord/child", Some("parent")),
            item("Relationship/r", None),
            item("MemoryRecord/parent", Some("grandparent")),
            item("Episode/ep", None),
            item("MemoryRecord/grandparent", Some("elsewhere")),
            item("Entity/en", None),
        ];
        assert_eq!(
            names(&items),
            [[
                "Entity/en",
                "Episode/ep",
                "Relationship/r",
                "MemoryRecord/grandparent",
                "MemoryRecord/parent",
                "MemoryRecord/child"
            ]]
        );
    }

    #[test]
    fn circles_travel_together_and_before_their_children() {
        let items = [
            item("MemoryRecord/child", Some("a")),
            item("MemoryRecord/a", Some("b")),
            item("MemoryRecord/b", Some("a")),
            item("MemoryRecord/self", Some("self")),
        ];
        let order = family_order(&items);
        assert_eq!(order, [vec![1, 2], vec![0], vec![3]]);
    }

    #[test]
    fn a_circle_is_not_torn_apart_at_a_border() {
        let mut items: Vec<Item> =
            (0..MOST_RESOURCES - 1).map(|n| item(&format!("MemoryRecord/m{n}"), None)).collect();
        items.push(item("MemoryRecord/a", Some("b")));
        items.push(item("MemoryRecord/b", Some("a")));
        let batches = plan(&items);
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[0].len(), MOST_RESOURCES - 1);
        assert_eq!(batches[1].len(), 2);
    }

    #[test]
    fn requests_stay_small() {
        let items: Vec<Item> = (0..1000).map(|n| item(&format!("Entity/e{n}"), None)).collect();
        let batches = plan(&items);
        assert!(batches.iter().all(|batch| batch.len() <= MOST_RESOURCES));
        assert_eq!(batches.concat(), (0..1000).collect::<Vec<_>>());

        let big = |name: &str, bytes| Item { bytes, ..item(name, None) };
        let items = [
            big("Entity/a", MOST_BYTES / 2),
            big("Entity/b", MOST_BYTES / 2),
            big("Entity/c", 1),
            big("Entity/d", 2 * MOST_BYTES),
            big("Entity/e", 1),
        ];
        assert_eq!(plan(&items), [vec![0, 1], vec![2], vec![3], vec![4]]);
    }

    #[test]
    fn versions_of_one_resource_are_sent_in_order_and_apart() {
        let items = [item("Entity/a", None), item("Entity/b", None), item("Entity/a", None)];
        assert_eq!(plan(&items), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn nothing_makes_no_request() {
        assert!(plan(&[]).is_empty());
    }

    #[test]
    fn a_long_line_of_ancestors_needs_no_deep_stack() {
        let items: Vec<Item> = (0..100_000)
            .map(|n| item(&format!("MemoryRecord/m{n}"), Some(&format!("m{}", n + 1))))
            .collect();
        let order = plan(&items).concat();
        assert_eq!(order.first(), Some(&99_999));
        assert_eq!(order.last(), Some(&0));
    }
}
