//! Requests of a protocol made into changes.

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;

use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::ingest::import_rule::Precedence;
use crate::ingest::importing::{ImportPermit, NotAdmitted};
use crate::ingest::request;
use crate::settings::RequestLimits;
use crate::time::uncertainty;
use crate::write::command::Change;
use crate::write::rebase::{Request, Step};

impl Engine {
    /// Takes or refuses a payload of so many bytes, to be merged or not; gives the permit, if it needs one.
    /// Asked again by what prepares it: a caller that asks before only saves reading what would be refused.
    ///
    /// # Errors
    /// Says which bound it is above, or that another import has the permit.
    pub fn admit(&self, bytes: usize, merges: bool) -> Result<Option<ImportPermit>, NotAdmitted> {
        let limits = &self.settings().limits;
        if bytes <= limits.max_payload_bytes {
            return Ok(None);
        }
        if !merges {
            let (most, limit) = (limits.max_payload_bytes, "max_payload_bytes");
            return Err(NotAdmitted::TooLarge { bytes, most, limit });
        }
        let most = limits.for_import().max_payload_bytes;
        if bytes > most {
            return Err(NotAdmitted::TooLarge { bytes, most, limit: "max_import_bytes" });
        }
        self.inner.imports.take().map(Some).ok_or(NotAdmitted::ImportUnderWay)
    }

    /// Decodes what a client wants remembered: a resource, an array, or a Bundle. `key` is the key
    /// it was put on, if it was.
    ///
    /// # Errors
    /// `INVALID_RESOURCE` with a JSON Pointer, or `TOO_LARGE`.
    pub fn prepare(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
    ) -> Result<Change, Error> {
        self.admit(payload.len(), false)?;
        let limits = &self.settings().limits;
        Ok(Change::Remember(self.take(payload, encoding, key, limits, None, false)?))
    }

    /// As [`Engine::prepare`], of what another clock says was sent at `sent`: a missing `createdAt`
    /// is that, where it can be believed.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    pub fn prepare_sent(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
        sent: Timestamp,
    ) -> Result<Change, Error> {
        self.admit(payload.len(), false)?;
        let limits = &self.settings().limits;
        Ok(Change::Remember(self.take(payload, encoding, key, limits, Some(sent), false)?))
    }

    /// Decodes what a client wants merged into what is stored. A name that comes twice counts once. `permit` is the one that
    /// [`Engine::admit`] gave, if it gave one; without it, one is asked for.
    ///
    /// # Errors
    /// As [`Engine::prepare`], with bounds of its own, and `BUSY` while another large one is under way.
    pub fn prepare_admitted(
        &self,
        permit: Option<ImportPermit>,
        payload: &[u8],
        encoding: request::Encoding,
        precedence: Precedence,
    ) -> Result<Change, Error> {
        let permit = match permit {
            Some(permit) => Some(permit),
            None => self.admit(payload.len(), true)?,
        };
        let limits = self.settings().limits.for_import();
        let prepared = self.take(payload, encoding, None, &limits, None, true)?;
        Ok(Change::Merge(prepared, precedence, permit))
    }

    pub(crate) fn take(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
        limits: &RequestLimits,
        sent: Option<Timestamp>,
        merging: bool,
    ) -> Result<Vec<request::Prepared>, Error> {
        let around = limits.around_resources();
        let value = request::decode(payload, encoding, &around, Code::InvalidResource)?;
        let time = &self.inner.shared.time;
        let moment = time.moment();
        let uncertainty = time.uncertainty_now(&moment);
        let is_shared = uncertainty.is_none() && !time.is_simulated();
        let sent = sent.filter(|sent| is_shared && uncertainty::believable(*sent, moment.now));
        let now = sent.unwrap_or(moment.now);
        let new_id = || self.new_id();
        request::IngestContext { limits, now, uncertainty, new_id: &new_id, key, merging }
            .take(value)
    }

    /// Makes a change of a step of the map, or of a step back. With `dry_run` it only says what it would do.
    ///
    /// # Errors
    /// `INTERNAL` if no id can be made for the record of the step.
    pub fn prepare_rebase(&self, step: Step, dry_run: bool) -> Result<Change, Error> {
        let id = self.new_id().parse().map_err(|error| {
            Error::new(Code::Internal, format!("an id of our own is none: {error}"))
        })?;
        let max_bytes = self.settings().limits.for_import().max_payload_bytes;
        Ok(Change::Rebase(Request { step, dry_run, id, max_bytes }))
    }
}
