//! Decides whether the robot knew where it was: what localisers said of it over time, and what a rule asks for.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use nalgebra::Matrix3;

use super::config::{CovarianceBound, FreshnessBound, Localised};
use super::extract::{own_stamp, pose_of};
use crate::interface::TypeName;
use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// Words of one topic that are kept, the newest: four seconds at 1 kHz, minutes of AMCL.
const MOST: usize = 4096;
/// A stamp so much before the newest is none that came late: time began again, as when a recording is played again.
const BEGINS_ANEW: Duration = Duration::from_secs(10);

/// The certainty of a pose: standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    /// Metres, in the direction in which it is largest.
    position: f64,
    /// Radians.
    yaw: f64,
}

/// Reports on the robot's position by the topics that rules name.
#[derive(Debug, Clone, Default)]
pub struct Localisation {
    said: BTreeMap<String, CovarianceReports>,
}

/// Reports of one topic, by time.
#[derive(Debug, Clone)]
struct CovarianceReports {
    type_name: TypeName,
    /// Oldest first. `None` where it was said that the covariance is not known.
    spreads: VecDeque<(Stamp, Option<Spread>)>,
}

impl Localisation {
    /// Nothing said yet, of what rules ask for.
    pub fn new<'a>(asked: impl Iterator<Item = &'a CovarianceBound>) -> Self {
        let said = asked.map(|certain| {
            let CovarianceBound { topic, type_name, .. } = certain;
            (
                topic.clone(),
                CovarianceReports { type_name: type_name.clone(), spreads: VecDeque::new() },
            )
        });
        Self { said: said.collect() }
    }

    /// The topics that are listened to for it, and their types.
    pub fn topics(&self) -> impl Iterator<Item = (&str, &TypeName)> {
        self.said.iter().map(|(topic, said)| (topic.as_str(), &said.type_name))
    }

    /// Takes note of a message, if it is of one of them.
    pub fn hear(&mut self, topic: &str, message: &Message, received: Stamp) {
        let Some(said) = self.said.get_mut(topic) else { return };
        if said.type_name != message.ty().name {
            return;
        }
        let covariance = pose_of(message).and_then(|pose| pose.covariance);
        let spread = covariance.and_then(|covariance| Spread::of(&covariance));
        said.note(own_stamp(message).unwrap_or(received), spread);
    }

    /// Decides whether a rule's demands held at a moment.
    ///
    /// # Errors
    /// The first demand that did not hold.
    pub fn judge(&self, asked: &Localised, at: Stamp, tf: &Buffer) -> Result<(), NotLocalised> {
        let Localised { certain, fresh, .. } = asked;
        certain.as_ref().map_or(Ok(()), |certain| self.is_certain(certain, at))?;
        fresh.as_ref().map_or(Ok(()), |fresh| is_fresh(fresh, at, tf))
    }

    fn is_certain(&self, asked: &CovarianceBound, at: Stamp) -> Result<(), NotLocalised> {
        let CovarianceBound { topic, within_m, within_rad, age, .. } = asked;
        let named = || topic.clone();
        let said = self.said.get(topic).and_then(|said| said.at(at));
        let Some((stamp, spread)) = said else {
            return Err(NotLocalised::Unheard { topic: named() });
        };
        let old = at.nanos_since(stamp);
        if age.is_some_and(|age| i128::from(old) > age.as_nanos().cast_signed()) {
            return Err(NotLocalised::Silent { topic: named(), nanos: old });
        }
        let Some(Spread { position, yaw }) = spread else {
            return Err(NotLocalised::Unknown { topic: named() });
        };
        if let Some(most) = within_m.filter(|most| position > *most) {
            return Err(NotLocalised::Position { topic: named(), metres: position, most });
        }
        if let Some(most) = within_rad.filter(|most| yaw > *most) {
            return Err(NotLocalised::Heading { topic: named(), radians: yaw, most });
        }
        Ok(())
    }
}

fn is_fresh(
    FreshnessBound { frame, age }: &FreshnessBound,
    at: Stamp,
    tf: &Buffer,
) -> Result<(), NotLocalised> {
    if tf.is_static(frame) {
        return Ok(());
    }
    match tf.last_before(frame, at) {
        None => Err(NotLocalised::NoTransform { frame: frame.clone() }),
        Some(last) => {
            let old = at.nanos_since(last);
            let is_old = i128::from(old) > age.as_nanos().cast_signed();
            let frame = || frame.clone();
            if is_old {
                Err(NotLocalised::OldTransform { frame: frame(), nanos: old })
            } else {
                Ok(())
            }
        }
    }
}

