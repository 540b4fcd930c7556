//! A configuration that is read again while omird runs: what takes hold at once, and what waits for a restart.

use std::collections::BTreeSet;
use std::fmt;

use toml::{Table, Value};

use super::{Config, Invalid};
use crate::zenoh::largest_message;

/// The keys that take hold at once: what they say is read where it is used. The author of a new key decides if it is
/// one; each that is not here waits for a restart.
const LIVE: [&str; 64] = [
    "log",
    "access.require",
    "access.jwt",
    "store.segment_bytes",
    "store.seal_after_s",
    "store.touch_interval_s",
    "store.mark_interval_s",
    "store.keep_history_s",
    "store.purge_after_s",
    "store.scrub_days",
    "store.segment_max_bytes",
    "flash.max_bytes",
    "flash.bytes_per_day",
    "flash.card_bytes",
    "flash.card_write_cycles",
    "flash.card_write_factor",
    "forgetting.enabled",
    "forgetting.sweep_interval_s",
    "forgetting.session_after_h",
    "forgetting.longterm_after_h",
    "forgetting.archive_below",
    "forgetting.merge",
    "forgetting.merge_after_h",
    "forgetting.merge_radius_m",
    "forgetting.merge_similarity",
    "forgetting.expire_after_s",
    "forgetting.relationship_half_life_h",
    "recall.language",
    "embedding.words",
    "embedding.neighbours",
    "embedding.min_cosine",
    "limits.max_depth",
    "limits.max_values",
    "limits.max_resources",
    "limits.max_resource_bytes",
    "limits.queue_bytes",
    // Down, and up as far as Zenoh was told at the start what messages to take.
    "limits.max_payload_bytes",
    "limits.max_import_bytes",
    "compass.working_memory_ttl",
    "compass.episodic_memory_capacity",
    "compass.semantic_memory_capacity",
    "compass.stage_compression_ratio_target",
    "compass.task_compression_ratio_target",
    "compass.compression_quality_threshold",
    "compass.retrieval_precision_target",
    "compass.vector_store",
    "compass.criticality_boost_multiplier",
    "compass.stage_relevance_weight",
    "compass.error_correction_weight",
    "compass.error_pattern_detection_enabled",
    "compass.error_history_lookback_stages",
    "compass.error_severity_threshold",
    "compass.stage_detection_enabled",
    "compass.stage_auto_transition",
    "compass.stage_completion_auto_compress",
    "compass.embedding_model",
    "compass.embedding_model_name",
    "compass.embedding_dimensions",
    "compass.compression_model",
    "compass.test_time_scaling_enabled",
    "compass.monthly_token_budget_usd",
    "compass.alert_threshold_pct",
    "compass.memify",
    "compass.pose",
];

/// A section that says something by being there, whatever is in it.
const ON_BY_ITSELF: &str = "ros2";

/// The configuration that runs.
#[derive(Debug, Clone)]
pub struct Running {
    /// The file's keys: as they were at the start, with what took hold since.
    written: Table,
    config: Config,
    /// Bytes of the largest message that Zenoh takes.
    largest: usize,
}

/// The keys that differ after reading it again, such as `store.seal_after_s`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// New values that have taken hold.
    pub taken: Vec<String>,
    /// New values that wait for a restart.
    pub waiting: Vec<String>,
}

/// A refusal of the file as it is written now. Nothing of it is taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The fault.
    pub invalid: Invalid,
    /// Keys that would wait for a restart, where it is only wrong without them.
    pub waiting: Vec<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.invalid.fmt(f)?;
        match self.waiting.is_empty() {
            true => Ok(()),
            false => {
                let waiting = self.waiting.join(", ");
                write!(f, " (with what would wait for a restart: {waiting})")
            }
        }
    }
}

impl std::error::Error for Refused {}

impl Running {
    /// As it was started.
    pub fn new(written: Table, config: Config) -> Self {
        let largest = largest_message(&config.settings.limits);
        Self { written, config, largest }
    }

