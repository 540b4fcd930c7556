//! Serial ports (docs/serial.md) over real pseudo-terminals: a daemon on one side, on the other a client that is
//! built of the core's link alone, with noise and a cable that is pulled in between, or a person who types.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::link::message::{
    Answer, Answered, Asked, Failure, Inbox, Info, Pull, Push, Pushed, Request,
};
use omir_core::link::pack::unpack;
use omir_core::link::{Closed, Event, Link, Reason};
use omir_core::value::{Map, Value};
use omird::clock::Clock;
use omird::engine::command::Change;
use omird::engine::request::Encoding;
use omird::recall::Query;
use omird::serial::{Access, Announcements, Port, Ports, Share};
use omird::store::wal;
use omird_tests::check;
use omird_tests::cut_disk::CutDisk;
use omird_tests::random::Random;
use omird_tests::session::{Session, TestClock, settings};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// Nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon with one serial port, and the folder in which the port has its name.
struct Rig {
    disk: Arc<CutDisk>,
    session: Session,
    clock: Arc<TestClock>,
    ports: Option<Ports>,
    folder: TempDir,
}

impl Rig {
    fn new(access: Access, resources: usize) -> Rig {
        Rig::with(access, resources, TestClock::new())
    }

    fn with(access: Access, resources: usize, clock: Arc<TestClock>) -> Rig {
        let disk = Arc::new(CutDisk::new());
        let announced = Announcements::default();
        let listener = announced.listener();
        let session =
            Session::open_listening(disk.clone(), &clock, settings(), None, listener).unwrap();
        for n in 0..resources {
            let text = format!(
                r#"[{{"resourceType":"Entity","id":"e{n}","name":"thing {n}"}},
                   {{"resourceType":"MemoryRecord","id":"m{n}","content":"saw thing {n}",
                     "createdAt":"2026-05-31T08:00:00Z","entityRefs":[{{"ref":"Entity/e{n}"}}]}}]"#
            );
            let change = session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
            session.execute(change).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let mut rig = Rig { disk, session, clock, ports: None, folder };
        let port = Port { path: rig.name(), baud: 921_600, access, share: Share::new(1.0) };
        rig.ports = Some(Ports::start(&rig.session, "r2", &[port], &announced).unwrap());
        rig
    }

    /// Under which the daemon looks for the device, whichever it is today.
    fn name(&self) -> PathBuf {
        self.folder.path().join("port")
    }

    /// Plugs a cable in.
    fn plug(&self, noise: f64) -> Cable {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = rustix::fs::fcntl_getfl(&master).unwrap();
        rustix::fs::fcntl_setfl(&master, flags | OFlags::NONBLOCK).unwrap();
        let slave = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // Raw, and open, before the daemon comes: nothing is echoed, and nothing hangs up.
        let held = rustix::fs::open(&slave, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut termios = rustix::termios::tcgetattr(&held).unwrap();
        termios.make_raw();
        let now = rustix::termios::OptionalActions::Now;
        rustix::termios::tcsetattr(&held, now, &termios).unwrap();
        let name = self.name();
        let _ = std::fs::remove_file(&name);
        symlink(Path::new(&slave), &name).unwrap();
        Cable { master, _held: held, random: Random::new(7), noise, carried: 0 }
    }

    fn call(&self, noise: f64, session: u32) -> Client {
        let mut client = Client {
            cable: self.plug(noise),
            link: Link::new("test"),
            began: Instant::now(),
            inbox: Inbox::default(),
            id: 0,
        };
        client.open(session);
        client
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(ports) = self.ports.take() {
            ports.stop();
        }
    }
}

/// Our end of a pseudo-terminal; pulled out when dropped.
struct Cable {
    master: OwnedFd,
    /// While it is plugged in, the other end does not hang up.
    _held: OwnedFd,
    random: Random,
    /// Chance that a bit is wrong.
    noise: f64,
    /// Bytes that came from the daemon.
    carried: usize,
}

impl Cable {
    fn disturb(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            for bit in 0..8 {
                *byte ^= u8::from(self.random.unit() < self.noise) << bit;
            }
        }
    }

