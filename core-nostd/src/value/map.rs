//! Objects: members in the order they came, each name once.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Value;

/// Up to this many members, looking at each beats any index.
const SMALL: usize = 16;

/// The members of an object, in insertion order. Equality ignores the order.
///
/// Lookup is linear: OMIR objects are small. Building one from many members at once
/// ([`FromIterator`], the decoders) is not quadratic; inserting one by one is.
#[derive(Clone, Default)]
pub struct Map {
    members: Vec<(String, Value)>,
}

impl Map {
    /// No members.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true if there is a member of that name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The value of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|at| &self.members[at].1)
    }

    /// The value of that name.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|at| &mut self.members[at].1)
    }

    /// Sets a member: in place if the name is there, returning the old value, else at the end.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.get_mut(&key) {
            Some(old) => Some(core::mem::replace(old, value)),
            None => {
                self.members.push((key, value));
                None
            }
        }
    }

    /// Takes a member out, keeping the order of the others.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|at| self.members.remove(at).1)
    }

    /// The members in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.members.iter())
    }

    /// The members in order, values changeable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.members.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// The names in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| key.as_str())
    }

    /// The values in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.members.iter().map(|(_, value)| value)
    }

    /// Drops the members `keep` says no to.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.members.retain_mut(|(key, value)| keep(key, value));
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|(name, _)| name == key)
    }
}

/// Adopts members whose names a decoder has already found to differ.
pub(crate) fn map_of(members: Vec<(String, Value)>) -> Map {
    debug_assert!(duplicate_key(members.len(), |at| &members[at].0).is_none());
    Map { members }
}

/// Position of the first of `len` names that repeats an earlier one.
pub(crate) fn duplicate_key<'a>(len: usize, name: impl Fn(usize) -> &'a str) -> Option<usize> {
    if len <= SMALL {
        return (1..len).find(|&at| (0..at).any(|earlier| name(earlier) == name(at)));
    }
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_unstable_by(|&a, &b| name(a).cmp(name(b)).then(a.cmp(&b)));
    order.windows(2).filter(|pair| name(pair[0]) == name(pair[1])).map(|pair| pair[1]).min()
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        // Mostly the order agrees, at least at the start.
        let same = |a: &(String, Value), b: &(String, Value)| a.0 == b.0;
        if self.members.iter().zip(&other.members).all(|(a, b)| same(a, b)) {
            return self.values().eq(other.values());
        }
        if self.len() <= SMALL {
            return self.iter().all(|(key, value)| other.get(key) == Some(value));
        }
        let index: BTreeMap<&str, &Value> = other.iter().collect();
        self.iter().all(|(key, value)| index.get(key) == Some(&value))
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Of members with the same name the last wins, in the place of the first.
impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let members: Vec<(String, Value)> =
            members.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        if duplicate_key(members.len(), |at| &members[at].0).is_none() {
            return Self { members };
        }
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut kept: Vec<(String, Value)> = Vec::new();
        for (key, value) in members {
            match places.get(&key) {
                Some(&at) => kept[at].1 = value,
                None => {
                    places.insert(key.to_owned(), kept.len());
                    kept.push((key, value));
                }
            }
        }
        Self { members: kept }
    }
}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = alloc::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

/// The members of a [`Map`] in order.
#[derive(Clone, Debug)]
pub struct Iter<'a>(core::slice::Iter<'a, (String, Value)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a str, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
