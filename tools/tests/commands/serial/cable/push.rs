//! `omir push`.

use super::*;

#[test]
fn a_push_needs_the_token() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let file = rig.path("new.omir");
    fs::write(&file, r#"{"resourceType":"Entity","id":"new","name":"new"}"#).unwrap();
    let said = ends_with(&rig.omir(&["push", "new.omir"]), 1);
    assert!(said.contains("UNAUTHORIZED") && said.contains("tool is read-only on r2"), "{said}");
    let push = ["push", "new.omir", "--token", "open sesame"];
    let output = rig.omir(&push);
    ends_with(&output, 0);
    assert_eq!(output.stdout, b"1 stored, 0 unchanged\n");
    assert_eq!(rig.omir(&push).stdout, b"0 stored, 1 unchanged\n");
    assert!(rig.engine.get(&"Entity/new".parse().unwrap()).unwrap().is_some());
}

#[test]
fn a_large_file_is_pushed_in_parts_that_hold_together() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    // What is referred to comes last in it, and all of it is more than a message takes.
    let mut items: Vec<String> = (0..300)
        .map(|n| {
            let parent =
                if n == 299 { String::new() } else { format!(r#","parentId":"p{}""#, n + 1) };
            format!(
                r#"{{"resourceType":"MemoryRecord","id":"p{n}","content":"{}"{parent},
                    "createdAt":"2026-01-01T00:00:00Z","entityRefs":[{{"ref":"Entity/last"}}]}}"#,
                format!("{n} ").repeat(2_000)
            )
        })
        .collect();
    items.push(r#"{"resourceType":"Entity","id":"last","name":"last"}"#.to_owned());
    let file = rig.path("large.omir");
    fs::write(&file, format!("[{}]", items.join(","))).unwrap();
    assert!(fs::metadata(&file).unwrap().len() > 2 << 20);
    let push = ["push", "large.omir", "--token", "open sesame"];
    let output = rig.omir(&push);
    ends_with(&output, 0);
    assert_eq!(output.stdout, b"301 stored, 0 unchanged\n");
    assert_eq!(rig.omir(&push).stdout, b"0 stored, 301 unchanged\n");

    // A part that is refused leaves those before it, and says where in the file.
    items.push(r#"{"resourceType":"MemoryRecord","id":"bad","content":5}"#.to_owned());
    fs::write(&file, format!("[{}]", items.join(","))).unwrap();
    let said = ends_with(&rig.omir(&push), 3);
    assert!(said.contains("of 302 resources are in") && said.contains("/301"), "{said}");
}

#[test]
fn a_busy_daemon_is_asked_again() {
    let mut settings = Settings::default();
    settings.limits.max_payload_bytes = 100_000;
    let rig = Rig::with(7, settings);
    let _cable = rig.plug(usize::MAX);
    let item = |n| {
        let content = format!("{n} ").repeat(25_000);
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"p{n}","content":"{content}",
                "createdAt":"2026-01-01T00:00:00Z"}}"#
        )
    };
    let items: Vec<String> = (0..3).map(item).collect();
    fs::write(rig.path("large.omir"), format!("[{}]", items.join(","))).unwrap();
    // Imports of that size come one at a time, and this is another one.
    let other = rig.engine.admit(1 << 20, true).unwrap();
    let push = ["push", "large.omir", "--token", "open sesame"];
    let said = ends_with(&rig.omir(&[&push[..], &["--wait", "0.1"]].concat()), 1);
    assert!(said.contains("trying again for 0.1 s") && said.contains("BUSY"), "{said}");

    let refused = || rig.engine.status("r2").get("rejected").and_then(Value::as_u64);
    let before = refused();
    std::thread::scope(|scope| {
        let pushed = scope.spawn(|| rig.omir(&push));
        while refused() == before {
            assert!(!pushed.is_finished(), "it was not refused, or did not ask");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(other);
        let output = pushed.join().unwrap();
        ends_with(&output, 0);
        assert_eq!(output.stdout, b"3 stored, 0 unchanged\n");
    });
}
