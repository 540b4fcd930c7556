//! `/omir/v1/clock`: the time of a simulation is set.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::CONTENT_TYPE;
use omir_core::json;
use omir_core::value::{Map, Value};

use super::super::body::{Most, UnreadRequest};
use super::super::caller::ask_who;
use super::super::refused::{Refused, content_type};
use super::super::{Context, negotiate};
use super::{answer_encoding, expect_none, query_parameters};
use crate::engine::{Code, Error, decode};
use crate::protocols::omir::{CLOCK, instant};
use crate::router::Incoming;

/// An instant, and blanks.
const MOST: Most = Most { bytes: 1 << 10, limit: None };

pub(in crate::http) async fn set(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let caller = ask_who(&context, &CLOCK, &parts, None)?;
    let asked = UnreadRequest { caller: &caller, method: &CLOCK, named: None };
    let read = asked.read(&context, &parts.headers, body, MOST).await?;
    let incoming = Incoming { bytes: read.bytes.len(), ..Incoming::default() };
    let admitted = context.protocols.router.admit(&caller, &CLOCK, incoming)?;
    let omir = &context.protocols.omir;
    let asked = (|| {
        let mut parameters = query_parameters(&parts)?;
        let encoding = answer_encoding(&mut parameters, &parts.headers)?;
        expect_none(&CLOCK, parameters, "the instant is the body")?;
        let content = negotiate::content(&parts.headers)?;
        let value = decode(&read.bytes, content, &omir.limits(), Code::InvalidQuery)?;
        Ok((encoding, instant(json::to_string(&value).as_bytes()).map_err(Error::from)))
    })();
    let (encoding, at) = match asked {
        Ok(asked) => asked,
        Err(refused) => {
            let refused: Refused = refused;
            admitted.failed(refused.error.code);
            return Err(refused);
        }
    };
    let at = omir.set_time(admitted, at)?;
    let mut map = Map::new();
    map.insert("now", at.to_string());
    let bytes = encoding.encode(&Value::Object(map));
    Ok(([(CONTENT_TYPE, content_type(encoding))], bytes).into_response())
}
