//! `[compass]`: stage memory of agents.

#[cfg(feature = "http")]
use std::os::unix::fs::PermissionsExt as _;
#[cfg(feature = "http")]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use omird_embedding::{MAX_DIMS, is_model_name};
use serde::Deserialize;

use super::{Invalid, quantity, within};
#[cfg(feature = "http")]
use crate::models::{Address, ModelServer};
use crate::protocols::compass::{CompassSettings, Counter, TokenCounter};

/// Models for reasoning, of the specification. They are never asked here: the agent reasons, and pays for that itself.
const REASONING: [&str; 2] = ["gpt-4.1", "gpt-5"];
/// Bytes of a key.
#[cfg(feature = "http")]
const LONGEST_KEY: u64 = 4096;

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

/// Checks the section and fills in what it leaves out. `robot_frame` is the frame of the robot, where one is known.
pub fn resolve(
    written: &CompassSection,
    robot_frame: Option<&str>,
) -> Result<CompassSettings, Invalid> {
    let default = CompassSettings::default();
    let share = |key: &str, stated, default| within(&named(key), stated, default, 0.0..=1.0);
    let capacity =
        |key: &str, stated, default| within(&named(key), stated, default, 0..=1_000_000_000);
    let ttl = written.working_memory_ttl;
    let ttl = within(
        "compass.working_memory_ttl",
        ttl,
        default.working_memory_ttl.as_secs(),
        1..=31_536_000,
    )?;
    let stage_weight = share(
        "stage_relevance_weight",
        written.stage_relevance_weight,
        default.stage_relevance_weight,
    )?;
    let error_weight = share(
        "error_correction_weight",
        written.error_correction_weight,
        default.error_correction_weight,
    )?;
    if stage_weight + error_weight > 1.0 {
        let message = format!(
            "{error_weight} and stage_relevance_weight = {stage_weight} are more than 1, and all weights sum to 1"
        );
        return Err(Invalid::other("compass.error_correction_weight", message));
    }
    // Named by the specification, and decided by nothing here: the index is omird's own, precision is measured, and all
    // critical facts are kept.
    share("retrieval_precision_target", written.retrieval_precision_target, 0.95)?;
    share("compression_quality_threshold", written.compression_quality_threshold, 0.95)?;
    let embedding_model = embedding_model(written)?;
    let summarises = written.compression_model.clone().unwrap_or(default.compression_model);
    if REASONING.contains(&summarises.as_str()) || summarises.trim().is_empty() {
        let message = format!("{summarises:?} is no small model: name one that summarises");
        return Err(Invalid::other("compass.compression_model", message));
    }
    let token_counter = match written.token_counter.as_deref() {
        None => default.token_counter,
        Some(name) => Counter::named(name).ok_or_else(|| unknown_counter(name))?,
    };
    let server = written.model.clone().unwrap_or_default();
    let price = |key: &str, stated, default| {
        within(&format!("compass.model.{key}"), stated, default, 0.0..=1_000_000.0)
    };
    let timeout = within(
        "compass.model.timeout_s",
        server.timeout_s,
        default.model_timeout.as_secs(),
        1..=60,
    )?;
    let question_timeout = within(
        "compass.model.question_timeout_s",
        server.question_timeout_s,
        default.question_timeout.as_secs(),
        1..=10,
    )?;
    let pose = written.pose.unwrap_or(true);
    Ok(CompassSettings {
        test_time_scaling_enabled: written
            .test_time_scaling_enabled
            .unwrap_or(default.test_time_scaling_enabled),
        compression_model: summarises,
        model_timeout: Duration::from_secs(timeout),
        usd_per_million_in: price(
            "usd_per_million_in",
            server.usd_per_million_in,
            default.usd_per_million_in,
        )?,
        usd_per_million_out: price(
            "usd_per_million_out",
            server.usd_per_million_out,
            default.usd_per_million_out,
        )?,
        embedding_dimensions: written.embedding_dimensions.filter(|_| embedding_model.is_some()),
        embedding_model,
        question_timeout: Duration::from_secs(question_timeout),
        usd_per_million_embedded: price(
            "usd_per_million_embedded",
            server.usd_per_million_embedded,
            default.usd_per_million_embedded,
        )?,
        monthly_token_budget_usd: within(
            "compass.monthly_token_budget_usd",
            written.monthly_token_budget_usd,
            default.monthly_token_budget_usd,
            0.0..=1_000_000.0,
        )?,
        alert_threshold_pct: within(
            "compass.alert_threshold_pct",
            written.alert_threshold_pct,
            default.alert_threshold_pct,
            0.0..=100.0,
        )?,
        working_memory_ttl: Duration::from_secs(ttl),
        episodic_memory_capacity: capacity(
            "episodic_memory_capacity",
            written.episodic_memory_capacity,
            default.episodic_memory_capacity,
        )?,
        semantic_memory_capacity: capacity(
            "semantic_memory_capacity",
            written.semantic_memory_capacity,
            default.semantic_memory_capacity,
        )?,
        stage_compression_ratio_target: within(
            "compass.stage_compression_ratio_target",
            written.stage_compression_ratio_target,
            default.stage_compression_ratio_target,
            1.0..=20.0,
        )?,
        task_compression_ratio_target: within(
            "compass.task_compression_ratio_target",
            written.task_compression_ratio_target,
            default.task_compression_ratio_target,
            1.0..=10.0,
        )?,
        criticality_boost_multiplier: within(
            "compass.criticality_boost_multiplier",
            written.criticality_boost_multiplier,
            default.criticality_boost_multiplier,
            0.0..=10.0,
        )?,
        stage_relevance_weight: stage_weight,
        error_correction_weight: error_weight,
        error_pattern_detection_enabled: written
            .error_pattern_detection_enabled
            .unwrap_or(default.error_pattern_detection_enabled),
        error_history_lookback_stages: within(
            "compass.error_history_lookback_stages",
            written.error_history_lookback_stages,
            default.error_history_lookback_stages,
            1..=1000,
        )?,
        error_severity_threshold: share(
            "error_severity_threshold",
            written.error_severity_threshold,
            default.error_severity_threshold,
        )?,
        stage_detection_enabled: written
            .stage_detection_enabled
            .unwrap_or(default.stage_detection_enabled),
        stage_auto_transition: written
            .stage_auto_transition
            .unwrap_or(default.stage_auto_transition),
        stage_completion_auto_compress: written
            .stage_completion_auto_compress
            .unwrap_or(default.stage_completion_auto_compress),
        token_counter,
        memify: written.memify.unwrap_or(default.memify),
        robot_frame: robot_frame.filter(|_| pose).map(str::to_owned),
    })
}

