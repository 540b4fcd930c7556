//! A checked recall: what was asked, with every default filled in.

use std::ops::Bound;

use nalgebra::{Isometry3, Point3};
use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::{Ref, ResourceType};
use omir_core::space::{Aabb, Center};
use omir_core::tier::Tier;
use omird_embedding::{ModelName, Usual, Vector};

use super::tally::Asks;
use crate::index::catalog::ReadPoint;
use crate::question::Question;

/// Number of hits if a recall states none.
pub(crate) const DEFAULT_LIMIT: usize = 10;
/// Most hits that a recall may ask for.
pub const MAX_LIMIT: usize = 1000;
/// The frame that coordinates are in where neither a question nor the daemon's settings name one (REP-105).
pub const DEFAULT_FRAME: &str = "map";

/// A range of the times of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Beginning.
    pub from: Bound<Timestamp>,
    /// End.
    pub to: Bound<Timestamp>,
}

impl TimeRange {
    /// The part of the range before an instant.
    pub fn before(self, at: Timestamp) -> Self {
        let ends_earlier = match self.to {
            Bound::Unbounded => false,
            Bound::Included(to) => to < at,
            Bound::Excluded(to) => to <= at,
        };
        if ends_earlier { self } else { Self { to: Bound::Excluded(at), ..self } }
    }

    /// The part of the range after an instant.
    pub fn after(self, at: Timestamp) -> Self {
        let begins_later = match self.from {
            Bound::Unbounded => false,
            Bound::Included(from) => from > at,
            Bound::Excluded(from) => from >= at,
        };
        if begins_later { self } else { Self { from: Bound::Excluded(at), ..self } }
    }

    /// Returns true if an instant lies in the range.
    pub fn contains(&self, at: Timestamp) -> bool {
        let after = match self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => at >= from,
            Bound::Excluded(from) => at > from,
        };
        after
            && match self.to {
                Bound::Unbounded => true,
                Bound::Included(to) => at <= to,
                Bound::Excluded(to) => at < to,
            }
    }
}

/// A moment, by itself or as that of a stored resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// An instant.
    At(Timestamp),
    /// The time of the event that a resource states, else of its creation.
    Of(Ref),
}

/// A vector that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// The model that it compares with; a name without letters stands for the only one of that size.
    pub model: ModelName,
    /// The vector.
    pub vector: Vector,
    /// The words of the question one by one, for those akin to them; none where a client states the vector.
    pub(crate) words: Vec<QueryWord>,
    /// True if its model knows words by their letters alone.
    pub(crate) is_lexical: bool,
}

/// A word of a question, to find words akin to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryWord {
    /// Its letters.
    pub name: String,
    /// Its vector.
    pub vector: Vector,
    /// The cosines that words have with it as a rule.
    pub usual: Usual,
}

impl QueryVector {
    /// A vector that a client states, of the model of that name.
    pub fn stated(model: Option<&str>, vector: Vector) -> Self {
        let name = model.unwrap_or("").to_owned();
        let model = ModelName { name, dims: vector.values.len(), hash: [0; 32] };
        Self { model, vector, words: Vec::new(), is_lexical: false }
    }
}

/// The order of the hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Best score first.
    #[default]
    Score,
    /// Latest event first. What states no time of its own has that of its recording.
    Latest,
    /// Earliest event first: [`Order::Latest`] backwards.
    Earliest,
    /// Nearest first, to `near` or else to `geo`; one of them is needed.
    Distance,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Score, Self::Latest, Self::Earliest, Self::Distance];

    /// The names of [`Order::ALL`], in `docs/keys.md`.
    pub const WORDS: [&'static str; 4] = ["score", "latest", "earliest", "distance"];

    /// Returns the order of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|word| *word == name)?;
        Some(Self::ALL[at])
    }
}

/// A snapshot of the store, which all parts of a transfer share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The last transaction that belongs to it.
    pub seq: u64,
    /// Its time, as memories are dated: expiry and fading are judged by it.
    pub at: Timestamp,
}

