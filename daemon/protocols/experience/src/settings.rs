//! The configuration of the protocol.

use std::time::Duration;

/// `[experience]` of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperienceSettings {
    /// Time from its arrival after which an experience stops being valid; `None`: never.
    pub retention: Option<Duration>,
    /// Half-life of an experience, in hours.
    pub half_life_hours: f64,
    /// User and session ids are stored as they come. Otherwise a keyed digest of them is.
    pub store_identifiers: bool,
    /// Secrets are taken out of texts.
    pub redact: bool,
    /// The frame of the robot, whose pose goes with an experience when it arrives; `None`: none does.
    pub robot_frame: Option<String>,
    /// Bytes of memory for the statistics of nodes and patterns. The oldest experiences stop counting where they are not
    /// enough.
    pub statistics_bytes: usize,
}

impl Default for ExperienceSettings {
    fn default() -> Self {
        Self {
            retention: Some(Duration::from_secs(365 * 86_400)),
            half_life_hours: 2160.0,
            store_identifiers: false,
            redact: true,
            robot_frame: None,
            statistics_bytes: 32 << 20,
        }
    }
}
