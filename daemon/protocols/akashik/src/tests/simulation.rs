//! Agents behind a network that delays, doubles and loses messages and answers. Whatever it does: no unit is lost, none is doubled, and
//! everybody reads one log. A failure prints its seed.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Seeds of a run; `AKASHIK_SEEDS` says otherwise.
const SEEDS: u64 = 100;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// An agent: the messages it wants answered, and the latest epoch it knows.
struct Agent {
    name: String,
    epoch: u64,
    open: BTreeSet<usize>,
    units: BTreeMap<usize, String>,
}

fn live(rig: &Rig, seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let tenant: Arc<str> = format!("sim-{seed}").into();
    let caller = Caller { tenant: Some(tenant.clone()), ..with(4) };
    let send = |body: &str| {
        let answer = rig.send(&caller, &MESSAGE, body, &[]);
        (answer.status, value(&answer.body))
    };
    let most = 3 + random.next(4) as usize;
    let mut agents: Vec<Agent> = ["a", "b"]
        .map(|name| Agent {
            name: name.to_owned(),
            epoch: 0,
            open: (0..most).collect(),
            units: BTreeMap::new(),
        })
        .into();
    for agent in &agents {
        send(&envelope(
            &format!("join-{}", agent.name),
            &agent.name,
            "REGISTER",
            None,
            0,
            &format!(r#"{{"id":"{}","role":"r"}}"#, agent.name),
        ));
    }
    // Messages on their way: whose, which, and the text that was sent.
    let mut network: Vec<(usize, usize, String)> = Vec::new();
    for _ in 0..10_000 {
        if agents.iter().all(|agent| agent.open.is_empty()) && network.is_empty() {
            break;
        }
        let who = random.next(2) as usize;
        match random.next(10) {
            // It sends, or sends once more, what is not answered yet; its clock may be behind by then.
            0..=3 => {
                let agent = &agents[who];
                let open: Vec<usize> = agent.open.iter().copied().collect();
                if network.len() < 12 && !open.is_empty() {
                    let which = open[random.next(open.len() as u64) as usize];
                    let payload = unit(&format!("{} notes mark {which}.", agent.name), "");
                    let id = format!("{}-{which}", agent.name);
                    let text = envelope(&id, &agent.name, "RECORD", None, agent.epoch, &payload);
                    network.push((who, which, text));
                }
            }
            // The network doubles one.
            4 if !network.is_empty() => {
                let one = network[random.next(network.len() as u64) as usize].clone();
                network.push(one);
            }
            // It loses one.
            5 if !network.is_empty() => {
                let at = random.next(network.len() as u64) as usize;
                network.swap_remove(at);
            }
            // It delivers one, in whatever order.
            _ if !network.is_empty() => {
                let at = random.next(network.len() as u64) as usize;
                let (who, which, text) = network.swap_remove(at);
                let (status, answer) = send(&text);
                if status != 201 {
                    return Err(format!("{text}: {status} {answer}"));
                }
                let epoch = answer.get("epoch").and_then(Value::as_u64).unwrap_or_default();
                let id = super::text(&answer, "/memory_unit_id").to_owned();
                let agent = &mut agents[who];
                // The answer gets lost too.
                if random.next(4) > 0 {
                    agent.epoch = agent.epoch.max(epoch);
                    agent.open.remove(&which);
                    if let Some(before) = agent.units.insert(which, id.clone())
                        && before != id
                    {
                        return Err(format!("{} {which}: {before} and {id}", agent.name));
                    }
                }
            }
            _ => {}
        }
    }
    let attune = |agent: &str, id: &str| {
        let scope = r#"{"scope":{"role":"r","max_units":100,"include_own":true}}"#;
        send(&envelope(id, agent, "ATTUNE", None, 0, scope)).1
    };
    let logs = ["a", "b"].map(|agent| {
        let seen = attune(agent, &format!("look-{agent}"));
        let mut log: Vec<(u64, String, String)> = list(&seen, "/record")
            .iter()
            .map(|one| {
                let [id, content] = ["/memory_unit/id", "/memory_unit/content"]
                    .map(|at| super::text(one, at).to_owned());
                (number(one, "/memory_unit/epoch"), id, content)
            })
            .collect();
        log.sort();
        log
    });
    if logs[0] != logs[1] {
        return Err(format!("two logs: {logs:?}"));
    }
    let contents: BTreeSet<&str> = logs[0].iter().map(|(_, _, content)| content.as_str()).collect();
    let epochs: BTreeSet<u64> = logs[0].iter().map(|(epoch, _, _)| *epoch).collect();
    let expected = 2 * most;
    if (logs[0].len(), contents.len(), epochs.len()) != (expected, expected, expected) {
        return Err(format!("{expected} units are {:?}", logs[0]));
    }
    for (which, id) in agents.iter().flat_map(|agent| &agent.units) {
        if !logs[0].iter().any(|(_, known, _)| known == id) {
            return Err(format!("{which} was answered with {id}, which is not there"));
        }
    }
    Ok(())
}

#[test]
fn whatever_the_network_does_no_unit_is_lost_or_doubled() {
    let rig = Rig::new();
    let seeds = std::env::var("AKASHIK_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        live(&rig, seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
