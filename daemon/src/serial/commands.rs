//! Commands of the console, and their output.

use std::sync::Weak;
use std::time::Duration;

use crossbeam_channel::Sender;
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omir_core::words;

use super::share::{Machine, Turn};
use super::spool::{MOST_PACKED, Spool};
use crate::engine::command::EventKind;
use crate::engine::events::Following;
use crate::engine::export::{LeftOut, decode_stored};
use crate::engine::request::reference;
use crate::error::{Code, Error};
use crate::protocols::Protocols;
use crate::protocols::omir::{DOCUMENT, Document, EVENTS, GET, RECALL, STATUS, worded};
use crate::recall::query::Query;
use crate::router::{Admitted, Caller, Incoming, Method};

/// Default number of memories that `ls` shows at once.
const SHOWN: usize = 20;
/// Events that wait for a slow line; more are passed over.
const MOST_EVENTS: usize = 256;
/// Characters of a text in a list.
const WIDTH: usize = 60;

const HELP: &str = "\
help                       this
status                     how the daemon is doing
ls [FILTER ...]            what is remembered, best first; offset=20 for more
get REF                    one resource, such as get Entity/dock
recall TEXT ... [FILTER ...]   what is known of it
tail                       what is recorded from now on, until Ctrl-C
dump [FILTER ...]          an .omir document between two marks, for a capture file
sz [FILTER ...]            the same as a file by ZMODEM; minicom and others take it by
                           themselves, elsewhere start rz
A FILTER is a parameter of recall: near=1,2 radius=3 frame=map type=Entity label=tool
_time=[now(-1h)..] ...; words with a = in them go into \"quotes\".
Ctrl-C ends what is running. Programs use the link of docs/serial.md on the same line.
";

/// A line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// What there is.
    Help,
    /// The status.
    Status,
    /// A list of what parameters select.
    List(Vec<(String, String)>),
    /// One resource.
    Get(String),
    /// A recall.
    Recall(Vec<(String, String)>),
    /// Events.
    Tail,
    /// A document.
    Dump(Vec<(String, String)>),
    /// A document by ZMODEM, named as at a shell.
    Sz(Vec<(String, String)>),
}

/// Output of a command.
pub enum Said {
    /// To be shown, lines ended by LF.
    Text(String),
    /// To be sent.
    File {
        /// Its name at the other end.
        name: String,
        /// Seconds since 1970.
        modified: u32,
        /// Its contents.
        spool: Spool,
    },
}

impl Command {
    /// Returns the method that it asks for; none for help, which is not the memory's.
    fn method(&self) -> Option<&'static Method> {
        match self {
            Command::Help => None,
            Command::Status => Some(&STATUS),
            Command::List(_) | Command::Recall(_) => Some(&RECALL),
            Command::Get(_) => Some(&GET),
            Command::Tail => Some(&EVENTS),
            Command::Dump(_) | Command::Sz(_) => Some(&DOCUMENT),
        }
    }

    /// Reads a line. `None` if there is nothing in it.
    ///
    /// # Errors
    /// `INVALID_QUERY`: says what there is.
    pub fn parse(line: &str) -> Result<Option<Command>, Error> {
        let mut words = split(line).into_iter();
        let Some((name, _)) = words.next() else { return Ok(None) };
        let (mut parameters, mut text) = (Vec::new(), Vec::new());
        for (word, quoted) in words {
            match word.split_once('=') {
                Some((name, value)) if !quoted => {
                    parameters.push((name.to_owned(), value.to_owned()))
                }
                _ => text.push(word),
            }
        }
        let refuse = |message: String| Err(Error::new(Code::InvalidQuery, message));
        let plain = |command| match (text.first(), parameters.first()) {
            (None, None) => Ok(Some(command)),
            _ => refuse(format!("`{name}` takes nothing after it")),
        };
        let filtered = |command: fn(Vec<(String, String)>) -> Command| match text.first() {
            None => Ok(Some(command(parameters.clone()))),
            Some(word) => refuse(format!("{word:?} is no filter such as type=Entity")),
        };
        match name.as_str() {
            "help" | "?" => plain(Command::Help),
            "status" => plain(Command::Status),
            "tail" => plain(Command::Tail),
            "ls" => filtered(Command::List),
            "dump" => filtered(Command::Dump),
            "sz" => filtered(Command::Sz),
            "get" => match (&text[..], parameters.is_empty()) {
                ([target], true) => Ok(Some(Command::Get(target.clone()))),
                _ => refuse("`get` takes one reference, such as Entity/dock".to_owned()),
            },
            "recall" => {
                if !text.is_empty() {
                    parameters.push(("q".to_owned(), text.join(" ")));
                }
                Ok(Some(Command::Recall(parameters)))
            }
            _ => refuse(format!("unknown command {name:?}; `help` tells what there is")),
        }
    }
}

