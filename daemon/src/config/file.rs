//! The configuration as it is written: every key optional, none unknown.

use std::path::PathBuf;

use serde::Deserialize;

use super::access::AccessSection;
use super::audit::AuditSection;
use super::clock::ClockSection;
use super::compass::CompassSection;
use super::embedding::EmbeddingSection;
use super::experience::ExperienceSection;
use super::flash::FlashSection;
use super::forgetting::ForgettingSection;
#[cfg(feature = "http")]
use super::http::HttpSection;
use super::limits::LimitsSection;
use super::manifesto::ManifestoSection;
use super::network::NetworkSection;
use super::recall::RecallSection;
#[cfg(feature = "serial")]
use super::serial::SerialSection;
use super::store::StoreSection;

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
