//! Parameters by name, and the queries and rebases that are asked for by them.

use omir_core::instant::Timestamp;
use omir_core::value::Value;

use super::Engine;
use super::command::Change;
use super::rebase::{Rebase, Request, Step};
use super::request::reference;
use crate::error::{Code, Error};
use crate::recall::parameters;
use crate::recall::query::Query;

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
        self.take(name).map_or(Ok(false), |text| parameters::flag(name, &text))
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

impl Engine {
    /// `recall` and `export`: the parameters of `docs/keys.md`, "Recall", on top of `base`.
    ///
    /// # Errors
    /// `INVALID_QUERY`.
    pub fn query(&self, base: Query, parameters: &Parameters) -> Result<Query, Error> {
        self.query_at(base, parameters, self.now().0)
    }

    /// As [`Engine::query`], where `now(...)` means another time than now.
    ///
    /// # Errors
    /// `INVALID_QUERY`.
    pub fn query_at(
        &self,
        base: Query,
        parameters: &Parameters,
        now: Timestamp,
    ) -> Result<Query, Error> {
        parameters::parse(base, parameters, now)
    }

    /// `rebase`: a payload with the keyframes, or `undo`; and `dryRun`.
    ///
    /// # Errors
    /// `INVALID_QUERY`.
    pub fn rebase(&self, parameters: Parameters, payload: Option<&Value>) -> Result<Change, Error> {
        let mut named = Named::new(parameters);
        let undo = named.take("undo").map(|text| reference("undo", &text)).transpose()?;
        let dry_run = named.flag("dryRun")?;
        named.finish("undo, dryRun; the keyframes go into the payload")?;
        let step = match (undo, payload) {
            (Some(undo), None) => Step::Back(undo),
            (None, Some(payload)) => {
                Step::Forward(Rebase::read(payload, &self.settings().fixed_frame)?)
            }
            (Some(_), Some(_)) => {
                return Err(Error::query("undo", "goes without keyframes in a payload"));
            }
            (None, None) => {
                let message = "there is no payload: send the frame and the keyframes with their new \
                               poses, or name the step to `undo`";
                return Err(Error::new(Code::InvalidQuery, message));
            }
        };
        let id = self.new_id().parse().map_err(|error| {
            Error::new(Code::Internal, format!("an id of our own is none: {error}"))
        })?;
        let max_bytes = self.settings().limits.for_import().max_payload_bytes;
        Ok(Change::Rebase(Request { step, dry_run, id, max_bytes }))
    }
}
