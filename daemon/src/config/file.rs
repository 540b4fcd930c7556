//! The configuration as it is written: every key optional, none unknown.

use std::path::PathBuf;

use serde::Deserialize;

use super::quantity;
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

/// `[compass]`: the keys of the specification's section `[memory]`, and some of our own.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompassSection {
    /// Time after which a working memory is not found any more.
    #[serde(deserialize_with = "quantity::seconds")]
    pub working_memory_ttl: Option<u64>,
    /// Active episodic memories of a task.
    pub episodic_memory_capacity: Option<usize>,
    /// Active semantic memories of an agent.
    pub semantic_memory_capacity: Option<usize>,
    /// Tokens of a stage for one of its summary.
    pub stage_compression_ratio_target: Option<f64>,
    /// The same of a task.
    pub task_compression_ratio_target: Option<f64>,
    /// Share of the critical facts that a summary keeps.
    pub compression_quality_threshold: Option<f64>,
    /// Accepted, and decides nothing.
    pub retrieval_precision_target: Option<f64>,
    /// Accepted, and decides nothing.
    pub vector_store: Option<String>,
    /// Weight of critical memories.
    pub criticality_boost_multiplier: Option<f64>,
    /// Weight of the stage in a score.
    pub stage_relevance_weight: Option<f64>,
    /// Weight of errors in a score.
    pub error_correction_weight: Option<f64>,
    /// True if patterns are looked for after errors.
    pub error_pattern_detection_enabled: Option<bool>,
    /// Stages whose errors count as recent.
    pub error_history_lookback_stages: Option<usize>,
    /// Severity from which on an error is told of.
    pub error_severity_threshold: Option<f64>,
    /// True if stages are detected.
    pub stage_detection_enabled: Option<bool>,
    /// True if a store moves the task on.
    pub stage_auto_transition: Option<bool>,
    /// True if a stage that is completed is summarised.
    pub stage_completion_auto_compress: Option<bool>,
    /// The counter of tokens: `approx-1`, or a vocabulary that this build has.
    pub token_counter: Option<String>,
    /// `none`, or `openai`: the server of models makes vectors.
    pub embedding_model: Option<String>,
    /// The model that makes them.
    pub embedding_model_name: Option<String>,
    /// Numbers that a vector is asked to have.
    pub embedding_dimensions: Option<usize>,
    /// The model that summarises.
    pub compression_model: Option<String>,
    /// True if a model is asked where there is one.
    pub test_time_scaling_enabled: Option<bool>,
    /// Dollars for models in a month.
    pub monthly_token_budget_usd: Option<f64>,
    /// Share of them from which on there is an alert.
    pub alert_threshold_pct: Option<f64>,
    /// The server of models.
    pub model: Option<CompassModelSection>,
    /// True if `memory.run_memify` is a method.
    pub memify: Option<bool>,
    /// True if the pose of the robot goes with a memory.
    pub pose: Option<bool>,
}

/// `[compass.model]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompassModelSection {
    /// `http://127.0.0.1:11434/v1` or `unix:/run/model.sock`.
    pub endpoint: Option<String>,
    /// True if it may be on another machine.
    pub remote: Option<bool>,
    /// A file with the key of the server.
    pub key_file: Option<PathBuf>,
    /// A PEM file with the authorities of `https`.
    pub ca_file: Option<PathBuf>,
    /// Longest wait for an answer.
    #[serde(deserialize_with = "quantity::seconds")]
    pub timeout_s: Option<u64>,
    /// Price of what is sent.
    pub usd_per_million_in: Option<f64>,
    /// Price of what comes back.
    pub usd_per_million_out: Option<f64>,
    /// Longest wait for the vector of a question.
    #[serde(deserialize_with = "quantity::seconds")]
    pub question_timeout_s: Option<u64>,
    /// Price of what vectors are made of.
    pub usd_per_million_embedded: Option<f64>,
}

/// `[embedding]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSection {
    /// What makes vectors: `none`, `hashed`, `static` or `onnx`.
    pub backend: Option<String>,
    /// The folder of a model.
    pub model: Option<std::path::PathBuf>,
    /// The weight of words beside meaning.
    pub words: Option<f64>,
    /// The share that a neighbour in time has.
    pub neighbours: Option<f64>,
    /// The least cosine of a match by meaning.
    pub min_cosine: Option<f64>,
}

/// `[experience]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExperienceSection {
    /// Days from the recording until an experience is no longer valid.
    #[serde(deserialize_with = "quantity::days")]
    pub retention_days: Option<u64>,
    /// Half-life of an experience.
    #[serde(deserialize_with = "quantity::hours")]
    pub half_life_h: Option<f64>,
    /// True if the pose of the robot goes with an experience.
    pub pose: Option<bool>,
    /// True if secrets are taken out of texts.
    pub redact: Option<bool>,
    /// True if ids of people are stored as they come.
    pub store_identifiers: Option<bool>,
    /// Memory for statistics.
    #[serde(deserialize_with = "quantity::bytes")]
    pub statistics_bytes: Option<u64>,
}