/// Words, and whether each was in quotes.
fn split(line: &str) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after, quoted) = if first == '"' {
            let inner = &rest[1..];
            let end = inner.find('"').unwrap_or(inner.len());
            (&inner[..end], inner.get(end + 1..).unwrap_or_default(), true)
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (&rest[..end], &rest[end..], false)
        };
        all.push((word.to_owned(), quoted));
        rest = after.trim_start();
    }
    all
}

/// Nobody wants the rest.
#[derive(Debug)]
pub struct Unwanted;

/// Context of a command.
pub struct Worker {
    /// The possible requests.
    pub protocols: Protocols,
    /// The caller.
    pub caller: Caller,
    /// Nobody is left who wants to know, once it cannot be upgraded.
    pub wanted: Weak<()>,
    /// Destination of its output.
    pub out: Sender<Said>,
}

impl Worker {
    /// Works on a command, on a thread of its own.
    pub fn run(self, command: Command, share: &mut Turn) {
        // It waited for its share of time: who interrupted it meanwhile wants nothing of it.
        if !self.is_wanted() {
            return;
        }
        let Some(method) = command.method() else {
            let _ = self.show(HELP.to_owned());
            return;
        };
        let admitted = self.protocols.router.admit(&self.caller, method, Incoming::default());
        let done = admitted.map_err(worded).and_then(|admitted| {
            let done = self.work(&admitted, &command, share);
            admitted.finish(&done);
            done
        });
        if let Err(error) = done {
            let _ = self.show(told(&error));
        }
    }

