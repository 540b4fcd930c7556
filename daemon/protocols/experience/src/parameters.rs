//! Parameters beside the message of a request, and the tenant of its caller. Transports refuse unknown ones:
//! `Message::check_parameters`.

use omir_core::space::{self, Center};
use omird_engine::Query;
use omird_router::{Caller, Message};

use crate::answers::header_value;
use crate::check::Fault;
use crate::ids::Tenant;
use crate::methods::MOST_METRES;
use crate::shared::Shared;

/// Metres around a place where none are stated.
const RADIUS: f64 = 5.0;
/// The longest name of a frame, in bytes.
const LONGEST_FRAME: usize = 256;

/// Returns the tenant that the caller belongs to.
pub(crate) fn tenant(caller: &Caller) -> Tenant {
    Tenant::new(caller.tenant_name())
}

/// Returns the id that the answer bears in its header: that of the message, else that which came beside it, else a new one.
pub(crate) fn shown_id(shared: &Shared, stated: Option<&str>, message: &Message) -> String {
    let beside = || message.request_id.as_deref().map(header_value);
    stated.map(str::to_owned).or_else(beside).unwrap_or_else(|| shared.engine.new_id())
}

/// The facts of a record that stand beside its message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Recorded {
    /// It replaces one of the same task.
    pub(crate) updates: bool,
    /// The place where the task ended, in the fixed frame of the robot.
    pub(crate) at: Option<[f64; 3]>,
}

impl Recorded {
    /// Reads them from the parameters.
    ///
    /// # Errors
    /// A parameter cannot be read.
    pub(crate) fn of(message: &Message) -> Result<Self, Fault> {
        let updates = match message.parameter("on_duplicate") {
            None | Some("reject") => false,
            Some("update") => true,
            Some(_) => {
                let reason = "the parameter on_duplicate is none of reject, update";
                return Err(Fault::new("", reason));
            }
        };
        let at = message.parameter("at").map(|at| center("at", at)).transpose()?;
        Ok(Self { updates, at: at.map(Center::position) })
    }
}

/// A place that hints are asked near to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vicinity {
    near: Center,
    radius: f64,
    frame: Option<String>,
    /// As it was asked for.
    pub(crate) stated: Vec<(String, String)>,
}

impl Vicinity {
    /// Reads it from the parameters; `None` where no place is named.
    ///
    /// # Errors
    /// A parameter cannot be read, or goes without the place.
    pub(crate) fn of(message: &Message) -> Result<Option<Self>, Fault> {
        let (radius, frame) = (message.parameter("radius"), message.parameter("frame"));
        let Some(near) = message.parameter("near") else {
            let alone = [("radius", radius), ("frame", frame)];
            return match alone.into_iter().find(|(_, value)| value.is_some()) {
                None => Ok(None),
                Some((name, _)) => {
                    let reason = format!("the parameter {name} goes with near=x,y");
                    Err(Fault::new("", reason))
                }
            };
        };
        let wrong = |reason: &str| Err(Fault::new("", reason));
        let near = center("near", near)?;
        let metres =
            |text: &str| number(text).and_then(space::radius).filter(|&r| r <= MOST_METRES);
        let Some(radius) = radius.map_or(Some(RADIUS), metres) else {
            return wrong("the parameter radius is no number of metres from 0 to 10000000");
        };
        if frame.is_some_and(|frame| frame.is_empty() || frame.len() > LONGEST_FRAME) {
            return wrong("the parameter frame is no name of a frame such as map");
        }
        let frame = frame.map(str::to_owned);
        let mut stated = message.parameters.clone();
        stated.sort();
        Ok(Some(Self { near, radius, frame, stated }))
    }

    /// Narrows a query to the place.
    pub(crate) fn narrow(&self, query: Query) -> Query {
        let (near, radius) = (Some(self.near), Some(self.radius));
        Query { near, radius, frame: self.frame.clone(), ..query }
    }
}

/// Reads the place that the parameter of this name states.
fn center(name: &str, text: &str) -> Result<Center, Fault> {
    let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
    numbers.and_then(|numbers| Center::from_coordinates(&numbers)).ok_or_else(|| {
        let reason = format!("the parameter {name} is not x,y or x,y,z in metres");
        Fault::new("", reason)
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::message;

    fn place(parameters: &[(&str, &str)]) -> Result<Option<Vicinity>, String> {
        Vicinity::of(&message("", parameters)).map_err(|fault| fault.reason)
    }

    #[test]
    fn a_place_is_read_or_refused_by_name() {
        assert_eq!(place(&[]), Ok(None));
        let near = place(&[("near", "1, -2.5")]).unwrap().unwrap();
        assert_eq!((near.near, near.radius), (Center::Plane { x: 1.0, y: -2.5 }, RADIUS));
        let near = place(&[("near", "1,2,3"), ("radius", "0"), ("frame", "odom")]);
        let near = near.unwrap().unwrap();
        assert_eq!((near.near, near.radius), (Center::Space { x: 1.0, y: 2.0, z: 3.0 }, 0.0));
        for (parameters, expected) in [
            (&[("near", "1")][..], "near is not"),
            (&[("near", "1,2,3,4")], "near is not"),
            (&[("near", "nan,1")], "near is not"),
            (
                &[("near", "1,2"), ("radius", "-1")],
                "radius is no number of metres from 0 to 10000000",
            ),
            (&[("near", "1,2"), ("radius", "10000001")], "radius is no number of metres from 0 to"),
            (&[("near", "1,2"), ("frame", "")], "frame is no"),
            (&[("radius", "2")], "radius goes with near"),
        ] {
            let error = place(parameters).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_duplicate_is_rejected_unless_it_is_said() {
        let of = |parameters: &[(&str, &str)]| {
            Recorded::of(&message("", parameters)).ok().map(|recorded| recorded.updates)
        };
        assert_eq!(of(&[]), Some(false));
        assert_eq!(of(&[("on_duplicate", "reject")]), Some(false));
        assert_eq!(of(&[("on_duplicate", "update")]), Some(true));
        assert_eq!(of(&[("on_duplicate", "x")]), None);
    }

    #[test]
    fn the_place_of_a_task_is_read_or_refused() {
        let at = |at| Recorded::of(&message("", &[("at", at)])).map(|recorded| recorded.at);
        assert_eq!(at("1, -2.5"), Ok(Some([1.0, -2.5, 0.0])));
        assert_eq!(at("1,2,3"), Ok(Some([1.0, 2.0, 3.0])));
        for wrong in ["", "1", "1,2,3,4", "1,nan", "1,inf", "1,1e999", "x,y"] {
            assert!(at(wrong).unwrap_err().reason.contains("at is not x,y"), "{wrong}");
        }
        assert_eq!(Recorded::of(&message("", &[])).unwrap().at, None);
    }
}
