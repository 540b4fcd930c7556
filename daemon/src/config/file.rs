//! The configuration as it is written: every key optional, none unknown.

use std::path::PathBuf;

use serde::Deserialize;

use super::access::AccessSection;
use super::audit::AuditSection;
use super::compass::CompassSection;
use super::embedding::EmbeddingSection;
use super::experience::ExperienceSection;
use super::flash::FlashSection;
use super::forgetting::ForgettingSection;
#[cfg(feature = "http")]
use super::http::HttpSection;
use super::limits::LimitsSection;
use super::quantity;
#[cfg(feature = "serial")]
use super::serial::SerialSection;
use crate::zenoh::Mode;

/// `omird.toml`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Name of the robot.
    pub robot: Option<String>,
    /// First part of every key.
    pub prefix: Option<String>,
    /// Data folder.
    pub data: Option<PathBuf>,
    /// The log filter.
    pub log: Option<String>,
    /// Network.
    pub network: NetworkSection,
    /// Store.
    pub store: StoreSection,
    /// The card.
    pub flash: FlashSection,
    /// Rules by which memories fade, move and go.
    pub forgetting: ForgettingSection,
    /// Recall by words.
    pub recall: RecallSection,
    /// The time.
    pub clock: ClockSection,
    /// Bounds on requests.
    pub limits: LimitsSection,
    /// Access rights.
    pub access: AccessSection,
    /// HTTP.
    #[cfg(feature = "http")]
    pub http: HttpSection,
    /// The file of audit lines.
    pub audit: AuditSection,
    /// Experience and hints.
    pub experience: ExperienceSection,
    /// Vectors, and how meaning is weighed.
    pub embedding: EmbeddingSection,
    /// Manifesto Memory.
    pub manifesto: ManifestoSection,
    /// Stage memory of agents.
    pub compass: CompassSection,
    /// ROS 2: there means on, unless it says otherwise.
    #[cfg(feature = "ros2")]
    pub ros2: Option<omir_ros2::rules::Ros2Section>,
    /// Serial ports.
    #[cfg(feature = "serial")]
    pub serial: Vec<SerialSection>,
}

/// `[network]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSection {
    /// `peer`, `client` or `router`.
    pub mode: Option<Mode>,
    /// Endpoints to listen on.
    pub listen: Option<Vec<String>>,
    /// Endpoints to connect to.
    pub connect: Option<Vec<String>>,
    /// Zenoh's own file.
    pub zenoh_config: Option<PathBuf>,
}

/// `[store]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSection {
    /// `sync`, `interval` or `none`.
    pub durability: Option<String>,
    /// Milliseconds between syncs with `interval`.
    #[serde(deserialize_with = "quantity::millis")]
    pub sync_interval_ms: Option<u64>,
    /// A log of so many bytes is sealed.
    #[serde(deserialize_with = "quantity::bytes")]
    pub segment_bytes: Option<u64>,
    /// A log so old is sealed.
    #[serde(deserialize_with = "quantity::seconds")]
    pub seal_after_s: Option<u64>,
    /// Access counts are journaled this often.
    #[serde(deserialize_with = "quantity::seconds")]
    pub touch_interval_s: Option<u64>,
    /// Time during which superseded versions can be asked for.
    #[serde(deserialize_with = "quantity::seconds")]
    pub keep_history_s: Option<u64>,
    /// Longest time that a forgotten memory stays on the card.
    #[serde(deserialize_with = "quantity::seconds")]
    pub purge_after_s: Option<u64>,
    /// All that is sealed is read through once in so many days.
    #[serde(deserialize_with = "quantity::days")]
    pub scrub_days: Option<u64>,
    /// Compaction makes no segment larger than this.
    #[serde(deserialize_with = "quantity::bytes")]
    pub segment_max_bytes: Option<u64>,
    /// Interval at which the time is written.
    #[serde(deserialize_with = "quantity::seconds")]
    pub mark_interval_s: Option<u64>,
}

/// `[recall]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecallSection {
    /// The language of words, by its code of ISO 639-1.
    pub language: Option<String>,
}

/// `[clock]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockSection {
    /// `system` or `simulated`.
    pub source: Option<String>,
    /// While this file is there, the system's clock is synchronised.
    pub synchronised_file: Option<PathBuf>,
}

/// `[manifesto]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManifestoSection {
    /// Verified memories come first in a selection.
    pub prefer_verified: Option<bool>,
}
