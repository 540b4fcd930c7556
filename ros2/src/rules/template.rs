//! Texts with fields of a message in them: `{name}: {msg}`, `battery at {percentage:.0%}`.
//!
//! | | |
//! |---|---|
//! | `{pose.position.x}` | the field at that path; a list of `[*]` is joined by commas |
//! | `{x:.2}` | with two decimals; without, six significant digits |
//! | `{percentage:.0%}` | times a hundred, with a percent sign |
//! | `{yaw:.1deg}` | radians as degrees |
//! | `{level:name}` | the name of the constant of that value, as in `WARN` |
//! | `{msg:words}` | every number or address in it as `#`: the same words for each reading |
//! | `{values[*]:.1 join( / )}` | a list with something else between its elements |
//! | `{^header.frame_id}` | in a rule with `each`: from the whole message, not the element |
//! | `{@topic}` `{@node}` `{@type}` | where the message came from |
//! | `{{` `}}` | the braces themselves |

mod fields;
mod parsing;
mod rendering;
#[cfg(test)]
mod tests;

use crate::message::PathError;

pub use self::fields::{FieldRef, Scene, Types};
pub use self::parsing::TemplateError;
pub use self::rendering::stamp_of;

/// A text with fields in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Field(FieldRef, Format),
    Topic,
    Node,
    Type,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Format {
    decimals: Option<usize>,
    style: Style,
    join: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Style {
    #[default]
    Plain,
    Percent,
    Degrees,
    Name,
    Words,
}

impl Template {
    /// The text of one field.
    pub fn of_field(field: FieldRef) -> Self {
        Self(vec![Piece::Field(field, Format::default())])
    }

    /// Checks that types of that form have all the fields.
    ///
    /// # Errors
    /// The first they do not have.
    pub fn check(&self, types: Types<'_>) -> Result<(), PathError> {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Field(field, _) => field.check(types),
            _ => Ok(()),
        })
    }
}