/// Returns the model at the server of models that makes vectors, if one does.
fn embedding_model(written: &CompassSection) -> Result<Option<String>, Invalid> {
    let wrong = |key: &str, message: String| Err(Invalid::other(&named(key), message));
    match written.embedding_model.as_deref() {
        None | Some("none") => return Ok(None),
        Some("openai") => {}
        Some(other) => {
            let message = format!(
                "{other:?} is neither \"none\" nor \"openai\", the API of the server of models; its model is embedding_model_name"
            );
            return wrong("embedding_model", message);
        }
    }
    if written.model.is_none() {
        let message = "\"openai\" needs [compass.model] with the endpoint of a server";
        return wrong("embedding_model", message.to_owned());
    }
    let name = written.embedding_model_name.as_deref().unwrap_or("text-embedding-3-small");
    if !is_model_name(name) {
        let message = format!("{name:?} is no name of 1 to 128 of A-Z a-z 0-9 . _ - / :");
        return wrong("embedding_model_name", message);
    }
    if let Some(dims) = written.embedding_dimensions
        && !(1..=MAX_DIMS).contains(&dims)
    {
        return wrong("embedding_dimensions", format!("{dims} is not from 1 to {MAX_DIMS}"));
    }
    Ok(Some(name.to_owned()))
}

/// Says which counters this build has.
fn unknown_counter(name: &str) -> Invalid {
    let names: Vec<&str> = Counter::ALL.iter().map(TokenCounter::name).collect();
    let mut message = format!("no counter {name:?} in this omird, which has {}", names.join(", "));
    if !cfg!(feature = "tiktoken") {
        message += "; exact ones are in one that is built with --features tiktoken";
    }
    Invalid::other("compass.token_counter", message)
}

