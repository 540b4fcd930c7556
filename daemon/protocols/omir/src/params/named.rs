//! Parameters by name, taken one by one.

use omir_core::reference::Ref;

use omird_engine::{Code, Error};

/// Parameters, by name and decoded.
pub type Parameters = Vec<(String, String)>;

/// Takes parameters by name and refuses what is left.
#[derive(Debug)]
pub struct Named(Parameters);

impl Named {
    /// To be taken from.
    pub fn new(parameters: Parameters) -> Self {
        Self(parameters)
    }

    /// The value of a parameter, if it is given.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// The value of a parameter that must be given.
    ///
    /// # Errors
    /// `INVALID_QUERY` if it is missing.
    pub fn need(&mut self, name: &str) -> Result<String, Error> {
        self.take(name).ok_or_else(|| Error::query(name, "is missing"))
    }

    /// A parameter that is true or false; false if it is not given.
    ///
    /// # Errors
    /// `INVALID_QUERY` if it is neither.
    pub fn flag(&mut self, name: &str) -> Result<bool, Error> {
        self.take(name).map_or(Ok(false), |text| flag(name, &text))
    }

    /// # Errors
    /// Names the first parameter that nobody took.
    pub fn finish(self, known: &str) -> Result<(), Error> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Error::at(
                Code::InvalidQuery,
                format!("/{name}"),
                format!("unknown parameter `{name}`: known are {known}"),
            )),
        }
    }
}

/// Reads a yes or no. A bare name counts as yes, as in `explain`.
pub fn flag(name: &str, value: &str) -> Result<bool, Error> {
    match value {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::query(name, format!("{value:?} is neither `true` nor `false`"))),
    }
}

/// Reads `Type/id` from a parameter.
pub fn reference(name: &str, text: &str) -> Result<Ref, Error> {
    text.parse().map_err(|error| {
        Error::query(name, format!("{text:?} is no reference such as MemoryRecord/dock-1: {error}"))
    })
}
