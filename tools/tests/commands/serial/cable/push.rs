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
fn what_would_be_stored_again_each_time_is_refused_before_it_is_sent() {
    // There is no cable yet.
    let rig = Rig::new();
    let push = ["push", "new.omir", "--token", "open sesame"];
    for (text, missing) in [
        (
            r#"{"resourceType":"MemoryRecord","content":"c","createdAt":"2026-01-01T00:00:00Z"}"#,
            "\"id\" is missing",
        ),
        (r#"{"resourceType":"MemoryRecord","id":"m","content":"c"}"#, "\"createdAt\" is missing"),
        (r#"[{"resourceType":"Entity","id":"e","name":"n"},{"name":"m"}]"#, "/1"),
    ] {
        fs::write(rig.path("new.omir"), text).unwrap();
        let said = ends_with(&rig.omir(&push), 2);
        assert!(said.contains(missing) && said.contains("nothing was sent"), "{said}");
    }
}

#[test]
fn a_segments_manifest_stays_behind() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let manifest = r#"{"resourceType":"Episode","id":"omird.segment.0000000001","content":"c",
        "createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:omird:ext:segment","valueJson":{"format":1}}]}"#;
    let push = |entries: &str| {
        let bundle =
            format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#);
        fs::write(rig.path("segment.omir"), bundle).unwrap();
        let output = rig.omir(&["push", "segment.omir", "--token", "open sesame"]);
        ends_with(&output, 0);
        String::from_utf8(output.stdout).unwrap()
    };
    let entity = r#"{"resourceType":"Entity","id":"e","name":"n"}"#;
    assert_eq!(push(&format!("{manifest},{entity}")), "1 stored, 0 unchanged\n");
    assert_eq!(push(manifest), "0 stored, 0 unchanged\n");
    let stored = rig.engine.get(&"Episode/omird.segment.0000000001".parse().unwrap()).unwrap();
    assert!(stored.is_none());
}

#[test]
fn a_large_file_is_pushed_in_parts_that_hold_together() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    // The resource that others refer to comes last in the file, and all of it is more than a message takes.
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
    let bad = r#"{"resourceType":"MemoryRecord","id":"bad","content":"c","createdAt":"2026-01-01T00:00:00Z",
        "entityRefs":[{"ref":"Entity/nowhere"}]}"#;
    items.push(bad.to_owned());
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
