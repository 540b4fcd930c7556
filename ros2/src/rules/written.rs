//! A table of the configuration as it was written, read key by key.
//!
//! A complaint names the whole key (`ros2.topic[3].keep.beyond_m`), and reading goes on after it, so
//! that a person learns of everything that is wrong at once. An unknown key is a complaint too, with the nearest one
//! that exists.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use omir_core::quantity::parse_duration;
use omir_core::validate::closest;
use omir_core::value::{Map, Value};

/// One thing that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The key, from the top of the file on.
    pub key: String,
    /// The fault, and what is allowed.
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Everything that is wrong with the configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// In the order in which it was found.
    pub complaints: Vec<Complaint>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, complaint) in self.complaints.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{complaint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The collected complaints.
#[derive(Debug, Default)]
pub struct Complaints(RefCell<Vec<Complaint>>);

impl Complaints {
    /// Notes one.
    pub fn add(&self, key: impl Into<String>, message: impl fmt::Display) {
        let message = message.to_string();
        self.0.borrow_mut().push(Complaint { key: key.into(), message });
    }

    /// Notes those of another reading.
    pub fn extend(&self, error: ConfigError) {
        self.0.borrow_mut().extend(error.complaints);
    }

    /// `value`, if nothing was wrong.
    ///
    /// # Errors
    /// Everything that was.
    pub fn or<T>(self, value: T) -> Result<T, ConfigError> {
        let complaints = self.0.into_inner();
        if complaints.is_empty() { Ok(value) } else { Err(ConfigError { complaints }) }
    }
}

/// Unit of time of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `_ms`
    Millis,
    /// `_s`
    Seconds,
    /// `_h`
    Hours,
}

impl Unit {
    /// Its name, and its nanoseconds.
    const fn parts(self) -> (&'static str, f64) {
        match self {
            Self::Millis => ("milliseconds", 1e6),
            Self::Seconds => ("seconds", 1e9),
            Self::Hours => ("hours", 3.6e12),
        }
    }
}

/// One table, and which of its keys were asked for.
#[derive(Debug)]
pub struct Table<'a> {
    key: String,
    members: &'a Map,
    known: RefCell<Vec<&'static str>>,
    complaints: &'a Complaints,
}

impl<'a> Table<'a> {
    /// The table that stands at `key`.
    pub fn new(key: impl Into<String>, members: &'a Map, complaints: &'a Complaints) -> Self {
        Self { key: key.into(), members, known: RefCell::default(), complaints }
    }

