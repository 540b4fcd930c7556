//! `omird-bench compass`: the times of stage memory, as issue and specification ask for them.
//!
//! Agents remember, one task of fifty memories after the other, over HTTP and with a token each. Then one agent asks, and in the
//! end all of them at once, each request when it is due.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::client::{Address, Connection};
use crate::owned::Owned;
use crate::samples::Samples;
use crate::{Result, machine};

const PATH: &str = "/compass/v1/jsonrpc";
/// Memories of a task, and requests of a message.
const OF_TASK: u64 = 50;
const OF_BATCH: u64 = 25;
/// Memories of the stage that is compressed.
const OF_STAGE: u64 = 200;

/// Measures stage memory.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Memories of an agent
    #[arg(long, default_value_t = 100_000)]
    size: u64,
    /// Agents that remember so much; the first one is measured alone
    #[arg(long, default_value_t = 1)]
    agents: u64,
    /// Requests of each kind
    #[arg(long, default_value_t = 500)]
    count: u64,
    /// Connections that fill the store
    #[arg(long, default_value_t = 32)]
    writers: u64,
    /// Questions a second, of all agents together
    #[arg(long, default_value_t = 10)]
    rate: u32,
    /// Seconds of these questions
    #[arg(long, default_value_t = 30)]
    seconds: u32,
}

/// Measures and prints.
///
/// # Errors
/// If a process, the disk or the network fails, or a request is refused.
pub fn run(options: &Options) -> Result<()> {
    let owned = Owned::open(&options.data)?;
    let Owned { daemon, machine, owner, .. } = &owned;
    let agents: Vec<Address> =
        (0..options.agents.max(1)).map(|at| agent(&owned, at)).collect::<Result<_>>()?;
    println!("{machine}");
    let began = Instant::now();
    for (at, address) in agents.iter().enumerate() {
        fill(address, at as u64, options)?;
    }
    let all = options.size * agents.len() as u64;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{all} memories of {} agents, stored with {:.0} a second; {:.0} MiB resident",
        agents.len(),
        all as f64 / took,
        daemon.memory()?.resident as f64 / f64::from(1 << 20)
    );
    alone(owner, &agents[0], options)?;
    if agents.len() > 1 {
        together(&agents, options)?;
    }
    println!("load {:.1} at the end", machine::load());
    Ok(())
}

/// Makes an agent with a token of its own, whose rate does not matter.
fn agent(owned: &Owned, at: u64) -> Result<Address> {
    owned.client(&json!({
        "name": format!("agent{at}"), "scopes": ["compass:agent"], "agents": [format!("agent{at}")],
        "rate": 1_000_000
    }))
}

/// Asks one method; the result.
fn call(connection: &mut Connection, method: &str, params: &Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let answer = connection.ask("POST", PATH, Some(body.as_bytes()))?;
    let mut answer: Value = serde_json::from_slice(&answer)?;
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(format!("{method}: {answer}").into()),
    }
}

/// Stores the memories of an agent, task by task.
fn fill(address: &Address, agent: u64, options: &Options) -> Result<()> {
    let tasks = options.size.div_ceil(OF_TASK);
    std::thread::scope(|scope| {
        let fill = |first: u64| -> std::result::Result<(), String> {
            let mut connection = Connection::open(address).map_err(|error| error.to_string())?;
            for task in (first..tasks).step_by(usize::try_from(options.writers).unwrap_or(1)) {
                for batch in 0..OF_TASK / OF_BATCH {
                    let body = batch_of(agent, task, batch);
                    let asked = connection.ask("POST", PATH, Some(body.as_bytes()));
                    let answer = asked.map_err(|error| error.to_string())?;
                    if let Some(at) = answer.windows(7).position(|part| part == b"\"error\"") {
                        let rest = String::from_utf8_lossy(&answer[at..]);
                        return Err(rest.chars().take(300).collect());
                    }
                }
            }
            Ok(())
        };
        let filling: Vec<_> =
            (0..options.writers).map(|first| scope.spawn(move || fill(first))).collect();
        for one in filling {
            one.join().map_err(|_| "a client panicked")??;
        }
        Ok(())
    })
}

