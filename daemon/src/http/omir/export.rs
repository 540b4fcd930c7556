//! `/omir/v1/export`: a Bundle of any size, of which only a few resources are in memory at a time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use omir_core::operation::Operation;
use omir_core::value::Value;
use omir_core::{cbor, json};

use super::super::Context;
use super::super::caller::CallerCredentials;
use super::super::refused::{Refused, content_type};
use super::{Admission, admit};
use crate::capacity::Room;
use crate::engine::{Encoding, Error};
use crate::protocols::omir::{Document, Omir, Parameters, method};
use crate::router::{Admitted, Method, worded};

/// Bytes that are made at a time. A client that takes none has the daemon make no more.
const PART: usize = 64 << 10;
/// Names what is left out, because the card does not give it back: `{"unreadable", "first"}`.
const LEFT_OUT: &str = "omir-left-out";

/// An end of indefinite length (RFC 8949, section 3.2).
const BREAK: u8 = 0xFF;
const ARRAY_OF_ANY_LENGTH: u8 = 0x9F;

pub(super) async fn stream(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let credentials = CallerCredentials::of(&parts);
    let request = Request::from_parts(parts, body);
    let Admission { admitted, params, encoding, slot, .. } =
        admit(&context, row(), request).await?;
    let room = match context.capacity.document() {
        Ok(room) => room,
        Err(error) => {
            admitted.failed(error.code);
            return Err(error.into());
        }
    };
    // Everything is read once for what it refers to; not for a client that is gone.
    let (omir, gone) = (context.protocols.omir.clone(), CancelOnDrop::default());
    let is_gone = gone.0.clone();
    let select = move || {
        let selected = params
            .merged()
            .and_then(|parameters| selected(&omir, &admitted, &parameters, &is_gone));
        (admitted, selected)
    };
    let (admitted, selected) = slot.work(select).await?;
    drop(gone);
    let document = match selected {
        Ok(document) => document,
        Err(error) => {
            admitted.failed(error.code);
            return Err(error.into());
        }
    };
    let left_out = document.left_out().to_value();
    let export = Export {
        at: 0,
        unread: 0,
        is_empty: true,
        has_begun: false,
        has_ended: false,
        encoding,
        document,
        admitted: Some(admitted),
        _room: room,
    };
    let parts = stream::unfold(Some(export), move |export| {
        let context = context.clone();
        // A token that was revoked is in force no longer, here too.
        let checked = credentials.check(&context, row());
        async move {
            let mut export = export.filter(|export| !export.has_ended)?;
            if let Err(refusal) = checked {
                export.end(|admitted| admitted.failed(refusal.code()));
                return Some((Err(io::Error::other(worded(refusal).message)), None));
            }
            let made = context.capacity.go_on(move || {
                let part = export.part();
                (export, part)
            });
            match made.await {
                Ok((export, Ok(part))) => Some((Ok(part), Some(export))),
                // The client must not take the beginning for the whole: the connection ends without its end.
                Ok((_, Err(error))) | Err(error) => {
                    Some((Err(io::Error::other(error.message)), None))
                }
            }
        }
    });
    let mut response = Body::from_stream(parts).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type(encoding));
    if let Some(left_out) = left_out {
        let text = ascii(&json::to_string(&left_out));
        headers.insert(
            LEFT_OUT,
            HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("{}")),
        );
    }
    Ok(response)
}

fn row() -> &'static Method {
    method(Operation::Export)
}

fn selected(
    omir: &Omir,
    admitted: &Admitted,
    parameters: &Parameters,
    is_gone: &AtomicBool,
) -> Result<Document, Error> {
    omir.document(admitted, parameters, || !is_gone.load(Ordering::Relaxed))
}

/// Set once the client waits no more.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A document on its way.
struct Export {
    document: Document,
    encoding: Encoding,
    /// The next entry.
    at: usize,
    /// Entries that could not be read.
    unread: u64,
    /// True until an entry is written.
    is_empty: bool,
    has_begun: bool,
    has_ended: bool,
    /// Until the end.
    admitted: Option<Admitted>,
    _room: Room,
}

impl Export {
    /// Makes the next part.
    ///
    /// # Errors
    /// `INTERNAL` if more cannot be read than the client was told of at the beginning.
    fn part(&mut self) -> Result<Bytes, Error> {
        let mut out = Vec::with_capacity(PART + PART / 4);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(&mut out);
        }
        while self.at < self.document.len() && out.len() < PART {
            match self.document.entry(self.at) {
                Ok(Some(entry)) => self.write(&entry, &mut out),
                // Forgotten meanwhile.
                Ok(None) => {}
                Err(error) => {
                    self.unread += 1;
                    if self.unread > self.document.left_out().count {
                        self.end(|admitted| admitted.failed(error.code));
                        return Err(error);
                    }
                }
            }
            self.at += 1;
        }
        if self.at >= self.document.len() {
            match self.encoding {
                Encoding::Json => out.extend_from_slice(b"]}"),
                Encoding::Cbor => out.push(BREAK),
            }
            self.end(Admitted::done);
        }
        Ok(out.into())
    }

    fn begin(&self, out: &mut Vec<u8>) {
        let head = self.document.head();
        match self.encoding {
            Encoding::Json => {
                let head = json::to_string(&Value::Object(head.clone()));
                out.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
                out.extend_from_slice(b",\"entry\":[");
            }
            Encoding::Cbor => {
                cbor::write_map_header(head.len() + 1, out);
                for (name, value) in head.iter() {
                    cbor::write(&Value::from(name), out);
                    cbor::write(value, out);
                }
                cbor::write(&Value::from("entry"), out);
                // How many will be there in the end is not known: some may be forgotten meanwhile.
                out.push(ARRAY_OF_ANY_LENGTH);
            }
        }
    }

    fn write(&mut self, entry: &Value, out: &mut Vec<u8>) {
        let is_first = std::mem::replace(&mut self.is_empty, false);
        match self.encoding {
            Encoding::Json => {
                if !is_first {
                    out.push(b',');
                }
                out.extend_from_slice(json::to_string(entry).as_bytes());
            }
            Encoding::Cbor => cbor::write(entry, out),
        }
    }

    fn end(&mut self, end: impl FnOnce(Admitted)) {
        self.has_ended = true;
        if let Some(admitted) = self.admitted.take() {
            end(admitted);
        }
    }
}

/// Writes what a header cannot hold as escapes of JSON.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for char in json.chars() {
        if char.is_ascii() {
            out.push(char);
        } else {
            for unit in char.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}
