//! `omir recall`: the best of one robot, or of a fleet.

use std::collections::BTreeMap;

use omir_core::value::{Map, Value};

use super::{answers, filters, view};
use crate::cli::{FilterArgs, Globals, RecallArgs};
use crate::client::{Client, FleetReplies, Reply};
use crate::document;
use crate::error::{Error, Result, told};
use crate::instant::Instant;
use crate::output;
use crate::selector::Parameters;
use crate::table::{self, Column};

/// The share of the words' weight that a hit has at least, where none is stated: tuned on questions, `docs/keys.md#floor`.
const FLOOR: f64 = 0.5;
/// Members of an answer that are those of every answer.
const COMMON: [&str; 5] = ["hits", "total", "unreadable", "tookMicros", "hidden"];
/// The most hits that a daemon gives.
const MOST_HITS: usize = 1000;

pub(super) fn run(globals: &Globals, args: &RecallArgs) -> Result<()> {
    // Refuses what makes no sense before anything is connected.
    parameters(args, &args.filters, args.limit, args.offset)?;
    let client = Client::open(globals)?;
    let (found, shortfall) = match &globals.robot {
        Some(robot) => (one(&client, robot, args)?, None),
        None => {
            let mut alive = client.robots()?;
            if alive.len() == 1 {
                let robot = alive.pop_first().unwrap_or_default();
                (one(&client, &robot, args)?, None)
            } else {
                // Any robot may hold all of the best hits, so each is asked for that many.
                let needed = args.offset.saturating_add(args.limit);
                if needed > MOST_HITS {
                    return Err(Error::Usage(format!(
                        "of several robots together only the first {MOST_HITS} hits can be shown; \
                         name one with --robot"
                    )));
                }
                let asked = parameters(args, &args.filters, needed, 0)?;
                let mut replies = client.ask_fleet(alive, "recall", &asked)?;
                let shortfall = replies.shortfall();
                if replies.answers.is_empty()
                    && let Some(error) = shortfall
                {
                    return Err(error);
                }
                (fleet(&replies, args)?, shortfall)
            }
        }
    };
    let printed = if globals.json {
        output::print_json(&found.to_json())
    } else {
        output::print(&found.to_text(args.explain, Instant::now(), output::width()))
    };
    told(printed, shortfall.or_else(|| found.shortfall()).map_or(Ok(()), Err))
}

fn parameters(
    args: &RecallArgs,
    filters: &FilterArgs,
    limit: usize,
    offset: usize,
) -> Result<Parameters> {
    let mut parameters = Parameters::new();
    parameters.push_some("q", args.text.as_ref());
    filters::push(&mut parameters, filters)?;
    if args.order.as_deref() == Some("distance") && filters.near.is_none() && filters.geo.is_none()
    {
        return Err(Error::Usage(
            "--order distance needs a place to be from: --near or --geo".to_owned(),
        ));
    }
    push_asks(&mut parameters, args)?;
    parameters.push_some("vector", args.meaning.vector.as_ref());
    parameters.push_some("model", args.meaning.model.as_ref());
    parameters.push_some("minCosine", args.meaning.min_cosine);
    parameters.push_some("spread", args.meaning.spread.then_some("1"));
    parameters.push_some("order", args.order.as_ref());
    parameters.push_some("limit", Some(limit));
    parameters.push_some("offset", (offset > 0).then_some(offset));
    parameters.push_some("touch", args.no_touch.then_some("false"));
    parameters.push_some("explain", args.explain.then_some("true"));
    Ok(parameters)
}

/// Adds the floor and the questions about all matches.
fn push_asks(parameters: &mut Parameters, args: &RecallArgs) -> Result<()> {
    let asks = &args.asks;
    let floor = args.floor.or(args.text.is_some().then_some(FLOOR));
    parameters.push_some("floor", floor.filter(|floor| *floor > 0.0));
    parameters.push_some("count", asks.count.then_some("true"));
    parameters.push_some("countBy", asks.count_by.as_ref());
    parameters.push_some("cell", asks.cell);
    parameters.push_some("distinct", asks.distinct.as_ref());
    if let Some(when) = asks.unseen_since {
        parameters.push("unseenSince", &filters::moment(when)?.to_string());
    }
    parameters.push_some("visits", asks.visits.then_some("true"));
    parameters.push_some("visitGap", asks.visit_gap);
    parameters.push_some("history", asks.history.as_ref());
    Ok(())
}

