//! Lists of memories: `recall`, `what_is_near` and `timeline`.

use std::fmt::Display;
use std::str::FromStr;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::reference::ResourceType;
use omir_core::space::Center;
use omir_core::value::{Map, Value};
use omird_engine::{Code, Correction, Error, Hit, Order, Query};

use super::memory::shown;
use super::page::{self, Question};
use super::{Call, given_up, time_range};

/// Matches of any size that fit on a page: it may end behind them.
const FEW: usize = 4;
/// Metres of `what_is_near` where no radius is stated.
const NEAR: f64 = 5.0;

impl Call<'_> {
    pub(super) fn recall(&self) -> Result<Map, Error> {
        let mut query = self.query()?;
        query.order = match self.text("order") {
            Some(name) => Order::by_name(name).unwrap_or_default(),
            None => Order::Score,
        };
        if query.order == Order::Distance && !query.has_center() {
            return Err(Error::query("order", "`distance` needs x and y to be from"));
        }
        self.pages(query)
    }

    pub(super) fn what_is_near(&self) -> Result<Map, Error> {
        let query = self.query()?;
        let radius = query.radius.or(Some(NEAR));
        self.pages(Query { radius, order: Order::Distance, touch: false, ..query })
    }

    pub(super) fn timeline(&self) -> Result<Map, Error> {
        let query = self.query()?;
        let order = match self.text("order") {
            Some("earliest") => Order::Earliest,
            _ => Order::Latest,
        };
        let types = vec![ResourceType::MemoryRecord, ResourceType::Episode];
        self.pages(Query { types, order, touch: false, ..query })
    }

    /// The filters that these tools share, as far as each has them.
    fn query(&self) -> Result<Query, Error> {
        let mut query = Query {
            text: self.question()?,
            by_meaning: true,
            frame: self.text("frame").map(str::to_owned),
            near: self.place()?,
            radius: self.number("radius_m"),
            time: time_range::read(self.text("since"), self.text("until"), self.now)?,
            types: self.word("type")?,
            experience_types: self.word("experience_type")?,
            entities: self.word("entity")?,
            min_importance: self.number("min_importance"),
            include_expired: self.value("include_expired").and_then(Value::as_bool) == Some(true),
            ..Query::default()
        };
        if query.lacks_center() {
            return Err(Error::query("radius_m", "needs x and y to be around"));
        }
        query.include_intentions =
            query.experience_types.iter().any(|of| of.as_str() == "intention");
        Ok(query)
    }

    fn question(&self) -> Result<Option<omird_engine::Question>, Error> {
        let Some(text) = self.text("query") else { return Ok(None) };
        omird_engine::Question::parse(text).map_err(|error| Error::query("query", error))
    }

    /// The place that x, y and z name.
    pub(super) fn place(&self) -> Result<Option<Center>, Error> {
        match (self.number("x"), self.number("y"), self.number("z")) {
            (Some(x), Some(y), None) => Ok(Some(Center::Plane { x, y })),
            (Some(x), Some(y), Some(z)) => Ok(Some(Center::Space { x, y, z })),
            (None, None, None) => Ok(None),
            (None, ..) => Err(Error::query("x", "is missing: a place has x and y, in metres")),
            (_, None, _) => Err(Error::query("y", "is missing: a place has x and y, in metres")),
        }
    }

    /// One argument as a list of one; of none if it is not given.
    fn word<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Vec<T>, Error> {
        let Some(text) = self.text(name) else { return Ok(Vec::new()) };
        let read = text.parse().map(|value| vec![value]);
        read.map_err(|error| Error::query(name, format!("{text:?}: {error}")))
    }

    fn pages(&self, mut query: Query) -> Result<Map, Error> {
        let engine = &self.omir.engine;
        let question = Question::new(engine.identity(), self.tool.name, self.arguments);
        page::apply(&mut query, &question, self.arguments, self.now)?;
        let few = query.limit.map_or(FEW, |limit| limit.min(FEW));
        let (found, snapshot) = engine.recall_page(&query, few)?;
        let mut memories = Vec::with_capacity(found.hits.len());
        let of = found.hits.len() as u64;
        for (done, hit) in (1..).zip(&found.hits) {
            if !self.observer.is_wanted() {
                return Err(given_up());
            }
            memories.push(self.hit(hit)?);
            self.observer.note(done, of);
        }
        let mut page =
            question.page(memories, query.offset, found.total, found.unreadable, snapshot);
        if !found.corrected.is_empty() {
            let told = |one: &Correction| format!("{}: {}", one.from, one.to.join(", "));
            let corrected = found.corrected.iter().map(|one| Value::from(told(one)));
            page.insert("corrected", corrected.collect::<Value>());
        }
        Ok(page)
    }

    /// A hit as it is shown.
    pub(super) fn hit(&self, hit: &Hit) -> Result<Map, Error> {
        let mut map = shown(&decoded(&hit.resource)?, &self.frame(), self.now);
        if let Some(metres) = hit.distance {
            map.insert("distance_m", rounded(metres));
        }
        map.insert("score", rounded(hit.score));
        map.insert("retrievability", rounded(hit.retrievability));
        Ok(map)
    }
}

/// A stored resource as a value.
pub(super) fn decoded(resource: &[u8]) -> Result<Value, Error> {
    cbor::from_slice(resource, &Limits::default()).map_err(|error| {
        Error::new(Code::Internal, format!("a stored resource cannot be read: {error}"))
    })
}

/// Three decimals: more mean nothing to a model, and cost it room.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
