//! A daemon's state in a sentence, with what to do about what is wrong; and in a few lines.
//!
//! Pure: of a status object, as far as it tells. An older daemon tells less.

use omir_core::reference::ResourceType;
use omir_core::value::Value;

use crate::instant::{self, Instant};
use crate::{output, table};

/// A daemon that has run for less does not know yet what a day brings.
const DAY: u64 = 86_400;
/// A card that lasts less is worth a word.
const FEW_YEARS: f64 = 3.0;
/// Beyond that a number of years is a guess.
pub(super) const DECADES: f64 = 20.0;
/// Less than that is soon gone.
const LITTLE_ROOM: u64 = 16 << 20;

/// Something that is wrong, and what a person can do.
struct Fault {
    what: String,
    remedy: String,
}

/// So many faults take the room of what is less urgent.
const MANY: usize = 3;
/// Of more than these the remedies of the worst are told, and the others in --all.
const MOST: usize = 5;

/// The whole screen: the verdict, then what there is.
pub(super) fn whole(status: &Value, now: Instant, width: Option<usize>) -> String {
    let faults = faults(status, now);
    let mut lines = lines(status);
    if faults.len() >= MANY {
        lines.truncate(2);
    }
    let remedies = if faults.len() > MOST { MANY } else { MOST };
    let verdict = sentence(status, &faults, remedies, width);
    let lines = table::pairs_in(&lines, width);
    format!("{verdict}\n{lines}\nEverything: omir status --all\n")
}

/// The verdict: all is well, or what is wrong, one below the other.
pub(super) fn verdict(status: &Value, now: Instant, width: Option<usize>) -> String {
    sentence(status, &faults(status, now), usize::MAX, width)
}

fn sentence(status: &Value, faults: &[Fault], remedies: usize, width: Option<usize>) -> String {
    let robot = output::one_line(text(status, "/robot").unwrap_or("?"));
    match faults {
        [] => format!("{robot} is healthy\n"),
        [only] => {
            let what = table::pairs_in(&[(format!("{robot}:"), only.what.clone())], width);
            what + &remedy(&only.remedy, width)
        }
        several => {
            let mut text = format!("{robot}: {} things are wrong\n", several.len());
            for (index, fault) in several.iter().enumerate() {
                text.push_str(&table::pairs_in(&[("-".to_owned(), fault.what.clone())], width));
                if index < remedies {
                    text.push_str(&remedy(&fault.remedy, width));
                }
            }
            text
        }
    }
}

fn remedy(text: &str, width: Option<usize>) -> String {
    if text.is_empty() {
        String::new()
    } else {
        table::pairs_in(&[(" ".to_owned(), text.to_owned())], width)
    }
}

fn text<'a>(status: &'a Value, path: &str) -> Option<&'a str> {
    status.pointer(path).and_then(Value::as_str)
}

fn int(status: &Value, path: &str) -> Option<u64> {
    status.pointer(path).and_then(Value::as_u64)
}

fn number(status: &Value, path: &str) -> Option<f64> {
    status.pointer(path).and_then(Value::as_f64)
}

fn is_true(status: &Value, path: &str) -> bool {
    status.pointer(path).and_then(Value::as_bool) == Some(true)
}

/// Age of a stated moment.
fn ago(status: &Value, path: &str, now: Instant) -> Option<String> {
    let moment = text(status, path)?.parse::<Instant>().ok()?;
    Some(instant::age(moment, now))
}

/// Returns true if the daemon says no more than that it is there.
pub(in crate::commands) fn is_closed(status: &Value) -> bool {
    is_true(status, "/access/requireToken") && int(status, "/uptimeSeconds").is_none()
}

