//! Connections: accepted within a bound, served by HTTP/1.1 or HTTP/2, and closed where a client is too slow, idle for too
//! long, or the daemon stops.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::guarded_body::{self, DeliveryGuard};
use super::pace::Paced;
use super::tls::Tls;
use super::{Context, request, routes};

/// Time for the header of a request, and for which a connection without a request is kept.
const HEAD: Duration = Duration::from_secs(30);
/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes of the header of a request.
const HEAD_BYTES: usize = 96 << 10;
/// Header fields of a request.
const HEADERS: usize = 100;
/// Requests of one connection at a time, over HTTP/2.
const STREAMS: u32 = 64;
/// Pause after the machine had no descriptor for one more connection.
const NO_ROOM: Duration = Duration::from_millis(100);
/// The answer to a connection too many.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 76\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    {\"code\":\"BUSY\",\"message\":\"too many connections; try again soon\",\"path\":\"\"}\n\n";

/// The way by which a request came in.
#[derive(Clone)]
pub(crate) struct Arrival {
    /// The address of this machine that was connected to; `None` on the socket.
    pub(super) local: Option<IpAddr>,
    /// True if it came by TLS.
    pub(super) is_encrypted: bool,
    /// The place among the connections.
    place: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Arrival {
    /// Returns true on the socket: only the owner may open that.
    pub(crate) fn is_of_owner(&self) -> bool {
        self.local.is_none()
    }

    /// Gives the place among the connections up: the connection counts as something else from now on.
    pub(crate) fn leave_place(&self) {
        self.place.lock().take();
    }
}

/// The server of both listeners.
#[derive(Clone)]
pub(super) struct Server {
    context: Arc<Context>,
    router: Router,
    places: Arc<Semaphore>,
    connections: TaskTracker,
    tls: Option<Arc<Tls>>,
}

impl Server {
    pub(super) fn new(
        context: Arc<Context>,
        connections: TaskTracker,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let router = routes::routes(context.clone());
        let places = Arc::new(Semaphore::new(context.settings.connections));
        Self { context, router, places, connections, tls }
    }

    /// Accepts connections on the port until the daemon stops.
    pub(super) async fn accept_port(self, port: TcpListener) {
        while let Some(accepted) = self.next(port.accept()).await {
            let Some((stream, _)) = self.usable(accepted).await else { continue };
            // To a client that speaks TLS the words would be noise.
            let words = if self.tls.is_some() { &[][..] } else { FULL };
            let Some(place) = self.place(|| stream.try_write(words)) else { continue };
            // An answer is one write: waiting for more only delays it.
            let _ = stream.set_nodelay(true);
            let server = self.clone();
            self.connections.spawn(async move { server.serve_tcp(stream, place).await });
        }
    }

    /// Accepts connections on the socket until the daemon stops.
    pub(super) async fn accept_socket(mut self, socket: UnixListener) {
        // Places of its own: clients that hold all of the port do not keep the owner out.
        self.places = Arc::new(Semaphore::new(self.context.settings.connections));
        while let Some(accepted) = self.next(socket.accept()).await {
            let Some((stream, _)) = self.usable(accepted).await else { continue };
            let Some(place) = self.place(|| stream.try_write(FULL)) else { continue };
            let arrival = Arrival { local: None, is_encrypted: false, place };
            let server = self.clone();
            self.connections.spawn(async move { server.serve(stream, arrival).await });
        }
    }

    async fn next<T>(&self, accept: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            accepted = accept => Some(accepted),
            () = self.context.stopping.cancelled() => None,
        }
    }

