//! The line is left such that the next one finds a console, however a tool ended.

use super::*;

/// Returns true if these tests were started with a signal ignored, which what they start inherits (proc(5)).
fn is_ignored(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

#[test]
fn the_console_is_back_however_a_tool_ended() {
    let rig = Rig::new();
    let cable = rig.plug(usize::MAX);
    fs::write(rig.path("new.omir"), r#"{"resourceType":"Entity","id":"new","name":"new"}"#)
        .unwrap();
    // Refused, and done; as a slow line is waited for, of which this end knows.
    let refused = rig.tool(&["push", "new.omir"], BAUD).output().unwrap();
    assert!(ends_with(&refused, 1).contains("UNAUTHORIZED"));
    rig.console_is_back();
    ends_with(&rig.tool(&["pull", "--type", "Entity"], 9_600).output().unwrap(), 0);
    rig.console_is_back();

    // Ctrl-C, and a terminal that is closed; while the tool waits for what is missing.
    for (signal, number, file) in [("-INT", 2, "stopped.omir"), ("-HUP", 1, "hung-up.omir")] {
        // As under nohup: the tool heeds that, and there is nothing to see.
        if is_ignored(number) {
            continue;
        }
        cable.passes.store(10_000, Ordering::Release);
        let mut child = rig.tool(&["pull", "-o", file], BAUD).spawn().unwrap();
        while cable.passes.load(Ordering::Acquire) > 0 {
            assert_eq!(child.try_wait().unwrap(), None, "it was over too soon");
            std::thread::sleep(Duration::from_millis(1));
        }
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let said = ends_with(&child.wait_with_output().unwrap(), 3);
        assert!(said.contains("interrupted"), "{said}");
        cable.passes.store(usize::MAX, Ordering::Release);
        rig.console_is_back();
        ends_with(&rig.omir(&["pull", "-o", file]), 0);
        assert_eq!(ids(&rig.path(file)), all());
    }
}

#[test]
fn a_console_that_is_piped_into_ends_what_was_left_running() {
    let rig = Rig::new();
    let cable = rig.plug(usize::MAX);
    for left in [&b"tail\r"[..], b"get Memory\x1b[", b"\x13"] {
        let terminal = rig.terminal();
        let before = cable.typed.load(Ordering::Acquire);
        assert_eq!(rustix::io::write(&terminal, left), Ok(left.len()));
        while cable.typed.load(Ordering::Acquire) < before + left.len() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(terminal);
        rig.console_is_back();
    }
}