fn one(client: &Client, robot: &str, args: &RecallArgs) -> Result<FoundMemories> {
    let filters = filters::of_robot(client, robot, &args.filters)?;
    let parameters = parameters(args, &filters, args.limit, args.offset)?;
    let reply = client.ask(robot, "recall", &parameters, None)?;
    FoundMemories::merge([(robot, &reply)])
}

fn fleet(replies: &FleetReplies, args: &RecallArgs) -> Result<FoundMemories> {
    let answers = replies.answers.iter();
    let mut found = FoundMemories::merge(answers.map(|(robot, reply)| (robot.as_str(), reply)))?;
    // The sort is stable: what is equal stays in the order of its robot.
    match args.order.as_deref() {
        Some("latest") => found.hits.sort_by_key(|(_, hit)| std::cmp::Reverse(when(hit))),
        Some("earliest") => {
            found.hits.sort_by_key(|(_, hit)| (when(hit).is_none(), when(hit)));
        }
        Some("distance") => found.hits.sort_by(|(_, a), (_, b)| metres(a).total_cmp(&metres(b))),
        _ => found.hits.sort_by(|(_, a), (_, b)| score(b).total_cmp(&score(a))),
    }
    found.hits.drain(..args.offset.min(found.hits.len()));
    found.hits.truncate(args.limit);
    Ok(found)
}

fn score(hit: &Value) -> f64 {
    hit.get("score").and_then(Value::as_f64).unwrap_or(f64::NEG_INFINITY)
}

fn metres(hit: &Value) -> f64 {
    hit.get("distance").and_then(Value::as_f64).unwrap_or(f64::INFINITY)
}

/// The time that a daemon orders by; of what states none it knows more than its answer tells, so that comes last.
fn when(hit: &Value) -> Option<Instant> {
    let time = |name| hit.get("resource")?.get(name)?.as_str()?.parse().ok();
    time("eventTime").or_else(|| time("createdAt"))
}

/// Hits of one or several robots.
struct FoundMemories {
    hits: Vec<(String, Value)>,
    /// Matches by robot.
    totals: BTreeMap<String, u64>,
    unreadable: u64,
    hidden: u64,
    took_micros: u64,
    /// Further members of the answer of each robot.
    more: BTreeMap<String, Map>,
}