    fn work(
        &self,
        admitted: &Admitted,
        command: &Command,
        share: &mut Turn,
    ) -> Result<Result<(), Unwanted>, Error> {
        let omir = &self.protocols.omir;
        match command {
            Command::Help => Ok(self.show(HELP.to_owned())),
            Command::Status => Ok(self.status(admitted)),
            Command::List(parameters) => {
                let base = Query { limit: Some(SHOWN), ..Query::default() };
                self.list(admitted, base, parameters)
            }
            Command::Recall(parameters) => self.list(admitted, Query::default(), parameters),
            Command::Get(target) => self.get(admitted, target),
            Command::Tail => Ok(self.tail(&omir.events(admitted, MOST_EVENTS), share)),
            Command::Dump(parameters) => {
                self.dump(&self.select(admitted, parameters, share)?, share)
            }
            Command::Sz(parameters) => self.sz(&self.select(admitted, parameters, share)?, share),
        }
    }

    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }

    fn show(&self, text: String) -> Result<(), Unwanted> {
        self.out.send(Said::Text(text)).map_err(|_| Unwanted)
    }

    fn status(&self, admitted: &Admitted) -> Result<(), Unwanted> {
        let mut text = String::new();
        flatten("", &self.protocols.omir.status(admitted), &mut text);
        self.show(text)
    }

    fn list(
        &self,
        admitted: &Admitted,
        base: Query,
        parameters: &[(String, String)],
    ) -> Result<Result<(), Unwanted>, Error> {
        // A console only reads, and an access makes a memory last longer.
        let (query, found) = self.protocols.omir.look(admitted, base, &parameters.to_vec())?;
        let offset = query.offset;
        let mut text = String::new();
        for hit in &found.hits {
            let resource = decode_stored(&hit.resource)?;
            text += &format!("{:.2} {}\n", hit.retrievability, summary(&resource));
        }
        let shown = found.hits.len();
        text += &format!("{shown} of {}", found.total);
        if offset + shown < usize::try_from(found.total).unwrap_or(usize::MAX) && shown > 0 {
            text += &format!("; more with offset={}", offset + shown);
        }
        text.push('\n');
        Ok(self.show(text))
    }

    fn get(&self, admitted: &Admitted, target: &str) -> Result<Result<(), Unwanted>, Error> {
        let target = reference("ref", target)?;
        let Some(bytes) = self.protocols.omir.get(admitted, &target)? else {
            return Err(Error::new(Code::NotFound, format!("there is no {target}")));
        };
        Ok(self.show(format!("{}\n", json::to_string_pretty(&decode_stored(&bytes)?))))
    }

    /// Each event is paid for soon after it: a bill for hours would hold up what comes next.
    fn tail<M: Machine>(&self, events: &Following, share: &mut Turn<M>) -> Result<(), Unwanted> {
        loop {
            let passed_over = events.missed();
            if passed_over > 0 {
                self.show(format!(
                    "... {passed_over} more: the line is too slow for all of them\n"
                ))?;
            }
            match events.next(Duration::from_millis(500)) {
                Some(event) => {
                    let resource = cbor::from_slice(&event.resource, &Limits::default());
                    let what = match (event.kind, resource) {
                        (EventKind::Forgotten, _) | (_, Err(_)) => event.target.to_string(),
                        (_, Ok(resource)) => summary(&resource),
                    };
                    self.show(format!("{} {what}\n", event.kind.as_str()))?;
                    share.rest_if_due();
                }
                None if self.is_wanted() => share.rest(),
                None => return Err(Unwanted),
            }
        }
    }

    fn dump(&self, document: &Document, share: &mut Turn) -> Result<Result<(), Unwanted>, Error> {
        if self.show("-----BEGIN OMIR-----\n".to_owned()).is_err() {
            return Ok(Err(Unwanted));
        }
        let mut sum = crc32fast::Hasher::new();
        let written = write(document, share, |text| {
            // Each terminal has its own ends of lines.
            text.split('\n').for_each(|line| sum.update(line.as_bytes()));
            self.show(text)
        });
        Ok(written.and_then(|left_out| {
            let sum = sum.finalize();
            self.show(format!("-----END OMIR-----\nCRC-32 {sum:08x}\n"))?;
            self.show(shortfall(&left_out))
        }))
    }

    fn sz(&self, document: &Document, share: &mut Turn) -> Result<Result<(), Unwanted>, Error> {
        let mut spool = Spool::new(MOST_PACKED);
        let mut is_full = false;
        let gathered = write(document, share, |text| {
            is_full = spool.push(&text).is_err();
            if is_full || !self.is_wanted() { Err(Unwanted) } else { Ok(()) }
        });
        if is_full {
            let message = format!(
                "the file would take more than {} MiB of memory until it is sent: give a FILTER such as \
                 type=Episode or _time=[now(-1d)..], or use dump or omir pull",
                MOST_PACKED >> 20
            );
            return Err(Error::new(Code::TooLarge, message));
        }
        let seconds = self.protocols.omir.now().as_micros() / 1_000_000;
        let file = Said::File {
            name: file_name(self.protocols.omir.robot()),
            modified: u32::try_from(seconds).unwrap_or(0),
            spool,
        };
        Ok(gathered.and_then(|left_out| {
            self.out.send(file).map_err(|_| Unwanted)?;
            self.show(shortfall(&left_out))
        }))
    }

    fn select(
        &self,
        admitted: &Admitted,
        parameters: &[(String, String)],
        share: &mut Turn,
    ) -> Result<Document, Error> {
        self.protocols.omir.document(admitted, &parameters.to_vec(), || {
            share.rest_if_due();
            self.is_wanted()
        })
    }
}