fn batch_of(agent: u64, task: u64, batch: u64) -> String {
    let requests: Vec<Value> = (0..OF_BATCH)
        .map(|at| {
            let number = task * OF_TASK + batch * OF_BATCH + at;
            let params = json!({"task_id": task_of(agent, task), "content": sentence(number)});
            json!({"jsonrpc": "2.0", "id": at, "method": "memory.store", "params": params})
        })
        .collect();
    Value::Array(requests).to_string()
}

fn task_of(agent: u64, task: u64) -> String {
    format!("a{agent}-t{task}")
}

/// Words of which memories are made: the earlier ones more often, as in any language.
const THINGS: [&str; 24] = [
    "pallet", "charger", "gripper", "corridor", "elevator", "shelf", "battery", "camera", "parcel",
    "forklift", "doorway", "conveyor", "lidar", "wheel", "tote", "dock", "ramp", "scanner", "bin",
    "pump", "valve", "spill", "ladder", "crate",
];
const EVENTS: [&str; 12] = [
    "was moved by a visitor",
    "stood in the way",
    "reported a fault and recovered",
    "was scanned twice because the label was worn",
    "had to wait for a person",
    "was handed over without delay",
    "slipped and was picked up again",
    "was found empty",
    "was mapped anew",
    "failed and was reset by hand",
    "took longer than planned",
    "was inspected and is fine",
];

fn sentence(number: u64) -> String {
    // Squares make the later words rare.
    let mixed = number.wrapping_mul(2_654_435_761) >> 7;
    let place = |most: u64, salt: u64| {
        let share = ((mixed.wrapping_mul(salt) >> 11) % 1000) as f64 / 1000.0;
        (share * share * most as f64) as usize
    };
    let thing = THINGS[place(24, 31).min(23)];
    let other = THINGS[place(24, 57).min(23)];
    let event = EVENTS[place(12, 73).min(11)];
    format!(
        "The {thing} near the {other} in aisle {} {event}; note {number} of the shift.",
        mixed % 400
    )
}

fn told(name: &str, samples: &Samples, asked: &str) {
    let [p50, p95, p99] = [50, 95, 99].map(|percent| samples.quantile(percent));
    let longest = samples.longest();
    println!(
        "{name}: p50 {p50:.2?}, P95 {p95:.2?}, P99 {p99:.2?}, longest {longest:.1?} ({asked})"
    );
}

