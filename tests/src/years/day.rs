//! The events of one day: rounds, people who carry things around, questions, power cycles.

use super::board::{DAY, HOUR, MINUTE, SECOND, Start};
use super::house::{House, Nature, ROOMS};
use crate::random::Random;

/// Something that happens.
#[derive(Debug, Clone)]
pub enum What {
    /// The power goes; with `true` without warning.
    Off(bool),
    /// The power comes back.
    On(Start),
    /// A thing is carried elsewhere, or a person walks.
    Stir(usize),
    /// A piece of furniture moves.
    Rearrange(usize),
    /// The robot looks around a room.
    Look(usize),
    /// Something happens that is worth telling, to this thing.
    Happening(usize),
    /// The robot is told something it should know: a position in [`LESSONS`].
    Lesson(usize),
    /// Something goes wrong.
    Error,
    /// The robot is asked to do something tomorrow.
    Task,
    /// Someone asks where a thing is.
    Where(usize),
    /// Someone asks for a lesson.
    About(usize),
    /// The robot asks what it knows of a place.
    Here([f64; 2]),
    /// Someone wants something forgotten.
    Forget,
    /// The day is told as an episode.
    Evening,
}

/// Something that happens, and when.
#[derive(Debug, Clone)]
pub struct Moment {
    /// True time; microseconds since 1970.
    pub at: i64,
    /// The event.
    pub what: What,
}

/// Questions of a robot: words to ask by, and the whole. Every third is anchored, every third is
/// asked for again and again, every third is told and never asked for.
pub const LESSONS: [(&str, &str); 24] = [
    ("charging dock", "the charging dock is in the hallway behind the coat rack"),
    ("nursery noon", "do not enter the nursery between noon and two: the baby sleeps"),
    ("alarm code", "the alarm code is told only to members of the family"),
    ("stairs cellar", "the stairs to the cellar are steep: stop two metres before them"),
    ("peanuts allergic", "Boris is allergic to peanuts"),
    ("router reset", "to reset the router hold its button for ten seconds"),
    ("second charger", "a second charger stands in the workshop under the tool wall"),
    ("plants tuesday", "plants get water on Tuesday and on Friday"),
    ("boiler valve", "the valve of the boiler closes clockwise"),
    ("emergency stop", "on an emergency stop wait for Ada before moving again"),
    ("doorbell courier", "when a courier rings the doorbell call Chen"),
    ("fuse box", "the fuse box is behind the paint locker"),
    ("glass table", "the glass of the coffee table is invisible to the laser"),
    ("dog visits", "the neighbour's dog visits on Sundays: keep the gripper up"),
    ("spare key", "the spare key is with the neighbour in number twelve"),
    ("carpet fringe", "the fringe of the bedroom carpet jams the left wheel"),
    ("grandmother chair", "grandmother sits in the armchair by the window"),
    ("vacuum bag", "bags for the vacuum are in the bottom drawer of the wardrobe"),
    ("gas smell", "at the smell of gas open a window and switch nothing"),
    ("music volume", "after nine in the evening music stays below volume three"),
    ("paint fumes", "while paint dries in the workshop keep its door closed"),
    ("battery swelling", "the battery swells above forty degrees: rest in the shade"),
    ("school bus", "the school bus comes at ten to eight on weekdays"),
    ("winter tyres", "winter tyres hang in the workshop on the north side"),
];

/// Those that a robot is told in its first week; the others follow one a month.
const FIRST_LESSONS: usize = 12;

/// The lessons that are due on a day.
fn lessons(day: i64) -> impl Iterator<Item = usize> {
    (0..LESSONS.len()).filter(move |&n| {
        let due = if n < FIRST_LESSONS { n / 2 } else { 30 * (n - FIRST_LESSONS + 1) };
        i64::try_from(due) == Ok(day)
    })
}

/// One day of a life that began at `dawn`.
pub fn plan(dawn: i64, day: i64, house: &House, random: &mut Random) -> Vec<Moment> {
    let midnight = dawn + day * DAY;
    let mut moments = Vec::new();
    let mut add = |at: i64, what| moments.push(Moment { at: midnight + at, what });
    let clock = |random: &mut Random, from: f64, to: f64| {
        (random.between(from, to) * HOUR as f64) as i64 / SECOND * SECOND
    };

    for (n, hour) in [6.5, 10.2, 13.6, 17.0, 22.6].into_iter().enumerate() {
        let off = clock(random, hour - 0.3, hour + 0.3);
        let pause = if n == 4 { clock(random, 1.0, 6.0) } else { clock(random, 0.01, 0.5) };
        let start = match random.below(20) {
            0..10 => Start::WithClock,
            10..17 => Start::SetAfter(clock(random, 0.03, 0.4)),
            _ => Start::NeverSet,
        };
        add(off, What::Off(random.chance(50)));
        add(off + pause, What::On(start));
    }

    let small = house.all(Nature::Small);
    let people = house.all(Nature::Person);
    for &thing in &small {
        if random.chance(30) {
            add(clock(random, 7.0, 22.0), What::Stir(thing));
        }
    }
    if House::is_season(day) {
        for _ in 0..6 {
            add(10 * HOUR, What::Rearrange(random.below(house.all(Nature::Furniture).len())));
        }
    }
    let rounds: &[f64] = if House::is_weekend(midnight, dawn) {
        &[11.0, 18.0]
    } else {
        &[8.0, 11.0, 14.2, 16.0, 19.0]
    };
    for &hour in rounds {
        let begin = clock(random, hour, hour + 0.3);
        for &person in &people {
            if random.chance(80) {
                add(begin - MINUTE, What::Stir(person));
            }
        }
        for room in 0..ROOMS.len() {
            if random.chance(75) {
                add(begin + room as i64 * 2 * MINUTE, What::Look(room));
            }
        }
    }

    for lesson in lessons(day) {
        add(9 * HOUR, What::Lesson(lesson));
    }
    if random.chance(45) {
        add(clock(random, 8.0, 21.0), What::Happening(*random.pick(&small)));
    }
    if random.chance(60) {
        add(clock(random, 8.0, 21.0), What::Error);
    }
    for _ in 0..2 {
        add(clock(random, 8.0, 21.0), What::Task);
    }
    for _ in 0..10 {
        // Some things are asked for more than others: a square root's slope.
        let rank = (random.unit() * random.unit() * small.len() as f64) as usize;
        add(clock(random, 7.0, 21.5), What::Where(small[rank]));
    }
    for lesson in (1..LESSONS.len()).step_by(3) {
        if random.chance(40) {
            add(clock(random, 7.0, 21.5), What::About(lesson));
        }
    }
    for _ in 0..6 {
        let at = house.things[*random.pick(&small)].at;
        add(clock(random, 7.0, 21.5), What::Here(at));
    }
    if random.chance(15) {
        add(clock(random, 8.0, 21.0), What::Forget);
    }
    add(21 * HOUR + 30 * MINUTE, What::Evening);
    moments.sort_by_key(|moment| moment.at);
    moments
}