/// Writes a document, line by line, all of it ASCII; what cannot be read is not in it.
fn write(
    document: &Document,
    share: &mut Turn,
    mut write: impl FnMut(String) -> Result<(), Unwanted>,
) -> Result<LeftOut, Unwanted> {
    let head = ascii(&json::to_string(&Value::Object(document.head().clone())));
    let open = head.strip_suffix('}').unwrap_or(&head);
    write(format!("{open},\"entry\":["))?;
    let (mut left_out, mut between) = (LeftOut::default(), "\n");
    for entry in document.entries() {
        match entry {
            Ok(entry) => {
                write(format!("{between}{}", ascii(&json::to_string(&entry))))?;
                between = ",\n";
            }
            Err(error) => left_out.note(error),
        }
        share.rest_if_due();
    }
    write("\n]}\n".to_owned())?;
    Ok(left_out)
}

/// Describes what is missing in a document, as a line; nothing if nothing is.
fn shortfall(left_out: &LeftOut) -> String {
    match left_out.first.first() {
        None => String::new(),
        Some(why) => format!(
            "{} resources are left out, with what cannot stand without them: {why}; \
             `omir store check` names what is damaged\n",
            left_out.count
        ),
    }
}

/// Of a robot's dump, such that any system takes it.
fn file_name(robot: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = robot.chars().take(100).map(plain).collect();
    format!("{}.omir", if name.starts_with('-') { name.replacen('-', "_", 1) } else { name })
}

/// An error as a line.
pub fn told(error: &Error) -> String {
    let at = if error.path.is_empty() { String::new() } else { format!(" ({})", error.path) };
    format!("{}{at}: {}\n", error.code.as_str(), error.message)
}

/// JSON that a terminal and its capture file leave as it is.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out
}

/// A resource in a line.
fn summary(resource: &Value) -> String {
    let said = words::words(resource).replace('\n', " ");
    let mut short: String = said.chars().take(WIDTH).collect();
    if short.len() < said.len() {
        short.push_str("...");
    }
    format!("{} {short}", words::name(resource))
}