impl FoundMemories {
    fn merge<'a>(replies: impl IntoIterator<Item = (&'a str, &'a Reply)>) -> Result<Self> {
        let mut found = Self {
            hits: Vec::new(),
            totals: BTreeMap::new(),
            unreadable: 0,
            hidden: 0,
            took_micros: 0,
            more: BTreeMap::new(),
        };
        for (robot, reply) in replies {
            let value = reply.value()?;
            let hits = value
                .get("hits")
                .and_then(Value::as_array)
                .ok_or_else(|| Error::Partial(format!("the answer of {robot} has no `hits`")))?;
            let number = |name| value.get(name).and_then(Value::as_u64);
            found.totals.insert(robot.to_owned(), number("total").unwrap_or(hits.len() as u64));
            found.unreadable += number("unreadable").unwrap_or(0);
            found.hidden += number("hidden").unwrap_or(0);
            let mut more = value.as_object().cloned().unwrap_or_else(Map::new);
            COMMON.iter().for_each(|name| drop(more.remove(name)));
            if !more.is_empty() {
                found.more.insert(robot.to_owned(), more);
            }
            // The robots searched side by side.
            found.took_micros = found.took_micros.max(number("tookMicros").unwrap_or(0));
            found.hits.extend(hits.iter().map(|hit| (robot.to_owned(), hit.clone())));
        }
        Ok(found)
    }

    /// Selected resources that could not be read.
    fn shortfall(&self) -> Option<Error> {
        (self.unreadable > 0).then(|| {
            Error::Partial(format!(
                "{} more belong here and cannot be read; see `omir status` and `omir store check`",
                self.unreadable
            ))
        })
    }

    fn total(&self) -> u64 {
        self.totals.values().sum()
    }

    /// The daemon's own reply, with each hit's robot.
    fn to_json(&self) -> Value {
        let named = self.hits.iter().map(|(robot, hit)| {
            let mut members = hit.as_object().cloned().unwrap_or_else(Map::new);
            if let Some(resource) = members.get_mut("resource") {
                *resource = document::in_schema_order(std::mem::take(resource));
            }
            members.insert("robot", robot.as_str());
            Value::Object(members)
        });
        let mut found = Map::new();
        found.insert("hits", named.collect::<Value>());
        found.insert("total", self.total());
        if self.hidden > 0 {
            found.insert("hidden", self.hidden);
        }
        match self.more.values().next() {
            // Of one robot as the daemon has it.
            Some(more) if self.totals.len() == 1 => {
                for (name, value) in more.iter() {
                    found.insert(name, value.clone());
                }
            }
            Some(_) => {
                let mut answers = Map::new();
                for (robot, more) in &self.more {
                    answers.insert(robot, Value::Object(more.clone()));
                }
                found.insert("answers", Value::Object(answers));
            }
            None => {}
        }
        if self.unreadable > 0 {
            found.insert("unreadable", self.unreadable);
        }
        found.insert("tookMicros", self.took_micros);
        found.insert("robots", self.totals.keys().map(String::as_str).collect::<Value>());
        Value::Object(found)
    }

    /// Columns of less use go first where `width` is small.
    fn to_text(&self, explain: bool, now: Instant, width: Option<usize>) -> String {
        let several = self.totals.len() > 1;
        let names = self.names(width.is_some());
        let distances = self
            .hits
            .iter()
            .any(|(_, hit)| hit.get("distance").is_some_and(|distance| !distance.is_null()));
        let mut columns = vec![Column::Text("content"), Column::Words("age")];
        if distances {
            columns.push(Column::Number("distance"));
        }
        columns.extend([Column::Number("score"), Column::Number("retr.")]);
        if several {
            columns.push(Column::Words("robot"));
        }
        columns.push(Column::Id("id"));
        let rows: Vec<Vec<String>> = self
            .hits
            .iter()
            .zip(&names)
            .map(|((robot, hit), name)| {
                let resource = hit.get("resource").cloned().unwrap_or_default();
                let mut row = vec![view::words(&resource), view::age(&resource, now)];
                if distances {
                    let metres = view::number(hit.get("distance"), 2);
                    row.push(if metres.is_empty() { metres } else { metres + " m" });
                }
                row.push(view::number(hit.get("score"), 3));
                row.push(view::number(hit.get("retrievability"), 2));
                if several {
                    row.push(robot.clone());
                }
                row.push(name.clone());
                row
            })
            .collect();
        let mut text = String::new();
        if !rows.is_empty() {
            text.push_str(&table::set(&columns, &rows, &["retr.", "score", "age"], width));
            text.push_str("\n\n");
        }
        if explain {
            let reasons = self.hits.iter().zip(names);
            let reasons: Vec<(String, String)> =
                reasons.map(|((_, hit), name)| (name, explanation(hit))).collect();
            text.push_str(&table::pairs_in(&reasons, width));
            text.push('\n');
        }
        for (robot, more) in &self.more {
            let told = answers::text(more, width);
            if several && !told.is_empty() {
                text.push_str(&format!("{robot}:\n"));
            }
            text.push_str(&told);
        }
        if self.hidden > 0 {
            text.push_str(&format!(
                "{} hidden: less than half of the words' weight; --floor 0 shows them\n",
                self.hidden
            ));
        }
        text.push_str(&format!(
            "total {}, shown {}, {:.1} ms",
            self.total(),
            self.hits.len(),
            self.took_micros as f64 / 1000.0
        ));
        if several {
            let each = self.totals.iter();
            let each: Vec<String> = each.map(|(robot, total)| format!("{robot} {total}")).collect();
            text.push_str(&format!(" ({})", each.join(", ")));
        }
        text
    }

    /// Names of the hits: for people as short as may be typed, for a pipe in full.
    fn names(&self, short: bool) -> Vec<String> {
        let resource = |hit: &Value| hit.get("resource").cloned().unwrap_or_default();
        let resources: Vec<Value> = self.hits.iter().map(|(_, hit)| resource(hit)).collect();
        if short {
            view::short_names(&resources)
        } else {
            resources.iter().map(view::name).collect()
        }
    }
}

/// Explains the rank of a hit: the daemon's reason, then the parts of the score.
fn explanation(hit: &Value) -> String {
    let mut line = String::new();
    if let Some(reason) = hit.get("reason").and_then(Value::as_str) {
        line.push_str(&format!(" {reason};"));
    }
    if let Some(parts) = hit.get("parts").and_then(Value::as_object) {
        for (name, part) in parts.iter() {
            let value = view::number(part.get("value").or(Some(part)), 2);
            let weight = view::number(part.get("weight"), 2);
            match (value.as_str(), weight.as_str()) {
                // Parts that were not asked for have no weight and say nothing.
                (_, "0.00") => {}
                ("", _) => line.push_str(&format!(" {name} {part}")),
                (value, "") => line.push_str(&format!(" {name} {value}")),
                (value, weight) => line.push_str(&format!(" {name} {value}×{weight}")),
            }
        }
    }
    line.trim_matches([' ', ';']).to_owned()
}

