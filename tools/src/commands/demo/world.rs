//! The world the demo's robot drives through: four rooms, things in them, and a loop.

/// Something that can be seen.
pub(super) struct Thing {
    /// Its Entity's id.
    pub(super) id: &'static str,
    /// The robot's name for it.
    pub(super) name: &'static str,
    /// The room it is in.
    pub(super) room: &'static str,
    /// Its place, in metres in `map`.
    pub(super) at: [f64; 3],
    /// Its importance.
    pub(super) importance: f64,
    /// Half-life of a sight of it, in hours: people move on, walls stay.
    pub(super) half_life: f64,
}

const fn thing(
    id: &'static str,
    name: &'static str,
    room: &'static str,
    at: [f64; 3],
    importance: f64,
    half_life: f64,
) -> Thing {
    Thing { id, name, room, at, importance, half_life }
}

/// The things to see.
pub(super) const THINGS: [Thing; 14] = [
    thing("charging-dock", "charging dock", "hall", [0.4, 0.3, 0.1], 0.9, 2160.0),
    thing("coat-rack", "coat rack", "hall", [3.2, -0.9, 1.6], 0.2, 720.0),
    thing("front-door", "front door", "hall", [5.8, 0.2, 1.0], 0.6, 2160.0),
    thing("fridge", "humming fridge", "kitchen", [9.5, 1.1, 0.9], 0.4, 1440.0),
    thing("red-mug", "red mug on the table", "kitchen", [11.8, 3.0, 0.8], 0.5, 24.0),
    thing("spill", "wet spill on the floor", "kitchen", [10.4, 4.6, 0.0], 0.8, 2.0),
    thing("cat", "grey cat", "kitchen", [12.6, 6.2, 0.2], 0.5, 4.0),
    thing("workbench", "workbench with a vice", "workshop", [11.0, 9.2, 0.9], 0.4, 1440.0),
    thing("ladder", "ladder against the wall", "workshop", [8.1, 10.9, 1.2], 0.3, 168.0),
    thing("cable", "loose cable across the way", "workshop", [6.6, 9.4, 0.0], 0.9, 48.0),
    thing("sofa", "green sofa", "lounge", [2.9, 10.6, 0.4], 0.2, 1440.0),
    thing("plant", "thirsty plant", "lounge", [0.6, 8.9, 0.6], 0.3, 168.0),
    thing("window", "window with evening light", "lounge", [-0.8, 6.4, 1.4], 0.1, 24.0),
    thing("stairs", "stairs going down", "lounge", [-0.6, 3.8, -0.2], 1.0, 4320.0),
];

/// The corners of the loop, driven anticlockwise and back to the start.
const CORNERS: [[f64; 2]; 5] = [[0.0, 0.0], [12.0, 0.0], [12.0, 10.0], [0.0, 10.0], [0.0, 0.0]];

/// Metres between two looks around.
const STEP: f64 = 0.1;
/// Range of the robot's sight, in metres.
const SIGHT: f64 = 2.5;

/// A place of the drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pose {
    /// Metres in `map`.
    pub(super) at: [f64; 2],
    /// Heading in radians, anticlockwise from x.
    pub(super) yaw: f64,
}

/// Every place of one round.
pub(super) fn drive() -> Vec<Pose> {
    let mut poses = Vec::new();
    for leg in CORNERS.windows(2) {
        let ([x0, y0], [x1, y1]) = (leg[0], leg[1]);
        let (dx, dy) = (x1 - x0, y1 - y0);
        let length = dx.hypot(dy);
        let steps = (length / STEP).round() as usize;
        for step in 0..steps {
            let part = step as f64 / steps as f64;
            poses.push(Pose { at: [x0 + part * dx, y0 + part * dy], yaw: dy.atan2(dx) });
        }
    }
    poses
}

fn distance(pose: &Pose, thing: &Thing) -> f64 {
    (thing.at[0] - pose.at[0]).hypot(thing.at[1] - pose.at[1])
}

/// The room of a place: a quarter of the floor each.
pub(super) fn room(pose: &Pose) -> &'static str {
    match (pose.at[0] < 7.0, pose.at[1] < 5.0) {
        (true, true) => "hall",
        (false, true) => "kitchen",
        (false, false) => "workshop",
        (true, false) => "lounge",
    }
}

/// Notes of the robot at a step of the drive: what comes into sight, and what it passes closest.
pub(super) fn noted(drive: &[Pose], step: usize) -> impl Iterator<Item = &'static Thing> {
    let here = drive[step];
    let before = step.checked_sub(1).map(|before| drive[before]);
    let after = drive.get(step + 1).copied();
    THINGS.iter().filter(move |thing| {
        let now = distance(&here, thing);
        let was = before.map_or(f64::INFINITY, |pose| distance(&pose, thing));
        let will = after.map_or(f64::INFINITY, |pose| distance(&pose, thing));
        now <= SIGHT && (was > SIGHT || (now < was && now <= will))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_seen_on_the_way_round() {
        let drive = drive();
        let seen: std::collections::BTreeSet<&str> =
            (0..drive.len()).flat_map(|step| noted(&drive, step)).map(|thing| thing.id).collect();
        assert_eq!(seen.len(), THINGS.len());
    }
}