    /// The configuration that runs.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes over what may take hold now of what is `written` by now. `resolve` makes a configuration of a file's
    /// keys, with the command line over them.
    ///
    /// # Errors
    /// If what is written is no good configuration; nothing is taken over then.
    pub fn reload(
        &mut self,
        written: &Table,
        resolve: &dyn Fn(&Table) -> Result<Config, Invalid>,
    ) -> Result<Reloaded, Refused> {
        resolve(written).map_err(|invalid| Refused { invalid, waiting: Vec::new() })?;
        let mut reloaded = Reloaded::default();
        let mut next = self.written.clone();
        let mut quiet = Vec::new();
        for key in keys(&self.written, written) {
            let mut alone = self.written.clone();
            put(&mut alone, &key, get(written, &key));
            let alone = resolve(&alone);
            if alone.as_ref().is_ok_and(|alone| *alone == self.config) {
                // Worded in another way, overruled by the command line, or one that says something beside others.
                if LIVE.contains(&key.as_str()) {
                    put(&mut next, &key, get(written, &key));
                    quiet.push(key);
                }
                continue;
            }
            // Not by itself good where two only fit together: then both are judged by what they come to.
            let fits = alone.map_or(true, |alone| self.zenoh_takes(&alone));
            if LIVE.contains(&key.as_str()) && fits {
                put(&mut next, &key, get(written, &key));
                reloaded.taken.push(key);
            } else {
                reloaded.waiting.push(key);
            }
        }
        let config = match resolve(&next) {
            Ok(config) => config,
            Err(invalid) => return Err(Refused { invalid, waiting: reloaded.waiting }),
        };
        for key in quiet {
            let mut without = next.clone();
            put(&mut without, &key, get(&self.written, &key));
            if resolve(&without).map_or(true, |without| without != config) {
                reloaded.taken.push(key);
            }
        }
        reloaded.taken.sort();
        (self.written, self.config) = (next, config);
        Ok(reloaded)
    }

    fn zenoh_takes(&self, config: &Config) -> bool {
        largest_message(&config.settings.limits) <= self.largest
    }
}

/// The keys in which two files differ: `robot`, `store.seal_after_s`. What is a list is one key.
fn keys(a: &Table, b: &Table) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for name in a.keys().chain(b.keys()) {
        let sections = [a, b].map(|file| file.get(name).and_then(Value::as_table));
        let comes_or_goes = sections.contains(&None) && name == ON_BY_ITSELF;
        if sections == [None, None] || comes_or_goes {
            keys.insert(name.clone());
        } else {
            let inner = sections.iter().flatten().flat_map(|section| section.keys());
            keys.extend(inner.map(|key| format!("{name}.{key}")));
        }
    }
    keys.retain(|key| get(a, key) != get(b, key));
    keys
}

fn get<'t>(file: &'t Table, key: &str) -> Option<&'t Value> {
    match key.split_once('.') {
        None => file.get(key),
        Some((section, key)) => file.get(section)?.as_table()?.get(key),
    }
}