    fn read(&mut self) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let read = rustix::io::read(&self.master, &mut buffer).unwrap_or(0);
        let mut bytes = buffer[..read].to_vec();
        self.carried += read;
        self.disturb(&mut bytes);
        bytes
    }

    fn write(&mut self, mut bytes: Vec<u8>) {
        self.disturb(&mut bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::io::write(&self.master, rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// What came of waiting.
#[derive(Debug)]
enum Heard {
    Opened,
    Answer(Answered),
    Closed(Closed),
}

struct Client {
    cable: Cable,
    link: Link<32, 256>,
    began: Instant,
    inbox: Inbox,
    id: u64,
}

impl Client {
    fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn open(&mut self, session: u32) {
        self.link.connect(session, self.now());
        assert!(matches!(self.hear(), Heard::Opened));
    }

    /// One turn of the driver.
    fn turn(&mut self) -> Option<Heard> {
        let bytes = self.cable.read();
        let now = self.now();
        self.link.receive(&bytes, now);
        let mut heard = None;
        while heard.is_none() {
            heard = match self.link.poll_event() {
                None => break,
                Some(Event::Opened) => Some(Heard::Opened),
                Some(Event::Closed(why)) => Some(Heard::Closed(why)),
                Some(Event::Data { bytes, last }) => {
                    let message = self.inbox.push(bytes, last).unwrap();
                    message.map(|message| {
                        Heard::Answer(Answered::decode(&unpack(message).unwrap()).unwrap())
                    })
                }
            };
        }
        let mut line = Vec::new();
        while self.link.poll_transmit(now, &mut |byte| line.push(byte)) {}
        self.cable.write(line);
        if heard.is_none() && bytes.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        heard
    }

    #[track_caller]
    fn hear(&mut self) -> Heard {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(heard) = self.turn() {
                return heard;
            }
            assert!(Instant::now() < until, "nothing heard: {:?}", self.link.counts());
        }
    }

    fn send(&mut self, message: &[u8]) {
        let mut sent = 0;
        while sent < message.len() {
            sent += self.link.send(&message[sent..], true);
            assert!(self.turn().is_none());
        }
    }

    /// Sends a request; its number.
    fn ask(&mut self, request: Request) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&Asked { id, request }.encode());
        id
    }

    #[track_caller]
    fn answer(&mut self, id: u64) -> Answer {
        match self.hear() {
            Heard::Answer(answered) if answered.id == id => answered.answer,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn ok(&mut self, request: Request) -> Map {
        let id = self.ask(request);
        match self.answer(id) {
            Answer::Ok(map) => map,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn refused(&mut self, request: Request) -> Failure {
        let id = self.ask(request);
        match self.answer(id) {
            Answer::Error(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// All that a pull gives.
    #[track_caller]
    fn pull(&mut self, pull: Pull) -> Vec<Value> {
        let id = self.ask(Request::Pull(pull));
        let Answer::Begin { count, .. } = self.answer(id) else { panic!("no beginning") };
        let mut all = Vec::new();
        loop {
            match self.answer(id) {
                Answer::Items { items, .. } => all.extend(items),
                Answer::End { count: sent, complete } => {
                    assert!(complete);
                    assert_eq!((sent, all.len() as u64), (count, count));
                    return all;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn references(resources: &[Value]) -> Vec<String> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).unwrap().to_owned();
    resources.iter().map(|r| format!("{}/{}", text(r, "resourceType"), text(r, "id"))).collect()
}

fn bundle(resources: Vec<Value>) -> Value {
    let mut bundle = value(
        r#"{"resourceType":"Bundle","omirVersion":"R1","id":"b","generatedAt":"2026-06-01T00:00:00Z",
            "source":"test"}"#,
    );
    bundle.as_object_mut().unwrap().insert("entry", Value::Array(resources));
    bundle
}

fn stored(rig: &Rig) -> BTreeSet<String> {
    let export = rig.session.export(&Query::everything()).unwrap().to_value();
    references(export.get("entry").unwrap().as_array().unwrap()).into_iter().collect()
}

#[test]
fn everything_is_pulled_in_the_order_it_was_recorded() {
    let rig = Rig::new(Access::default(), 300);
    let mut client = rig.call(0.0, 1);
    let info = Info::from_map(client.ok(Request::Info)).unwrap();
    assert_eq!((info.robot.as_str(), info.count, info.write), ("r2", 600, false));

    let plain = client.pull(Pull::default());
    let carried = client.cable.carried;
    let packed = client.pull(Pull { deflate: true, ..Pull::default() });
    assert!(client.cable.carried - carried < carried / 4, "{carried} bytes, and less packed");
    assert_eq!(plain, packed);
    let expected: Vec<String> =
        (0..300).flat_map(|n| [format!("Entity/e{n}"), format!("MemoryRecord/m{n}")]).collect();
    assert_eq!(references(&plain), expected);
    check::conforms(&bundle(plain)).unwrap();

    // A filter takes with it what its resources refer to.
    let filter: Map = [("type", "MemoryRecord")].into_iter().collect();
    assert_eq!(client.pull(Pull { filter, ..Pull::default() }).len(), 600);
    let filter: Map = [("type", "Entity")].into_iter().collect();
    assert_eq!(client.pull(Pull { filter, ..Pull::default() }).len(), 300);
    let filter: Map = [("tipe", "Entity")].into_iter().collect();
    let failure = client.refused(Request::Pull(Pull { filter, ..Pull::default() }));
    assert_eq!((failure.code.as_str(), failure.path.as_deref()), ("INVALID_QUERY", Some("/tipe")));
}

#[test]
fn a_noisy_line_brings_the_same() {
    let rig = Rig::new(Access::default(), 200);
    let mut client = rig.call(1e-4, 1);
    let pulled = client.pull(Pull::default());
    assert_eq!(references(&pulled).into_iter().collect::<BTreeSet<_>>(), stored(&rig));
    assert!(client.link.counts().faults > 0, "the line was not noisy");
}

#[test]
fn a_pull_goes_on_where_the_cable_was_pulled_out() {
    let rig = Rig::new(Access::default(), 500);
    let mut all: Vec<Value> = Vec::new();
    let mut pull = Pull::default();
    let mut cables = 0;
    'cables: loop {
        cables += 1;
        let mut client = rig.call(0.0, cables);
        let id = client.ask(Request::Pull(pull.clone()));
        let Answer::Begin { as_of, count, store } = client.answer(id) else {
            panic!("no beginning")
        };
        assert_eq!(count, 1000 - all.len() as u64);
        pull.as_of.get_or_insert(as_of);
        pull.store.get_or_insert(store);
        // What is recorded meanwhile belongs to another pull.
        rig.clock.advance(Duration::from_millis(1));
        let text = format!(r#"{{"resourceType":"Entity","id":"late{cables}","name":"late"}}"#);
        let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        rig.session.execute(change).unwrap();
        loop {
            match client.answer(id) {
                Answer::Items { items, next, .. } => {
                    all.extend(items);
                    pull.after = Some(next);
                    if client.cable.carried > 40_000 {
                        continue 'cables;
                    }
                }
                Answer::End { complete, .. } => {
                    assert!(complete);
                    break 'cables;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(cables > 2, "the cable was not pulled");
    let names = references(&all);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1000, "each came");
    assert_eq!(names.len(), 1000, "and once");
    check::conforms(&bundle(all)).unwrap();
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_comes() {
    // So few that they lie in one log.
    let rig = Rig::new(Access::default(), 3);
    let needle = b"thing 1";
    rig.disk.rot(&wal::path(1), |bytes| {
        let at = bytes.windows(needle.len()).position(|window| window == needle);
        bytes[at.expect("it is in the log")] ^= 1;
    });
    let mut client = rig.call(0.0, 1);
    let mut pull = Pull::default();
    let (mut all, mut told) = (Vec::new(), Vec::new());
    // Also to one who goes on after it: it is told where it stands.
    for session in 2.. {
        let id = client.ask(Request::Pull(pull.clone()));
        let Answer::Begin { as_of, store, .. } = client.answer(id) else { panic!("no beginning") };
        pull.as_of.get_or_insert(as_of);
        pull.store.get_or_insert(store);
        match client.answer(id) {
            Answer::Items { items, next, lost } => {
                all.extend(items);
                told.extend(lost);
                pull.after = Some(next);
            }
            Answer::End { count, complete } => {
                assert_eq!((count, complete), (0, true));
                break;
            }
            other => panic!("{other:?}"),
        }
        client.open(session);
    }
    assert!(told.len() == 1 && told[0].contains("checksum"), "{told:?}");
    let names = references(&all);
    assert_eq!(names.len(), 5);
    assert!(!names.contains(&"Entity/e1".to_owned()));
    check::conforms(&bundle(all)).unwrap();

    client.link.close(Reason::Done);
    client.turn();
    let mut terminal = Terminal { cable: client.cable, shown: String::new() };
    terminal.type_in("dump\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    let shown = terminal.until("-----END OMIR-----\r\n");
    let document = value(shown.strip_suffix("-----END OMIR-----\r\n").unwrap());
    assert_eq!(document.get("entry").unwrap().as_array().unwrap().len(), 5);
    check::conforms(&document).unwrap();
    terminal.until("1 resources are left out");
    terminal.until("r2> ");
}

#[test]
fn a_terminal_program_takes_a_file_by_zmodem() {
    let rig = Rig::new(Access::default(), 50);
    let mut terminal = Terminal { cable: rig.plug(0.0), shown: String::new() };
    terminal.type_in("sz type=Entity\r");
    terminal.until(" bytes; Ctrl-C ends it\r\nrz\r");
    let mut receiver = zmodem2::Receiver::with_flow_control(0, true).unwrap();
    let (mut file, mut name, mut is_done) = (Vec::new(), String::new(), false);
    let until = Instant::now() + PATIENCE;
    while !is_done {
        assert!(Instant::now() < until, "{} bytes came", file.len());
        let mut came = &*terminal.cable.read();
        loop {
            match receiver.poll() {
                zmodem2::Action::WriteWire(bytes) => {
                    let all = bytes.len();
                    terminal.cable.write(bytes.to_vec());
                    receiver.wire_written(all);
                }
                zmodem2::Action::WriteFile(bytes) => {
                    file.extend_from_slice(bytes);
                    let all = bytes.len();
                    receiver.file_written(all).unwrap();
                }
                zmodem2::Action::Event(zmodem2::Event::FileStarted(info)) => {
                    name = String::from_utf8(info.name.to_vec()).unwrap();
                }
                zmodem2::Action::Event(event) => {
                    is_done |= event == zmodem2::Event::SessionCompleted;
                }
                _ if came.is_empty() => break,
                _ => {
                    let taken = receiver.submit_wire(came).unwrap();
                    came = &came[taken..];
                    if taken == 0 {
                        break;
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(name, "r2.omir");
    let document = value(&String::from_utf8(file).unwrap());
    check::conforms(&document).unwrap();
    assert_eq!(document.get("entry").unwrap().as_array().unwrap().len(), 50);
    terminal.until("\r\nsent\r\nr2> ");

    // Nobody takes it: Ctrl-C, or five times Ctrl-X, and what was typed before is done.
    for cancel in ["\x03", "\x18\x18\x18\x18\x18"] {
        terminal.type_in("sz\r");
        terminal.until("**\x18B00");
        terminal.type_in(cancel);
        terminal.until("\r\ncancelled\r\nr2> ");
    }
    terminal.type_in("get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
}

#[test]
fn a_port_is_read_only_until_its_token_is_given() {
    let token = "open sesame".to_owned();
    let rig = Rig::new(Access { write: false, token: Some(token.clone()) }, 1);
    let mut client = rig.call(0.0, 1);
    let items = vec![value(r#"{"resourceType":"Entity","id":"new","name":"new"}"#)];
    let push = Request::Push(Push { items, restore: false });
    assert_eq!(client.refused(push.clone()).code, "UNAUTHORIZED");
    assert_eq!(client.refused(Request::Unlock("open simsim".to_owned())).code, "UNAUTHORIZED");
    client.ok(Request::Unlock(token.clone()));
    assert!(Info::from_map(client.ok(Request::Info)).unwrap().write);
    let pushed = Pushed::from_map(client.ok(push.clone())).unwrap();
    assert_eq!(pushed, Pushed { stored: 1, unchanged: 0 });
    assert!(stored(&rig).contains("Entity/new"));
    let pushed = Pushed::from_map(client.ok(push.clone())).unwrap();
    assert_eq!(pushed, Pushed { stored: 0, unchanged: 1 });
    let bad = vec![value(r#"{"resourceType":"Entity","id":"bad"}"#)];
    let bad = Request::Push(Push { items: bad, restore: false });
    assert_eq!(client.refused(bad).code, "INVALID_RESOURCE");

    // Another session has to give it too; whoever guesses is shut out for a while.
    client.open(2);
    assert_eq!(client.refused(push).code, "UNAUTHORIZED");
    for _ in 0..3 {
        client.refused(Request::Unlock("a guess".to_owned()));
    }
    let failure = client.refused(Request::Unlock(token));
    assert!(failure.message.contains("locked"), "{}", failure.message);
}

/// A node hands over once more what it has, and does not know what became of it here; a person pushes a file
/// and wants what is in it.
#[test]
fn what_was_forgotten_comes_back_only_where_that_is_asked_for() {
    let rig = Rig::new(Access { write: true, token: None }, 1);
    let mut client = rig.call(0.0, 1);
    let door = value(r#"{"resourceType":"Entity","id":"door","name":"door"}"#);
    let memory = |id: &str, more: &str| {
        value(&format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"it stood open",
                "createdAt":"2026-05-30T12:00:00Z"{more}}}"#
        ))
    };
    let of_door = r#","entityRefs":[{"ref":"Entity/door"}]"#;
    let all = vec![door.clone(), memory("n-1", ""), memory("n-2", of_door)];
    let mut push = |items: Vec<Value>, restore| {
        Pushed::from_map(client.ok(Request::Push(Push { items, restore }))).unwrap()
    };
    assert_eq!(push(all.clone(), false), Pushed { stored: 3, unchanged: 0 });
    let forgotten = ["Entity/door", "MemoryRecord/n-1"].map(|name| name.parse().unwrap());
    rig.session.execute(Change::Forget(forgotten.to_vec())).unwrap();
    let known = stored(&rig);

    // Again, and with what is new: all of it, in parts, or changed.
    let mut more = all.clone();
    more.push(memory("n-3", ""));
    assert_eq!(push(more, false), Pushed { stored: 1, unchanged: 3 });
    for item in &all {
        assert_eq!(push(vec![item.clone()], false), Pushed { stored: 0, unchanged: 1 });
    }
    let changed = memory("n-1", r#","version":7"#);
    assert_eq!(push(vec![changed], false), Pushed { stored: 0, unchanged: 1 });
    let new: Vec<String> = stored(&rig).difference(&known).cloned().collect();
    assert_eq!(new, ["MemoryRecord/n-3"]);
    let export = rig.session.export(&Query::everything()).unwrap().to_value();
    let entries = export.get("entry").unwrap().as_array().unwrap();
    let held = entries.iter().find(|entry| entry.get("id") == Some(&"n-2".into())).unwrap();
    assert_eq!(held.get("entityRefs"), Some(&Value::Array(vec![])), "gone for good");
    // Nothing new refers to it either, though both come together.
    let items = vec![door, memory("n-4", of_door)];
    let refused = client.refused(Request::Push(Push { items: items.clone(), restore: false }));
    assert_eq!(
        (refused.code.as_str(), refused.path.as_deref()),
        ("INVALID_RESOURCE", Some("/1/entityRefs/0/ref"))
    );

    let mut push = |items: Vec<Value>, restore| {
        Pushed::from_map(client.ok(Request::Push(Push { items, restore }))).unwrap()
    };
    assert_eq!(push(items, true), Pushed { stored: 2, unchanged: 0 });
    // The door is back, and what referred to the one that was forgotten does not do so again by itself.
    assert_eq!(push(vec![all[2].clone()], false), Pushed { stored: 0, unchanged: 1 });
    assert_eq!(push(all, true), Pushed { stored: 2, unchanged: 1 });
    assert!(stored(&rig).contains("MemoryRecord/n-1"));
}

#[test]
fn who_asks_the_time_hears_how_far_it_can_be_trusted() {
    let rig = Rig::new(Access::default(), 1);
    let mut client = rig.call(0.0, 1);
    let dawn = rig.clock.now().as_micros();
    for (clock, wall, is_synchronised) in
        [("coarse", dawn, false), ("synchronised", dawn + 9_000_000, true)]
    {
        rig.clock.set(wall, is_synchronised);
        let info = Info::from_map(client.ok(Request::Info)).unwrap();
        assert_eq!((info.clock.as_str(), info.time), (clock, rig.session.now().0.to_string()));
    }
    rig.clock.reboot(0);
    let unset = Rig::with(Access::default(), 0, rig.clock.clone());
    let info = Info::from_map(unset.call(0.0, 1).ok(Request::Info)).unwrap();
    assert_eq!(info.clock, "unknown");
}

#[test]
fn what_is_no_request_is_answered_or_ends_the_session() {
    let rig = Rig::new(Access { write: true, token: None }, 300);
    let mut client = rig.call(0.0, 1);
    let asked = |text| omir_core::cbor::to_vec(&value(text));
    client.send(&asked(r#"{"id":7,"op":"fetch"}"#));
    let Answer::Error(failure) = client.answer(7) else { panic!("it was done") };
    assert_eq!((failure.code.as_str(), failure.path.as_deref()), ("INVALID_QUERY", Some("/op")));
    assert_eq!(client.refused(Request::Unlock("anything".to_owned())).code, "UNAUTHORIZED");

    // What is cancelled ends, and what waits behind it is done.
    let pull = client.ask(Request::Pull(Pull::default()));
    assert!(matches!(client.answer(pull), Answer::Begin { .. }));
    let cancel = client.ask(Request::Cancel(pull));
    let mut complete = None;
    loop {
        match client.hear() {
            Heard::Answer(Answered { id, answer: Answer::End { complete: all, .. } }) => {
                assert_eq!(id, pull);
                complete = Some(all);
            }
            Heard::Answer(Answered { answer: Answer::Items { .. }, .. }) => {}
            Heard::Answer(Answered { id, answer: Answer::Ok(_) }) => {
                assert_eq!(id, cancel);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(complete, Some(false));
    client.ok(Request::Info);

    client.send(&asked(r#"["no", "map"]"#));
    match client.hear() {
        Heard::Closed(Closed::Bye(reason)) => assert_eq!(reason, Reason::Protocol),
        other => panic!("{other:?}"),
    }
    client.open(2);
    client.ok(Request::Info);
}

#[test]
fn a_daemon_that_stops_says_goodbye() {
    let mut rig = Rig::new(Access::default(), 1);
    let mut client = rig.call(0.0, 1);
    rig.ports.take().unwrap().stop();
    match client.hear() {
        Heard::Closed(Closed::Bye(reason)) => assert_eq!(reason, Reason::GoingAway),
        other => panic!("{other:?}"),
    }
}

/// A terminal: what is typed, and what it shows.
struct Terminal {
    cable: Cable,
    shown: String,
}

impl Terminal {
    fn type_in(&mut self, keys: &str) {
        self.cable.write(keys.as_bytes().to_vec());
    }

    /// Waits until this is shown; what came up to its end.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            assert!(Instant::now() < until, "{text:?} is not shown in {:?}", self.shown);
            self.shown += &String::from_utf8(self.cable.read()).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_person_finds_a_console() {
    let rig = Rig::new(Access::default(), 30);
    let mut terminal = Terminal { cable: rig.plug(0.0), shown: String::new() };
    terminal.type_in("\r");
    terminal.until("\r\nr2> ");
    terminal.type_in("helb\x08p\r\n");
    assert!(terminal.until("r2> ").contains("\r\nstatus "));
    terminal.type_in("status\n");
    assert!(terminal.until("r2> ").contains("counts.types.Entity 30\r\n"));
    terminal.type_in("get Entity/e7\r");
    assert!(terminal.until("r2> ").contains("\r\n  \"name\": \"thing 7\""));
    terminal.type_in("get Entity/none\r");
    assert!(terminal.until("r2> ").contains("NOT_FOUND: there is no Entity/none\r\n"));
    terminal.type_in("recall \"thing 9\" type=MemoryRecord limit=1\r");
    assert!(terminal.until("r2> ").contains("MemoryRecord/m9 saw thing 9\r\n"));
    terminal.type_in("ls tipe=Entity\r");
    assert!(terminal.until("r2> ").contains("INVALID_QUERY (/tipe)"));
    terminal.type_in("ls\r");
    assert!(terminal.until("r2> ").contains("20 of 60; more with offset=20\r\n"));
}

#[test]
fn a_capture_file_of_a_dump_is_a_document() {
    let rig = Rig::new(Access::default(), 50);
    let text = r#"{"resourceType":"Entity","id":"odd","name":"k\u00fcche \ud83e\udd16 \u001b[2J"}"#;
    let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
    rig.session.execute(change).unwrap();
    let mut terminal = Terminal { cable: rig.plug(0.0), shown: String::new() };
    // What is typed meanwhile is not shown in the middle of it, and is done afterwards.
    terminal.type_in("dump\rget Entity/e1\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    let shown = terminal.until("-----END OMIR-----\r\n");
    assert!(shown.bytes().all(|byte| matches!(byte, b'\r' | b'\n' | b' '..=b'~')));
    let document = value(shown.strip_suffix("-----END OMIR-----\r\n").unwrap());
    check::conforms(&document).unwrap();
    let entries = document.get("entry").unwrap().as_array().unwrap();
    assert_eq!(references(entries).into_iter().collect::<BTreeSet<_>>(), stored(&rig));
    assert!(terminal.until("\"name\": \"thing 1\"").contains("get Entity/e1"));
    // A memory cannot steer the terminal.
    terminal.until("r2> ");
    terminal.type_in("recall k\u{fc}che\r");
    terminal.until("Entity/odd k\u{fc}che \u{1f916} ?[2J\r\n");
}

#[test]
fn one_command_does_not_block_the_next() {
    let rig = Rig::new(Access::default(), 400);
    let mut terminal = Terminal { cable: rig.plug(0.0), shown: String::new() };
    terminal.type_in("dump\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    terminal.type_in("\x03");
    assert!(!terminal.until("^C\r\nr2> ").contains("-----END OMIR-----"));
    terminal.type_in("tail\r");
    terminal.until("tail\r\n");
    // Whether it listens already only its answer tells.
    let mut n = 0;
    while !terminal.shown.contains("recorded Entity/new") {
        n += 1;
        let text = format!(r#"{{"resourceType":"Entity","id":"new{n}","name":"new"}}"#);
        let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        rig.session.execute(change).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        terminal.shown += &String::from_utf8(terminal.cable.read()).unwrap();
        assert!(n < 1000);
    }
    terminal.type_in("\x03get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
}

#[test]
fn a_terminal_that_asks_for_silence_gets_it() {
    let rig = Rig::new(Access::default(), 100);
    let mut terminal = Terminal { cable: rig.plug(0.0), shown: String::new() };
    terminal.type_in("dump\r");
    terminal.until("BEGIN OMIR");
    terminal.type_in("\x13");
    // What was on its way comes still; then nothing does.
    let mut quiet = 0;
    while quiet < 50 {
        quiet = if terminal.cable.read().is_empty() { quiet + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
    terminal.type_in("\x11");
    terminal.until("END OMIR");
}

#[test]
fn a_person_and_a_program_share_a_line() {
    let rig = Rig::new(Access::default(), 50);
    let mut client = rig.call(0.0, 1);
    assert_eq!(client.pull(Pull::default()).len(), 100);
    client.link.close(Reason::Done);
    client.turn();
    let mut terminal = Terminal { cable: client.cable, shown: String::new() };
    terminal.type_in("get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
    terminal.until("r2> ");
    // A program comes while a person dumps.
    terminal.type_in("dump\r");
    terminal.until("BEGIN OMIR");
    let mut client = Client {
        cable: terminal.cable,
        link: Link::new("test"),
        began: Instant::now(),
        inbox: Inbox::default(),
        id: 0,
    };
    client.open(2);
    assert_eq!(client.pull(Pull::default()).len(), 100);
}