/// `[http]`.
#[cfg(feature = "http")]
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// The address, or `off`.
    pub listen: Option<String>,
    /// The files of TLS.
    pub tls: Option<TlsSection>,
    /// Names that a request may have as its `Host`.
    pub hosts: Vec<String>,
    /// Origins of pages that may use the port.
    pub origins: Vec<String>,
    /// Most connections at a time.
    pub max_connections: Option<usize>,
    /// Most streams of events at a time.
    pub max_events: Option<usize>,
}

/// `http.tls`.
#[cfg(feature = "http")]
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// The certificate, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The authorities of clients.
    pub client_ca: Option<PathBuf>,
}

/// `[[serial]]`.
#[cfg(feature = "serial")]
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SerialSection {
    /// The device, by a name that stays.
    pub port: Option<PathBuf>,
    /// Bits a second.
    pub baud: Option<u32>,
    /// `read` or `write`.
    pub access: Option<String>,
    /// The token that unlocks a port for writing.
    pub token: Option<String>,
    /// Share of a core.
    pub cpu_share: Option<f64>,
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

/// `[flash]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlashSection {
    /// Bytes the store may take on the disk.
    #[serde(deserialize_with = "quantity::bytes")]
    pub max_bytes: Option<u64>,
    /// Bytes that may be written in a day before what can wait does.
    #[serde(deserialize_with = "quantity::bytes")]
    pub bytes_per_day: Option<u64>,
    /// Size of the card.
    #[serde(deserialize_with = "quantity::bytes")]
    pub card_bytes: Option<u64>,
    /// Erasures that each of its cells bears.
    pub card_write_cycles: Option<u64>,
    /// Bytes that it writes for each byte it is given.
    pub card_write_factor: Option<u64>,
    /// Bytes kept for a full disk.
    #[serde(deserialize_with = "quantity::bytes")]
    pub reserve_bytes: Option<u64>,
}

/// `[forgetting]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForgettingSection {
    /// True if time moves anything at all.
    pub enabled: Option<bool>,
    /// The store is swept this often at most.
    #[serde(deserialize_with = "quantity::seconds")]
    pub sweep_interval_s: Option<u64>,
    /// Age at which a record leaves `working`.
    #[serde(deserialize_with = "quantity::hours")]
    pub session_after_h: Option<f64>,
    /// Age at which a strong record leaves `session`.
    #[serde(deserialize_with = "quantity::hours")]
    pub longterm_after_h: Option<f64>,
    /// Retrievability below which a record drifts to `archive`.
    pub archive_below: Option<f64>,
    /// True if near-duplicates are merged.
    pub merge: Option<bool>,
    /// Time in which they gather before that.
    #[serde(deserialize_with = "quantity::hours")]
    pub merge_after_h: Option<f64>,
    /// Largest distance between them.
    pub merge_radius_m: Option<f64>,
    /// Least similarity of their words.
    pub merge_similarity: Option<f64>,
    /// Time for which a memory is kept that is no longer valid.
    #[serde(deserialize_with = "quantity::seconds")]
    pub expire_after_s: Option<u64>,
    /// Half-life of relationships.
    #[serde(deserialize_with = "quantity::hours")]
    pub relationship_half_life_h: Option<f64>,
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

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Bytes of a payload.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_payload_bytes: Option<usize>,
    /// Nesting of a payload.
    pub max_depth: Option<usize>,
    /// Values in a payload.
    pub max_values: Option<usize>,
    /// Resources in a request.
    pub max_resources: Option<usize>,
    /// Bytes of a stored resource.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_resource_bytes: Option<usize>,
    /// Bytes of a payload that is merged.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_import_bytes: Option<usize>,
    /// Requests that may wait.
    pub queue_requests: Option<usize>,
    /// Bytes that may wait.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub queue_bytes: Option<usize>,
    /// Threads that read for queries.
    pub readers: Option<usize>,
}

/// `[access]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSection {
    /// True if writes are refused.
    pub read_only: Option<bool>,
    /// True if every way in needs a token.
    pub require: Option<bool>,
    /// JWTs that are taken.
    pub jwt: Option<JwtSection>,
}

/// `[access.jwt]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JwtSection {
    /// The keys, one of which must have signed a JWT.
    pub keys: Vec<JwtKeySection>,
    /// The name that the claim `aud` must have.
    pub audience: Option<String>,
}

/// One of `access.jwt.keys`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JwtKeySection {
    /// A public key of Ed25519.
    pub eddsa: Option<String>,
    /// A file with one.
    pub eddsa_file: Option<PathBuf>,
    /// A file with a secret of HS256.
    pub hs256_file: Option<PathBuf>,
}

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// The file.
    pub file: Option<PathBuf>,
    /// Bytes after which another file begins.
    #[serde(deserialize_with = "quantity::bytes")]
    pub max_bytes: Option<u64>,
    /// Older files that are kept.
    pub keep: Option<u32>,
}

/// `[manifesto]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManifestoSection {
    /// Verified memories come first in a selection.
    pub prefer_verified: Option<bool>,
}