#[cfg(test)]
mod tests {
    use omird_tests::golden;

    use super::*;

    fn reply(scores: &[f64], total: u64) -> Reply {
        let hits: Vec<String> = scores
            .iter()
            .map(|score| {
                format!(
                    r#"{{"resource":{{"resourceType":"MemoryRecord","id":"m{score}","content":"c",
                    "createdAt":"2026-01-01T00:00:00Z"}},"score":{score},"retrievability":0.9,
                    "distance":1.25,"reason":"near","parts":{{"near":{{"value":0.5,"weight":0.25}},"age":0.125,"text":{{"value":1,"weight":0}}}}}}"#
                )
            })
            .collect();
        Reply {
            attachment: Vec::new(),
            key: "omir/r/recall".to_owned(),
            body: format!(r#"{{"hits":[{}],"total":{total},"tookMicros":180}}"#, hits.join(","))
                .into_bytes(),
        }
    }

    fn args(line: &[&str]) -> RecallArgs {
        use clap::Parser as _;
        let words = ["omir", "recall"].iter().chain(line);
        match crate::cli::Cli::try_parse_from(words).unwrap().command {
            crate::cli::Command::Recall(args) => *args,
            _ => panic!("recall expected"),
        }
    }

    #[test]
    fn a_fleet_is_merged_by_score_and_then_paged() {
        let mut replies = FleetReplies::default();
        replies.answers.insert("a".into(), reply(&[0.9, 0.3], 2));
        replies.answers.insert("b".into(), reply(&[0.5, 0.4], 7));
        let found = fleet(&replies, &args(&["--limit", "2", "--offset", "1"])).unwrap();
        let order: Vec<(&str, f64)> =
            found.hits.iter().map(|(robot, hit)| (robot.as_str(), score(hit))).collect();
        assert_eq!(order, [("b", 0.5), ("b", 0.4)]);
        assert_eq!(found.total(), 9);
        let json = found.to_json();
        assert_eq!(json.pointer("/hits/0/robot").and_then(Value::as_str), Some("b"));
    }

    #[test]
    fn a_fleet_is_merged_by_the_order_that_was_asked_for() {
        let answer = |hits: &[(&str, &str, f64)]| {
            let hit = |(id, when, metres): &(&str, &str, f64)| {
                format!(
                    r#"{{"resource":{{"resourceType":"MemoryRecord","id":"{id}","content":"c","eventTime":"{when}",
                    "createdAt":"2026-02-01T00:00:00Z"}},"score":0.5,"distance":{metres}}}"#
                )
            };
            let hits: Vec<String> = hits.iter().map(hit).collect();
            let body = format!(r#"{{"hits":[{}],"total":2,"tookMicros":1}}"#, hits.join(","));
            let (attachment, key) = (Vec::new(), "omir/r/recall".to_owned());
            Reply { attachment, key, body: body.into_bytes() }
        };
        let noon = [("n", "2026-01-01T12:00:00Z", 3.0), ("e", "2026-01-01T10:00:00+02:00", 1.0)];
        let day = [("l", "2026-01-02T00:00:00Z", 2.0), ("m", "2026-01-01T09:00:00Z", 4.0)];
        let merged = |line: &[&str]| {
            let mut replies = FleetReplies::default();
            replies.answers.insert("a".into(), answer(&noon));
            replies.answers.insert("b".into(), answer(&day));
            let found = fleet(&replies, &args(line)).unwrap();
            let id =
                |hit: &Value| hit.pointer("/resource/id").unwrap().as_str().unwrap().to_owned();
            found.hits.iter().map(|(_, hit)| id(hit)).collect::<String>()
        };
        assert_eq!(merged(&["--order", "latest"]), "lnme");
        assert_eq!(merged(&["--order", "earliest"]), "emnl");
        assert_eq!(merged(&["--order", "distance", "--near", "0,0", "--limit", "3"]), "eln");
    }

    #[test]
    fn an_order_by_distance_needs_a_place() {
        let given = args(&["--order", "distance"]);
        let refused = parameters(&given, &given.filters, 10, 0).unwrap_err();
        assert!(refused.to_string().contains("--near"), "{refused}");
        let given = args(&["--order", "distance", "--geo", "48,11"]);
        let asked = parameters(&given, &given.filters, 10, 0).unwrap();
        assert_eq!(asked.as_str(), "geo=48,11;order=distance;limit=10");
    }

    #[test]
    fn the_table_shows_what_there_is() {
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        let found = FoundMemories::merge([("a", &reply(&[0.5], 1))]).unwrap();
        let text = found.to_text(true, now, None);
        assert!(!text.contains("robot"), "{text}");
        assert!(
            text.contains("c        3 h ago    1.25 m  0.500   0.90  MemoryRecord/m0.5"),
            "{text}"
        );
        assert!(text.contains("MemoryRecord/m0.5  near; near 0.50×0.25 age 0.12\n"), "{text}");
        assert!(text.ends_with("total 1, shown 1, 0.2 ms"), "{text}");
        let none = FoundMemories::merge([("a", &reply(&[], 0))]).unwrap();
        assert_eq!(none.to_text(false, now, None), "total 0, shown 0, 0.2 ms");
    }

    /// Hits as a day brings them: ids made up and chosen, near neighbours among them, and every type.
    const HITS: &str = r#"{"hits":[
        {"resource":{"resourceType":"MemoryRecord","id":"3f9a12bc44429646fcdb23f94ea6cc70",
          "content":"the door of room three sticks when it rains, and has to be pulled hard",
          "createdAt":"2026-01-01T00:00:00Z"},"score":0.87,"retrievability":0.99,"distance":1.25,"reason":"near"},
        {"resource":{"resourceType":"MemoryRecord","id":"3f9a12bc4d429646fcdb23f94ea6cc70",
          "content":"дверь 3 заедает, когда идёт дождь, и её приходится тянуть изо всех сил",
          "createdAt":"2025-12-31T23:00:00Z"},"score":0.71,"retrievability":0.8,"distance":12.5,"reason":"near"},
        {"resource":{"resourceType":"Entity","id":"door-3","name":"door 3","summary":"between hall and lab",
          "createdAt":"2025-12-01T00:00:00Z"},"score":0.5,"retrievability":1.0,"distance":null,"reason":"named"},
        {"resource":{"resourceType":"MemoryRecord","id":"kitti_00-00000000000000000001","content":"short",
          "createdAt":"2026-01-01T02:59:30Z"},"score":0.25,"retrievability":0.1,"distance":100.0,"reason":"near"}
        ],"total":42,"tookMicros":180}"#;

    #[test]
    fn every_width_shows_what_a_memory_says() {
        let answer = |body: &str| Reply {
            attachment: Vec::new(),
            key: "omir/rover/recall".to_owned(),
            body: body.as_bytes().to_vec(),
        };
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        let plain = HITS.replace(r#""distance":1.25,"#, "").replace(r#""distance":12.5,"#, "");
        let plain = plain.replace(r#""distance":100.0,"#, "");
        let mut shown = String::new();
        for width in [Some(60), Some(80), Some(120), None] {
            let columns =
                width.map_or("a pipe".to_owned(), |width: usize| format!("{width} columns"));
            let near = FoundMemories::merge([("rover", &answer(HITS))]).unwrap();
            let words = FoundMemories::merge([("rover", &answer(&plain))]).unwrap();
            let fleet = FoundMemories::merge([("rover", &answer(HITS)), ("r2d2", &answer(&plain))])
                .unwrap();
            for (what, found) in [("near", near), ("words", words), ("fleet", fleet)] {
                let text = found.to_text(what == "words", now, width);
                if let Some(width) = width {
                    let table = text.split("\n\n").next().unwrap();
                    let wide = table.lines().find(|line| line.chars().count() > width);
                    assert_eq!(wide, None, "{columns}");
                }
                shown.push_str(&format!("=== {what}, {columns}\n{text}\n\n"));
            }
        }
        golden::check(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/recall.txt"), &shown);
    }

    #[test]
    fn parameters_are_those_that_were_given() {
        let given = args(&["where; when", "--no-touch", "--explain", "--near", "1,2"]);
        let parameters = parameters(&given, &given.filters, 10, 0).unwrap();
        assert_eq!(
            parameters.as_str(),
            "q=where%3B%20when;near=1,2;floor=0.5;limit=10;touch=false;explain=true"
        );
    }
}
