//! `/akashik/v1/socket`: notifications over a WebSocket (RFC 6455), one in each message of text.
//!
//! A client only listens here: it asks by POST. What it sends ends the connection, with the reason.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response as HttpResponse;
use bytes::Bytes;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_VERSION};

use super::{MISSED, Next, Notifications, denial, open};
use crate::engine::{Code, Error};
use crate::http::Context;
use crate::http::connection::Arrival;
use crate::http::refused::Refused;
use crate::router::Denial;

/// Bytes of a message that a client may send. It has nothing to say but the end.
const MOST_BYTES: usize = 4096;
/// Time for the answer to a close to leave.
const CLOSING: Duration = Duration::from_secs(5);
/// Pings without an answer after which a client is taken for gone.
const MOST_UNANSWERED: u32 = 2;

pub(in crate::http) async fn listen(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<HttpResponse, Refused> {
    let (mut parts, _) = request.into_parts();
    let notifications = match open(&context, &parts).await {
        Ok(notifications) => notifications,
        Err(why) => return denial(&context, why),
    };
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade.max_message_size(MOST_BYTES).max_frame_size(MOST_BYTES),
        Err(rejection) => {
            let message = format!(
                "no WebSocket of version 13 is asked for: {}; GET /akashik/v1/events gives the same as server-sent events",
                rejection.body_text()
            );
            let error = Error::new(Code::InvalidQuery, message);
            let mut response = denial(&context, Denial::Transport { status: 400, error })?;
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return Ok(response);
        }
    };
    if let Some(arrival) = parts.extensions.get::<Arrival>() {
        arrival.leave_place();
    }
    Ok(upgrade.on_upgrade(|socket| serve(socket, notifications)))
}

/// Sends notifications until either side ends it.
async fn serve(mut socket: WebSocket, mut notifications: Notifications) {
    let mut unanswered = 0;
    loop {
        let message = tokio::select! {
            next = notifications.next() => match next {
                Next::Push(push) => Message::Text(Utf8Bytes::from(&*push.body)),
                Next::Missed => Message::Text(Utf8Bytes::from_static(MISSED)),
                Next::Beat if unanswered >= MOST_UNANSWERED => return,
                Next::Beat => {
                    unanswered += 1;
                    Message::Ping(Bytes::new())
                }
                Next::Revoked => {
                    return close(socket, close_code::POLICY, "the token is not valid any more").await;
                }
                Next::Stops => return close(socket, close_code::AWAY, "the daemon stops").await,
            },
            heard = socket.recv() => match heard {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    unanswered = 0;
                    continue;
                }
                Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                    let why = "nothing is taken here; ask by POST /akashik/v1/<operation>";
                    return close(socket, close_code::UNSUPPORTED, why).await;
                }
                // The answer to a close is sent where the next message is waited for, and none comes.
                Some(Ok(Message::Close(_))) => {
                    let _ = tokio::time::timeout(CLOSING, socket.recv()).await;
                    return;
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "a WebSocket is closed");
                    return close(socket, close_code::PROTOCOL, "this is not as RFC 6455 has it").await;
                }
                None => return,
            },
        };
        // A client that takes nothing for long is cut off by `pace`.
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn close(mut socket: WebSocket, code: u16, why: &'static str) {
    let reason = Utf8Bytes::from_static(why);
    // A client that does not get it has gone, and cannot be told.
    let _ = socket.send(Message::Close(Some(CloseFrame { code, reason }))).await;
}
