//! Decides whether the robot knew where it was: what localisers said of it over time, and what a rule asks for.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nalgebra::Matrix3;

use super::config::{Certain, Fresh, Localised};
use super::extract::{own_stamp, pose_of};
use crate::interface::TypeName;
use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// Words of one topic that are kept, the newest: four seconds at 1 kHz, minutes of AMCL.
const MOST: usize = 4096;
/// A stamp so much before the newest is none that came late: time began anew, as when a recording is played again.
const BEGINS_ANEW: Duration = Duration::from_secs(10);

/// How certain a pose is: standard deviations.
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
    said: BTreeMap<String, Said>,
}

/// Reports of one topic, by time.
#[derive(Debug, Clone)]
struct Said {
    type_name: TypeName,
    /// Oldest first. `None` where it was said that the covariance is not known.
    spreads: VecDeque<(Stamp, Option<Spread>)>,
}

impl Localisation {
    /// Nothing said yet, of what rules ask for.
    pub fn new<'a>(asked: impl Iterator<Item = &'a Certain>) -> Self {
        let said = asked.map(|certain| {
            let Certain { topic, type_name, .. } = certain;
            (topic.clone(), Said { type_name: type_name.clone(), spreads: VecDeque::new() })
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
    /// What did not hold, and by how much.
    pub fn judge(&self, asked: &Localised, at: Stamp, tf: &Buffer) -> Result<(), String> {
        let Localised { certain, fresh, .. } = asked;
        certain.as_ref().map_or(Ok(()), |certain| self.is_certain(certain, at))?;
        fresh.as_ref().map_or(Ok(()), |fresh| is_fresh(fresh, at, tf))
    }

    fn is_certain(&self, asked: &Certain, at: Stamp) -> Result<(), String> {
        let Certain { topic, within_m, within_rad, age, .. } = asked;
        let said = self.said.get(topic).and_then(|said| said.at(at));
        let Some((stamp, spread)) = said else {
            return Err(format!("{topic} had not said yet how well the robot knows where it is"));
        };
        let old = at.nanos_since(stamp);
        if age.is_some_and(|age| i128::from(old) > age.as_nanos().cast_signed()) {
            return Err(format!("{topic} had said nothing for {:.1} s", seconds(old)));
        }
        let Some(Spread { position, yaw }) = spread else {
            return Err(format!("{topic} said that its covariance is not known"));
        };
        if let Some(most) = within_m.filter(|most| position > *most) {
            return Err(format!(
                "the position of {topic} was uncertain by {position:.2} m, and {most} m are allowed"
            ));
        }
        if let Some(most) = within_rad.filter(|most| yaw > *most) {
            let (yaw, most) = (yaw.to_degrees(), most.to_degrees());
            return Err(format!(
                "the heading of {topic} was uncertain by {yaw:.1}°, and {most:.1}° are allowed"
            ));
        }
        Ok(())
    }
}

fn is_fresh(Fresh { frame, age }: &Fresh, at: Stamp, tf: &Buffer) -> Result<(), String> {
    if tf.is_static(frame) {
        return Ok(());
    }
    match tf.last_before(frame, at) {
        None => Err(format!("no transform said where {frame:?} was by then")),
        Some(last) => {
            let old = at.nanos_since(last);
            let is_old = i128::from(old) > age.as_nanos().cast_signed();
            let why = || format!("the last transform of {frame:?} was {:.1} s old", seconds(old));
            if is_old { Err(why()) } else { Ok(()) }
        }
    }
}

fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

impl Said {
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
mod tests {
    use super::*;
    use crate::rules::config::Otherwise;
    use crate::tf::Transform;

    fn at(seconds: f64) -> Stamp {
        Stamp::from_nanos((seconds * 1e9) as i64)
    }

    /// Standard deviations along two diagonal directions, and of the yaw in degrees.
    fn covariance(along: f64, across: f64, yaw: f64) -> [f64; 36] {
        let mut covariance = [0.0; 36];
        let (a, b) = (along * along, across * across);
        (covariance[0], covariance[7]) = ((a + b) / 2.0, (a + b) / 2.0);
        (covariance[1], covariance[6]) = ((a - b) / 2.0, (a - b) / 2.0);
        covariance[35] = yaw.to_radians().powi(2);
        covariance
    }

    fn certain(within_m: f64, age: Option<f64>) -> Certain {
        Certain {
            key: String::new(),
            topic: "/amcl_pose".into(),
            type_name: "geometry_msgs/msg/PoseWithCovarianceStamped".parse().unwrap(),
            within_m: Some(within_m),
            within_rad: Some(10_f64.to_radians()),
            age: age.map(Duration::from_secs_f64),
        }
    }

    fn judge(said: &[(f64, [f64; 36])], asked: Certain, moment: f64) -> Result<(), String> {
        let mut localisation = Localisation::new([&asked].into_iter());
        for (stamp, covariance) in said {
            let one = localisation.said.get_mut("/amcl_pose").unwrap();
            one.note(at(*stamp), Spread::of(covariance));
        }
        let asked = Localised { certain: Some(asked), fresh: None, otherwise: Otherwise::Drop };
        localisation.judge(&asked, at(moment), &Buffer::default())
    }

    #[test]
    fn the_largest_deviation_counts_in_whichever_direction_it_lies() {
        // By axes it would be 0.72 m.
        let said = [(1.0, covariance(1.0, 0.2, 3.0))];
        let why = judge(&said, certain(0.9, None), 2.0).unwrap_err();
        assert_eq!(
            why,
            "the position of /amcl_pose was uncertain by 1.00 m, and 0.9 m are allowed"
        );
        assert_eq!(judge(&said, certain(1.1, None), 2.0), Ok(()));
        let why = judge(&[(1.0, covariance(0.1, 0.1, 20.0))], certain(0.9, None), 2.0).unwrap_err();
        assert_eq!(why, "the heading of /amcl_pose was uncertain by 20.0°, and 10.0° are allowed");
    }

    #[test]
    fn what_was_said_by_then_counts_and_neither_before_nor_after() {
        let said = [(3.0, covariance(5.0, 5.0, 1.0)), (1.0, covariance(0.1, 0.1, 1.0))];
        let is_known = |moment| judge(&said, certain(0.5, None), moment).is_ok();
        assert_eq!([0.9, 1.0, 2.9, 3.0, 99.0].map(is_known), [false, true, true, false, false]);
        let why = judge(&said, certain(0.5, None), 0.5).unwrap_err();
        assert_eq!(why, "/amcl_pose had not said yet how well the robot knows where it is");
    }

    #[test]
    fn a_covariance_that_is_old_or_not_known_says_nothing() {
        let said = [(1.0, covariance(0.1, 0.1, 1.0))];
        assert!(judge(&said, certain(0.5, Some(2.0)), 3.0).is_ok());
        let why = judge(&said, certain(0.5, Some(2.0)), 3.5).unwrap_err();
        assert_eq!(why, "/amcl_pose had said nothing for 2.5 s");
        let mut negative = covariance(0.1, 0.1, 1.0);
        negative[35] = -1.0;
        for unknown in [[0.0; 36], [f64::NAN; 36], negative] {
            let why = judge(&[(1.0, unknown)], certain(0.5, None), 2.0).unwrap_err();
            assert_eq!(why, "/amcl_pose said that its covariance is not known");
        }
    }

    #[test]
    fn so_much_is_kept_and_time_may_begin_anew() {
        let mut said = Localisation::new([&certain(1.0, None)].into_iter());
        let said = said.said.get_mut("/amcl_pose").unwrap();
        (0..2 * MOST).for_each(|n| said.note(at(n as f64), None));
        assert_eq!(said.spreads.len(), MOST);
        assert_eq!(said.at(at(MOST as f64 - 1.0)), None);
        said.note(at(2.0), None);
        assert_eq!(said.spreads, [(at(2.0), None)]);
    }

    #[test]
    fn a_transform_is_as_old_as_its_last_word_by_then() {
        let mut tf = Buffer::default();
        for seconds in [1.0, 2.0, 6.0] {
            tf.insert("map", "odom", at(seconds), Transform::identity(), false).unwrap();
        }
        tf.insert("map", "dock", at(1.0), Transform::identity(), true).unwrap();
        let judge = |frame: &str, moment| {
            let fresh = Fresh { frame: frame.into(), age: Duration::from_secs(1) };
            let asked = Localised { certain: None, fresh: Some(fresh), otherwise: Otherwise::Drop };
            Localisation::default().judge(&asked, at(moment), &tf)
        };
        let moments = [0.5, 1.5, 2.9, 3.5, 5.9, 6.0, 7.0, 7.1];
        let fresh = [false, true, true, false, false, true, true, false];
        assert_eq!(moments.map(|moment| judge("odom", moment).is_ok()), fresh);
        assert_eq!(judge("odom", 4.0).unwrap_err(), "the last transform of \"odom\" was 2.0 s old");
        assert_eq!(judge("none", 4.0).unwrap_err(), "no transform said where \"none\" was by then");
        assert_eq!(judge("dock", 99.0), Ok(()), "what never moves is never old");
    }
}