/// All that is wrong, the worst first.
fn faults(status: &Value, now: Instant) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |what: String, remedy: &str| {
        faults.push(Fault { what: output::one_line(&what), remedy: output::one_line(remedy) });
    };
    if is_closed(status) {
        add(
            "a token is needed to see how it is doing".to_owned(),
            "Set OMIR_TOKEN, or name a file that holds the token with --token-file; at the robot that is \
             keys/local.token in its data folder.",
        );
        return faults;
    }
    let state = text(status, "/disk/state").unwrap_or("ok");
    if state != "ok" {
        let mut what = match state {
            "damaged" => "files on the card are damaged".to_owned(),
            "stuck" => "logs do not become segments, which is a bug of omird".to_owned(),
            "full" => "the card is full".to_owned(),
            "readOnly" => "the card is mounted read-only".to_owned(),
            "failing" => "the card refuses to work".to_owned(),
            "gone" => "the card is not there".to_owned(),
            other => format!("the card is in the state {other}"),
        };
        if let Some(since) = ago(status, "/disk/since", now) {
            what.push_str(&format!(", seen {since}"));
        }
        if let Some(error) = text(status, "/disk/lastError") {
            what.push_str(&format!(" ({error})"));
        }
        add(what, text(status, "/disk/hint").unwrap_or_default());
    } else if int(status, "/disk/freeBytes").is_some_and(|free| free < LITTLE_ROOM) {
        let free = table::bytes(int(status, "/disk/freeBytes").unwrap_or_default());
        add(
            format!("the card is almost full: {free} free"),
            "Free some space, or bound the store with flash.max_bytes.",
        );
    }
    if let Some(count) = int(status, "/counts/lost").filter(|count| *count > 0) {
        add(
            format!("of {count} memories the newest version is lost"),
            "Remember them again or forget them: omir store check names them. A backup may have them.",
        );
    }
    if let Some(count) = int(status, "/unreadable").filter(|count| *count > 0) {
        // Once is enough.
        let is_said = state == "damaged" || state == "failing";
        let remedy = "Stop omird and see what is lost: omir store check DIR.";
        add(
            format!("{count} reads of memories failed since the start"),
            if is_said { "" } else { remedy },
        );
    }
    if text(status, "/namesakeHeard").is_some() {
        let heard = ago(status, "/namesakeHeard", now).unwrap_or_default();
        let robot = text(status, "/robot").unwrap_or("?");
        add(
            format!("another daemon is called {robot} too (heard {heard})"),
            "Give one of them another name: omird --robot NAME.",
        );
    }
    if text(status, "/clock/state") == Some("unknown") {
        add(
            "the clock is not set".to_owned(),
            "What comes in meanwhile is dated again once it is.",
        );
    }
    let waiting = int(status, "/queue/waiting").unwrap_or_default();
    if int(status, "/queue/capacity").is_some_and(|most| most > 0 && waiting >= most) {
        add(
            format!("{waiting} requests wait for the card, as many as may"),
            "More comes in than it can write: record less, or see whether it is failing.",
        );
    }
    let years = number(status, "/wear/cardYears");
    let has_run = int(status, "/uptimeSeconds").is_some_and(|seconds| seconds >= DAY);
    if let Some(years) = years.filter(|years| *years < FEW_YEARS && has_run) {
        add(
            format!("the card lasts {} at this rate", card_life(years)),
            "Record less (merge, at_most_every_s), or bound what can wait: flash.bytes_per_day.",
        );
    }
    faults
}

/// Life of a card, as exactly as it can be told.
pub(super) fn card_life(years: f64) -> String {
    match years {
        _ if years >= DECADES => "decades".to_owned(),
        _ if years >= 2.0 => format!("about {years:.0} years"),
        _ if years * 12.0 >= 2.0 => format!("about {:.0} months", years * 12.0),
        _ => "weeks".to_owned(),
    }
}

/// The few things that people ask for.
fn lines(status: &Value) -> Vec<(String, String)> {
    let all = [
        ("memories", memories(status)),
        ("card", card(status)),
        ("clock", clock(status)),
        ("taken in", taken_in(status)),
        ("ROS 2", ros2(status)),
        ("open", open_ways(status)),
        ("running", running(status)),
    ];
    let told = all.into_iter().filter_map(|(name, line)| Some((name.to_owned(), line?)));
    told.collect()
}

