//! The floor of HTTP: the same server without a memory.

use axum::Router;
use axum::extract::Path;
use axum::routing::any;

use crate::Result;

/// Path of a reply of so many bytes.
pub fn echo_path(bytes: usize) -> String {
    format!("/echo/{bytes}")
}

/// Serves until it is killed.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // As many as the daemon has.
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("ready {}", listener.local_addr()?);
        let reply = async |Path(bytes): Path<usize>| vec![0u8; bytes];
        let routes = Router::new().route("/echo/{bytes}", any(reply));
        use axum::serve::ListenerExt;
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        Ok(axum::serve(listener, routes).await?)
    })
}
