//! Filters of a query, compared with one version at a time: exactly what a scan would do.

use std::cell::RefCell;

use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::ResourceType;
use omir_core::tier::Tier;

use super::query::Query;
use crate::index::catalog::{Catalog, PositionRow, ReadPoint, VersionReader};
use crate::index::doc::{Doc, DocId};
use crate::index::facts::position;
use crate::index::spatial::FrameId;

/// The filters of a query, in the form that rows of the index are compared with.
pub(super) struct Filter<'a> {
    query: &'a Query,
    point: ReadPoint,
    versions: RefCell<VersionReader>,
    now: i64,
    types: u16,
    kinds: u16,
    tiers: u16,
    experience_types: u16,
    labels: u16,
    frame: Option<FrameId>,
    needs_frame: bool,
}

fn mask<T: PartialEq>(all: &[T], wanted: &[T]) -> u16 {
    wanted.iter().fold(0, |mask, value| mask | 1 << position(all, value))
}

fn allows(mask: u16, value: u8) -> bool {
    mask == 0 || (value < 16 && mask & (1 << value) != 0)
}

impl<'a> Filter<'a> {
    pub(super) fn new(catalog: &Catalog, query: &'a Query, now: i64) -> Self {
        Self {
            query,
            point: query.read_point(),
            versions: RefCell::new(VersionReader::new(query.read_point())),
            now,
            types: mask(&ResourceType::ALL, &query.types),
            kinds: mask(Kind::ALL, &query.kinds),
            tiers: mask(&Tier::ALL, &query.tiers),
            experience_types: mask(ExperienceType::ALL, &query.experience_types),
            labels: mask(Label::ALL, &query.labels),
            frame: catalog.places.frame(query.frame()),
            needs_frame: query.near.is_some() || query.within.is_some() || query.frame.is_some(),
        }
    }

    /// The frame of the query's place, if a version has a place in it.
    pub(super) fn frame(&self) -> Option<FrameId> {
        self.frame
    }

    /// Returns true if no version can match, because none has a place in the frame that is asked for.
    pub(super) fn is_void(&self) -> bool {
        self.needs_frame && self.frame.is_none()
    }

    /// Returns true if the query looks at the version: it was there at the right time, and is not forgotten, expired
    /// or an intention, unless those were asked for.
    fn is_visible(&self, catalog: &Catalog, id: DocId, doc: &Doc) -> bool {
        let query = self.query;
        let stood = match self.point {
            ReadPoint::Now => doc.is_live(),
            ReadPoint::At(at) => doc.recorded <= at && at < doc.retired,
            ReadPoint::UpTo(seq) => {
                let stood_then =
                    || self.versions.borrow_mut().version(catalog, &doc.key) == Some(id);
                doc.seq <= seq && (doc.is_live() || stood_then())
            }
        };
        let was_there = match self.point {
            ReadPoint::Now => true,
            ReadPoint::At(at) => doc.recorded <= at,
            ReadPoint::UpTo(seq) => doc.seq <= seq,
        };
        let known = stood || (query.include_forgotten && doc.forgotten && was_there);
        known
            && !doc.dropped
            && (query.include_expired || self.now < doc.valid_until)
            && (query.include_intentions || !doc.class.is_intention())
    }

    /// Applies every filter but those on words, mentions and retrievability. Returns the distance, or `None` if the
    /// version does not match.
    pub(super) fn accepts(&self, catalog: &Catalog, id: DocId) -> Option<Option<f64>> {
        let query = self.query;
        let doc = catalog.doc(id);
        let class = &doc.class;
        let by_class = allows(self.types, class.resource_type)
            && allows(self.kinds, class.kind)
            && allows(self.experience_types, class.experience)
            && (self.labels == 0 || self.labels & class.labels != 0);
        // A comparison with NaN, which stands for "not stated", is false: no match.
        let by_score = query.min_importance.is_none_or(|least| doc.importance >= least)
            && query.min_confidence.is_none_or(|least| doc.confidence >= least);
        let by_time = query.time.is_none_or(|range| doc.is_dated && range.contains(doc.when));
        let by_place = !query.has_place || doc.places > 0;
        if !(by_class && by_score && by_time && by_place && self.is_visible(catalog, id, doc)) {
            return None;
        }
        let distance = self.distance(catalog, doc)?;
        // The tier of now costs more than the rest, so it comes last.
        if self.tiers != 0 {
            let (tier, _) = catalog.tier(id, query.as_of.is_some(), self.now)?;
            if !allows(self.tiers, position(&Tier::ALL, &tier)) {
                return None;
            }
        }
        Some(distance)
    }

    /// The places of a version that the query accepts: those in its frame, radius and box, or all if it names none.
    pub(super) fn places_of<'c>(
        &'c self,
        catalog: &'c Catalog,
        doc: &'c Doc,
    ) -> impl Iterator<Item = &'c PositionRow> {
        let is_asked = self.needs_frame || self.query.geo.is_some();
        let accepts = move |place: &&PositionRow| !is_asked || self.distance_to(place).is_some();
        catalog.places.of(doc).iter().filter(accepts)
    }

    /// Returns `None` if the version has no place that the query accepts; else the distance, if the query is around a
    /// point.
    fn distance(&self, catalog: &Catalog, doc: &Doc) -> Option<Option<f64>> {
        let query = self.query;
        if !self.needs_frame && query.geo.is_none() {
            return Some(None);
        }
        let places = catalog.places.of(doc).iter().filter_map(|place| self.distance_to(place));
        // The nearest place counts.
        places.min_by(|a, b| {
            let far = f64::INFINITY;
            a.unwrap_or(far).total_cmp(&b.unwrap_or(far))
        })
    }

    /// Returns the same for one place.
    fn distance_to(&self, place: &PositionRow) -> Option<Option<f64>> {
        let query = self.query;
        let point = place.position.into();
        if self.needs_frame && Some(place.frame) != self.frame {
            return None;
        }
        if !query.is_in_box(&point) {
            return None;
        }
        let near = query.near.as_ref().map(|near| near.distance_to(&point));
        let geo = match &query.geo {
            Some(geo) => Some(geo.distance_m(place.geo.as_ref()?)),
            None => None,
        };
        let beyond = |metres: Option<f64>| {
            query.radius.is_some_and(|radius| metres.is_some_and(|metres| metres > radius))
        };
        if beyond(near) || beyond(geo) { None } else { Some(near.or(geo)) }
    }
}