/// Checks where the server of models is, and reads its key.
#[cfg(feature = "http")]
pub fn server(written: &CompassModelSection) -> Result<ModelServer, Invalid> {
    let wrong = |message: String| Invalid::other("compass.model.endpoint", message);
    let endpoint = written.endpoint.as_deref().ok_or_else(|| {
        wrong(
            "is missing; such as \"http://127.0.0.1:11434/v1\" or \"unix:/run/model.sock\"".into(),
        )
    })?;
    let key = written.key_file.as_deref().map(key_in).transpose()?;
    if let Some(path) = endpoint.strip_prefix("unix:") {
        let address = Address::Unix(path.into());
        if !path.starts_with('/') {
            return Err(wrong(format!("{endpoint:?} is no absolute path")));
        }
        return Ok(ModelServer { address, base: "/v1".into(), key });
    }
    let form =
        || wrong(format!("{endpoint:?} is no address such as \"http://127.0.0.1:11434/v1\""));
    let uri: hyper::Uri = endpoint.parse().map_err(|_| form())?;
    let host = uri.host().ok_or_else(form)?.trim_matches(['[', ']']).to_owned();
    if uri.query().is_some() || uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err(form());
    }
    let is_here = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if !is_here && written.remote != Some(true) {
        let message = format!(
            "{host} is another machine, which would get what agents remember; say remote = true if it may"
        );
        return Err(wrong(message));
    }
    let port = |default| uri.port_u16().unwrap_or(default);
    let address = match (uri.scheme_str(), &written.ca_file) {
        (Some("http"), _) => Address::Plain(host, port(80)),
        (Some("https"), Some(file)) => Address::Tls(host, port(443), file.clone()),
        (Some("https"), None) => {
            let message =
                "is missing; https needs it, such as \"/etc/ssl/certs/ca-certificates.crt\"";
            return Err(Invalid::other("compass.model.ca_file", message));
        }
        _ => return Err(form()),
    };
    Ok(ModelServer { address, base: uri.path().trim_end_matches('/').to_owned(), key })
}

