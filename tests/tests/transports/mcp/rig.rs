//! A memory with the server of MCP over it, and the SDK's client at the other end of a pipe.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use omird::disk::Disk;
use omird::engine::{Encoding, Engine, Settings};
use omird::mcp::Mcp;
use omird::protocols::Protocols;
use omird::router::testing::AuditLines;
use omird::router::{Caller, Router, Scope, Scopes};
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{Session, TestClock, settings};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, RoleServer, ServiceExt};
use serde_json::Value;

/// A client that keeps what it is told of progress.
#[derive(Clone, Default)]
pub struct Listener(pub Arc<Mutex<Vec<ProgressNotificationParam>>>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.lock().unwrap().push(params);
    }
}

pub struct Rig {
    pub client: RunningService<RoleClient, Listener>,
    pub heard: Listener,
    pub clock: Arc<TestClock>,
    pub audit: AuditLines,
    _server: RunningService<RoleServer, Mcp>,
    session: Session,
}

impl Rig {
    /// Of a caller that may do everything.
    pub async fn open() -> Self {
        Self::over(Arc::new(CutDisk::new()), settings(), Scopes::All).await
    }

    /// Of a caller with these scopes alone.
    pub async fn of(scopes: &[Scope]) -> Self {
        Self::over(Arc::new(CutDisk::new()), settings(), Scopes::only(scopes)).await
    }

    pub async fn over(disk: Arc<dyn Disk>, settings: Settings, scopes: Scopes) -> Self {
        let clock = TestClock::new();
        let session = Session::open_with(disk, &clock, settings, None).unwrap();
        let engine: &Engine = &session;
        let audit = AuditLines::default();
        let router = Router::new(engine.clone(), [audit.sink()]);
        let access = Protocols::over(engine, "r1").access;
        let protocols = Protocols::routed(engine, "r1", access, router);
        let caller = Caller { scopes, ..Caller::trusted("mcp", "tester") };
        let mcp = Mcp::of_caller(&protocols, caller, Duration::from_millis(20));
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let heard = Listener::default();
        let (server, client) = tokio::join!(mcp.serve(ours), heard.clone().serve(theirs));
        let (_server, client) = (server.unwrap(), client.unwrap());
        Self { client, heard, clock, audit, _server, session }
    }

    /// Records resources as they are, in one transaction.
    pub fn record(&self, resources: &Value) {
        let text = resources.to_string();
        let change = self.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        self.session.execute(change).unwrap();
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().cloned().unwrap();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(request).await.unwrap()
    }

    /// The result of a tool that succeeds. Its text says the same, and it fits the schema that was listed.
    #[track_caller]
    pub fn structured(result: CallToolResult) -> Value {
        assert_ne!(result.is_error, Some(true), "{result:?}");
        let structured = result.structured_content.unwrap();
        let text = &result.content[0].as_text().unwrap().text;
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
        structured
    }

    /// Calls a tool that succeeds.
    pub async fn ask(&self, tool: &'static str, arguments: Value) -> Value {
        Self::structured(self.call(tool, arguments).await)
    }

    /// Calls a tool that refuses: its error object.
    pub async fn refusal(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        assert_eq!(result.structured_content, None, "it would not fit the schema");
        serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap()
    }
}
