use super::figures::FIGURES;
use super::*;
use crate::engine::Engine;
use crate::engine::testing::parts;
use crate::protocols::Protocols;
use crate::protocols::omir::{Params, method};
use crate::router::testing::Facts;
use crate::router::{Caller, Incoming, Router, Sink};
use omir_core::operation::Operation;

/// The lines of a text that are measures, as name with labels and value.
fn samples(text: &str) -> Vec<(&str, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn each_figure_is_in_the_status_of_a_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    let asked = engine.clone();
    let text =
        Metrics::new(&Requests::default(), move || asked.status("r1"), Vec::new).text().unwrap();
    assert!(text.ends_with("# EOF\n"));
    // These have no value in a new store without a network.
    let missing = [
        "store_max_bytes",
        "card_written_bytes_per_day",
        "card_years",
        "card_budget_bytes_per_day",
        "zenoh_queries",
        "zenoh_dropped",
    ];
    for figure in &FIGURES {
        let is_there = text.contains(&format!("\n# TYPE omird_{} ", figure.name));
        assert_ne!(is_there, missing.contains(&figure.name), "{}\n{text}", figure.name);
    }
    let samples = samples(&text);
    let value = |name: &str| samples.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(value("omird_card_state{state=\"ok\"}"), 1.0);
    assert_eq!(value("omird_card_state{state=\"gone\"}"), 0.0);
    assert_eq!(value("omird_memories{type=\"Entity\"}"), 0.0);
    assert!(value("process_cpu_seconds_total") > 0.0);
    assert!(value("omird_card_written_bytes_total") > 0.0);
    engine.stop();
}

#[test]
fn requests_are_counted_without_names() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    let requests = Requests::default();
    let mut protocols = Protocols::over(&engine, "r1");
    let sinks: [Box<dyn Sink>; 1] = [Box::new(requests.clone())];
    protocols.router = Router::new(engine.clone(), sinks);
    let caller = Caller::trusted("http", "somebody-with-a-name");
    for (operation, parameters) in
        [(Operation::Recall, vec![]), (Operation::Explain, vec![("ref", "Entity/a")])]
    {
        let incoming = Incoming { bytes: 7, ..Incoming::default() };
        let admitted = protocols.router.admit(&caller, method(operation), incoming).unwrap();
        let named =
            parameters.into_iter().map(|(name, value): (&str, &str)| (name.into(), value.into()));
        let params = Params { parameters: named.collect(), ..Params::default() };
        let _ = protocols.omir.ask(admitted, params, |_| Ok(()));
    }
    let text = Metrics::new(&requests, || omir_core::value::Value::Null, Vec::new).text().unwrap();
    let samples = samples(&text);
    let value = |name: &str| {
        let found = samples.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("{name} in {text}")).1
    };
    let of = |method: &str, more: &str| {
        format!("{{protocol=\"omir\",method=\"{method}\",transport=\"http\"{more}}}")
    };
    let ended = |method, outcome: &str| {
        value(&format!("omird_requests_total{}", of(method, &format!(",outcome=\"{outcome}\""))))
    };
    assert_eq!(ended("recall", "ok"), 1.0);
    assert_eq!(ended("explain", "NOT_FOUND"), 1.0);
    assert_eq!(value(&format!("omird_request_duration_seconds_count{}", of("recall", ""))), 1.0);
    assert!(value(&format!("omird_request_duration_seconds_sum{}", of("recall", ""))) < 10.0);
    assert_eq!(value(&format!("omird_request_payload_bytes_total{}", of("recall", ""))), 7.0);
    assert!(!text.contains("somebody"), "{text}");
    engine.stop();
}

/// The table of docs/metrics.md.
#[test]
fn the_page_tells_of_every_measure_and_of_no_other() {
    let page = include_str!("../../../docs/metrics.md");
    let told: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split(['`', '{']).next())
        .collect();
    let status: Value = Value::Null;
    let requests = Requests::default();
    // A family without a sample is not told.
    let sinks: [Box<dyn Sink>; 1] = [Box::new(requests.clone())];
    let router = Router::new(Facts::default(), sinks);
    let caller = Caller::trusted("http", "somebody");
    router.admit(&caller, method(Operation::Status), Incoming::default()).unwrap().done();
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    let counts = Protocols::over(&engine, "r1").counts();
    let text = Metrics::new(&requests, move || status.clone(), counts).text().unwrap();
    engine.stop();
    let known = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut known: Vec<String> = known
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            }
        })
        .collect();
    known.extend(FIGURES.iter().map(|figure| figure.full_name()));
    known.sort();
    let mut told: Vec<String> = told.into_iter().map(str::to_owned).collect();
    told.sort();
    assert_eq!(told, known);
}
