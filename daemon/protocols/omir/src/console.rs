//! The console: commands of a person at a terminal, and their output as text (docs/serial.md).
//!
//! A transport reads lines, shows text and carries files. What a line means, and what is said to it, is decided here.

mod command;
mod text;

use std::time::Duration;

use omir_core::cbor;
use omir_core::crc::Crc32;
use omir_core::decode::Limits;
use omir_core::event::EventKind;
use omir_core::json;
use omir_core::value::Value;
use omird_engine::EventQueue;
use omird_engine::Query;
use omird_engine::{Code, Error};
use omird_engine::{LeftOut, decode_stored};
use omird_router::Admitted;

pub use self::command::Command;
pub use self::text::error_line;
use self::text::{answers, ascii, file_name, flatten, hit_line, page_line, shortfall, summary};
use crate::pacing::{Cancelled, Pacer};
use crate::params::{Parameters, reference};
use crate::{Document, Omir};

/// Default number of memories that `ls` shows at once.
const SHOWN: usize = 20;
/// Events that wait for a slow line; more are passed over.
const MOST_EVENTS: usize = 256;
/// Time after which `tail` looks if it is still wanted.
const PATIENCE: Duration = Duration::from_millis(500);

/// The answer to `help`.
pub const HELP: &str = "\
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

/// The terminal of a person, and the pace of the work for it.
pub trait Terminal: Pacer {
    /// Shows text, lines ended by LF.
    ///
    /// # Errors
    /// The person has cancelled the command, or is gone.
    fn show(&mut self, text: String) -> Result<(), Cancelled>;

    /// Adds text to the file that is sent next.
    ///
    /// # Errors
    /// The person has cancelled the command, or there is no room for the text.
    fn append(&mut self, text: &str) -> Result<(), NotAppended>;

    /// Sends the file, with a time in seconds since 1970.
    ///
    /// # Errors
    /// The person has cancelled the command, or is gone.
    fn send_file(&mut self, name: String, modified: u32) -> Result<(), Cancelled>;
}

/// A text that is not added to a file.
#[derive(Debug)]
pub enum NotAppended {
    /// The person has cancelled the command.
    Cancelled,
    /// The file would take more than so much memory until it is sent.
    Full {
        /// Mebibytes.
        most_mib: usize,
    },
}

impl From<Cancelled> for NotAppended {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

type Shown = Result<(), Cancelled>;

impl Omir {
    /// Carries out a command, and shows what comes of it. An error is shown as a line.
    pub fn console(&self, admitted: Admitted, command: &Command, with: &mut dyn Terminal) {
        let done = match command {
            Command::Help => Ok(with.show(HELP.to_owned())),
            Command::Status => {
                let mut text = String::new();
                flatten("", &self.status(&admitted), &mut text);
                Ok(with.show(text))
            }
            Command::List(parameters) => {
                let base = Query { limit: Some(SHOWN), ..Query::default() };
                self.list(&admitted, base, parameters, with)
            }
            Command::Recall(parameters) => self.list(&admitted, Query::default(), parameters, with),
            Command::Get(target) => self.show_one(&admitted, target, with),
            Command::Tail => {
                // It ends only where the person cancels it.
                let _ = tail(&self.events(&admitted, MOST_EVENTS), with);
                Ok(Ok(()))
            }
            Command::Dump(parameters) => {
                self.selection(&admitted, parameters, with).map(|document| dump(&document, with))
            }
            Command::Sz(parameters) => self
                .selection(&admitted, parameters, with)
                .and_then(|document| self.send(&document, with)),
        };
        match done {
            Ok(Ok(())) => admitted.done(),
            Ok(Err(Cancelled)) => drop(admitted),
            Err(error) => {
                admitted.failed(error.code);
                // If it is not shown, no reader is left.
                let _ = with.show(error_line(&error));
            }
        }
    }

    fn list(
        &self,
        admitted: &Admitted,
        base: Query,
        parameters: &Parameters,
        with: &mut dyn Terminal,
    ) -> Result<Shown, Error> {
        // A console only reads, and an access makes a memory last longer.
        let (query, recalled) = self.look(admitted, base, parameters)?;
        let mut text = String::new();
        for hit in &recalled.hits {
            let resource = decode_stored(&hit.resource)?;
            text += &hit_line(hit, &resource);
        }
        for one in &recalled.corrected {
            text += &format!("{} was read as {}\n", one.from, one.to.join(", "));
        }
        text += &answers(&recalled.more);
        text += &page_line(&query, &recalled);
        Ok(with.show(text))
    }

    fn show_one(
        &self,
        admitted: &Admitted,
        target: &str,
        with: &mut dyn Terminal,
    ) -> Result<Shown, Error> {
        let target = reference("ref", target)?;
        let Some(bytes) = self.get(admitted, &target)? else {
            return Err(Error::new(Code::NotFound, format!("there is no {target}")));
        };
        Ok(with.show(format!("{}\n", json::to_string_pretty(&decode_stored(&bytes)?))))
    }

