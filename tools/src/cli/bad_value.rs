//! Refusals of option values.

use std::error::Error;
use std::fmt;

use crate::instant::BadTime;

/// A value of an option that is refused.
#[derive(Debug)]
pub enum BadValue {
    /// It has another form than the one this sentence names.
    Form(&'static str),
    /// A number is missing between commas, or altogether.
    NoNumber,
    /// The text is no number, or none that is finite.
    Number {
        /// The text, without spaces around it.
        text: String,
        /// True for infinities and NaN.
        is_number: bool,
    },
    /// One of several numbers is refused.
    InList(Box<Self>),
    /// An angle is out of range.
    Degrees {
        /// `latitude` or `longitude`.
        angle: &'static str,
        /// Its value.
        value: f64,
        /// The largest value.
        most: f64,
    },
    /// A number of hits is out of range.
    Limit(String),
    /// `host:port` without a port.
    Port(String),
    /// The text is no time, and names no memory.
    Moment(BadTime),
    /// Another reader refuses it.
    Other(Box<dyn Error + Send + Sync>),
}

impl BadValue {
    /// A refusal by another reader.
    pub fn other(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(why.into())
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(expected) => f.write_str(expected),
            Self::NoNumber => f.write_str("a number is missing"),
            Self::Number { text, is_number: true } => write!(f, "`{text}` is not a finite number"),
            Self::Number { text, is_number: false } => write!(f, "`{text}` is not a number"),
            Self::InList(why) => {
                write!(f, "{why}; numbers are separated by commas, as in 4.2,-1")
            }
            Self::Degrees { angle, value, most } => {
                write!(f, "{angle} {value} is not within -{most} and {most} degrees")
            }
            Self::Limit(text) => {
                write!(f, "`{text}` is no number from 1 to 1000; --offset shows the next ones")
            }
            Self::Port(text) => {
                let host = text.split(':').next().unwrap_or_default();
                write!(f, "`{text}` names no port from 0 to 65535; write it as in {host}:7448")
            }
            Self::Moment(why) => write!(f, "{why}; a memory is written as Type/id"),
            Self::Other(why) => why.fmt(f),
        }
    }
}

impl Error for BadValue {}
