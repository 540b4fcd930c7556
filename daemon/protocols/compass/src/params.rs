//! Parameters of a call: a closed set for each method, each fault with the JSON Pointer of its place.

use std::fmt;

use omir_core::instant::Timestamp;
use omir_core::model::Extension;
use omir_core::pointer;
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::{Map, Value};

use crate::failure::Failure;
use crate::words::Word;

/// Longest id, in bytes.
const LONGEST_ID: usize = 128;
/// Longest text that is no content, in bytes.
const LONGEST_TEXT: usize = 16 << 10;
/// Most elements of a list.
const MOST_IN_LIST: usize = 1000;

/// The parameters of one call, taken one by one. Parameters that the call does not take are refused in the end:
/// [`Params::finish`].
#[derive(Debug)]
pub(crate) struct Params<'a> {
    map: &'a Map,
    /// The JSON Pointer of the map: empty for the parameters themselves.
    at: String,
    taken: Vec<&'static str>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(map: &'a Map) -> Self {
        Self { map, at: String::new(), taken: Vec::new() }
    }

    /// Returns the JSON Pointer of a parameter.
    pub(crate) fn path(&self, name: &str) -> String {
        pointer::join(&self.at, name)
    }

    /// Returns a parameter; `null` is as good as none.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns true if the parameter says something; `null` does not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Returns true if the parameter is there, `null` or not.
    pub(crate) fn states(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    fn expected(&self, name: &str, what: &str, found: &Value) -> Failure {
        let message = format!("{name}: expected {what}, found {}", found.kind_name());
        Failure::params(self.path(name), message)
    }

    /// Returns a text of at most `most` bytes.
    pub(crate) fn long_text(
        &mut self,
        name: &'static str,
        most: usize,
    ) -> Result<Option<&'a str>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.expected(name, "a text", value))?;
        if text.len() > most {
            let message =
                format!("{name}: {} bytes are more than the {most} it may have", text.len());
            return Err(Failure::too_large(&self.path(name), message));
        }
        Ok(Some(text))
    }

    /// Returns a text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, Failure> {
        self.long_text(name, LONGEST_TEXT)
    }

    /// Returns a text that says something.
    pub(crate) fn said(&mut self, name: &'static str) -> Result<Option<&'a str>, Failure> {
        let text = self.text(name)?;
        self.not_blank(name, text)
    }

    /// Refuses a text that says nothing.
    pub(crate) fn not_blank(
        &self,
        name: &str,
        text: Option<&'a str>,
    ) -> Result<Option<&'a str>, Failure> {
        match text {
            Some(text) if text.trim().is_empty() => {
                Err(Failure::params(self.path(name), format!("{name}: must not be empty")))
            }
            text => Ok(text),
        }
    }

    /// Returns an id: 1 to 128 bytes, of whatever system.
    pub(crate) fn id(&mut self, name: &'static str) -> Result<Option<&'a str>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.expected(name, "an id as a text", value))?;
        check_id(text).map_err(|why| Failure::params(self.path(name), format!("{name}: {why}")))?;
        Ok(Some(text))
    }

    /// Returns a flag.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let flag = value.as_bool().ok_or_else(|| self.expected(name, "true or false", value))?;
        Ok(Some(flag))
    }

    /// Returns a number within bounds, both included.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| self.expected(name, "a number", value))?;
        if !(least..=most).contains(&number) {
            let message = format!("{name}: {number} is not between {least} and {most}");
            return Err(Failure::params(self.path(name), message));
        }
        Ok(Some(number))
    }

    /// Returns a share: a number from 0 to 1.
    pub(crate) fn share(&mut self, name: &'static str) -> Result<Option<f64>, Failure> {
        self.number(name, 0.0, 1.0)
    }

    /// Returns a whole number within bounds, both included.
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        let expected = format!("a whole number from {least} to {most}");
        let number = number.ok_or_else(|| self.expected(name, &expected, value))?;
        if !(least..=most).contains(&number) {
            let message = format!("{name}: {number} is not between {least} and {most}");
            return Err(Failure::params(self.path(name), message));
        }
        Ok(Some(number))
    }

    /// Returns an instant.
    pub(crate) fn instant(&mut self, name: &'static str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let instant = Timestamp::parse(text);
        instant.map(Some).map_err(|why| Failure::params(self.path(name), format!("{name}: {why}")))
    }

    /// Returns a word of a closed list.
    pub(crate) fn word<W: Word>(&mut self, name: &'static str) -> Result<Option<W>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        self.to_word(name, &self.path(name), text).map(Some)
    }

    /// Returns words of a closed list; empty where nothing is said.
    pub(crate) fn words<W: Word>(&mut self, name: &'static str) -> Result<Vec<W>, Failure> {
        let texts = self.texts(name)?.unwrap_or_default();
        let numbered = texts.iter().enumerate();
        numbered
            .map(|(at, text)| self.to_word(name, &format!("{}/{at}", self.path(name)), text))
            .collect()
    }

    fn to_word<W: Word>(&self, name: &str, path: &str, text: &str) -> Result<W, Failure> {
        W::by_name(text).ok_or_else(|| {
            let known: Vec<&str> = W::ALL.iter().map(|word| word.as_str()).collect();
            let message = format!("{name}: {text:?} is none of {}", known.join(", "));
            Failure::params(path, message)
        })
    }

    /// Returns a list of texts, none of them blank.
    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let items =
            value.as_array().ok_or_else(|| self.expected(name, "a list of texts", value))?;
        if items.len() > MOST_IN_LIST {
            let message =
                format!("{name}: {} are more than the {MOST_IN_LIST} of a list", items.len());
            return Err(Failure::too_large(&self.path(name), message));
        }
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let path = format!("{}/{at}", self.path(name));
            let text = item.as_str().map(str::trim).filter(|text| !text.is_empty());
            let Some(text) = text.filter(|text| text.len() <= LONGEST_TEXT) else {
                let message =
                    format!("{name}: expected a text of 1 to {LONGEST_TEXT} bytes at {at}");
                return Err(Failure::params(path, message));
            };
            texts.push(text.to_owned());
        }
        Ok(Some(texts))
    }

    /// Returns a list of ids.
    pub(crate) fn ids(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Failure> {
        let ids = self.texts(name)?;
        for (at, id) in ids.iter().flatten().enumerate() {
            check_id(id).map_err(|why| {
                Failure::params(format!("{}/{at}", self.path(name)), format!("{name}: {why}"))
            })?;
        }
        Ok(ids)
    }

    /// Returns the parameters of an object.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Params<'a>>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let map = value.as_object().ok_or_else(|| self.expected(name, "an object", value))?;
        Ok(Some(Params { map, at: self.path(name), taken: Vec::new() }))
    }

    /// Returns the names and numbers of an object whose names are free.
    pub(crate) fn numbers(
        &mut self,
        name: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<Vec<(&'a str, f64)>>, Failure> {
        let Some(inner) = self.object(name)? else { return Ok(None) };
        if inner.map.len() > MOST_IN_LIST {
            let message = format!("{name}: more than {MOST_IN_LIST} members");
            return Err(Failure::too_large(&self.path(name), message));
        }
        let of = |(key, value): (&'a str, &'a Value)| {
            let number = value.as_f64().filter(|number| (least..=most).contains(number));
            number.map(|number| (key, number)).ok_or_else(|| {
                let message = format!("{name}: {key} must be a number from {least} to {most}");
                Failure::params(inner.path(key), message)
            })
        };
        inner.map.iter().map(of).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// Returns a pose: the value of the extension `spatial-pose` of OMIR.
    pub(crate) fn pose(&mut self, name: &'static str) -> Result<Option<SpatialPose>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let map = value.as_object().ok_or_else(|| self.expected(name, "a pose", value))?;
        let extension = Extension::json(SPATIAL_POSE_URL, map.clone());
        SpatialPose::from_extension(&extension).map(Some).map_err(|faults| {
            let path = self.path(name);
            let Some(fault) = faults.first() else {
                return Failure::params(path, format!("{name}: is no pose"));
            };
            let within = fault.pointer.strip_prefix("/valueJson").unwrap_or_default();
            Failure::params(format!("{path}{within}"), format!("{name}: {}", fault.message))
        })
    }

    /// Returns what a parameter must be there for.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Failure> {
        value.ok_or_else(|| Failure::params(self.path(name), format!("{name}: is required")))
    }

    /// Refuses what was never taken: it is no parameter of this method.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match self.map.keys().find(|key| !self.taken.contains(key)) {
            None => Ok(()),
            Some(key) => {
                let known = self.taken.join(", ");
                let message = format!("{key}: is no parameter of this method; it takes {known}");
                Err(Failure::params(self.path(key), message))
            }
        }
    }
}

