//! Queries in frames other than the fixed one.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use omir_core::instant::Timestamp;
use omir_core::reference::ResourceType;
use omir_core::spatial::SpatialPose;
use omird_store::RefKey;

use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::index::catalog::{ReadPoint, VersionReader};
use crate::recall::frames::{Frames, in_fixed_frame};
use crate::recall::query::{Moment, Query, TimeRange};

impl Engine {
    /// Lets recalls be asked in any frame that `frames` knows. Only the first to be named counts.
    pub fn follow_frames(&self, frames: Arc<dyn Frames>) {
        let _ = self.inner.frames.set(frames);
    }

    /// The query in the frame that memories lie in.
    pub(crate) fn placed<'q>(&self, query: &'q Query) -> Result<Cow<'q, Query>, Error> {
        // Only entities are mentioned and related (R1), so any other name would pass for "nothing found".
        if let Some(other) = query.entities.iter().find(|name| name.kind != ResourceType::Entity) {
            let message = format!("{other} is no Entity/<id>, and only entities are mentioned");
            return Err(Error::query("entity", message));
        }
        let framed = self.framed(query);
        let placed = self.moved(&framed)?.map_or(framed, Cow::Owned);
        if placed.before.is_none() && placed.after.is_none() {
            return self.spread(self.understood(placed)?);
        }
        let placed = placed.into_owned();
        self.spread(self.understood(Cow::Owned(self.between(placed)?))?)
    }

    /// The query with the range of time that it means by what was before or after something.
    fn between(&self, mut query: Query) -> Result<Query, Error> {
        let mut range =
            query.time.unwrap_or(TimeRange { from: Bound::Unbounded, to: Bound::Unbounded });
        if let Some(moment) = query.before.take() {
            range = range.before(self.moment_of("before", &moment, &query)?);
        }
        if let Some(moment) = query.after.take() {
            range = range.after(self.moment_of("after", &moment, &query)?);
        }
        Ok(Query { time: Some(range), ..query })
    }

    fn moment_of(&self, name: &str, moment: &Moment, query: &Query) -> Result<Timestamp, Error> {
        let target = match moment {
            Moment::At(at) => return Ok(*at),
            Moment::Of(target) => target,
        };
        let catalog = self.catalog();
        let key = RefKey::of(target);
        let id = match query.read_point() {
            ReadPoint::Now => catalog.live(&key),
            point => VersionReader::new(point).version(&catalog, &key),
        };
        let lost = match id {
            Some(id) => catalog.missing(id),
            None => catalog.losses.missed(&key).map(|lost| lost.stamp),
        };
        let as_of = query.as_of.map(|at| at.as_micros());
        if let Some(lost) = lost.filter(|lost| as_of.is_none_or(|at| lost.recorded <= at)) {
            let version = lost.version;
            let message = format!(
                "{target}: version {version}, the newest, is lost, so nothing tells when it was; remember it again"
            );
            return Err(Error { path: format!("/{name}"), ..Error::new(Code::Internal, message) });
        }
        let doc = catalog.doc(id.ok_or_else(|| {
            let message = format!("{target} is not stored, so nothing tells when it was");
            Error::query(name, message)
        })?);
        if !doc.is_dated {
            let message = format!("{target} states neither eventTime nor createdAt");
            return Err(Error::query(name, message));
        }
        Ok(doc.when)
    }

    /// The query with the frame it means where it names none.
    pub(crate) fn framed<'q>(&self, query: &'q Query) -> Cow<'q, Query> {
        let has_place = query.near.is_some() || query.within.is_some();
        if query.frame.is_some() || !has_place {
            return Cow::Borrowed(query);
        }
        let frame = Some(self.settings().fixed_frame.clone());
        Cow::Owned(Query { frame, ..query.clone() })
    }

    /// The query in the fixed frame, if its own is another that is tied to that.
    pub(crate) fn moved(&self, query: &Query) -> Result<Option<Query>, Error> {
        self.inner.frames.get().map_or(Ok(None), |frames| in_fixed_frame(query, &**frames))
    }

    /// Returns true if the place of the query depends on the present position of a frame: a moment later the same query
    /// may select something else.
    ///
    /// # Errors
    /// `INVALID_QUERY` if the frame of the query is unknown.
    pub fn goes_by_place(&self, query: &Query) -> Result<bool, Error> {
        Ok(self.moved(&self.framed(query))?.is_some())
    }

    /// Returns the pose of `frame` right now in the fixed frame that it is tied to, or `None` where nothing ties it to one, or
    /// that was heard of too long ago.
    pub fn pose_of(&self, frame: &str) -> Option<SpatialPose> {
        let (fixed, pose) = self.inner.frames.get()?.fixed(frame).ok()??;
        let (now, _) = self.now();
        let position = pose.translation.vector.into();
        Some(SpatialPose {
            orientation: Some(pose.rotation),
            stamp: Some(now.into()),
            child_frame: Some(frame.to_owned()),
            ..SpatialPose::new(fixed, position)
        })
    }
}
