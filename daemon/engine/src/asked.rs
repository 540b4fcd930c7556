//! What the operations of `docs/keys.md` ask for, by the names of their parameters: the same for every
//! adapter, whatever the parameters came in.

use omir_core::confidence::{Outcome, Weight};
use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Value;

use super::Engine;
use super::command::Change;
use super::compaction::Scope;
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

/// `forget`: `ref`, one or several with commas between them.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn forget(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::new(parameters);
    let text = named.need("ref")?;
    named.finish("ref")?;
    let targets = text.split(',').map(|part| reference("ref", part.trim()));
    Ok(Change::Forget(targets.collect::<Result<Vec<_>, _>>()?))
}

/// `anchor`: `ref`, and `anchored=false` to let it go.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn anchor(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::new(parameters);
    let target = reference("ref", &named.need("ref")?)?;
    let anchored = match named.take("anchored") {
        Some(text) => parameters::flag("anchored", &text)?,
        None => true,
    };
    named.finish("ref, anchored")?;
    Ok(Change::Anchor(target, anchored))
}

/// `feedback`: `ref`, `outcome`, and `weight`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn feedback(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::new(parameters);
    let target = reference("ref", &named.need("ref")?)?;
    let text = named.need("outcome")?;
    let outcome: Outcome = text.parse().map_err(|_| {
        Error::query("outcome", format!("{text:?} is neither `confirmed` nor `contradicted`"))
    })?;
    let weight = match named.take("weight") {
        None => Weight::ONE,
        Some(text) => text.parse().ok().and_then(Weight::new).ok_or_else(|| {
            Error::query("weight", format!("{text:?} is no number above 0, at most 1000"))
        })?,
    };
    named.finish("ref, outcome, weight")?;
    Ok(Change::Feedback(target, outcome, weight))
}

/// `compact`: which `scope`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn compact(parameters: Parameters) -> Result<Scope, Error> {
    let mut named = Named::new(parameters);
    let scope = match named.take("scope") {
        None => Scope::Due,
        Some(text) => Scope::parse(&text).ok_or_else(|| {
            let message = format!("{text:?} is none of `due`, `forgotten`, `all`");
            Error::query("scope", message)
        })?,
    };
    named.finish("scope")?;
    Ok(scope)
}

/// `sweep`: whether it is a `dryRun`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn sweep(parameters: Parameters) -> Result<bool, Error> {
    let mut named = Named::new(parameters);
    let dry_run = named.flag("dryRun")?;
    named.finish("dryRun")?;
    Ok(dry_run)
}

/// `explain`: `ref`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn explain(parameters: Parameters) -> Result<Ref, Error> {
    let mut named = Named::new(parameters);
    let target = reference("ref", &named.need("ref")?)?;
    named.finish("ref")?;
    Ok(target)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `format` is of one adapter, which takes it away; the others do not know it.
    #[test]
    fn no_parameter_is_called_known_that_is_not() {
        let asked = || vec![("format".to_owned(), "cbor".to_owned())];
        let with = |more: &[(&str, &str)]| {
            let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
            more.chain(asked()).collect::<Parameters>()
        };
        let refusals = [
            forget(with(&[("ref", "Entity/a")])).unwrap_err(),
            anchor(with(&[("ref", "MemoryRecord/a")])).unwrap_err(),
            feedback(with(&[("ref", "MemoryRecord/a"), ("outcome", "confirmed")])).unwrap_err(),
            compact(asked()).unwrap_err(),
            sweep(asked()).unwrap_err(),
            explain(with(&[("ref", "Entity/a")])).unwrap_err(),
        ];
        for error in refusals {
            assert_eq!(error.path, "/format");
            let known = error.message.split("known are").nth(1).unwrap();
            assert!(!known.contains("format"), "{error}");
        }
    }
}
