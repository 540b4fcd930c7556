//! The parameters by name, and the payload, that come with an operation.

use omir_core::value::Value;
use omird_engine::Encoding;
use omird_engine::{Code, Error};

use crate::params::{Parameters, add_members};

/// The payload of an operation.
#[derive(Debug, Default)]
pub struct Params {
    /// By name. They win over members of the payload that are called the same.
    pub parameters: Parameters,
    /// Beside them.
    pub payload: Payload,
}

impl Params {
    /// Returns the parameters, and those members of the payload that none of them names.
    ///
    /// # Errors
    /// `INVALID_QUERY` if the payload is not one of members.
    pub fn merged(self) -> Result<Parameters, Error> {
        let mut all = self.parameters;
        if let Some(members) = self.payload.members()? {
            add_members(&mut all, &members)?;
        }
        Ok(all)
    }
}

/// The payload of an operation.
#[derive(Debug, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// Resources, for `remember`.
    Resources(Vec<u8>, Encoding),
    /// Members that are parameters as well; for `rebase` the keyframes.
    Members(Value),
}

impl Payload {
    pub(super) fn members(self) -> Result<Option<Value>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Members(members) => Ok(Some(members)),
            Self::Resources(..) => {
                let message = "only `remember` takes resources";
                Err(Error::new(Code::InvalidQuery, message))
            }
        }
    }
}
