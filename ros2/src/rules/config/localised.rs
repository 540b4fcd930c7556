//! Demands on the robot's knowledge of its position, for a place to be stored.

use std::time::Duration;

use super::YEAR_S;
use super::words::{BadValue, frame_name, topic_pattern};
use crate::interface::TypeName;
use crate::rules::written::Table;

/// Type of a localiser's messages, if a rule names no other: AMCL, robot_localization with a topic of its own, and most
/// others.
const POSE: &str = "geometry_msgs/msg/PoseWithCovarianceStamped";

/// Demands on the robot's position. All that is said must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Localised {
    /// Demand on the certainty of its pose.
    pub certain: Option<CovarianceBound>,
    /// Demand on the age of a transform.
    pub fresh: Option<FreshnessBound>,
    /// Treatment of a memory otherwise.
    pub otherwise: UnlocalisedPolicy,
}

/// Bounds on the covariance of a pose that a topic tells.
#[derive(Debug, Clone, PartialEq)]
pub struct CovarianceBound {
    /// Its place, for complaints.
    pub key: String,
    /// The topic.
    pub topic: String,
    /// The type of its messages.
    pub type_name: TypeName,
    /// Metres that the standard deviation of the position may be, in whichever direction it is largest.
    pub within_m: Option<f64>,
    /// Radians that the standard deviation of the yaw may be.
    pub within_rad: Option<f64>,
    /// Largest age of its newest message; any age if absent: a localiser may be silent while the
    /// robot stands.
    pub age: Option<Duration>,
}

/// A frame whose transform must have come lately.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshnessBound {
    /// The frame that the localiser moves in its parent: `odom`.
    pub frame: String,
    /// Largest age of the last transform.
    pub age: Duration,
}

/// Treatment of a memory while the robot does not know where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlocalisedPolicy {
    /// It is dropped, and counted.
    Drop,
    /// It is kept without a place, and says why.
    Unplaced,
    /// It is kept with its place in the frame it was told in, and says why it has no other.
    OwnFrame,
}

impl UnlocalisedPolicy {
    const WORDS: &[(&str, Self)] =
        &[("drop", Self::Drop), ("unplaced", Self::Unplaced), ("own_frame", Self::OwnFrame)];
}

impl Localised {
    pub(super) fn read(table: Table<'_>) -> Option<Self> {
        let (certain, is_certain_good) = certain(&table);
        let (fresh, is_fresh_good) = fresh(&table);
        let otherwise = table
            .word("otherwise", UnlocalisedPolicy::WORDS)
            .unwrap_or(UnlocalisedPolicy::Unplaced);
        if is_certain_good && is_fresh_good && certain.is_none() && fresh.is_none() {
            table.complain(
                "topic",
                "is missing; a rule asks for a topic with a covariance, or for a frame and its age",
            );
        }
        table.done();
        (certain.is_some() || fresh.is_some()).then_some(Self { certain, fresh, otherwise })
    }
}

/// Demands on a covariance, and whether they were free of faults.
fn certain(table: &Table<'_>) -> (Option<CovarianceBound>, bool) {
    let topic = table.parsed("topic", |text| match topic_pattern(text)?.is_exact() {
        true => Ok(text.to_owned()),
        false => Err(BadValue::Topics(text.to_owned())),
    });
    let type_name = table.parsed("type", str::parse::<TypeName>).or_else(|| POSE.parse().ok());
    let within_m = table.number("within_m", 0.0..=1e6);
    let within_rad = table.number("within_deg", 0.0..=360.0).map(f64::to_radians);
    let age = table.seconds("age_s", 0.0..=YEAR_S);
    let bounds = ["within_m", "within_deg", "age_s"];
    let bound = bounds.into_iter().find(|name| table.has(name));
    match (table.has("topic"), bound) {
        (false, Some(bound)) => {
            table.complain(
                "topic",
                format_args!("is missing; {bound} is about the covariance that a topic tells"),
            );
            return (None, false);
        }
        (true, None) => {
            table.complain(
                "within_m",
                "is missing; say how certain the pose must be, with it, within_deg or age_s",
            );
            return (None, false);
        }
        (false, None) => return (None, true),
        (true, Some(_)) => {}
    }
    let (Some(topic), Some(type_name)) = (topic, type_name) else { return (None, false) };
    let key = table.path().to_owned();
    (Some(CovarianceBound { key, topic, type_name, within_m, within_rad, age }), true)
}

/// Demands on a transform, and whether they were free of faults.
fn fresh(table: &Table<'_>) -> (Option<FreshnessBound>, bool) {
    let frame = table.parsed("frame", frame_name);
    let age = table.seconds("frame_age_s", 0.0..=3600.0);
    match (table.has("frame"), table.has("frame_age_s")) {
        (false, false) => return (None, true),
        (true, false) => table.complain(
            "frame_age_s",
            "is missing; it says how old the transform of the frame may be",
        ),
        (false, true) => table.complain(
            "frame",
            "is missing; it is the frame that the localiser moves, such as odom",
        ),
        (true, true) => {}
    }
    let fresh = frame.zip(age).map(|(frame, age)| FreshnessBound { frame, age });
    let is_good = fresh.is_some();
    (fresh, is_good)
}
