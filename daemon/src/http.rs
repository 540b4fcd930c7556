//! The HTTP transport: `docs/http.md`. It listens on a port and on a socket in the data folder, knows paths, headers and
//! statuses, and finds out who asks. What is asked is the protocols'.
//!
//! | file | holds |
//! |---|---|
//! | `routes` | the one place where the routes of all protocols come together |
//! | `caller` | who asks: a token, or the owner on the socket |
//! | `settings`, `listen` | the section `[http]`, the port and the socket |
//! | `tls` | certificates, which may change while the daemon runs |
//! | `connection`, `pace`, `request` | one connection, and one request on it from its header to its answer |
//! | `guard` | pages of other sites in a browser next door |
//! | `negotiate`, `body` | headers that a request depends on, and its body |
//! | `tokens` | the protocol of tokens |
//! | `exchanges` | protocols of one message and one answer each |
//! | `answer` | refusals, and their statuses |
//! | `guarded_body` | answers as clients take them |
//! | `endpoints`, `openapi` | the table of paths, and the document made of it |
//! | `monitoring`, `health` | what operators ask |
//! | `omir`, `events` | the OMIR protocol, and recent events |
//! | `akashik` | notifications of Akashik: server-sent events, and a WebSocket |
//!
//! Contract: a connection, a header, a body, the time that any of them takes, and the requests that wait are bounded.

mod akashik;
mod body;
mod caller;
mod connection;
mod endpoints;
mod events;
mod exchanges;
mod guard;
mod guarded_body;
mod health;
mod listen;
mod mcp;
mod monitoring;
mod negotiate;
mod omir;
mod openapi;
mod pace;
mod refused;
mod request;
mod routes;
mod settings;
mod tls;
mod tokens;
mod unread;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::capacity::Capacity;
use crate::engine::{Engine, Listening};
use crate::liveness::Liveness;
use crate::metrics::{Metrics, Requests};
use crate::protocols::Protocols;
use crate::unix_socket;

pub use self::listen::ListenError;
pub use self::settings::{DEFAULT_LISTEN, Listen, Settings, TlsFiles};
pub use self::tls::TlsError;

/// Threads that move bytes. What reads memories does it beside them.
const WORKERS: usize = 2;
/// Threads that wait for the disk beside those that read: calls of MCP, tokens, and the look at the daemon's health, which
/// must not wait for any of the others.
const BLOCKING: usize = 16;
/// Longest time for what is under way when the daemon stops.
const FINISHING: Duration = Duration::from_secs(10);

/// The context of every request.
pub(crate) struct Context {
    /// What can be asked.
    pub(crate) protocols: Protocols,
    /// The section `[http]`.
    pub(crate) settings: Settings,
    /// Is cancelled when the daemon stops: streams end then.
    pub(crate) stopping: CancellationToken,
    /// What may be under way.
    pub(crate) capacity: Capacity,
    /// Recent events.
    pub(crate) events: events::Events,
    /// Streams of events that may be open.
    pub(crate) streams: Arc<Semaphore>,
    /// Looks whether the daemon is ready.
    health: health::Health,
    /// Counts and measures.
    pub(crate) metrics: Metrics,
}

/// The transport while it runs.
pub struct Http {
    runtime: tokio::runtime::Runtime,
    context: Arc<Context>,
    connections: TaskTracker,
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
    tls: Option<Arc<tls::Tls>>,
    /// Until the end: what is committed last is told too.
    _listening: Listening,
}

/// What the transport is started with beside its settings.
pub struct Start<'a> {
    /// Announces by itself what is recorded.
    pub engine: &'a Engine,
    /// What can be asked.
    pub protocols: &'a Protocols,
    /// The data folder.
    pub data: &'a Path,
    /// Requests that read at a time.
    pub readers: usize,
    /// The threads that must work for the daemon to be ready.
    pub liveness: Liveness,
    /// Requests by all ways, as they are counted.
    pub requests: Requests,
}

impl Http {
    /// Listens as `settings` say, and on the socket in the folder `data`. Where nobody stated an address and the default one
    /// is taken, it warns and goes on with the socket alone; so it does with the port alone where there can be no socket.
    ///
    /// # Errors
    /// If a stated address cannot be listened on, or there are no threads.
    pub fn start(settings: &Settings, start: Start<'_>) -> Result<Self, ListenError> {
        let Start { engine, protocols, data, readers, liveness, requests } = start;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(readers + BLOCKING)
            .thread_name("omird-http")
            .enable_all()
            .build()
            .map_err(ListenError::Threads)?;
        let tls = settings.tls.as_ref().map(tls::Tls::read).transpose();
        let tls = tls.map_err(ListenError::Tls)?.map(Arc::new);
        let (events, listening) = events::Events::of(engine);
        let (card, status, robot) =
            (engine.clone(), engine.clone(), protocols.omir.robot().clone());
        let context = Arc::new(Context {
            protocols: protocols.clone(),
            settings: settings.clone(),
            stopping: CancellationToken::new(),
            capacity: Capacity::new(readers),
            events,
            streams: Arc::new(Semaphore::new(settings.events)),
            health: health::Health::new(liveness, move || card.card_state()),
            metrics: Metrics::new(&requests, move || status.status(&robot), protocols.counts()),
        });
        let (connections, guard) = (TaskTracker::new(), runtime.enter());
        let server = connection::Server::new(context.clone(), connections.clone(), tls.clone());
        let mut address = None;
        match listen::port(&settings.listen, tls.is_some()) {
            Ok(Some(port)) => {
                address = port.local_addr().ok();
                runtime.spawn(server.clone().accept_port(port));
            }
            Ok(None) => {}
            Err(error) if settings.listen == Listen::Default => {
                tracing::warn!("{error}; going on without HTTP on a port");
            }
            Err(error) => return Err(error),
        }
        let socket = match listen::socket(data) {
            Ok((listener, path)) => {
                runtime.spawn(server.accept_socket(listener));
                Some(path)
            }
            Err(error) => {
                let path = data.join(unix_socket::NAME);
                tracing::warn!(path = %path.display(), %error, "going on without HTTP on a socket");
                None
            }
        };
        drop(guard);
        let _listening = listening;
        Ok(Self { runtime, context, connections, address, socket, tls, _listening })
    }

    /// Returns the address it listens on, if it does on a port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Reads the files of TLS again. Clients that are connected keep what they were shown.
    pub fn reload(&self) {
        if let Some(tls) = &self.tls {
            tls.reload();
        }
    }

    /// Takes no more requests, lets those under way finish for a while, and ends.
    pub fn stop(self) {
        self.context.stopping.cancel();
        self.connections.close();
        let connections = self.connections;
        let finished = self
            .runtime
            .block_on(async { tokio::time::timeout(FINISHING, connections.wait()).await });
        if finished.is_err() {
            tracing::warn!(
                "HTTP requests are given up that were not finished within {FINISHING:?}"
            );
        }
        if let Some(path) = &self.socket
            && let Err(error) = std::fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "the socket could not be removed");
        }
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}
