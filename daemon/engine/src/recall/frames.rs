//! From the frame that was asked in to a frame that memories lie in.
//!
//! What lay near the robot last week has a place in `map`, and none in `base_link`, which has moved on
//! since. So a place in a moving frame is turned into one in a fixed frame, by where that frame is right
//! now (REP-105), before anything is looked for. Without a transform frames match by name only.

use std::error::Error as StdError;

use nalgebra::{Isometry3, Point3};
use omir_core::space::Center;

use super::query::Query;
use crate::error::Error;

/// A frame that something is tied to, and its pose in it.
pub(crate) type Tied = (String, Isometry3<f64>);

/// A source of transforms between frames.
pub trait Frames: Send + Sync {
    /// The fixed frame that `frame` is tied to, and the pose of `frame` in it right now. `None` where
    /// nothing is known that ties them, or `frame` is such a fixed frame itself.
    ///
    /// # Errors
    /// The source's own error: the frames are tied, but their pose cannot be told, as when it was heard of too long ago.
    fn fixed(&self, frame: &str) -> Result<Option<Tied>, Box<dyn StdError + Send + Sync>>;
}

/// The same question in the fixed frame, where its own frame is tied to one.
///
/// Two coordinates mean the plane of the fixed frame: what stands around a robot on a ramp is near it.
/// A box keeps the axes of its own frame.
///
/// # Errors
/// `INVALID_QUERY` on `frame` with the reason of [`Frames::fixed`].
pub(crate) fn in_fixed_frame(query: &Query, frames: &dyn Frames) -> Result<Option<Query>, Error> {
    if query.near.is_none() && query.within.is_none() {
        return Ok(None);
    }
    let found = frames.fixed(query.frame()).map_err(|why| Error::query("frame", why))?;
    let Some((frame, pose)) = found else { return Ok(None) };
    let near = query.near.map(|near| match near {
        Center::Plane { x, y } => {
            let at = pose * Point3::new(x, y, 0.0);
            Center::Plane { x: at.x, y: at.y }
        }
        Center::Space { x, y, z } => {
            let at = pose * Point3::new(x, y, z);
            Center::Space { x: at.x, y: at.y, z: at.z }
        }
    });
    let box_pose = query.within.is_some().then_some(pose);
    Ok(Some(Query { frame: Some(frame), near, box_pose, ..query.clone() }))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use nalgebra::Vector3;
    use omir_core::space::Aabb;

    use super::*;

    /// `base_link` stands at (10, 5, 0) in `map` and looks along y; `lost` was seen long ago.
    struct Robot;

    impl Frames for Robot {
        fn fixed(&self, frame: &str) -> Result<Option<Tied>, Box<dyn StdError + Send + Sync>> {
            let turned = Isometry3::new(Vector3::new(10.0, 5.0, 0.0), Vector3::z() * FRAC_PI_2);
            match frame {
                "base_link" => Ok(Some(("map".to_owned(), turned))),
                "lost" => Err("the pose of \"lost\" is 9 s old".into()),
                _ => Ok(None),
            }
        }
    }

    fn asked(frame: &str) -> Query {
        let near = Some(Center::Space { x: 2.0, y: 0.0, z: 1.0 });
        Query { frame: Some(frame.to_owned()), near, ..Query::default() }
    }

    #[test]
    fn ahead_of_the_robot_is_a_place_in_the_map() {
        let found = in_fixed_frame(&asked("base_link"), &Robot).unwrap().unwrap();
        assert_eq!(found.frame(), "map");
        let Some(Center::Space { x, y, z }) = found.near else { panic!() };
        assert!((Point3::new(x, y, z) - Point3::new(10.0, 7.0, 1.0)).norm() < 1e-12);
        assert_eq!(found.box_pose, None);
    }

    #[test]
    fn a_box_keeps_its_own_axes() {
        let within = Some(Aabb::new(Point3::new(0.0, -1.0, 0.0), Point3::new(4.0, 1.0, 1.0)));
        let query = Query { within, near: None, ..asked("base_link") };
        let found = in_fixed_frame(&query, &Robot).unwrap().unwrap();
        assert_eq!(found.within, within);
        let bounds = found.box_bounds().unwrap();
        assert!((bounds.min - Point3::new(9.0, 5.0, 0.0)).norm() < 1e-6, "{bounds:?}");
        assert!((bounds.max - Point3::new(11.0, 9.0, 1.0)).norm() < 1e-6, "{bounds:?}");
        assert!(found.is_in_box(&Point3::new(10.0, 8.9, 0.5)));
        assert!(!found.is_in_box(&Point3::new(12.0, 6.0, 0.5)));
    }

    #[test]
    fn what_is_not_tied_stays_as_it_was_asked() {
        assert_eq!(in_fixed_frame(&asked("map"), &Robot), Ok(None));
        assert_eq!(in_fixed_frame(&Query::default(), &Robot), Ok(None));
        let error = in_fixed_frame(&asked("lost"), &Robot).unwrap_err();
        assert!(error.message.contains("9 s old"), "{error:?}");
        assert_eq!(error.path, "/frame");
    }
}
