//! One query: its parameters, its payload, and how it is answered.

use std::sync::Arc;

use omir_core::json;
use omir_core::value::Value;
use percent_encoding::percent_decode_str;
use zenoh::Wait;
use zenoh::bytes::{Encoding as ZenohEncoding, ZBytes};
use zenoh::query::Query;

use super::keys::Keys;
use super::pool::{Pool, UnderWay};
use crate::engine::{Code, Encoding, Error, RequestLimits, decode};
use crate::protocols::omir::{Encoded, Params, Payload, add_parameter};
use crate::router;
use crate::router::error_value;

/// Bytes of a selector's parameters.
pub const MOST_PARAMETERS: usize = 64 << 10;

/// Parameters of Zenoh itself that say nothing about memories.
const OF_ZENOH: [&str; 1] = ["_anyke"];

/// A query with what is needed to answer it. Whatever goes to its client goes by the pool, also that there is no more.
pub(super) struct Request {
    query: Option<Query>,
    key: String,
    keys: Keys,
    pool: Arc<Pool>,
    under_way: Option<UnderWay>,
    /// The encoding of the payload, and so of the answer.
    pub(super) encoding: Encoding,
    parameters: Result<Vec<(String, String)>, Error>,
    payload: ZBytes,
}

/// Returns the format of a Zenoh encoding; `None` if nothing.
pub(super) fn stated(encoding: Option<&ZenohEncoding>) -> Option<Encoding> {
    let text = encoding?.to_string();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/cbor" | "application/omir+cbor" => Some(Encoding::Cbor),
        "application/json" | "text/json" | "application/omir+json" => Some(Encoding::Json),
        _ => None,
    }
}

pub(super) fn zenoh_encoding(encoding: Encoding) -> ZenohEncoding {
    match encoding {
        Encoding::Json => ZenohEncoding::APPLICATION_JSON,
        Encoding::Cbor => ZenohEncoding::APPLICATION_CBOR,
    }
}

impl Request {
    pub(super) fn new(mut query: Query, keys: Keys, pool: Arc<Pool>, under_way: UnderWay) -> Self {
        let payload = query.payload_mut().map(std::mem::take).unwrap_or_default();
        let mut parameters = selector_parameters(query.parameters().as_str());
        let format = parameters.as_mut().ok().and_then(|list| {
            let at = list.iter().position(|(name, _)| name == "format")?;
            Some(list.remove(at).1)
        });
        let mut encoding = Encoding::Json;
        if !payload.is_empty() {
            let first = payload.slices().next().unwrap_or_default();
            encoding = stated(query.encoding()).unwrap_or_else(|| Encoding::sniff(first));
        } else {
            match format.as_deref() {
                None | Some("json") => {}
                Some("cbor") => encoding = Encoding::Cbor,
                Some(other) => {
                    let message = format!("{other:?} is neither `json` nor `cbor`");
                    parameters = Err(Error::query("format", message));
                }
            }
        }
        let key = query.key_expr().to_string();
        let (query, under_way) = (Some(query), Some(under_way));
        Self { query, key, keys, pool, under_way, encoding, parameters, payload }
    }

    /// The key expression asked for.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns true if the selector gives a parameter of this name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.parameters.as_ref().is_ok_and(|list| list.iter().any(|(known, _)| known == name))
    }

    /// The selector's parameters, decoded.
    pub(super) fn selector(&self) -> Result<Vec<(String, String)>, Error> {
        self.parameters.clone()
    }

    /// Returns parameters and payload, where its method says that the payload is `kind`. The payload is taken: what
    /// waits for the disk is what was made of it.
    pub(super) fn params(
        &mut self,
        kind: router::Payload,
        limits: &RequestLimits,
    ) -> Result<Params, Error> {
        let parameters = self.selector()?;
        let bytes = std::mem::take(&mut self.payload).to_bytes().into_owned();
        let payload = match kind {
            _ if bytes.is_empty() => Payload::None,
            // A protocol of exchanges reads its own messages.
            router::Payload::None | router::Payload::Message(_) => Payload::None,
            router::Payload::Resources => Payload::Resources(bytes, self.encoding),
            router::Payload::Parameters => {
                let encoding = self.encoding;
                let mut members = decode(&bytes, encoding, limits, Code::InvalidQuery)?;
                // How it is answered says the payload itself.
                if let Value::Object(members) = &mut members {
                    members.remove("format");
                }
                Payload::Members(members)
            }
        };
        Ok(Params { parameters, payload })
    }

    /// Returns the bytes of the payload.
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload.len()
    }

    /// Takes the payload.
    pub(super) fn take_payload(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.payload).to_bytes().into_owned()
    }

    /// Checks that the payload is not said to be anything but JSON.
    ///
    /// # Errors
    /// `INVALID_QUERY`.
    pub(super) fn expect_json(&self) -> Result<(), Error> {
        let encoding = self.query.as_ref().and_then(Query::encoding);
        match stated(encoding) {
            Some(Encoding::Cbor) => {
                Err(Error::new(Code::InvalidQuery, "this key takes JSON, not CBOR"))
            }
            _ => Ok(()),
        }
    }

    /// Answers on `omir/<robot>/<key>` with these bytes.
    pub(super) fn reply_with(self, key: &str, bytes: Vec<u8>, encoding: Encoding) {
        let (key, encoding) = (self.keys.operation(key), zenoh_encoding(encoding));
        self.finish(OutgoingReply::Answer { key, encoding, attachment: None, bytes });
    }

    /// Answers that it is refused, in these words.
    pub(super) fn refuse_with(self, bytes: Vec<u8>, encoding: Encoding) {
        self.finish(OutgoingReply::Refusal { bytes, encoding: zenoh_encoding(encoding) });
    }

    /// Answers on `omir/<robot>/<operation>`. What is missing goes beside the answer, as JSON in the attachment.
    pub(super) fn reply(self, operation: &str, encoded: Encoded) {
        let Encoded { bytes, encoding, left_out } = encoded;
        let encoding = encoding.map_or(ZenohEncoding::APPLICATION_OCTET_STREAM, zenoh_encoding);
        let attachment = left_out.as_ref().map(json::to_string);
        let key = self.keys.operation(operation);
        self.finish(OutgoingReply::Answer { key, encoding, attachment, bytes });
    }

    /// Refuses.
    pub(super) fn refuse(self, error: &Error) {
        let reply = OutgoingReply::refusal(error, self.encoding);
        self.finish(reply);
    }

    /// One of many answers, on its own key. Whether the client takes them: one that does not gets no more.
    pub(super) fn send(&self, key: String, bytes: Vec<u8>) -> bool {
        let encoding = zenoh_encoding(self.encoding);
        self.send_outgoing(OutgoingReply::Answer { key, bytes, encoding, attachment: None })
    }

    /// An error among many answers.
    pub(super) fn send_error(&self, error: &Error) -> bool {
        self.send_outgoing(OutgoingReply::refusal(error, self.encoding))
    }

    /// Point beyond which no more is sent, though there is more.
    pub(super) fn give_up(self) {
        self.pool.note_dropped();
        let message = "your client took no answer for seconds, and the others are dropped";
        self.refuse(&Error::new(Code::Busy, message));
    }

    fn send_outgoing(&self, reply: OutgoingReply) -> bool {
        let Some(query) = &self.query else { return false };
        self.pool.hand_over_here(reply.len(), |fits| reply.fitting(fits, self.encoding).send(query))
    }

    fn finish(mut self, reply: OutgoingReply) {
        let (Some(query), under_way) = (self.query.take(), self.under_way.take()) else { return };
        let encoding = self.encoding;
        self.pool.hand_over(reply.len(), move |fits| {
            reply.fitting(fits, encoding).send(&query);
            drop((query, under_way));
        });
    }
}

