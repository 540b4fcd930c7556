//! The transports beside Zenoh: HTTP, serial ports, and the node in the graph of ROS 2.

use super::error::ServeError;
use crate::config::Config;
use crate::engine::Engine;
use crate::liveness::Liveness;
use crate::protocols::Protocols;
use crate::zenoh::Service;

/// The transports beside Zenoh that run.
pub(super) struct OtherTransports {
    #[cfg(feature = "http")]
    http: crate::http::Http,
    #[cfg(feature = "serial")]
    serial: crate::serial::Ports,
    #[cfg(feature = "ros2")]
    ros2: Option<crate::ros2::Node>,
}

/// The parts of the daemon that they are started with, beside the engine and the protocols.
pub(super) struct TransportParts {
    /// The threads that must work for the daemon to be ready.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "asked over HTTP alone"))]
    pub(super) liveness: Liveness,
    /// Requests by all ways, as they are counted.
    #[cfg(feature = "http")]
    pub(super) requests: crate::metrics::Requests,
}

impl OtherTransports {
    /// Starts the transports that are configured.
    #[cfg_attr(
        not(all(feature = "http", feature = "ros2", feature = "serial")),
        allow(unused_variables, reason = "there may be none")
    )]
    pub(super) fn start(
        config: &Config,
        engine: &Engine,
        protocols: &Protocols,
        service: &Service,
        parts: TransportParts,
    ) -> Result<Self, ServeError> {
        // The first to come and to go: a stated address that is taken ends the start, and at the end it answers clients
        // that wait.
        #[cfg(feature = "http")]
        let http = {
            let (data, readers) = (&*config.data, config.readers);
            let TransportParts { liveness, requests } = parts;
            let start = crate::http::Start { engine, protocols, data, readers, liveness, requests };
            crate::http::Http::start(&config.http, start).map_err(ServeError::Http)?
        };
        Ok(Self {
            #[cfg(feature = "http")]
            http,
            #[cfg(feature = "serial")]
            serial: crate::serial::Ports::start(protocols, &config.serial)
                .map_err(ServeError::Serial)?,
            #[cfg(feature = "ros2")]
            ros2: match &config.ros2 {
                None => None,
                Some(ros2) => {
                    if config.network.reaches_nobody() {
                        tracing::warn!(
                            "with [ros2] and no endpoint to connect to, only what connects to omird itself is heard; a \
                             router of ROS is network.connect = [\"{}\"]",
                            crate::zenoh::DEFAULT_ROUTER
                        );
                    }
                    let session = service.session();
                    let node = crate::ros2::Node::start(engine, protocols, session, ros2);
                    Some(node.map_err(ServeError::Ros2)?)
                }
            },
        })
    }

    /// Returns the address that HTTP is served on, if it is on a port.
    pub(super) fn http_address(&self) -> Option<std::net::SocketAddr> {
        #[cfg(feature = "http")]
        return self.http.address();
        #[cfg(not(feature = "http"))]
        None
    }

    /// Reads again what is in files of its own, such as certificates.
    pub(super) fn reload(&self) {
        #[cfg(feature = "http")]
        self.http.reload();
    }

    pub(super) fn stop(self) {
        #[cfg(feature = "http")]
        self.http.stop();
        #[cfg(feature = "serial")]
        self.serial.stop();
        #[cfg(feature = "ros2")]
        if let Some(node) = self.ros2 {
            node.stop();
        }
    }
}