/// A recall. Every filter that is set narrows; `text`, `near` and `geo` also rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// A question in words: a match has at least one of them, all that must occur, and nothing that must not.
    pub text: Option<Question>,
    /// True if a match has every one of these words. A text without words has no match.
    pub all_words: bool,
    /// True if a match has a place, in `frame` if one is named.
    pub has_place: bool,
    /// Frame of `near` and `within`; alone it asks for whatever has a pose in it.
    pub frame: Option<String>,
    /// A point in `frame`.
    pub near: Option<Center>,
    /// Metres around `near` and `geo`; without it nearest first.
    pub radius: Option<f64>,
    /// A box in `frame`, edges included.
    pub within: Option<Aabb>,
    /// The pose in `frame` of the frame whose axes `within` has, if that is another.
    pub box_pose: Option<Isometry3<f64>>,
    /// A point on the earth.
    pub geo: Option<GeoPoint>,
    /// Time of the event.
    pub time: Option<TimeRange>,
    /// Any of these types; empty for all. The same holds for the next five.
    pub types: Vec<ResourceType>,
    /// Lifecycle classes of memory records.
    pub kinds: Vec<Kind>,
    /// Tiers of memory records.
    pub tiers: Vec<Tier>,
    /// Experience types of memory records.
    pub experience_types: Vec<ExperienceType>,
    /// Entities that are mentioned.
    pub entities: Vec<Ref>,
    /// Labels of entities.
    pub labels: Vec<Label>,
    /// Least importance; what states none does not match.
    pub min_importance: Option<f64>,
    /// Least confidence; what states none does not match.
    pub min_confidence: Option<f64>,
    /// Least retrievability now.
    pub min_retrievability: Option<f64>,
    /// Also what is past its `validUntil` or `invalidatedAt`.
    pub include_expired: bool,
    /// Also intentions (prospective memory).
    pub include_intentions: bool,
    /// Also what was forgotten and is not compacted away yet.
    pub include_forgotten: bool,
    /// The time of the order to ask about, instead of now.
    pub as_of: Option<Timestamp>,
    /// The snapshot to ask about, with all use since; goes without `as_of`.
    pub snapshot: Option<Snapshot>,
    /// True if words are understood too, where vectors are made here: what is near in meaning matches as well.
    pub by_meaning: bool,
    /// A vector to compare with. Where a question has words, and vectors are made here, the engine makes it.
    pub vector: Option<QueryVector>,
    /// The least cosine of a match by meaning, in [-1, 1]; the setting's if none is stated.
    pub min_cosine: Option<f64>,
    /// True if what matches lends relevance to the entities that its relationships lead to, and to what mentions them.
    pub spread: bool,
    /// Entities that relationships lead to, each with the relevance that it has from there, in [0, 1]. The engine finds them
    /// where `spread` asks.
    pub related: Vec<(Ref, f64)>,
    /// Least share of the weight of the words that a hit has, in [0, 1]; what has less is hidden and counted. 0 hides
    /// nothing.
    pub floor: f64,
    /// Matches are earlier than this.
    pub before: Option<Moment>,
    /// Matches are later than this.
    pub after: Option<Moment>,
    /// Questions about all matches.
    pub asks: Asks,
    /// False if `total` may be a lower bound: then what cannot reach the page need not be compared with the filters.
    pub exact_total: bool,
    /// The order of the hits.
    pub order: Order,
    /// Number of hits; `None` for all (exports).
    pub limit: Option<usize>,
    /// Number of hits to pass over.
    pub offset: usize,
    /// True if the hits count as accessed.
    pub touch: bool,
    /// True to give the parts of each score.
    pub explain: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            text: None,
            all_words: false,
            has_place: false,
            frame: None,
            near: None,
            radius: None,
            within: None,
            box_pose: None,
            geo: None,
            time: None,
            types: Vec::new(),
            kinds: Vec::new(),
            tiers: Vec::new(),
            experience_types: Vec::new(),
            entities: Vec::new(),
            labels: Vec::new(),
            min_importance: None,
            min_confidence: None,
            min_retrievability: None,
            include_expired: false,
            include_intentions: false,
            include_forgotten: false,
            as_of: None,
            snapshot: None,
            by_meaning: false,
            vector: None,
            min_cosine: None,
            spread: false,
            related: Vec::new(),
            floor: 0.0,
            before: None,
            after: None,
            asks: Asks::default(),
            exact_total: true,
            order: Order::Score,
            limit: Some(DEFAULT_LIMIT),
            offset: 0,
            touch: true,
            explain: false,
        }
    }
}

