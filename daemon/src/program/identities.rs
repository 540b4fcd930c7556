//! The identities of the data folder, with the daemon's clock, and what the log and `status` say of them.

use std::io;
use std::time::Duration;

use omird_access::{Access, Clock, NO_EARLIER};

use super::random;
use crate::config::Config;
use crate::engine::{Clock as _, ClockState, Engine, Source, SystemClock};
use crate::protocols::Protocols;
use crate::zenoh::{Keys, Network, rules};

/// Opens the identities.
pub(super) fn open(config: &Config, engine: &Engine) -> io::Result<Access> {
    let system = SystemClock::new(&config.synchronised_file);
    let clock = DaemonClock { engine: engine.clone(), system, source: config.source };
    let random = Box::new(|| random().expect("the system gives random bytes"));
    let (settings, scopes) = (config.access.clone(), Protocols::SCOPES);
    let access = Access::open(&config.data, settings, scopes, Box::new(clock), random)?;
    let ways = ways(config);
    if !access.is_required() {
        tracing::info!(
            transports = ways.join(" "),
            "open to callers without a token: access.require = true closes them (docs/access.md)"
        );
    }
    let shown = access.clone();
    engine.add_status_section("access", Box::new(move || Some(shown.status(&ways))));
    Ok(access)
}

/// Returns the settings of Zenoh: where a token is required, no other program may receive what is sent to this daemon.
pub(super) fn network(config: &Config, access: &Access, keys: &Keys) -> Network {
    let mut network = config.network.clone();
    if !access.is_required() {
        let is_wide = |endpoint: &String| !is_loopback(endpoint);
        if let Some(endpoint) =
            network.listening().unwrap_or_default().iter().find(|it| is_wide(it))
        {
            tracing::warn!(
                endpoint,
                "whoever reaches this address may read and change all over Zenoh: set access.require, or rules of \
                 Zenoh (docs/network-security.md)"
            );
        }
        return network;
    }
    #[cfg(feature = "ros2")]
    let graph = config.ros2.as_ref().map(|ros2| ros2.domain_id);
    #[cfg(not(feature = "ros2"))]
    let graph = None;
    network.rules = Some(rules(keys, graph));
    if let Some(why) = network.has_other_rules() {
        tracing::warn!(
            why,
            "access.require: whoever may announce himself on this network is sent the tokens of others, unless rules \
             of Zenoh forbid it (docs/network-security.md)"
        );
    }
    network
}

/// Returns true if only programs of this machine reach an endpoint.
fn is_loopback(endpoint: &str) -> bool {
    let Some((protocol, address)) = endpoint.split_once('/') else { return false };
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    protocol == "unixsock-stream"
        || host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The ways in that ask for no token as long as none is required.
fn ways(config: &Config) -> Vec<&'static str> {
    #[cfg_attr(
        not(any(feature = "serial", feature = "ros2")),
        expect(unused_mut, reason = "there may be no other way")
    )]
    let mut ways = vec!["zenoh"];
    #[cfg(feature = "serial")]
    if !config.serial.is_empty() {
        ways.push("serial");
    }
    #[cfg(feature = "ros2")]
    if config.ros2.is_some() {
        ways.push("ros2");
    }
    let _ = config;
    ways
}

/// The clock that tokens end by. It is the machine's, also in a simulation: its time is for memories, and anybody in it
/// may set it.
struct DaemonClock {
    engine: Engine,
    system: SystemClock,
    source: Source,
}

impl Clock for DaemonClock {
    fn now(&self) -> Option<i64> {
        let (now, is_trusted) = match self.source {
            Source::System => {
                let (now, state) = self.engine.now();
                (now, state != ClockState::Unknown)
            }
            Source::Simulated => (self.system.now(), true),
        };
        let seconds = now.as_micros().div_euclid(1_000_000);
        (is_trusted && seconds >= NO_EARLIER).then_some(seconds)
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_of_this_machine_is_told_from_others() {
        for endpoint in [
            "tcp/127.0.0.1:7448",
            "tcp/[::1]:0",
            "tls/localhost:1#iface=lo",
            "unixsock-stream//run/omird.sock",
        ] {
            assert!(is_loopback(endpoint), "{endpoint}");
        }
        for endpoint in
            ["tcp/0.0.0.0:7448", "tcp/[::]:7448", "tls/rover.local:7448", "tcp/10.0.0.1:1"]
        {
            assert!(!is_loopback(endpoint), "{endpoint}");
        }
    }
}
