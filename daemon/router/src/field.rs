//! Fields: the parameters of methods, and the members of what a tool takes and gives.
//!
//! One list of them makes the schema that documents show and the check of what comes in.
//!
//! | file | holds |
//! |---|---|
//! | `schema` | JSON Schemas of fields |
//! | `check` | values held against fields |

mod check;
mod schema;

pub use self::check::check;
pub use self::schema::object_schema;

/// A member of an object, or a parameter by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The values it takes.
    pub shape: Shape,
    /// It is always there: a request without it is refused.
    pub is_required: bool,
    /// One sentence: the meaning, the unit, the default.
    pub about: &'static str,
}

impl Field {
    /// Returns a field that may be left out.
    pub const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, shape, is_required: false, about }
    }

    /// Returns the same, always there.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// The values of a [`Field`].
///
/// In a selector, a query of HTTP or a command line each is written as text, and a list with commas. In a payload a list is
/// a list, or that text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A text of at most so many characters.
    Text(usize),
    /// A text of this form, as a regular expression that JSON Schema takes; the reader of the value decides.
    Form(&'static str),
    /// A value of the schema that has this name in its protocol, such as `Instant`; the reader of the value decides.
    Named(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A number from the first to the second, which may be infinite. [`f64::MIN_POSITIVE`] as the first: above 0.
    Number(f64, f64),
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// Values of one shape: at least so many, at most so many.
    List(&'static Shape, usize, usize),
    /// An object with these members.
    Object(&'static [Field]),
    /// An object of any members.
    Anything,
}

/// Any text.
pub const ANY_TEXT: Shape = Shape::Text(usize::MAX);
/// Any number.
pub const ANY_NUMBER: Shape = Shape::Number(f64::NEG_INFINITY, f64::INFINITY);