    fn selection(
        &self,
        admitted: &Admitted,
        parameters: &Parameters,
        with: &mut dyn Terminal,
    ) -> Result<Document, Error> {
        self.document(admitted, parameters, || {
            with.rest_if_due();
            with.is_wanted()
        })
    }

    /// Sends a document as a file, and says what is missing in it.
    fn send(&self, document: &Document, with: &mut dyn Terminal) -> Result<Shown, Error> {
        let written = write(document, with, |with, text| {
            if !with.is_wanted() {
                return Err(NotAppended::Cancelled);
            }
            with.append(&text)
        });
        let left_out = match written {
            Ok(left_out) => left_out,
            Err(NotAppended::Cancelled) => return Ok(Err(Cancelled)),
            Err(NotAppended::Full { most_mib }) => {
                let message = format!(
                    "the file would take more than {most_mib} MiB of memory until it is sent: give a FILTER such as \
                     type=Episode or _time=[now(-1d)..], or use dump or omir pull"
                );
                return Err(Error::new(Code::TooLarge, message));
            }
        };
        let modified = u32::try_from(self.now().as_micros() / 1_000_000).unwrap_or(0);
        Ok(with
            .send_file(file_name(self.robot()), modified)
            .and_then(|()| with.show(shortfall(&left_out))))
    }
}

/// Shows events until the person cancels that. Each event is paid for soon after it: a bill for hours would hold up what
/// comes next.
fn tail(events: &EventQueue, with: &mut dyn Terminal) -> Shown {
    loop {
        let passed_over = events.missed();
        if passed_over > 0 {
            with.show(format!("... {passed_over} more: the line is too slow for all of them\n"))?;
        }
        match events.next(PATIENCE) {
            Some(event) => {
                let resource = cbor::from_slice(&event.resource, &Limits::default());
                let what = match (event.kind, resource) {
                    (EventKind::Forgotten, _) | (_, Err(_)) => event.target.to_string(),
                    (_, Ok(resource)) => summary(&resource),
                };
                with.show(format!("{} {what}\n", event.kind))?;
                with.rest_if_due();
            }
            None if with.is_wanted() => with.rest(),
            None => return Err(Cancelled),
        }
    }
}

/// Shows a document between two marks, and its checksum.
fn dump(document: &Document, with: &mut dyn Terminal) -> Shown {
    with.show("-----BEGIN OMIR-----\n".to_owned())?;
    let mut sum = Crc32::new();
    let left_out = write(document, with, |with, text| {
        // Each terminal has its own ends of lines.
        text.bytes().filter(|&byte| byte != b'\n').for_each(|byte| sum.push(byte));
        with.show(text)
    })?;
    with.show(format!("-----END OMIR-----\nCRC-32 {:08x}\n", sum.finish()))?;
    with.show(shortfall(&left_out))
}

/// Writes a document, line by line, all of it ASCII; what cannot be read is not in it.
fn write<E>(
    document: &Document,
    with: &mut dyn Terminal,
    mut write: impl FnMut(&mut dyn Terminal, String) -> Result<(), E>,
) -> Result<LeftOut, E> {
    let head = ascii(&json::to_string(&Value::Object(document.head().clone())));
    let open = head.strip_suffix('}').unwrap_or(&head);
    write(with, format!("{open},\"entry\":["))?;
    let (mut left_out, mut between) = (LeftOut::default(), "\n");
    for entry in document.entries() {
        match entry {
            Ok(entry) => {
                write(with, format!("{between}{}", ascii(&json::to_string(&entry))))?;
                between = ",\n";
            }
            Err(error) => left_out.note(error),
        }
        with.rest_if_due();
    }
    write(with, "\n]}\n".to_owned())?;
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use omird_engine::testing::{ByHand as _, lose, parts};
    use omird_engine::{Encoding, Engine, Event, Events};
    use omird_router::testing::AuditLines;
    use omird_router::{Caller, Incoming, Router};

    use super::*;

    /// A terminal that keeps its lines, and whose person has gone.
    #[derive(Default)]
    struct Paper {
        lines: Vec<String>,
        rests: usize,
    }

    impl Pacer for Paper {
        fn is_wanted(&self) -> bool {
            false
        }

        fn rest(&mut self) {
            self.rests += 1;
        }

        fn rest_if_due(&mut self) {
            self.rests += 1;
        }
    }

    impl Terminal for Paper {
        fn show(&mut self, text: String) -> Shown {
            self.lines.push(text);
            Ok(())
        }

        fn append(&mut self, _: &str) -> Result<(), NotAppended> {
            Err(NotAppended::Cancelled)
        }

        fn send_file(&mut self, _: String, _: u32) -> Shown {
            Err(Cancelled)
        }
    }

    /// Invariant 37 of ARCHITECTURE.md: the audit line says how a command ended.
    #[test]
    fn a_file_that_nobody_wanted_to_the_end_was_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(omird_engine::testing::parts(dir.path()), &mut |_| {}).unwrap();
        let lines = AuditLines::default();
        let router = Router::new(engine.clone(), [lines.sink()]);
        let omir = Omir::new(engine, "r1");
        for (line, ends) in [("sz", "given up"), ("status", "ok"), ("get Entity/no", "NOT_FOUND")] {
            let command = Command::parse(line).unwrap().unwrap();
            let method = command.method().unwrap();
            let caller = Caller::trusted("serial", "console");
            let admitted = router.admit(&caller, method, Incoming::default()).unwrap();
            omir.console(admitted, &command, &mut Paper::default());
            let told = lines.take();
            assert!(told.len() == 1 && told[0].ends_with(ends), "{line}: {told:?}");
        }
    }