/// That there is no more to come goes to the client too.
impl Drop for Request {
    fn drop(&mut self) {
        if let Some(query) = self.query.take() {
            let under_way = self.under_way.take();
            self.pool.hand_over(0, move |_| drop((query, under_way)));
        }
    }
}

/// Bytes to a client.
enum OutgoingReply {
    Answer { key: String, bytes: Vec<u8>, encoding: ZenohEncoding, attachment: Option<String> },
    Refusal { bytes: Vec<u8>, encoding: ZenohEncoding },
}

impl OutgoingReply {
    fn refusal(error: &Error, encoding: Encoding) -> Self {
        let bytes = encoding.encode(&error_value(error));
        Self::Refusal { bytes, encoding: zenoh_encoding(encoding) }
    }

    fn len(&self) -> usize {
        match self {
            Self::Answer { bytes, .. } | Self::Refusal { bytes, .. } => bytes.len(),
        }
    }

    /// This, or why not, where there was no room for it.
    fn fitting(self, fits: bool, encoding: Encoding) -> Self {
        if fits {
            return self;
        }
        let message =
            "too many answers wait for clients that do not take them; try again in a moment";
        Self::refusal(&Error::new(Code::Busy, message), encoding)
    }

    fn send(self, query: &Query) {
        let sent = match self {
            Self::Answer { key, bytes, encoding, attachment } => {
                query.reply(key, bytes).encoding(encoding).attachment(attachment).wait()
            }
            Self::Refusal { bytes, encoding } => query.reply_err(bytes).encoding(encoding).wait(),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "an answer could not be sent");
        }
    }
}

/// Splits selector parameters at `;` and decodes their values.
///
/// # Errors
/// `INVALID_QUERY`, naming the parameter that is given twice or is no text; `TOO_LARGE` above [`MOST_PARAMETERS`].
pub fn selector_parameters(parameters: &str) -> Result<Vec<(String, String)>, Error> {
    let bytes = parameters.len();
    if bytes > MOST_PARAMETERS {
        let message = format!(
            "parameters of {bytes} bytes in the selector; at most {MOST_PARAMETERS} are taken there: put them into \
             the payload (docs/keys.md), or ask for less"
        );
        return Err(Error::new(Code::TooLarge, message));
    }
    let mut list: Vec<(String, String)> = Vec::new();
    for part in parameters.split(';').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let decode = |text: &str| {
            percent_decode_str(text)
                .decode_utf8()
                .map(std::borrow::Cow::into_owned)
                .map_err(|_| Error::query(name, "its value is not UTF-8 after percent-decoding"))
        };
        let (name, value) = (decode(name)?, decode(value)?);
        if OF_ZENOH.contains(&name.as_str()) {
            continue;
        }
        add_parameter(&mut list, name, value)?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_percent_decoded_and_may_hold_any_character() {
        let list = selector_parameters("q=a%3Bb%3Dc%25;near=1,2;explain").unwrap();
        let list: Vec<(&str, &str)> = list.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(list, [("q", "a;b=c%"), ("near", "1,2"), ("explain", "")]);
    }

    #[test]
    fn a_parameter_given_twice_is_refused() {
        assert_eq!(selector_parameters("q=a;q=b").unwrap_err().path, "/q");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(selector_parameters("q=%ff").unwrap_err().code, Code::InvalidQuery);
    }
}
