//! The daemon as clients meet it: Zenoh, HTTP, MCP, ROS 2, serial lines and a service manager.

mod access_control;
mod access_required;
mod audit;
mod http;
mod http_limits;
mod http_omir;
mod http_tls;
#[cfg(target_env = "gnu")]
mod malloc;
mod many_clients;
mod mcp;
mod refusals;
mod ros2_services;
mod sent_again;
mod serial;
mod service_manager;
mod stopped_clients;
mod stopping;
mod zenoh;