    /// The whole name of a key in this table.
    pub fn key(&self, name: &str) -> String {
        if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) }
    }

    /// The name of this table.
    pub fn path(&self) -> &str {
        &self.key
    }

    /// Complains about a key.
    pub fn complain(&self, name: &str, message: impl fmt::Display) {
        self.complaints.add(self.key(name), message);
    }

    /// The value as it was written.
    pub fn value(&self, name: &'static str) -> Option<&'a Value> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
        self.members.get(name)
    }

    fn of_kind<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        let read = read(value);
        if read.is_none() {
            self.complain(name, format_args!("expected {expected}, not {}", value.kind_name()));
        }
        read
    }

    /// A text.
    pub fn text(&self, name: &'static str) -> Option<&'a str> {
        self.of_kind(name, "a string", Value::as_str)
    }

    /// Several texts; one alone needs no brackets.
    pub fn texts(&self, name: &'static str) -> Option<Vec<&'a str>> {
        self.of_kind(name, "a list of strings", |value| match value {
            Value::Text(text) => Some(vec![text.as_str()]),
            Value::Array(items) => items.iter().map(Value::as_str).collect(),
            _ => None,
        })
    }

    /// True or false.
    pub fn flag(&self, name: &'static str) -> Option<bool> {
        self.of_kind(name, "true or false", Value::as_bool)
    }

    /// A number within `range`.
    pub fn number(&self, name: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let number = self.of_kind(name, "a number", Value::as_f64)?;
        if range.contains(&number) {
            return Some(number);
        }
        let (least, most) = range.into_inner();
        self.complain(name, format_args!("{number} is not between {least} and {most}"));
        None
    }

    /// A time within `range`, both in `unit`: a number, or a text with a unit of its own, such as `"90min"`.
    pub fn time(&self, name: &'static str, unit: Unit, range: RangeInclusive<f64>) -> Option<f64> {
        let (word, nanos) = unit.parts();
        let value = self.value(name)?;
        let number = match value {
            Value::Text(text) => match parse_duration(text) {
                Ok(time) => time.as_nanos() as f64 / nanos,
                Err(error) => {
                    self.complain(name, error);
                    return None;
                }
            },
            Value::Number(number) => number.as_f64(),
            other => {
                let found = other.kind_name();
                let expected = "expected a time such as \"90min\" or \"3d\", or a number of";
                self.complain(name, format_args!("{expected} {word}, not {found}"));
                return None;
            }
        };
        if range.contains(&number) {
            return Some(number);
        }
        let (least, most) = range.into_inner();
        let (given, word) = match value {
            Value::Text(text) => (format!("{text:?}"), format!(" {word}")),
            _ => (number.to_string(), String::new()),
        };
        self.complain(name, format_args!("{given} is not between {least} and {most}{word}"));
        None
    }

    /// A time of so many seconds.
    pub fn seconds(&self, name: &'static str, range: RangeInclusive<f64>) -> Option<Duration> {
        self.time(name, Unit::Seconds, range).map(Duration::from_secs_f64)
    }

    /// Returns true if a key is there, whatever it holds.
    pub fn has(&self, name: &str) -> bool {
        self.members.get(name).is_some()
    }

    /// An integer within `range`.
    pub fn integer(&self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let number = self.of_kind(name, "an integer", |value| value.as_number()?.as_i128())?;
        match u64::try_from(number) {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let (least, most) = range.into_inner();
                self.complain(name, format_args!("{number} is not between {least} and {most}"));
                None
            }
        }
    }

    /// A text that something else must be able to read.
    pub fn parsed<T, E: fmt::Display>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text(name)?) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.complain(name, error);
                None
            }
        }
    }

    /// Several texts that something else must be able to read.
    pub fn all_parsed<T, E: fmt::Display>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let texts = self.texts(name)?;
        let is_list = matches!(self.members.get(name), Some(Value::Array(_)));
        let mut parsed = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            match parse(text) {
                Ok(item) => parsed.push(item),
                Err(error) if is_list => self.complain(&format!("{name}[{index}]"), error),
                Err(error) => self.complain(name, error),
            }
        }
        Some(parsed)
    }

    /// One of a list of words.
    pub fn word<T: Copy>(&self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(name, |word| one_of(word, words))
    }

    /// A table within this one.
    pub fn table(&self, name: &'static str) -> Option<Table<'a>> {
        let members = self.of_kind(name, "a table", Value::as_object)?;
        Some(Table::new(self.key(name), members, self.complaints))
    }

    /// Several tables; one alone needs no brackets.
    pub fn tables(&self, name: &'static str) -> Vec<Table<'a>> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let items = match value {
            Value::Object(_) => return self.table(name).into_iter().collect(),
            Value::Array(items) => items,
            other => {
                self.complain(name, format_args!("expected tables, not {}", other.kind_name()));
                return Vec::new();
            }
        };
        let mut tables = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let key = format!("{name}[{index}]");
            match item {
                Value::Object(members) => {
                    tables.push(Table::new(self.key(&key), members, self.complaints));
                }
                other => {
                    let found = other.kind_name();
                    self.complain(&key, format_args!("expected a table, not {found}"));
                }
            }
        }
        tables
    }

    /// The names and values of a table whose names are free.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.members.iter()
    }

    /// Complains about every key that was not asked for.
    pub fn done(&self) {
        let known = self.known.borrow();
        for name in self.members.keys().filter(|name| !known.contains(name)) {
            match closest(name, known.iter().copied()) {
                Some(near) => {
                    self.complain(name, format_args!("there is no such key; is it {near}?"));
                }
                None => self.complain(
                    name,
                    format_args!("there is no such key; there are {}", known.join(", ")),
                ),
            }
        }
    }
}

/// A word that is not on the list of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    word: String,
    /// The word that was meant most likely.
    nearest: Option<String>,
    list: String,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(near) => write!(f, "{:?} is not known; is it {near:?}?", self.word),
            None => write!(f, "{:?} is none of {}", self.word, self.list),
        }
    }
}

/// Returns the meaning of a word that must be on a list.
pub fn one_of<T: Copy>(word: &str, words: &[(&str, T)]) -> Result<T, UnknownWord> {
    if let Some((_, meaning)) = words.iter().find(|(known, _)| *known == word) {
        return Ok(*meaning);
    }
    let names = words.iter().map(|(name, _)| *name);
    let nearest = closest(word, names.clone()).map(str::to_owned);
    let list = names.collect::<Vec<_>>().join(", ");
    Err(UnknownWord { word: word.to_owned(), nearest, list })
}

#[cfg(test)]
mod tests;
