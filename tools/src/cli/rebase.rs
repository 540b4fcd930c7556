//! `omir rebase`.

use std::str::FromStr;

use clap::Args;
use omir_core::reference::Ref;

use super::bad_value::BadValue;
use super::values::{self, numbers};

/// `omir rebase`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir rebase --keyframe kf_12=4.1,-2.0,0,0,0,0.38,0.92 --reason 'loop closure'
  omir rebase --frame map --keyframe kf_1=0,0,0 --keyframe kf_2=10,0.2,0 --dry-run
  omir rebase --undo MemoryRecord/5d1f

After a loop closure a keyframe has another pose in the map. Memories that have a pose in the frame
of that keyframe move with it: their pose in the map is worked out again. All of them move, or none.
A record tells of the step; --undo with its reference moves back, to the very same poses, what
nothing else has placed again since. Of several steps the last one goes first; a memory knows of
its last four. What came in while the step was made may lie where the map was: the same command a
few seconds later moves that, and only that.",
    online_codes!()
))]
pub struct RebaseArgs {
    /// Frame of the map [default: the daemon's fixed frame, map if it has no other]
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub frame: Option<String>,

    /// A keyframe and its pose in the map from now on; may be repeated
    #[arg(
        long = "keyframe",
        value_name = "NAME=x,y,z[,qx,qy,qz,qw]",
        required_unless_present = "undo",
        conflicts_with = "undo",
        allow_hyphen_values = true
    )]
    pub keyframes: Vec<Keyframe>,

    /// Why, for whoever reads the record
    #[arg(long, value_name = "TEXT", conflicts_with = "undo")]
    pub reason: Option<String>,

    /// Take back the step that this record tells of
    #[arg(long, value_name = "REF", value_parser = values::memory)]
    pub undo: Option<Ref>,

    /// Only say how many memories would move
    #[arg(long)]
    pub dry_run: bool,
}

/// A keyframe and where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyframe {
    /// Its name.
    pub name: String,
    /// Metres.
    pub position: [f64; 3],
    /// Unit quaternion, x, y, z, w.
    pub orientation: Option<[f64; 4]>,
}

impl FromStr for Keyframe {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let expected = || BadValue::Form("expected NAME=x,y,z or NAME=x,y,z,qx,qy,qz,qw");
        let (name, pose) = text.split_once('=').ok_or_else(expected)?;
        if name.is_empty() {
            return Err(expected());
        }
        let (position, orientation) = match *numbers(pose)? {
            [x, y, z] => ([x, y, z], None),
            [x, y, z, qx, qy, qz, qw] => ([x, y, z], Some([qx, qy, qz, qw])),
            _ => return Err(expected()),
        };
        let orientation = match orientation {
            None => None,
            Some(q) => {
                let q = crate::trajectory::unit_quaternion(q);
                Some(q.ok_or(BadValue::Form("a zero quaternion is no orientation"))?)
            }
        };
        Ok(Self { name: name.to_owned(), position, orientation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyframe_has_a_name_and_a_pose() {
        let turned: Keyframe = "kf_1=1,2,-3,0,0,0,2".parse().unwrap();
        assert_eq!((turned.name.as_str(), turned.position), ("kf_1", [1.0, 2.0, -3.0]));
        assert_eq!(turned.orientation, Some([0.0, 0.0, 0.0, 1.0]));
        assert_eq!("kf=1,2,3".parse::<Keyframe>().unwrap().orientation, None);
        for text in ["kf", "kf=", "=1,2,3", "kf=1,2", "kf=1,2,3,0", "kf=1,2,3,0,0,0,0", "kf=1,2,x"]
        {
            assert!(text.parse::<Keyframe>().is_err(), "{text}");
        }
    }
}
