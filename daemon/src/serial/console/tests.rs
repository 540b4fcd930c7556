use super::*;
use crate::serial::cpu_share::Share;
use crate::serial::testing::Bench;

fn console(bench: &Bench) -> Console {
    Console::new(bench.protocols(), Arc::from("serial"), Budget::new(Share::new(1.0)))
}

fn run(console: &mut Console, line: &str) -> String {
    line.bytes().chain([b'\r']).for_each(|byte| console.take(byte, 0));
    let mut shown = Vec::new();
    while console.is_busy() || console.has_text() {
        console.show(4096, &mut shown, 0);
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_line_that_echoes_does_not_fill_the_memory() {
    let bench = Bench::new();
    let mut console = console(&bench);
    // Each key shows a long line once more, and the terminal takes nothing.
    for line in ["x".repeat(500), "y".repeat(500)] {
        run(&mut console, &line);
    }
    for _ in 0..10_000 {
        b"\x1b[A\x1b[B".iter().for_each(|&key| console.take(key, 0));
    }
    assert!(console.out.len() < 3 * MOST_UNSHOWN, "{} bytes wait", console.out.len());
}

fn type_in(console: &mut Console, keys: &[u8], now: u64) {
    keys.iter().for_each(|&key| console.take(key, now));
}

/// Returns the output until it is quiet.
fn shown(console: &mut Console, now: u64) -> String {
    let mut shown = Vec::new();
    while console.is_busy() || console.has_text() {
        console.show(4096, &mut shown, now);
        if console.paused {
            break;
        }
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn an_xoff_does_not_outlive_who_sent_it() {
    let bench = Bench::new();
    for (at, keys) in [(5_000_000, &b"\r"[..]), (PAUSED, b"")] {
        let mut console = console(&bench);
        type_in(&mut console, b"\x13help", 1);
        console.show(64, &mut Vec::new(), 1);
        let mut held = Vec::new();
        console.show(64, &mut held, PAUSED);
        assert_eq!(held, b"", "it is held for a while");
        type_in(&mut console, keys, at + 1);
        console.show(0, &mut Vec::new(), at + 1);
        let shown = shown(&mut console, at + 1);
        assert!(shown.starts_with("help"), "{shown:?}");
        assert_eq!(shown.contains("status"), !keys.is_empty());
    }
}

#[test]
fn enter_does_not_run_what_somebody_else_has_typed() {
    let bench = Bench::new();
    let mut console = console(&bench);
    type_in(&mut console, b"he\x1b", 0);
    type_in(&mut console, b"lp\r", LEFT);
    assert!(shown(&mut console, LEFT).contains("status"), "who hesitates is no other");
    type_in(&mut console, b"help", 2 * LEFT);
    type_in(&mut console, b"\r", 3 * LEFT + 1);
    let shown = shown(&mut console, 3 * LEFT + 1);
    assert_eq!(shown, "help\r\nr1> \r\nr1> ");
}

#[test]
fn two_consoles_on_one_cable_fall_silent() {
    let bench = Bench::new();
    let (mut one, mut other) = (console(&bench), console(&bench));
    type_in(&mut one, b"\r", 0);
    let mut carried = 0;
    while one.has_text() || other.has_text() {
        for (from, to) in [(0, 1), (1, 0)] {
            let pair = [&mut one, &mut other];
            let mut bytes = Vec::new();
            pair[from].show(64, &mut bytes, 0);
            type_in(pair[to], &bytes, 0);
            carried += bytes.len();
        }
        assert!(carried < 100_000, "they talk on");
    }
    // Ctrl-C, a command, or a person who comes a minute later.
    type_in(&mut one, b"\x03help\r", 0);
    let told = shown(&mut one, 0);
    assert!(told.contains("r1> help") && told.contains("status"), "{told:?}");
    type_in(&mut other, b"\x15help\r", 0);
    assert!(shown(&mut other, 0).contains("status"));
}

#[test]
fn who_is_no_person_is_not_answered_for_ever() {
    let bench = Bench::new();
    let mut console = console(&bench);
    let answers = |console: &mut Console, line: &str, times: usize, now: u64| {
        (0..times).for_each(|_| type_in(console, line.as_bytes(), now));
        shown(console, now).matches("unknown command").count()
    };
    assert_eq!(answers(&mut console, "login: r2\r", 30, 0), usize::from(MOST_MISFITS) - 1);
    assert_eq!(answers(&mut console, "login: r2\r", 30, SILENCE), 0);
    assert_eq!(answers(&mut console, "login: r2\r", 1, 2 * SILENCE + 1), 1);
}

#[test]
fn a_line_that_was_cut_is_not_done() {
    let bench = Bench::new();
    let mut console = console(&bench);
    let line = format!("help {}\r", " ".repeat(600));
    type_in(&mut console, line.as_bytes(), 0);
    let shown = shown(&mut console, 0);
    assert!(shown.ends_with("a line has at most 512 bytes: nothing was done\r\nr1> "), "{shown:?}");
}

#[test]
fn a_memory_does_not_steer_the_terminal() {
    let bench = Bench::new();
    bench.remember(
        r#"{"resourceType":"MemoryRecord","id":"a","content":"k\u00fcche \u001b[2J\u202egone\u2066"}"#,
    );
    let shown = run(&mut console(&bench), "ls");
    assert!(shown.contains("k\u{fc}che ?[2J?gone?"), "{shown:?}");
}

#[test]
fn looking_leaves_no_trace() {
    let bench = Bench::new();
    bench.remember(r#"{"resourceType":"MemoryRecord","id":"a","content":"the door sticks"}"#);
    let reference = "MemoryRecord/a".parse().unwrap();
    let before = bench.engine.get(&reference).unwrap();
    let mut console = console(&bench);
    for line in ["recall door", "ls touch=true", "recall door touch=true"] {
        let shown = run(&mut console, line);
        assert!(shown.contains("the door sticks"), "{shown}");
    }
    assert_eq!(bench.engine.get(&reference).unwrap(), before);
}
