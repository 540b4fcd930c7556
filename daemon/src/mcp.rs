//! The Model Context Protocol: the tools of all protocols, for language models. `docs/mcp.md`.
//!
//! A tool and its meaning are a protocol's ([`Toolbox`]); here they are listed and called, as the SDK has it. The router decides
//! about each call by the caller of the request, so nothing is kept between two requests.
//!
//! | file | holds |
//! |---|---|
//! | `tools` | tools as MCP lists them, and one call from its arguments to its result |
//! | `waiting` | progress of a call, and its end when the client waits no more |
//! | `resources` | a memory, and the status, as resources |

mod resources;
mod tools;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use crate::capacity::Capacity;
use crate::protocols::Protocols;
use crate::router::tool::Toolbox;
use crate::router::{Admitted, Caller, Incoming, Method, Refusal};

/// Requests of one caller that read at a time, where the transport has no other.
const READERS: usize = 2;
/// Time between two notes of progress.
const BEAT: Duration = Duration::from_secs(1);

/// A sign among the extensions of an HTTP request: the router has decided about it, by the row of what it asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decided(Arc<AtomicBool>);

impl Decided {
    /// Returns true if it has.
    pub(crate) fn is_decided(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The server: one for all requests.
#[derive(Clone)]
pub struct Mcp(Arc<Inner>);

struct Inner {
    protocols: Protocols,
    toolboxes: Vec<Arc<dyn Toolbox>>,
    /// The caller of requests that bring none, where the transport has only one.
    only_caller: Option<Caller>,
    capacity: Capacity,
    beat: Duration,
}

impl Mcp {
    /// Returns the server of requests that bring their caller: a [`Caller`] among the extensions of the HTTP request.
    pub(crate) fn new(protocols: &Protocols, capacity: &Capacity) -> Self {
        Self::with(protocols, None, BEAT, capacity)
    }

    /// Returns the server of one caller, which tells of progress in this beat.
    pub fn of_caller(protocols: &Protocols, caller: Caller, beat: Duration) -> Self {
        Self::with(protocols, Some(caller), beat, &Capacity::new(READERS))
    }

    fn with(
        protocols: &Protocols,
        only_caller: Option<Caller>,
        beat: Duration,
        capacity: &Capacity,
    ) -> Self {
        let (toolboxes, protocols) = (protocols.tools(), protocols.clone());
        let capacity = capacity.clone();
        Self(Arc::new(Inner { protocols, toolboxes, only_caller, capacity, beat }))
    }

    /// Returns the caller.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let of_request = parts.and_then(|parts| parts.extensions.get::<Caller>());
        let nobody = || ErrorData::internal_error("the request has no caller", None);
        of_request.or(self.0.only_caller.as_ref()).cloned().ok_or_else(nobody)
    }

    /// Has the router decide about a request, by the row of what it asks for.
    fn admit(
        &self,
        context: &RequestContext<RoleServer>,
        caller: &Caller,
        method: &'static Method,
        bytes: usize,
    ) -> Result<Admitted, Refusal> {
        let parts = context.extensions.get::<axum::http::request::Parts>();
        if let Some(Decided(decided)) = parts.and_then(|parts| parts.extensions.get()) {
            decided.store(true, Ordering::Relaxed);
        }
        let incoming = Incoming { bytes, ..Incoming::default() };
        self.0.protocols.router.admit(caller, method, incoming)
    }

    /// Returns true if the router would let the caller ask for a method.
    fn may(&self, caller: &Caller, method: &Method) -> bool {
        self.0.protocols.router.check(caller, method, Incoming::default()).is_ok()
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let version = env!("CARGO_PKG_VERSION");
        let robot = self.0.protocols.omir.robot();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("omird", version).with_title("omird"))
            .with_instructions(format!(
                "The memory of the robot {robot}. Positions are metres in a frame (x forward, right-handed), times are \
                 RFC 3339. where_is answers where a thing was seen last, what_is_near what is at a place, timeline what \
                 happened when, recall everything else. A memory says what was so at its time; the world may have \
                 changed since. References such as MemoryRecord/door-3 name a memory in all tools."
            ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        Ok(ListToolsResult::with_all_items(self.listed(&caller)))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.find(name).map(|(_, tool)| tools::described(tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        self.call(&caller, request, &context).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        Ok(ListResourcesResult::with_all_items(self.resources(&caller)))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let caller = self.caller(&context)?;
        Ok(ListResourceTemplatesResult::with_all_items(self.templates(&caller)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        self.read(&caller, request.uri, &context).await.map(ReadResourceResponse::from)
    }

    /// A client that is ready changes nothing.
    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}