/// A demand of a rule on the robot's knowledge of its place that did not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum NotLocalised {
    /// Nothing was heard of the topic by then.
    Unheard {
        /// The topic with covariances.
        topic: String,
    },
    /// The last message is too old.
    Silent {
        /// The topic with covariances.
        topic: String,
        /// Its age.
        nanos: i64,
    },
    /// The last message has no usable covariance.
    Unknown {
        /// The topic with covariances.
        topic: String,
    },
    /// The position is too uncertain.
    Position {
        /// The topic with covariances.
        topic: String,
        /// The standard deviation in the worst direction.
        metres: f64,
        /// The largest that is allowed.
        most: f64,
    },
    /// The heading is too uncertain.
    Heading {
        /// The topic with covariances.
        topic: String,
        /// The standard deviation.
        radians: f64,
        /// The largest that is allowed.
        most: f64,
    },
    /// There was no transform of the frame by then.
    NoTransform {
        /// The frame.
        frame: String,
    },
    /// The last transform of the frame is too old.
    OldTransform {
        /// The frame.
        frame: String,
        /// Its age.
        nanos: i64,
    },
}

impl fmt::Display for NotLocalised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |nanos: i64| nanos as f64 / 1e9;
        match self {
            Self::Unheard { topic } => {
                write!(f, "{topic} had not said yet how well the robot knows where it is")
            }
            Self::Silent { topic, nanos } => {
                write!(f, "{topic} had said nothing for {:.1} s", seconds(*nanos))
            }
            Self::Unknown { topic } => write!(f, "{topic} said that its covariance is not known"),
            Self::Position { topic, metres, most } => write!(
                f,
                "the position of {topic} was uncertain by {metres:.2} m, and {most} m are allowed"
            ),
            Self::Heading { topic, radians, most } => {
                let (is, most) = (radians.to_degrees(), most.to_degrees());
                write!(
                    f,
                    "the heading of {topic} was uncertain by {is:.1}°, and {most:.1}° are allowed"
                )
            }
            Self::NoTransform { frame } => {
                write!(f, "no transform said where {frame:?} was by then")
            }
            Self::OldTransform { frame, nanos } => {
                write!(f, "the last transform of {frame:?} was {:.1} s old", seconds(*nanos))
            }
        }
    }
}

impl CovarianceReports {
    fn note(&mut self, at: Stamp, spread: Option<Spread>) {
        if self.spreads.back().is_some_and(|(newest, _)| at < newest.saturating_sub(BEGINS_ANEW)) {
            self.spreads.clear();
        }
        let place = self.spreads.partition_point(|(stamp, _)| *stamp <= at);
        self.spreads.insert(place, (at, spread));
        if self.spreads.len() > MOST {
            self.spreads.pop_front();
        }
    }

    /// Returns the last report at that moment.
    fn at(&self, at: Stamp) -> Option<(Stamp, Option<Spread>)> {
        let after = self.spreads.partition_point(|(stamp, _)| *stamp <= at);
        self.spreads.get(after.checked_sub(1)?).copied()
    }
}

impl Spread {
    /// Of a covariance of 6 × 6 (x, y, z, and the turns about them), row by row. `None` where that is not known: all
    /// zeros, a negative variance, or not finite.
    fn of(covariance: &[f64; 36]) -> Option<Self> {
        let is_known = covariance.iter().all(|number| number.is_finite())
            && covariance.iter().any(|number| *number != 0.0)
            && (0..6).all(|axis| covariance[7 * axis] >= 0.0);
        if !is_known {
            return None;
        }
        // Of a matrix that is not quite symmetric, the middle.
        let at = |row: usize, column: usize| covariance[6 * row + column];
        let position = Matrix3::from_fn(|row, column| (at(row, column) + at(column, row)) / 2.0);
        let largest = position.symmetric_eigenvalues().max();
        Some(Self { position: largest.max(0.0).sqrt(), yaw: at(5, 5).sqrt() })
    }
}

#[cfg(test)]
mod tests;