/// Reads a key, which only its owner and his group may read.
#[cfg(feature = "http")]
fn key_in(file: &Path) -> Result<String, Invalid> {
    let wrong = |message: String| Invalid::other("compass.model.key_file", message);
    let name = file.display();
    let found = std::fs::metadata(file).map_err(|error| wrong(format!("{name}: {error}")))?;
    if found.permissions().mode() & 0o007 != 0 {
        return Err(wrong(format!("{name} is open to everybody on this machine: chmod o-rwx it")));
    }
    if !found.is_file() || found.len() > LONGEST_KEY {
        return Err(wrong(format!("{name} is no file of at most {LONGEST_KEY} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("{name}: {error}")))?;
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(format!("{name} holds no key: one line without blanks")));
    }
    Ok(key.to_owned())
}

fn named(key: &str) -> String {
    format!("compass.{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, frame: Option<&str>) -> Result<CompassSettings, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.compass, frame)
    }

    #[test]
    fn everything_has_a_default_and_can_be_stated() {
        assert_eq!(read("", None), Ok(CompassSettings::default()));
        let robot_frame = Some("base_link".to_owned());
        let placed = CompassSettings { robot_frame, ..CompassSettings::default() };
        assert_eq!(read("", Some("base_link")), Ok(placed));
        let stated = "[compass]\nworking_memory_ttl = '2h'\nepisodic_memory_capacity = 0\n\
                      semantic_memory_capacity = 7\nstage_relevance_weight = 0.5\n\
                      error_correction_weight = 0.5\nmemify = true\npose = false\n\
                      vector_store = 'pgvector'\nretrieval_precision_target = 0.9";
        let expected = CompassSettings {
            working_memory_ttl: Duration::from_secs(7200),
            episodic_memory_capacity: 0,
            semantic_memory_capacity: 7,
            stage_relevance_weight: 0.5,
            error_correction_weight: 0.5,
            memify: true,
            ..CompassSettings::default()
        };
        assert_eq!(read(stated, Some("base_link")), Ok(expected));
    }

    #[test]
    fn a_counter_that_this_build_has_not_is_refused_by_name() {
        for counter in Counter::ALL {
            let text = format!("[compass]\ntoken_counter = '{}'", counter.name());
            assert_eq!(read(&text, None).unwrap().token_counter, *counter);
        }
        let error = read("[compass]\ntoken_counter = 'claude'", None).unwrap_err().to_string();
        assert!(error.contains("compass.token_counter") && error.contains("\"claude\""), "{error}");
        assert!(error.contains("has approx-1"), "{error}");
        assert_eq!(error.contains("--features tiktoken"), !cfg!(feature = "tiktoken"), "{error}");
    }

    #[test]
    fn vectors_need_a_server_and_a_model_that_can_be_named() {
        let server = "[compass.model]\nendpoint = 'unix:/m'\n";
        let on = |more: &str| {
            read(&format!("[compass]\nembedding_model = 'openai'\n{more}\n{server}"), None)
        };
        let settings = on("").unwrap();
        assert_eq!(settings.embedding_model.as_deref(), Some("text-embedding-3-small"));
        assert_eq!(settings.embedding_dimensions, None);
        let settings = on("embedding_model_name = 'a/b:c'\nembedding_dimensions = 256").unwrap();
        assert_eq!(settings.embedding_model.as_deref(), Some("a/b:c"));
        assert_eq!(settings.embedding_dimensions, Some(256));
        let none = read(&format!("[compass]\nembedding_model = 'none'\n{server}"), None).unwrap();
        assert_eq!(none.embedding_model, None);
        let refused = |text: &str, key: &str| {
            let error = read(text, None).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        };
        refused("[compass]\nembedding_model = 'openai'", "compass.embedding_model");
        refused("[compass]\nembedding_model = 'cohere'", "compass.embedding_model");
        for (more, key) in [
            ("embedding_model_name = 'a b'", "compass.embedding_model_name"),
            ("embedding_dimensions = 4097", "compass.embedding_dimensions"),
            ("embedding_dimensions = 0", "compass.embedding_dimensions"),
        ] {
            assert!(on(more).unwrap_err().to_string().contains(key), "{more}");
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_model_is_on_this_machine_unless_it_is_said() {
        let of = |text: &str| {
            let file: super::super::file::File =
                toml::from_str(&format!("[compass.model]\n{text}")).unwrap();
            server(&file.compass.model.unwrap()).map_err(|error| error.to_string())
        };
        let good = |text: &str| of(text).unwrap();
        let local = good("endpoint = 'http://127.0.0.1:11434/v1/'");
        assert_eq!(
            (local.address, local.base.as_str()),
            (Address::Plain("127.0.0.1".into(), 11434), "/v1")
        );
        assert_eq!(good("endpoint = 'http://[::1]:1'").address, Address::Plain("::1".into(), 1));
        assert_eq!(
            good("endpoint = 'unix:/run/m.sock'").address,
            Address::Unix("/run/m.sock".into())
        );
        let far = "endpoint = 'https://api.example.com/v1'";
        assert!(of(far).unwrap_err().contains("is another machine"));
        assert!(of(&format!("{far}\nremote = true")).unwrap_err().contains("ca_file: is missing"));
        let far = good(&format!("{far}\nremote = true\nca_file = '/etc/ca.pem'"));
        assert_eq!(far.address, Address::Tls("api.example.com".into(), 443, "/etc/ca.pem".into()));
        for wrong in ["ftp://127.0.0.1/", "127.0.0.1:1", "http://a:b@127.0.0.1/", "unix:m.sock", ""]
        {
            let error = of(&format!("endpoint = '{wrong}'")).unwrap_err();
            assert!(error.starts_with("compass.model.endpoint: "), "{wrong}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "sk-1\n").unwrap();
        let text = format!("endpoint = 'http://localhost:1'\nkey_file = '{}'", file.display());
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode(0o644)).unwrap();
        assert!(of(&text).unwrap_err().contains("chmod o-rwx"));
        std::fs::set_permissions(&file, mode(0o600)).unwrap();
        assert_eq!(good(&text).key.as_deref(), Some("sk-1"));
    }

    #[test]
    fn complaints_name_the_key() {
        for (text, complaint) in [
            ("working_memory_ttl = 0", "compass.working_memory_ttl: 0 is not between 1 and"),
            ("stage_compression_ratio_target = 21", "compass.stage_compression_ratio_target: 21"),
            ("error_severity_threshold = 1.1", "compass.error_severity_threshold: 1.1 is not"),
            ("error_correction_weight = 0.9", "compass.error_correction_weight: 0.9 and stage"),
            ("error_history_lookback_stages = 0", "compass.error_history_lookback_stages: 0 is"),
            ("compression_quality_threshold = nan", "compass.compression_quality_threshold: NaN"),
            ("compression_model = 'gpt-5'", "compass.compression_model: \"gpt-5\" is no small"),
            (
                "embedding_model = 'openai'",
                "compass.embedding_model: \"openai\" needs [compass.model]",
            ),
            ("alert_threshold_pct = 101", "compass.alert_threshold_pct: 101 is not between 0 and"),
            ("[compass.model]\ntimeout_s = 61", "compass.model.timeout_s: 61 is not between 1 and"),
        ] {
            let error = read(&format!("[compass]\n{text}"), None).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
