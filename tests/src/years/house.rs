//! A house with people, and what a robot sees in it. What is true here is what a memory of it is
//! measured by.

use serde_json::{Value, json};

use super::board::DAY;
use crate::random::Random;

/// The rooms, each 5 m by 4 m, four in a row, two rows.
pub const ROOMS: [&str; 8] =
    ["hallway", "kitchen", "living room", "study", "bedroom", "nursery", "bathroom", "workshop"];

/// Three pieces of furniture in each room; smaller things lie on them.
const FURNITURE: [[&str; 3]; 8] = [
    ["coat rack", "shoe cabinet", "umbrella stand"],
    ["dining table", "kitchen counter", "spice shelf"],
    ["sofa", "coffee table", "bookcase"],
    ["writing desk", "filing cabinet", "printer stand"],
    ["double bed", "wardrobe", "night stand"],
    ["cradle", "toy chest", "changing table"],
    ["wash basin", "laundry basket", "towel rail"],
    ["work bench", "tool wall", "paint locker"],
];

const SMALL: [&str; 24] = [
    "red mug",
    "car keys",
    "reading glasses",
    "blue backpack",
    "water bottle",
    "tablet computer",
    "house slippers",
    "teddy bear",
    "watering can",
    "screwdriver",
    "remote control",
    "grey blanket",
    "cookbook",
    "medicine box",
    "headphones",
    "umbrella",
    "wallet",
    "camera",
    "tea kettle",
    "flashlight",
    "sewing kit",
    "football",
    "laptop charger",
    "picture frame",
];

const PEOPLE: [&str; 4] = ["Ada", "Boris", "Chen", "Dalia"];

/// Its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Stands where it stands until the house is rearranged.
    Furniture,
    /// Is carried around.
    Small,
    /// Walks.
    Person,
    /// Is open or closed.
    Door,
}

/// Something that can be seen.
#[derive(Debug, Clone)]
pub struct Thing {
    /// Id of its entity.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub nature: Nature,
    /// Its place; metres in `map`.
    pub at: [f64; 2],
    /// Furniture it is on or at, or, of furniture and doors, the room.
    pub on: usize,
    /// Furniture it is usually found on.
    haunts: Vec<usize>,
    /// The robot's last sighting of it, if it remembers one.
    pub seen: Option<(i64, [f64; 2])>,
}

/// One sighting, ready to be remembered.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Index of the thing.
    pub thing: usize,
    /// Its measured place.
    pub at: [f64; 2],
    /// The memory.
    pub record: Value,
}

/// The house.
#[derive(Debug, Clone)]
pub struct House {
    /// Everything in it, furniture first.
    pub things: Vec<Thing>,
}