impl Query {
    /// The frame that coordinates are in.
    pub fn frame(&self) -> &str {
        self.frame.as_deref().unwrap_or(DEFAULT_FRAME)
    }

    /// Returns true if there is a place to measure from, which a radius and an order by distance need.
    pub fn has_center(&self) -> bool {
        self.near.is_some() || self.geo.is_some()
    }

    /// Returns true if a radius is stated, and no place that it is around.
    pub fn lacks_center(&self) -> bool {
        self.radius.is_some() && !self.has_center()
    }

    /// Returns true if there are words to rank by.
    pub fn has_words(&self) -> bool {
        self.text.as_ref().is_some_and(Question::ranks)
    }

    /// The versions it is about.
    pub fn read_point(&self) -> ReadPoint {
        match (self.as_of, self.snapshot) {
            (Some(at), _) => ReadPoint::At(at.as_micros()),
            (None, Some(snapshot)) => ReadPoint::UpTo(snapshot.seq),
            (None, None) => ReadPoint::Now,
        }
    }

    /// The time it is judged by, if now is `now`; both in microseconds.
    pub fn at(&self, now: i64) -> i64 {
        self.as_of.or(self.snapshot.map(|snapshot| snapshot.at)).map_or(now, Timestamp::as_micros)
    }

    /// Returns true if the same versions may be another selection a moment later. Use changes how far a memory has faded,
    /// and the mentions of an entity are dropped once it is forgotten.
    pub fn is_passing(&self) -> bool {
        !self.tiers.is_empty() || self.min_retrievability.is_some() || !self.entities.is_empty()
    }

    /// Returns true if a point in `frame` lies in the box; everything does if there is none.
    pub fn is_in_box(&self, point: &Point3<f64>) -> bool {
        let own = self.box_pose.map_or(*point, |pose| pose.inverse_transform_point(point));
        self.within.is_none_or(|within| within.contains(&own))
    }

    /// Bounds of the box along the axes of `frame`: too large rather than too small.
    pub fn box_bounds(&self) -> Option<Aabb> {
        let within = self.within?;
        let Some(pose) = self.box_pose else { return Some(within) };
        let corner = |n: usize| {
            let pick = |bit: usize, min: f64, max: f64| if n >> bit & 1 == 0 { min } else { max };
            let (min, max) = (&within.min, &within.max);
            pose * Point3::new(pick(0, min.x, max.x), pick(1, min.y, max.y), pick(2, min.z, max.z))
        };
        let corners: Vec<Point3<f64>> = (0..8).map(corner).collect();
        // An open side, turned, is open everywhere.
        if corners.iter().any(|corner| !corner.coords.iter().all(|c| c.is_finite())) {
            let all = f64::INFINITY;
            return Some(Aabb::new([-all; 3].into(), [all; 3].into()));
        }
        let (min, max) = corners.iter().fold((corners[0], corners[0]), |(min, max), corner| {
            (min.inf(corner), max.sup(corner))
        });
        // The margin is more than rounding may have taken off.
        let margin = 1e-9 * (1.0 + min.coords.amax().max(max.coords.amax()));
        Some(Aabb::new(min.map(|c| c - margin), max.map(|c| c + margin)))
    }

    /// A query for everything there is, in no particular ranking: what `export` begins with.
    pub fn everything() -> Self {
        Self {
            include_expired: true,
            include_intentions: true,
            limit: None,
            touch: false,
            ..Self::default()
        }
    }
}