/// A reason why a text is no id.
enum BadId {
    /// It has so many bytes.
    Bytes(usize),
    /// It has control characters.
    Control,
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "an id has 1 to {LONGEST_ID} bytes, not {bytes}"),
            Self::Control => f.write_str("an id has no control characters"),
        }
    }
}

/// Checks an id of any system.
fn check_id(text: &str) -> Result<(), BadId> {
    if text.is_empty() || text.len() > LONGEST_ID {
        return Err(BadId::Bytes(text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err(BadId::Control);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;
    use crate::words::{MemoryType, StageType};

    fn map(text: &str) -> Map {
        match json::from_slice(text.as_bytes(), &Limits::default()).unwrap() {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    fn path(failure: Failure) -> String {
        failure.error.data.get("path").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    #[test]
    fn what_fits_is_taken() {
        let map = map(
            r#"{"a":"x","b":0.5,"c":7,"d":true,"e":["p","q"],"f":"planning","g":null,"h":{"planning":1},"i":{"k":"v"}}"#,
        );
        let mut params = Params::new(&map);
        assert_eq!(params.id("a").unwrap(), Some("x"));
        assert_eq!(params.share("b").unwrap(), Some(0.5));
        assert_eq!(params.count("c", 1, 9).unwrap(), Some(7));
        assert_eq!(params.flag("d").unwrap(), Some(true));
        assert_eq!(params.texts("e").unwrap(), Some(vec!["p".to_owned(), "q".to_owned()]));
        assert_eq!(params.word::<StageType>("f").unwrap(), Some(StageType::Planning));
        assert_eq!(params.text("g").unwrap(), None);
        assert!(params.has("a") && !params.has("g") && params.states("g") && !params.has("none"));
        assert_eq!(params.numbers("h", 0.0, 1.0).unwrap(), Some(vec![("planning", 1.0)]));
        let mut inner = params.object("i").unwrap().unwrap();
        assert_eq!(inner.text("k").unwrap(), Some("v"));
        inner.finish().unwrap();
        assert_eq!(params.text("none").unwrap(), None);
        params.finish().unwrap();
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place() {
        let map = map(
            r#"{"a":"","b":2,"c":1.5,"e":["p",7],"f":"plan","h":{"x/y":2},"i":{"k":7},"~/z":1,"j":" "}"#,
        );
        let fault = |f: &dyn Fn(&mut Params<'_>) -> Option<Failure>| {
            path(f(&mut Params::new(&map)).expect("it is refused"))
        };
        assert_eq!(fault(&|p| p.id("a").err()), "/a");
        assert_eq!(fault(&|p| p.share("b").err()), "/b");
        assert_eq!(fault(&|p| p.count("c", 0, 9).err()), "/c");
        assert_eq!(fault(&|p| p.texts("e").err()), "/e/1");
        assert_eq!(fault(&|p| p.word::<MemoryType>("f").err()), "/f");
        assert_eq!(fault(&|p| p.numbers("h", 0.0, 1.0).err()), "/h/x~1y");
        assert_eq!(fault(&|p| p.object("i").unwrap().unwrap().flag("k").err()), "/i/k");
        assert_eq!(fault(&|p| p.said("j").err()), "/j");
        assert_eq!(fault(&|p| p.required("q", None::<u8>).err()), "/q");
        let all = ["a", "b", "c", "e", "f", "h", "i", "j"];
        let mut params = Params::new(&map);
        for name in all {
            params.value(name);
        }
        assert_eq!(path(params.finish().unwrap_err()), "/~0~1z");
    }

    #[test]
    fn lists_and_texts_have_bounds() {
        let mut object = Map::new();
        object.insert("a", vec!["x"; MOST_IN_LIST + 1]);
        object.insert("b", "y".repeat(LONGEST_TEXT + 1));
        object.insert("c", "z".repeat(LONGEST_ID + 1));
        let mut params = Params::new(&object);
        assert_eq!(params.texts("a").unwrap_err().error.code, -32003);
        assert_eq!(params.text("b").unwrap_err().error.code, -32003);
        assert_eq!(params.id("c").unwrap_err().error.code, -32602);
    }
}