/// The ways in that ask for no token.
fn open_ways(status: &Value) -> Option<String> {
    let ways = status.pointer("/access/openTransports").and_then(Value::as_array)?;
    let ways: Vec<&str> = ways.iter().filter_map(Value::as_str).collect();
    (!ways.is_empty()).then(|| format!("to callers without a token: {}", ways.join(", ")))
}

fn memories(status: &Value) -> Option<String> {
    let of = |of: ResourceType| int(status, &format!("/counts/types/{of}")).unwrap_or_default();
    status.pointer("/counts/types")?;
    let kinds = [
        (ResourceType::MemoryRecord, "memory", "memories"),
        (ResourceType::Entity, "entity", "entities"),
        (ResourceType::Relationship, "relationship", "relationships"),
        (ResourceType::Episode, "episode", "episodes"),
    ];
    let counted = kinds.into_iter().filter_map(|(kind, one, many)| match of(kind) {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    });
    let counted: Vec<String> = counted.collect();
    Some(if counted.is_empty() { "none yet".to_owned() } else { counted.join(", ") })
}

fn card(status: &Value) -> Option<String> {
    let mut line = format!("{} used", table::bytes(int(status, "/disk/bytes")?));
    if let Some(most) = int(status, "/disk/maxBytes") {
        line.push_str(&format!(" of {} (flash.max_bytes)", table::bytes(most)));
    }
    if let Some(free) = int(status, "/disk/freeBytes") {
        line.push_str(&format!(", {} free", table::bytes(free)));
    }
    if let Some(count) = int(status, "/disk/repairs").filter(|count| *count > 0) {
        line.push_str(&format!(", repairs since the start: {count}"));
    }
    if let Some(years) = number(status, "/wear/cardYears") {
        line.push_str(&format!(", lasts {} at this rate", card_life(years)));
    }
    Some(line)
}

fn clock(status: &Value) -> Option<String> {
    let state = match text(status, "/clock/state")? {
        "synchronised" => "synchronised",
        "coarse" => "set, not known to be synchronised (coarse)",
        "unknown" => "not set (unknown)",
        other => other,
    };
    let now = text(status, "/clock/now").and_then(|now| now.parse::<Instant>().ok());
    let now = now.map(|now| now.to_string());
    let now = now.as_deref().and_then(|now| now.get(..16)).map(|now| now.replace('T', " "));
    Some(now.map_or_else(|| state.to_owned(), |now| format!("{now} UTC, {state}")))
}

fn taken_in(status: &Value) -> Option<String> {
    let durability = text(status, "/durability")?;
    if is_true(status, "/readOnly") {
        return Some("nothing: omird was started read-only".to_owned());
    }
    let mut line = match durability {
        "sync" => "acknowledged once it survives a power cut (sync)".to_owned(),
        other => format!("acknowledged before it is on the card ({other})"),
    };
    if let Some(count) = int(status, "/rejected").filter(|count| *count > 0) {
        line.push_str(&format!("; requests refused since the start: {count}"));
    }
    Some(line)
}

fn ros2(status: &Value) -> Option<String> {
    let ros = status.get("ros2")?;
    let topics =
        ros.get("topics").and_then(Value::as_object).map_or(0, |topics| topics.iter().count());
    let count = |name: &str| ros.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut line = format!("{topics} topics, {} memories kept", count("stored"));
    for (name, words) in [
        ("notStored", "refused by the memory"),
        ("droppedByDepth", "dropped before they were read"),
        ("malformed", "malformed"),
    ] {
        if count(name) > 0 {
            line.push_str(&format!(", {} {words}", count(name)));
        }
    }
    Some(line)
}

fn running(status: &Value) -> Option<String> {
    let mut words = Vec::new();
    if let Some(seconds) = int(status, "/uptimeSeconds") {
        words.push(format!("for {}", instant::span(seconds.into())));
    }
    if let Some(boots) = int(status, "/bootCount") {
        words.push(format!("start number {boots}"));
    }
    if let Some(version) = text(status, "/version") {
        words.push(format!("omird {version}"));
    }
    (!words.is_empty()).then(|| words.join(", "))
}