/// Each value on a line, named by where it lies.
fn flatten(name: &str, value: &Value, out: &mut String) {
    let inside = |part: &str| {
        if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
    };
    match value {
        Value::Object(map) if !Map::is_empty(map) => {
            map.iter().for_each(|(part, value)| flatten(&inside(part), value, out));
        }
        value => *out += &format!("{name} {}\n", json::to_string(value)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use crossbeam_channel::unbounded;

    use super::*;
    use crate::engine::command::Event;
    use crate::serial::share::{Budget, Share};
    use crate::serial::testing::Bench;

    fn parse(line: &str) -> Command {
        Command::parse(line).unwrap().unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn event(n: u8) -> Event {
        Event {
            kind: EventKind::Forgotten,
            target: format!("Entity/e{n}").parse().unwrap(),
            resource: Vec::new(),
            cause: None,
        }
    }

    /// Each look at it is a millisecond of work.
    #[derive(Default)]
    struct Worked {
        used: Cell<u64>,
        rested: Cell<u64>,
    }

    impl Machine for &Worked {
        fn now(&self) -> Duration {
            Duration::from_millis(self.used.get() + self.rested.get())
        }

        fn used(&self) -> Duration {
            self.used.set(self.used.get() + 1);
            Duration::from_millis(self.used.get())
        }

        fn rest(&self, owed: Duration) {
            self.rested.set(self.rested.get() + owed.as_millis() as u64);
        }
    }

    #[test]
    fn events_are_paid_for_as_they_come() {
        let bench = Bench::new();
        let (out, said) = unbounded();
        let wanted = Arc::new(());
        let worker = Worker {
            protocols: bench.protocols(),
            caller: Caller::trusted("console"),
            wanted: Arc::downgrade(&wanted),
            out,
        };
        let followed = bench.engine.events().follow(MOST_EVENTS);
        (0..200).for_each(|n| bench.engine.events().announce(&event(n)));
        // Nobody wants to hear what comes after them.
        drop(wanted);
        let machine = Worked::default();
        let budget = Budget::new(Share::new(0.25));
        assert!(worker.tail(&followed, &mut budget.begin_on(&machine)).is_err());
        assert_eq!(said.len(), 200);
        let (used, rested) = (machine.used.get(), machine.rested.get());
        assert!(rested >= (used - 10) * 3, "{rested} for {used}");
        let owed = budget.begin_on(&machine).settle();
        assert!(owed < Duration::from_millis(50), "{owed:?}");
    }

    #[test]
    fn what_nobody_wants_any_more_is_not_begun() {
        let bench = Bench::new();
        let (out, said) = unbounded();
        let (protocols, caller) = (bench.protocols(), Caller::trusted("console"));
        let worker = Worker { protocols, caller, wanted: Weak::new(), out };
        worker.run(Command::Status, &mut Budget::new(Share::new(1.0)).begin());
        assert_eq!(said.len(), 0);
    }

    #[test]
    fn a_line_says_what_a_resource_is() {
        let bench = Bench::new();
        for json in [
            r#"{"resourceType":"Entity","id":"a","name":"cup"}"#,
            r#"{"resourceType":"Entity","id":"b","name":"table"}"#,
            r#"{"resourceType":"Relationship","id":"r","relationType":"on","from":{"ref":"Entity/a"},"to":{"ref":"Entity/b"}}"#,
        ] {
            bench.remember(json);
        }
        let line = |name: &str| {
            let bytes = bench.engine.get(&name.parse().unwrap()).unwrap().unwrap();
            summary(&decode_stored(&bytes).unwrap())
        };
        assert_eq!(line("Entity/a"), "Entity/a cup");
        assert_eq!(line("Relationship/r"), "Relationship/r Entity/a on Entity/b");
    }

    #[test]
    fn lines_are_commands() {
        assert_eq!(Command::parse("  "), Ok(None));
        assert_eq!(parse(" help "), Command::Help);
        assert_eq!(parse("get Entity/dock"), Command::Get("Entity/dock".to_owned()));
        assert_eq!(
            parse("recall red  charger near=1,2 radius=3"),
            Command::Recall(pairs(&[("near", "1,2"), ("radius", "3"), ("q", "red charger")]))
        );
        assert_eq!(parse(r#"recall "a=b" "c d""#), Command::Recall(pairs(&[("q", "a=b c d")])));
        assert_eq!(parse("ls type=Entity"), Command::List(pairs(&[("type", "Entity")])));
        assert_eq!(parse("dump"), Command::Dump(vec![]));
        assert_eq!(parse("sz type=Entity"), Command::Sz(pairs(&[("type", "Entity")])));
        let says = |line: &str| Command::parse(line).unwrap_err().message;
        assert_eq!(says("rm -rf"), "unknown command \"rm\"; `help` tells what there is");
        assert_eq!(says("status now"), "`status` takes nothing after it");
        assert_eq!(says("get"), "`get` takes one reference, such as Entity/dock");
        assert_eq!(says("dump all"), "\"all\" is no filter such as type=Entity");
        assert_eq!(parse("recall \""), Command::Recall(pairs(&[("q", "")])));
    }

    #[test]
    fn a_robot_gives_its_dump_a_plain_name() {
        assert_eq!(file_name("r2"), "r2.omir");
        assert_eq!(file_name("-fleet/../k\u{fc}che"), "_fleet----k-che.omir");
    }

    #[test]
    fn a_document_is_ascii_and_the_same() {
        let value = Value::from("k\u{fc}che \u{1f916}\u{7f}\n\"\\");
        let text = ascii(&json::to_string(&value));
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(json::from_slice(text.as_bytes(), &Limits::default()), Ok(value));
    }
}
