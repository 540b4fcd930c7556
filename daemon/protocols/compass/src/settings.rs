//! Settings of the protocol: `[compass]`, section 7 of the specification's configuration.

use std::time::Duration;

use omird_text::Counter;

/// The settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The time after which a working memory is not found any more.
    pub working_memory_ttl: Duration,
    /// Episodic memories of one task that are active; 0 for no bound.
    pub episodic_memory_capacity: usize,
    /// Semantic memories of one agent that are active; 0 for no bound.
    pub semantic_memory_capacity: usize,
    /// Tokens of a stage for one token of its summary.
    pub stage_compression_ratio_target: f64,
    /// The same of a task.
    pub task_compression_ratio_target: f64,
    /// The weight of a critical memory above others: half of it is the factor, 1 at most.
    pub criticality_boost_multiplier: f64,
    /// Weight of the stage in a score.
    pub stage_relevance_weight: f64,
    /// Weight of errors in a score.
    pub error_correction_weight: f64,
    /// Patterns are looked for after each error.
    pub error_pattern_detection_enabled: bool,
    /// Stages of a task whose errors count as recent, the current one included.
    pub error_history_lookback_stages: usize,
    /// The severity from which on an error is told to supervisors of the agents.
    pub error_severity_threshold: f64,
    /// Stages are detected.
    pub stage_detection_enabled: bool,
    /// A store moves the task on to the stage that is detected.
    pub stage_auto_transition: bool,
    /// A stage that is completed is summarised.
    pub stage_completion_auto_compress: bool,
    /// A model makes summaries, where there is one.
    pub test_time_scaling_enabled: bool,
    /// The model that summarises.
    pub compression_model: String,
    /// The model at the same server that makes vectors of memories and questions; `None` for words alone.
    pub embedding_model: Option<String>,
    /// Numbers that its vectors are asked to have; `None` for as many as it makes.
    pub embedding_dimensions: Option<usize>,
    /// Longest wait for the vector of a question.
    pub question_timeout: Duration,
    /// Dollars for a million tokens that vectors are made of.
    pub usd_per_million_embedded: f64,
    /// Longest wait for an answer of the model.
    pub model_timeout: Duration,
    /// Dollars for a million tokens that are sent, and that come back.
    pub usd_per_million_in: f64,
    /// The same of what comes back.
    pub usd_per_million_out: f64,
    /// Dollars for models in a calendar month.
    pub monthly_token_budget_usd: f64,
    /// Share of them in percent from which on there is an alert.
    pub alert_threshold_pct: f64,
    /// The counter that budgets of tokens are kept by.
    pub token_counter: Counter,
    /// `memory.run_memify` is a method.
    pub memify: bool,
    /// The frame of the robot, whose pose a memory has that states none; `None` for no pose.
    pub robot_frame: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            working_memory_ttl: Duration::from_secs(3600),
            episodic_memory_capacity: 50,
            semantic_memory_capacity: 1000,
            stage_compression_ratio_target: 10.0,
            task_compression_ratio_target: 5.0,
            criticality_boost_multiplier: 2.0,
            stage_relevance_weight: 0.20,
            error_correction_weight: 0.10,
            error_pattern_detection_enabled: true,
            error_history_lookback_stages: 3,
            error_severity_threshold: 0.7,
            stage_detection_enabled: true,
            stage_auto_transition: true,
            stage_completion_auto_compress: true,
            test_time_scaling_enabled: true,
            compression_model: "gpt-4o-mini".to_owned(),
            embedding_model: None,
            embedding_dimensions: None,
            question_timeout: Duration::from_secs(2),
            usd_per_million_embedded: 0.02,
            model_timeout: Duration::from_secs(10),
            usd_per_million_in: 0.15,
            usd_per_million_out: 0.60,
            monthly_token_budget_usd: 1000.0,
            alert_threshold_pct: 75.0,
            token_counter: Counter::Approx1,
            memify: false,
            robot_frame: None,
        }
    }
}
