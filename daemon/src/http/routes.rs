//! The routes of all protocols, in one place: a new protocol over HTTP merges its routes here.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use hyper::StatusCode;

use super::Context;
use super::endpoints::{Endpoint, Serves, endpoints};
use super::omir::{self, clock, events, memory};
use super::refused::Refused;
use super::{akashik, exchanges, monitoring, tokens};
use crate::engine::Code;

/// The paths that the table does not have, and that of all operations of OMIR.
const OTHERS: [&str; 2] = ["/mcp", "/omir/v1/{operation}"];

/// Returns all routes. A handler that needs the caller calls [`ask_who`](super::caller::ask_who).
pub(super) fn routes(context: Arc<Context>) -> Router {
    let page = page();
    Router::new()
        .route("/", get(async || page))
        .merge(super::mcp::route(&context))
        .merge(of_table())
        .fallback(nothing_there)
        .with_state(context)
}

/// Returns the page at `/`: each path on a line.
fn page() -> String {
    let table = endpoints().into_iter().filter(|one| !matches!(one.serves, Serves::Operation(_)));
    let paths: BTreeSet<String> =
        table.map(|one| one.path).chain(OTHERS.map(str::to_owned)).collect();
    paths.into_iter().fold("omird\n".to_owned(), |page, path| page + &path + "\n")
}

/// The routes of the table of paths, which `/openapi.json` is made of as well.
fn of_table() -> Router<Arc<Context>> {
    let mut known = HashSet::new();
    endpoints().into_iter().fold(Router::new(), |routes, Endpoint { path, verb, serves }| {
        let way = MethodFilter::try_from(verb).expect("the table has verbs that axum knows");
        let mut way = served(way, serves);
        // Of each path one handler answers other verbs.
        if let Serves::Exchange(method) = serves
            && known.insert(path.clone())
        {
            way = exchanges::refusing_others(way, method);
        }
        routes.route(&path, way)
    })
}

fn served(way: MethodFilter, serves: Serves) -> MethodRouter<Arc<Context>> {
    match serves {
        Serves::Operation(operation) => omir::served(way, operation),
        Serves::Read => on(way, memory::read),
        Serves::Store => on(way, memory::store),
        Serves::Forget => on(way, memory::forget),
        Serves::Events => on(way, events::stream),
        Serves::Notifications => on(way, akashik::stream::listen),
        Serves::NotificationSocket => on(way, akashik::websocket::listen),
        Serves::Clock => on(way, clock::set),
        Serves::Tokens => on(way, tokens::list),
        Serves::AddToken => on(way, tokens::add),
        Serves::RevokeToken => on(way, tokens::revoke),
        Serves::Exchange(method) => exchanges::served(way, method),
        Serves::Live => on(way, monitoring::live),
        Serves::Ready => on(way, monitoring::ready),
        Serves::Metrics => on(way, monitoring::metrics),
        Serves::Document => on(way, monitoring::document),
    }
}

async fn nothing_there() -> impl IntoResponse {
    Refused::new(
        StatusCode::NOT_FOUND,
        Code::NotFound,
        "there is nothing at this path; `/` names those there are",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_each_path_once() {
        let page = page();
        let lines: Vec<&str> = page.lines().collect();
        for path in ["/mcp", "/omir/v1/{operation}", "/omir/v1/memory/{type}/{id}", "/health/live"]
        {
            assert_eq!(lines.iter().filter(|line| **line == path).count(), 1, "{path} in {page}");
        }
        assert!(!lines.contains(&"/omir/v1/recall"), "{page}");
    }
}
