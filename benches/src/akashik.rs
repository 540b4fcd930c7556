//! `omird-bench akashik`: a field that many agents record into, while one listens and one never reads.
//!
//! Each agent has a connection of its own, and records when it is due: a unit that waits for the one before it has that wait in its
//! time. The sleeper opens a stream of events and reads nothing of it; it must harm nobody.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::client::{Address, Connection};
use crate::owned::Owned;
use crate::samples::Samples;
use crate::{Result, machine};

/// Longest wait for notifications after the last answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures a field under load.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Agents that record
    #[arg(long, default_value_t = 100)]
    agents: u32,
    /// Units that each of them records in a second
    #[arg(long, default_value_t = 5)]
    rate: u32,
    /// Seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// What agents saw.
#[derive(Default)]
struct Measured {
    /// From when a unit was due to its answer.
    answers: Samples,
    /// When each unit was answered.
    answered: HashMap<String, Instant>,
    deferred: u64,
    refused: Vec<String>,
}

/// Measures and prints.
///
/// # Errors
/// If a process, the disk or the network fails, or an agent cannot register.
pub fn run(options: &Options) -> Result<()> {
    let Owned { daemon, machine, owner: address, .. } = &Owned::open(&options.data)?;
    println!("{machine}");

    let listener = listen(address, "listener")?;
    // Held, and never read.
    let _sleeper = listen(address, "sleeper")?;
    let heard: Mutex<HashMap<String, Instant>> = Mutex::default();
    let measured: Mutex<Measured> = Mutex::default();
    let before = daemon.cpu()?;
    let began = Instant::now() + Duration::from_millis(500);
    std::thread::scope(|scope| {
        let stream = listener.try_clone()?;
        scope.spawn(|| hear(stream, &heard));
        let recording: Vec<_> = (0..options.agents)
            .map(|at| {
                let measured = &measured;
                scope.spawn(move || {
                    if let Err(error) = agent(options, address, at, began, measured) {
                        measured.lock().refused.push(error.to_string());
                    }
                })
            })
            .collect();
        for one in recording {
            one.join().map_err(|_| "an agent panicked")?;
        }
        let took = began.elapsed();
        let until = Instant::now() + PATIENCE;
        let count = measured.lock().answered.len();
        while heard.lock().len() < count && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        listener.shutdown(std::net::Shutdown::Both)?;
        tell(options, took, daemon.cpu()?.saturating_sub(before), &measured.lock(), &heard.lock());
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    })?;
    println!("load {:.1} at the end", machine::load());
    Ok(())
}

fn tell(
    options: &Options,
    took: Duration,
    cpu: Duration,
    measured: &Measured,
    heard: &HashMap<String, Instant>,
) {
    let count = measured.answers.len();
    println!(
        "{count} units in {:.1} s: {:.0} a second of {} asked for; {} refused, detection put off {} times",
        took.as_secs_f64(),
        count as f64 / took.as_secs_f64(),
        options.agents * options.rate,
        measured.refused.len(),
        measured.deferred
    );
    let mut late = Samples::default();
    for (unit, answered) in &measured.answered {
        if let Some(heard) = heard.get(unit) {
            late.push(heard.saturating_duration_since(*answered));
        }
    }
    let quantiles = |samples: &Samples| {
        let [p50, p95, p99] = [50, 95, 99].map(|percent| samples.quantile(percent));
        format!("p50 {p50:.1?}, P95 {p95:.1?}, P99 {p99:.1?}, longest {:.1?}", samples.longest())
    };
    println!("answers since they were due: {}", quantiles(&measured.answers));
    println!("notifications after the answer, {} of them: {}", late.len(), quantiles(&late));
    println!("the daemon kept {:.2} cores busy", cpu.as_secs_f64() / took.as_secs_f64());
    if let Some(why) = measured.refused.first() {
        println!("first refusal: {why}");
    }
}

/// Sends one operation.
fn ask(
    connection: &mut Connection,
    agent: &str,
    operation: &str,
    number: u64,
    payload: Value,
) -> Result<Value> {
    let message = json!({
        "protocol": "akashik", "version": "0.1.0", "id": format!("{agent}-{operation}-{number}"),
        "operation": operation, "agent_id": agent, "session_id": null, "epoch": 0, "payload": payload
    });
    let path = format!("/akashik/v1/{}", operation.to_lowercase());
    let answer = connection.ask("POST", &path, Some(message.to_string().as_bytes()))?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Registers an agent that is told of each unit.
fn listen(address: &Address, agent: &str) -> Result<TcpStream> {
    let mut connection = Connection::open(address)?;
    ask(&mut connection, agent, "REGISTER", 0, json!({"id": agent, "role": "listener"}))?;
    let wish = json!({"action": "subscribe", "subscription": {"events": ["memory.recorded"]}});
    ask(&mut connection, agent, "SUBSCRIBE", 0, wish)?;
    Connection::listen(address, &format!("/akashik/v1/events?agent_id={agent}"))
}

/// Notes when each unit was told of, until the stream ends.
fn hear(stream: TcpStream, heard: &Mutex<HashMap<String, Instant>>) {
    for line in BufReader::new(stream).lines().map_while(std::result::Result::ok) {
        // Chunks of HTTP begin with a line of their length, which is none of these.
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let now = Instant::now();
        if let Ok(told) = serde_json::from_str::<Value>(data)
            && let Some(unit) = told["memory_unit_id"].as_str()
        {
            heard.lock().insert(unit.to_owned(), now);
        }
    }
}

/// Records the units of one agent as they are due.
fn agent(
    options: &Options,
    address: &Address,
    at: u32,
    began: Instant,
    measured: &Mutex<Measured>,
) -> Result<()> {
    let name = format!("agent-{at}");
    let mut connection = Connection::open(address)?;
    ask(&mut connection, &name, "REGISTER", 0, json!({"id": name, "role": "mapper"}))?;
    let apart = Duration::from_secs(1) / options.rate.max(1);
    let first = began + apart * at / options.agents.max(1);
    for turn in 0..options.seconds * options.rate {
        let due = first + apart * turn;
        if due.saturating_duration_since(began) >= Duration::from_secs(options.seconds.into())
            || began.elapsed() >= Duration::from_secs(options.seconds.into())
        {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let unit = json!({
            "type": "finding",
            "content": format!("Shelf {turn} of hall {at} holds {} boxes.", turn * at % 97),
            "intent": {"purpose": "count boxes"},
            "confidence": {"score": 0.8, "reasoning": "seen"}
        });
        let asked = ask(&mut connection, &name, "RECORD", turn.into(), unit);
        let now = Instant::now();
        let mut measured = measured.lock();
        match asked {
            Ok(answer) => {
                measured.answers.push(now.saturating_duration_since(due));
                measured.deferred += u64::from(answer["conflict_detection"] == "deferred");
                if let Some(unit) = answer["memory_unit_id"].as_str() {
                    measured.answered.insert(unit.to_owned(), now);
                }
            }
            Err(error) => {
                measured.refused.push(error.to_string());
                drop(measured);
                connection = Connection::open(address)?;
            }
        }
    }
    Ok(())
}
