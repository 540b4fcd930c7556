//! A record as it comes in: read, checked, without what is not stored.

use omir_core::decode::Limits;
use omir_core::value::Value;
use omir_core::{jcs, json};
use sha2::{Digest as _, Sha256};

use crate::check::{Fault, Shape};
use crate::experience::Experience;
use crate::ids::{Tenant, hex};
use crate::methods::MOST_BYTES;
use crate::patterns;
use crate::privacy;
use crate::settings::ExperienceSettings;

/// Containers inside one another in a message: what is stored has a few more around it, and must fit a resource.
const MOST_DEPTH: usize = 32;
/// Values in a message. In memory each takes many times what it takes on the wire: `0,` is two bytes.
const MOST_VALUES: usize = 50_000;

/// A message that cannot be taken, with what of it can be echoed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) fault: Fault,
    /// `None` where the message cannot be read.
    pub(crate) request_id: Option<String>,
    pub(crate) task_id: String,
}

/// Reads a message as JSON without repeated members, and checks its shape.
///
/// # Errors
/// The first fault.
pub(crate) fn read(body: &[u8], shape: &Shape) -> Result<Value, Rejected> {
    let limits = Limits { max_bytes: MOST_BYTES, max_depth: MOST_DEPTH, max_items: MOST_VALUES };
    let value = json::from_slice(body, &limits).map_err(|error| {
        let path = if error.pointer == "/" { String::new() } else { error.pointer.clone() };
        let fault = Fault::new(path, format!("no JSON that can be read: {error}"));
        Rejected { fault, request_id: None, task_id: String::new() }
    })?;
    match shape.check(&value) {
        Ok(()) => Ok(value),
        Err(fault) => {
            let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            let request_id = value.as_object().map(|_| text("request_id").unwrap_or_default());
            Err(Rejected { fault, request_id, task_id: text("task_id").unwrap_or_default() })
        }
    }
}

/// The facts about a record by which it is decided on and answered.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tenant: Tenant,
    pub(crate) request_id: String,
    pub(crate) task_id: String,
    /// SHA-256 of its canonical form (RFC 8785) without `request_id`: the same twice is the same report.
    pub(crate) digest: String,
    pub(crate) patterns: Vec<String>,
}

/// A record that may be stored.
#[derive(Debug)]
pub(crate) struct CheckedRecord {
    pub(crate) report: Report,
    /// The record as it is stored.
    pub(crate) record: Value,
}

impl CheckedRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn read(
        body: &[u8],
        tenant: Tenant,
        settings: &ExperienceSettings,
        key: &[u8; 32],
    ) -> Result<Self, Rejected> {
        let mut record = read(body, &crate::shapes::RECORD)?;
        if !settings.store_identifiers {
            privacy::hide_people(&mut record, key, tenant.name());
        }
        let secrets = if settings.redact { privacy::redact(&mut record) } else { 0 };
        if secrets > 0 {
            let tenant = tenant.name();
            tracing::info!(tenant, secrets, "took secrets out of an experience");
        }
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
        let (request_id, task_id) = (text("request_id").to_owned(), text("task_id").to_owned());
        let patterns = match Experience::of(&record) {
            Some(experience) => {
                patterns::patterns([experience.title].into_iter().chain(experience.intent))
            }
            None => Vec::new(),
        };
        // Over what is stored, so that it tells nothing of what is not.
        let mut told = record.clone();
        if let Some(told) = told.as_object_mut() {
            told.remove("request_id");
        }
        let told = jcs::to_string(&told).map_err(|error| {
            let reason = "has digits that no double holds; write it as a text";
            let fault = Fault::new(error.pointer, reason);
            let (request_id, task_id) = (Some(request_id.clone()), task_id.clone());
            Rejected { fault, request_id, task_id }
        })?;
        let digest = hex(&Sha256::digest(told));
        Ok(Self { report: Report { tenant, request_id, task_id, digest, patterns }, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use omird_router::DEFAULT_TENANT;

    fn checked(value: &Value) -> Result<Report, Rejected> {
        let body = json::to_string(value);
        let tenant = Tenant::new(DEFAULT_TENANT);
        let settings = ExperienceSettings::default();
        CheckedRecord::read(body.as_bytes(), tenant, &settings, &[7; 32])
            .map(|record| record.report)
    }

    #[test]
    fn what_cannot_be_taken_is_echoed_as_far_as_it_can_be_read() {
        let rejected = |body: &str| read(body.as_bytes(), &crate::shapes::RECORD).unwrap_err();
        for body in ["", "nope", "{\"a\":1,\"a\":2}", &"[".repeat(100)] {
            let rejected = rejected(body);
            assert_eq!((rejected.request_id, rejected.task_id.as_str()), (None, ""), "{body}");
        }
        assert_eq!(rejected("[]").request_id, None);
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        let fault = rejected(&many).fault;
        assert!(fault.reason.contains("values"), "{}", fault.reason);
        let found = rejected(r#"{"request_id":"r","task_id":"t","title":7}"#);
        assert_eq!((found.request_id.as_deref(), found.task_id.as_str()), (Some("r"), "t"));
        assert_eq!(found.fault.path, "/title");
        assert_eq!(rejected(r#"{"request_id":7}"#).request_id.as_deref(), Some(""));
    }

    #[test]
    fn the_digest_is_of_the_report_and_not_of_the_request() {
        let mut value = record("t-1");
        let first = checked(&value).unwrap();
        value.as_object_mut().unwrap().insert("request_id", "another");
        let again = checked(&value).unwrap();
        assert_eq!(first.digest, again.digest);
        assert_ne!(first.request_id, again.request_id);
        let title = value.as_object_mut().unwrap().remove("title").unwrap();
        value.as_object_mut().unwrap().insert("title", title);
        assert_eq!(checked(&value).unwrap().digest, first.digest, "in another order");
        value.as_object_mut().unwrap().insert("title", "Another");
        assert_ne!(checked(&value).unwrap().digest, first.digest);
        assert_eq!(first.patterns, ["dock", "station", "robot"]);
    }
}
