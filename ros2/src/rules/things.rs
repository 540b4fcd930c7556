//! The things a rule has seen last, by name; the one longest unseen makes room.

use std::collections::{BTreeMap, HashMap};

/// Name of a thing, as a digest: names come from the network and may have any length.
pub type Key = [u8; 16];

/// The last touch of a thing, counted in touches. It names the thing until the next one.
pub type Touch = u64;

/// At most so many things; several may have one key.
#[derive(Debug)]
pub struct Things<T> {
    most: usize,
    next: Touch,
    by_touch: BTreeMap<Touch, (Key, T)>,
    by_key: HashMap<Key, Vec<Touch>>,
}

impl<T> Things<T> {
    /// Room for `most` things, one at least.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), next: 0, by_touch: BTreeMap::new(), by_key: HashMap::new() }
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.by_touch.len()
    }

    /// Those of that key.
    pub fn of(&self, key: &Key) -> impl Iterator<Item = (Touch, &T)> {
        let touches = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        touches.iter().filter_map(|touch| Some((*touch, &self.by_touch.get(touch)?.1)))
    }

    /// A thing.
    pub fn get(&self, touch: Touch) -> Option<&T> {
        self.by_touch.get(&touch).map(|(_, thing)| thing)
    }

    /// A thing, which is now the one touched last.
    pub fn touch(&mut self, touch: Touch) -> Option<&mut T> {
        let (key, thing) = self.remove(touch)?;
        let touch = self.put(key, thing);
        self.by_touch.get_mut(&touch).map(|(_, thing)| thing)
    }

    /// Adds a thing, and hands back the one that had to go for it.
    pub fn insert(&mut self, key: Key, thing: T) -> Option<T> {
        let oldest = self.by_touch.first_key_value().map(|(touch, _)| *touch);
        let gone = oldest.filter(|_| self.len() >= self.most).and_then(|touch| self.remove(touch));
        self.put(key, thing);
        gone.map(|(_, thing)| thing)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, touch: Touch) -> Option<(Key, T)> {
        let (key, thing) = self.by_touch.remove(&touch)?;
        if let Some(touches) = self.by_key.get_mut(&key) {
            touches.retain(|other| *other != touch);
            if touches.is_empty() {
                self.by_key.remove(&key);
            }
        }
        Some((key, thing))
    }

    /// All of them, that touched longest ago first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.by_touch.values().map(|(_, thing)| thing)
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.by_touch.values_mut().map(|(_, thing)| thing)
    }

    /// The one touched last.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.by_touch.last_entry().map(|entry| &mut entry.into_mut().1)
    }

    /// Takes all out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.by_key.clear();
        std::mem::take(&mut self.by_touch).into_values().map(|(_, thing)| thing)
    }

    fn put(&mut self, key: Key, thing: T) -> Touch {
        let touch = self.next;
        self.next += 1;
        self.by_touch.insert(touch, (key, thing));
        self.by_key.entry(key).or_default().push(touch);
        touch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list in the order of touches.
        #[test]
        fn as_a_list_would(most in 1..5usize, acts in proptest::collection::vec((0..4u8, 0..3u8), 0..60)) {
            let mut things = Things::new(most);
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (n, (name, act)) in acts.into_iter().enumerate() {
                let key = [name; 16];
                let touch = things.of(&key).map(|(touch, _)| touch).next();
                match (act, touch) {
                    (0, Some(touch)) => {
                        let touched = *things.touch(touch).unwrap();
                        let at = list.iter().position(|(_, thing)| *thing == touched).unwrap();
                        let thing = list.remove(at);
                        prop_assert_eq!(thing.0, name);
                        list.push(thing);
                    }
                    (1, Some(touch)) => {
                        let (removed, thing) = things.remove(touch).unwrap();
                        prop_assert_eq!(removed, key);
                        list.retain(|(_, other)| *other != thing);
                    }
                    _ => {
                        let gone = things.insert(key, n);
                        let expected = (list.len() >= most).then(|| list.remove(0).1);
                        prop_assert_eq!(gone, expected);
                        list.push((name, n));
                    }
                }
                prop_assert_eq!(things.len(), list.len());
                for name in 0..4u8 {
                    let mut found: Vec<usize> =
                        things.of(&[name; 16]).map(|(_, thing)| *thing).collect();
                    found.sort_unstable();
                    let mut expected: Vec<usize> =
                        list.iter().filter(|(n, _)| *n == name).map(|(_, thing)| *thing).collect();
                    expected.sort_unstable();
                    prop_assert_eq!(found, expected);
                }
            }
            let order: Vec<usize> = things.iter_mut().map(|thing| *thing).collect();
            let expected: Vec<usize> = list.iter().map(|(_, thing)| *thing).collect();
            prop_assert_eq!(order, expected);
        }
    }
}