fn slug(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

fn somewhere(room: usize, random: &mut Random) -> [f64; 2] {
    let corner = [(room % 4) as f64 * 5.0, (room / 4) as f64 * 4.0];
    [corner[0] + random.between(0.5, 4.5), corner[1] + random.between(0.5, 3.5)]
}

fn beside(at: [f64; 2], spread: f64, random: &mut Random) -> [f64; 2] {
    at.map(|n| n + random.between(-spread, spread))
}

/// A spatial pose in `map`.
pub fn pose(at: [f64; 2]) -> Value {
    let millimetres = |n: f64| (n * 1000.0).round() / 1000.0;
    json!({
        "url": omir_core::spatial::SPATIAL_POSE_URL,
        "valueJson": {"frame": "map", "position": [millimetres(at[0]), millimetres(at[1]), 0.0]},
    })
}

impl House {
    /// A house as its people moved in.
    pub fn new(random: &mut Random) -> Self {
        let mut things = Vec::new();
        let mut add = |name: String, nature, at, on, haunts| {
            things.push(Thing { id: slug(&name), name, nature, at, on, haunts, seen: None });
        };
        let mut furniture = Vec::new();
        for (room, names) in FURNITURE.iter().enumerate() {
            for &name in names {
                let at = somewhere(room, random);
                furniture.push(at);
                add(name.to_owned(), Nature::Furniture, at, room, Vec::new());
            }
        }
        for name in SMALL {
            let haunts: Vec<usize> = (0..3).map(|_| random.below(furniture.len())).collect();
            let at = beside(furniture[haunts[0]], 0.3, random);
            add(name.to_owned(), Nature::Small, at, haunts[0], haunts);
        }
        for name in PEOPLE {
            let haunts: Vec<usize> = (0..8).map(|_| random.below(furniture.len())).collect();
            let at = beside(furniture[haunts[0]], 0.8, random);
            add(name.to_owned(), Nature::Person, at, haunts[0], haunts);
        }
        for (room, name) in ROOMS.iter().enumerate() {
            let at = [(room % 4) as f64 * 5.0 + 2.5, 4.0];
            add(format!("{name} door"), Nature::Door, at, room, Vec::new());
        }
        Self { things }
    }

    /// The room a thing is in.
    pub fn room(&self, thing: usize) -> usize {
        let thing = &self.things[thing];
        match thing.nature {
            Nature::Furniture | Nature::Door => thing.on,
            Nature::Small | Nature::Person => self.things[thing.on].on,
        }
    }

    /// Things of a nature.
    pub fn all(&self, nature: Nature) -> Vec<usize> {
        (0..self.things.len()).filter(|&n| self.things[n].nature == nature).collect()
    }

    /// Entities for everything, and for the rooms.
    pub fn entities(&self) -> Value {
        let rooms = ROOMS.iter().map(|name| {
            json!({"resourceType": "Entity", "id": slug(name), "name": name,
                   "labels": ["location"]})
        });
        let things = self.things.iter().map(|thing| {
            let label = if thing.nature == Nature::Person { "person" } else { "product" };
            json!({"resourceType": "Entity", "id": thing.id, "name": thing.name,
                   "labels": [label]})
        });
        rooms.chain(things).collect()
    }

    /// Someone carries a thing elsewhere, or walks: mostly to where it usually is.
    pub fn stir(&mut self, thing: usize, random: &mut Random) {
        let furniture = self.all(Nature::Furniture).len();
        let haunts = &self.things[thing].haunts;
        let on = if haunts.is_empty() || random.chance(10) {
            random.below(furniture)
        } else {
            *random.pick(haunts)
        };
        let spread = if self.things[thing].nature == Nature::Person { 0.8 } else { 0.3 };
        let at = beside(self.things[on].at, spread, random);
        let thing = &mut self.things[thing];
        (thing.on, thing.at) = (on, at);
    }

    /// Furniture is moved within its room, with what lies on it.
    pub fn rearrange(&mut self, furniture: usize, random: &mut Random) {
        let to = somewhere(self.things[furniture].on, random);
        self.things[furniture].at = to;
        for n in self.all(Nature::Small) {
            if self.things[n].on == furniture {
                self.things[n].at = beside(to, 0.3, random);
            }
        }
    }

    /// Sightings in a room. A tracker names the same thing alike until the next start.
    pub fn look(
        &self,
        room: usize,
        boot: u64,
        number: &mut u64,
        random: &mut Random,
    ) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        for n in 0..self.things.len() {
            let thing = &self.things[n];
            let chance = match thing.nature {
                Nature::Furniture => 15,
                Nature::Small => 60,
                Nature::Person => 80,
                Nature::Door => 30,
            };
            if self.room(n) != room || !random.chance(chance) {
                continue;
            }
            let at = beside(thing.at, 0.12, random);
            let importance = match thing.nature {
                Nature::Person => random.between(0.3, 0.5),
                _ => random.between(0.05, 0.3),
            };
            *number += 1;
            let mut record = json!({
                "resourceType": "MemoryRecord",
                "id": format!("sight-{number:06}"),
                "content": self.sentence(n, random),
                "experienceType": "observation",
                "importance": (importance * 100.0).round() / 100.0,
                "entityRefs": [
                    {"ref": format!("Entity/{}", thing.id)},
                    {"ref": format!("Entity/{}", slug(ROOMS[room]))},
                ],
                "provenance": {
                    "source": "front camera", "sourceType": "observation",
                    "externalId": format!("tracker:{boot}-{n}"),
                },
                "extension": [pose(at)],
            });
            if random.chance(50) {
                record["confidence"] = json!({"alpha": 2 + random.below(6), "beta": 1});
            }
            sightings.push(Sighting { thing: n, at, record });
        }
        sightings
    }

    /// A sighting in words. Half of them are the same for the same scene; the others have a word
    /// more or another word, as a captioning model would have it.
    fn sentence(&self, thing: usize, random: &mut Random) -> String {
        let room = ROOMS[self.room(thing)];
        let Thing { name, nature, on, .. } = &self.things[thing];
        let variant = random.below(8);
        let there = match nature {
            Nature::Furniture => format!("the {name} stands in the {room}"),
            Nature::Small => {
                format!("the {name} lies on the {} in the {room}", self.things[*on].name)
            }
            Nature::Person => format!("{name} is at the {} in the {room}", self.things[*on].name),
            Nature::Door => {
                let state = if random.chance(70) { "open" } else { "closed" };
                format!("the door of the {room} is {state}")
            }
        };
        match variant {
            0 => format!("{there} now"),
            1 => format!("{there} again"),
            2 => format!("seen: {there}"),
            3 => {
                there.replace(" lies ", " is ").replace(" stands ", " is ").replace(" at ", " by ")
            }
            _ => there,
        }
    }

    /// Seasons: four times a year six pieces of furniture move.
    pub fn is_season(day: i64) -> bool {
        day > 0 && day % 91 == 0
    }

    /// Returns true if a day is a Saturday or a Sunday; every life begins on a Monday.
    pub fn is_weekend(truth: i64, dawn: i64) -> bool {
        matches!((truth - dawn).div_euclid(DAY).rem_euclid(7), 5 | 6)
    }
}