fn put(file: &mut Table, key: &str, value: Option<&Value>) {
    let (table, key) = match key.split_once('.') {
        None => (Some(file), key),
        Some((section, key)) => {
            let section = file.entry(section).or_insert_with(|| Value::Table(Table::new()));
            (section.as_table_mut(), key)
        }
    };
    let Some(table) = table else { return };
    match value {
        None => table.remove(key),
        Some(value) => table.insert(key.to_owned(), value.clone()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Host, resolve};

    fn of(table: &Table) -> Result<Config, Invalid> {
        resolve(table.clone().try_into().map_err(Invalid::of_all)?, &Host::default())
    }

    fn running(text: &str) -> Running {
        let written: Table = toml::from_str(text).unwrap();
        let config = of(&written).unwrap();
        Running::new(written, config)
    }

    /// Returns the keys that take hold and those that wait.
    fn reloaded(from: &str, to: &str) -> (Running, Vec<String>, Vec<String>) {
        let mut running = running(from);
        let Reloaded { taken, waiting } =
            running.reload(&toml::from_str(to).unwrap(), &of).unwrap();
        (running, taken, waiting)
    }

    #[test]
    fn each_key_takes_hold_or_waits_by_its_name() {
        let (running, taken, waiting) = reloaded(
            "robot = 'a'\n[limits]\nmax_values = 1000\nreaders = 2",
            "robot = 'b'\nlog = 'debug'\n[limits]\nmax_values = 2000\nreaders = 3\n[store]\ndurability = 'none'\n\
             touch_interval_s = '1h'\nscrub_days = 7\n[network]\nlisten = ['tcp/127.0.0.1:1']",
        );
        assert_eq!(
            taken,
            ["limits.max_values", "log", "store.scrub_days", "store.touch_interval_s"]
        );
        assert_eq!(waiting, ["limits.readers", "network.listen", "robot", "store.durability"]);
        let config = running.config();
        assert_eq!((config.robot.as_str(), config.log.as_str(), config.readers), ("a", "debug", 2));
        assert_eq!(config.settings.limits.max_values, 2000);
        assert_eq!(config.settings.durability.as_str(), "sync");
    }

    #[test]
    fn what_waits_is_named_each_time_and_what_was_taken_once() {
        let mut running = running("");
        let written = toml::from_str("log = 'warn'\n[limits]\nqueue_requests = 7").unwrap();
        let first = running.reload(&written, &of).unwrap();
        assert_eq!(
            (first.taken.join(" "), first.waiting.join(" ")),
            ("log".into(), "limits.queue_requests".into())
        );
        let again = running.reload(&written, &of).unwrap();
        assert_eq!(
            (again.taken.len(), again.waiting.join(" ")),
            (0, "limits.queue_requests".into())
        );
        // A key that is taken out is the default again.
        let back = running.reload(&Table::new(), &of).unwrap();
        assert_eq!((back.taken.join(" "), back.waiting.len()), ("log".into(), 0));
        assert_eq!(running.config().log, "info");
    }

    #[test]
    fn other_words_for_the_same_are_no_change() {
        let (_, taken, waiting) = reloaded(
            "[store]\nsegment_bytes = 8388608",
            "prefix = 'omir'\n[store]\nsegment_bytes = '8MiB'\ndurability = 'sync'\n[network]\n[limits]",
        );
        assert_eq!((taken.len(), waiting.len()), (0, 0));
    }

    #[test]
    fn keys_that_say_something_only_together_are_taken_together() {
        let model = "[compass.model]\nendpoint = 'http://127.0.0.1:9/v1'";
        let alone = "[compass]\nembedding_model_name = 'm'\nembedding_dimensions = 256\n";
        let all = format!("{alone}embedding_model = 'openai'\n{model}");
        let (mut running, taken, waiting) = reloaded(model, &all);
        assert_eq!(
            taken,
            [
                "compass.embedding_dimensions",
                "compass.embedding_model",
                "compass.embedding_model_name"
            ]
        );
        assert_eq!(waiting.len(), 0);
        let written: Table = toml::from_str(&all).unwrap();
        assert_eq!(*running.config(), of(&written).unwrap());
        assert_eq!(running.reload(&written, &of).unwrap(), Reloaded::default());
        // A key that says nothing by itself is no change, and counts once it does.
        let (mut running, taken, waiting) = reloaded(model, &format!("{alone}{model}"));
        assert_eq!((taken.len(), waiting.len()), (0, 0));
        let later = running.reload(&written, &of).unwrap();
        assert_eq!(later.taken, ["compass.embedding_model"]);
        assert_eq!(*running.config(), of(&written).unwrap());
    }

    #[test]
    fn what_is_faulty_changes_nothing() {
        let mut running = running("[limits]\nmax_values = 1000");
        let before = running.config().clone();
        for text in
            ["log = 'debug'\n[limits]\nmax_values = 1", "log = 'loud'", "[limit]\nreaders = 3"]
        {
            assert!(running.reload(&toml::from_str(text).unwrap(), &of).is_err(), "{text}");
            assert_eq!(*running.config(), before);
        }
    }

    #[test]
    fn no_message_becomes_larger_than_zenoh_takes() {
        let of_import = |bytes: &str| {
            let (_, taken, waiting) =
                reloaded("", &format!("[limits]\nmax_import_bytes = '{bytes}'"));
            (taken.len(), waiting.len())
        };
        assert_eq!(of_import("16MiB"), (1, 0));
        assert_eq!(of_import("64MiB"), (0, 1));
        let (_, taken, _) = reloaded("", "[limits]\nmax_payload_bytes = '16MiB'");
        assert_eq!(taken, ["limits.max_payload_bytes"]);
        let (_, _, waiting) = reloaded("", "[limits]\nmax_payload_bytes = '17MiB'");
        assert_eq!(waiting, ["limits.max_payload_bytes"]);
    }

    #[cfg(feature = "ros2")]
    #[test]
    fn a_section_that_comes_or_goes_is_named() {
        let (_, _, waiting) = reloaded("", "[ros2]");
        assert_eq!(waiting, ["ros2"]);
        let (_, _, waiting) = reloaded("[ros2]\ndomain_id = 3", "");
        assert_eq!(waiting, ["ros2"]);
        let (_, _, waiting) = reloaded(
            "[ros2]\ndomain_id = 3\n[[ros2.topic]]\ntopic = '/a'",
            "[ros2]\ndomain_id = 3\n[[ros2.topic]]\ntopic = '/rosout'",
        );
        assert_eq!(waiting, ["ros2.topic"]);
    }

    /// A key that is misspelt in the list would silently wait.
    #[test]
    fn each_live_key_is_one_that_there_is() {
        let mistake = |key: &str| {
            let text = match key.split_once('.') {
                None => format!("{key} = {{}}"),
                Some((section, key)) => format!("[{section}]\n{key} = {{}}"),
            };
            // A section within a section may be empty.
            let read = toml::from_str::<super::super::file::File>(&text);
            read.err().map_or_else(String::new, |error| error.message().to_owned())
        };
        for key in LIVE {
            assert!(!mistake(key).contains("unknown field"), "{key}");
        }
        assert!(mistake("store.no").contains("unknown field"));
    }
}