/// Questions of one agent, one after the other.
fn alone(owner: &Address, agent: &Address, options: &Options) -> Result<()> {
    let mut connection = Connection::open(agent)?;
    let query = |number: u64| {
        let words = sentence(number * 7919 + 13);
        let words: Vec<&str> = words.split(' ').collect();
        // A thing, its neighbour, and what happened.
        format!("{} {} {}", words[1], words[4], words[words.len().saturating_sub(8)])
    };
    let mut times =
        |name: &str, asked: &str, f: &mut dyn FnMut(&mut Connection, u64) -> Result<()>| {
            let mut samples = Samples::default();
            for number in 0..options.count {
                samples.time(|| f(&mut connection, number))?;
            }
            told(name, &samples, asked);
            Ok::<Samples, Box<dyn std::error::Error + Send + Sync>>(samples)
        };
    let tasks = options.size.div_ceil(OF_TASK).max(1);
    times(
        "retrieve, of all memories",
        "asked: p50 < 5 ms, P95 < 20 ms",
        &mut |connection, number| {
            let found =
                call(connection, "memory.retrieve", &json!({"query": query(number), "k": 5}))?;
            match found["memories"].as_array() {
                Some(found) if !found.is_empty() => Ok(()),
                _ => Err(format!("nothing found for {:?}", query(number)).into()),
            }
        },
    )?;
    times("retrieve, of one task", "", &mut |connection, number| {
        let task = task_of(0, number % tasks);
        let params = json!({"query": query(number), "k": 5, "task_id": task});
        call(connection, "memory.retrieve", &params).map(drop)
    })?;
    times("get_context of a task", "asked: < 10 ms", &mut |connection, number| {
        let task = task_of(0, number % tasks);
        let params = json!({"query": query(number), "task_id": task});
        call(connection, "memory.get_context", &params).map(drop)
    })?;
    times("get_context of all memories", "", &mut |connection, number| {
        call(connection, "memory.get_context", &json!({"query": query(number)})).map(drop)
    })?;
    let stored = times("store", "", &mut |connection, number| {
        let params = json!({"task_id": task_of(0, number % tasks), "content": sentence(number)});
        call(connection, "memory.store", &params).map(drop)
    })?;
    let mut plain = Connection::open(owner)?;
    let (mut errors, mut writes) = (Samples::default(), Samples::default());
    for number in 0..options.count {
        // One after the other, so that a busy disk slows both.
        let record =
            json!({"resourceType": "MemoryRecord", "content": sentence(number)}).to_string();
        let written =
            writes.time(|| plain.ask("POST", "/omir/v1/remember", Some(record.as_bytes())));
        written?;
        let params = json!({
            "task_id": task_of(0, number % tasks), "error_type": "missing_info",
            "error_description": sentence(number), "context_when_occurred": sentence(number + 1)
        });
        errors.time(|| call(&mut connection, "memory.record_error", &params))?;
    }
    told("a plain durable write", &writes, "");
    told("record_error", &errors, "asked: 1 ms more than it");
    let [error, write] = [&errors, &writes].map(|samples| samples.quantile(50).as_secs_f64());
    println!("record_error adds {:.2} ms to it", 1000.0 * (error - write));
    drop(stored);

    // Above the capacity of a task memories are put aside, and belong to their stage all the same.
    let mut stage = Value::Null;
    for number in 0..OF_STAGE {
        let params = json!({"task_id": "compressed", "content": sentence(number * 3)});
        stage = call(&mut connection, "memory.store", &params)?["stage_id"].take();
    }
    let mut compressions = Samples::default();
    for _ in 0..options.count.min(50) {
        let params = json!({"stage_id": stage});
        let made = compressions.time(|| call(&mut connection, "memory.compress_stage", &params))?;
        if made["metric"]["cost_usd"].as_f64() != Some(0.0) {
            return Err(format!("it cost something: {}", made["metric"]).into());
        }
    }
    told("compress_stage of 200 memories", &compressions, "asked: < 50 ms, 0 USD");
    Ok(())
}

/// Questions of all agents, each when it is due.
fn together(agents: &[Address], options: &Options) -> Result<()> {
    let count = u32::try_from(agents.len())?;
    let apart = Duration::from_secs(1) * count / options.rate.max(1);
    let began = Instant::now() + Duration::from_millis(200);
    let turns = options.seconds * options.rate / count.max(1);
    let samples = std::thread::scope(|scope| {
        let ask = |at: u32, address: &Address| -> std::result::Result<Samples, String> {
            let mut connection = Connection::open(address).map_err(|error| error.to_string())?;
            let mut samples = Samples::default();
            for turn in 0..turns {
                let due = began + apart * at / count.max(1) + apart * turn;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let words = sentence(u64::from(turn) * 7919 + u64::from(at));
                let words: Vec<&str> = words.split(' ').take(5).collect();
                let params = json!({"query": words.join(" "), "k": 5});
                call(&mut connection, "memory.retrieve", &params)
                    .map_err(|error| error.to_string())?;
                samples.push(due.elapsed());
            }
            Ok(samples)
        };
        let asking: Vec<_> = (0..count)
            .zip(agents)
            .map(|(at, address)| scope.spawn(move || ask(at, address)))
            .collect();
        let mut all = Samples::default();
        for one in asking {
            let samples = one.join().map_err(|_| "a client panicked")??;
            all.extend(&samples);
        }
        Ok::<Samples, Box<dyn std::error::Error + Send + Sync>>(all)
    })?;
    let name = format!("retrieve, {count} agents, {} a second in all", options.rate);
    told(&name, &samples, "asked: P95 < 50 ms");
    Ok(())
}