    async fn usable<T>(&self, accepted: std::io::Result<T>) -> Option<T> {
        match accepted {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                // With no descriptor left it would fail again at once.
                tokio::time::sleep(NO_ROOM).await;
                None
            }
        }
    }

    /// Takes a place among the connections, or says that there is none.
    fn place(
        &self,
        refuse: impl FnOnce() -> std::io::Result<usize>,
    ) -> Option<Arc<Mutex<Option<OwnedSemaphorePermit>>>> {
        match self.places.clone().try_acquire_owned() {
            Ok(permit) => Some(Arc::new(Mutex::new(Some(permit)))),
            Err(_) => {
                // A client that does not take it sees the end of the connection.
                let _ = refuse();
                None
            }
        }
    }

    async fn serve_tcp(self, stream: TcpStream, place: Arc<Mutex<Option<OwnedSemaphorePermit>>>) {
        let Ok(local) = stream.local_addr() else { return };
        let local = Some(local.ip().to_canonical());
        let Some(tls) = &self.tls else {
            // On the heap, here and below: ten thousand connections that wait take what they need, and not what the largest
            // of all that a connection may be doing would need.
            let arrival = Arrival { local, is_encrypted: false, place };
            return Box::pin(self.serve(stream, arrival)).await;
        };
        let acceptor = TlsAcceptor::from(tls.current());
        let shaken = tokio::select! {
            shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
            () = self.context.stopping.cancelled() => return,
        };
        match shaken {
            Ok(Ok(stream)) => {
                let arrival = Arrival { local, is_encrypted: true, place };
                Box::pin(self.serve(stream, arrival)).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    /// Serves one connection to its end.
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        arrival: Arrival,
    ) {
        let activity = Arc::new(Activity::default());
        let (context, router, seen) = (self.context.clone(), self.router, activity.clone());
        let service = service_fn(move |request| {
            let under_way = seen.begin();
            let (context, router, arrival) = (context.clone(), router.clone(), arrival.clone());
            async move {
                let answer = request::answer(&context, router, arrival, request);
                let response = Box::pin(answer).await;
                // Until its body is sent.
                Ok::<_, std::convert::Infallible>(
                    response.map(|body| guarded_body::guarded(body, under_way)),
                )
            }
        });
        let builder = builder();
        let stream = TokioIo::new(Paced::new(stream));
        let mut served = Box::pin(builder.serve_connection_with_upgrades(stream, service));
        let mut is_ending = false;
        loop {
            tokio::select! {
                ended = served.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "a connection ended early");
                    }
                    return;
                }
                () = self.context.stopping.cancelled(), if !is_ending => {
                    served.as_mut().graceful_shutdown();
                    is_ending = true;
                }
                over = activity.over(HEAD) => {
                    if is_ending || over == CloseReason::Stalled {
                        tracing::debug!(?over, "a connection is given up");
                        return;
                    }
                    served.as_mut().graceful_shutdown();
                    is_ending = true;
                }
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .max_pending_accept_reset_streams(STREAMS as usize)
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(256 << 10)
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(HEAD)
        .keep_alive_timeout(HEAD);
    builder
}

/// The reason to end a connection.
#[derive(Debug, PartialEq, Eq)]
enum CloseReason {
    /// There is no request.
    Idle,
    /// A client takes nothing of an answer. Over HTTP/2 the connection itself may look well: it takes other answers.
    Stalled,
}

/// Requests under way on a connection, and since when there is none.
#[derive(Default)]
struct Activity {
    under_way: AtomicUsize,
    began: AtomicUsize,
    /// Those that are under way, and some that were.
    all: Mutex<Vec<Weak<UnderWay>>>,
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Arc<UnderWay> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.began.fetch_add(1, Ordering::Relaxed);
        let under_way = Arc::new(UnderWay::of(self.clone()));
        let mut all = self.all.lock();
        if all.len() >= all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&under_way));
        under_way
    }

    /// Waits until there was no request for so long, or a client took nothing of an answer from one look to the next.
    async fn over(&self, patience: Duration) -> CloseReason {
        loop {
            let began = self.began.load(Ordering::Relaxed);
            tokio::time::sleep_until(Instant::now() + patience).await;
            if self.has_stalled() {
                return CloseReason::Stalled;
            }
            let is_idle = self.under_way.load(Ordering::Relaxed) == 0;
            if is_idle && self.began.load(Ordering::Relaxed) == began {
                return CloseReason::Idle;
            }
        }
    }

    fn has_stalled(&self) -> bool {
        let all = self.all.lock();
        // Each of them is looked at: the next look compares.
        all.iter().filter_map(Weak::upgrade).filter(|one| one.has_stalled()).count() > 0
    }
}

/// A request until its answer is taken, or given up.
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    /// Parts of the answer that were handed over, and that have left.
    handed: AtomicUsize,
    left: AtomicUsize,
    /// Parts that had left when somebody looked last, and one; 0 if none waited then.
    seen: AtomicUsize,
}

impl UnderWay {
    fn of(activity: Arc<Activity>) -> Self {
        let [handed, left, seen] = Default::default();
        Self { activity, handed, left, seen }
    }

    /// Returns true if parts wait for the client, as they did at the last look, and none has left since.
    fn has_stalled(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        let waits = self.handed.load(Ordering::Relaxed) > left;
        let mark = if waits { left + 1 } else { 0 };
        self.seen.swap(mark, Ordering::Relaxed) == mark && waits
    }
}

impl DeliveryGuard for UnderWay {
    fn handed(&self) {
        self.handed.fetch_add(1, Ordering::Relaxed);
    }

    fn left(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.activity.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