    /// An engine with a cup that was seen on two days.
    fn seen_twice(dir: &Path) -> Engine {
        let engine = Engine::open(parts(dir), &mut |_| {}).unwrap();
        let seen = |id: &str, at: &str| {
            format!(
                r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} stands here",
                    "createdAt":"{at}","entityRefs":[{{"ref":"Entity/cup"}}]}}"#
            )
        };
        let cup = r#"{"resourceType":"Entity","id":"cup","name":"cup"}"#.to_owned();
        let all = [
            cup,
            seen("first-cup", "2026-05-29T08:00:00Z"),
            seen("second-cup", "2026-05-30T08:00:00Z"),
            seen("third-cup", "2026-05-30T08:00:01Z"),
        ];
        let change =
            engine.prepare(format!("[{}]", all.join(",")).as_bytes(), Encoding::Json, None);
        engine.execute(change.unwrap()).unwrap();
        engine
    }

    fn shown(engine: &Engine, line: &str) -> String {
        let lines = AuditLines::default();
        let router = Router::new(engine.clone(), [lines.sink()]);
        let command = Command::parse(line).unwrap().unwrap();
        let caller = Caller::trusted("serial", "console");
        let admitted = router.admit(&caller, command.method().unwrap(), Incoming::default());
        let mut paper = Paper::default();
        Omir::new(engine.clone(), "r1").console(admitted.unwrap(), &command, &mut paper);
        paper.lines.concat()
    }

    #[test]
    fn answers_about_all_matches_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let engine = seen_twice(dir.path());
        let only = "type=MemoryRecord";
        assert_eq!(shown(&engine, &format!("recall {only} count=true")), "count 3\n3 in all\n");
        assert_eq!(
            shown(&engine, &format!("recall {only} countBy=day")),
            "2026-05-29 1 2026-05-29T08:00:00Z to 2026-05-29T08:00:00Z\n\
             2026-05-30 2 2026-05-30T08:00:00Z to 2026-05-30T08:00:01Z\ngroups 2\n3 in all\n"
        );
        let one = shown(&engine, &format!("ls {only} countBy=day limit=1"));
        assert!(one.ends_with("groups 2\n3 in all; more with offset=1\n"), "{one}");
        let visits = shown(&engine, &format!("recall {only} visits=true limit=0"));
        assert_eq!(visits, "visits 2 2026-05-29T08:00:00Z to 2026-05-30T08:00:01Z\n0 of 3\n");
        let newest = shown(&engine, &format!("recall {only} distinct=entity order=latest"));
        assert!(newest.contains("third-cup stands here; of Entity/cup\ngroups 1\n"), "{newest}");
        assert!(!newest.contains("offset"), "{newest}");
    }

    #[test]
    fn what_cannot_be_read_is_counted_and_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let engine = seen_twice(dir.path());
        engine.seal_now(Duration::from_secs(60)).unwrap();
        // While it runs: it still knows what is there.
        lose(dir.path(), "second-cup stands");
        let page = |offset: usize| {
            let line = format!("ls type=MemoryRecord order=earliest limit=1 offset={offset}");
            shown(&engine, &line)
        };
        assert!(page(0).ends_with("1 of 3; more with offset=1\n"), "{}", page(0));
        let lost = "0 of 3; 1 cannot be read (`omir store check` names what is damaged); more with \
                    offset=2\n";
        assert_eq!(page(1), lost, "a page that is wholly lost");
        assert!(page(2).ends_with("1 of 3\n"), "{}", page(2));
    }

    #[test]
    fn events_are_paid_for_as_they_come() {
        let events = Events::default();
        let following = events.follow(MOST_EVENTS);
        for n in 0..200 {
            let target = format!("Entity/e{n}").parse().unwrap();
            let (kind, resource) = (EventKind::Forgotten, Vec::new());
            events.announce(&Event { kind, target, resource, cause: None, seq: 0 });
        }
        let mut paper = Paper::default();
        assert!(tail(&following, &mut paper).is_err());
        assert_eq!((paper.lines.len(), paper.rests), (200, 200));
        assert_eq!(paper.lines[7], "forgotten Entity/e7\n");
    }
}
