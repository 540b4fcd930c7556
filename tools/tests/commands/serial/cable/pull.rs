//! `omir pull` and a cable that is pulled out.

use super::*;

#[test]
fn a_pull_outlives_its_cable() {
    let rig = Rig::new();
    let short = rig.plug(12_000);
    std::thread::scope(|scope| {
        let pull = scope.spawn(|| rig.omir(&["pull", "-o", "out.omir"]));
        short.wait();
        let part = rig.path("out.omir.part");
        assert!(fs::metadata(&part).unwrap().len() > 0, "nothing came before the cable was pulled");
        assert!(!rig.path("out.omir").exists());
        let _whole = rig.plug(usize::MAX);
        ends_with(&pull.join().unwrap(), 0);
        assert!(!part.exists());
    });
    assert_eq!(ids(&rig.path("out.omir")), all());
    let _whole = rig.plug(usize::MAX);
    let output = rig.omir(&["pull", "--type", "Entity"]);
    ends_with(&output, 0);
    let document = json::from_slice(&output.stdout, &Limits::default()).unwrap();
    assert_eq!(document.get("entry").and_then(Value::as_array).map(<[Value]>::len), Some(0));
}

#[test]
fn a_pull_that_gave_up_goes_on_another_time() {
    let rig = Rig::new();
    let pull = ["pull", "-o", "out.omir", "--wait", "1"];
    let short = rig.plug(12_000);
    let said = ends_with(&rig.omir(&pull), 3);
    assert!(said.contains("out.omir.part: run this again to go on"), "{said}");
    drop(short);
    // The last of it was not written whole.
    let part = rig.path("out.omir.part");
    let mut bytes = fs::read(&part).unwrap();
    let whole = bytes.clone();
    bytes.extend(&whole[..whole.len() / 2]);
    bytes.truncate(bytes.len() - 3);
    let _cable = rig.plug(usize::MAX);
    let said = ends_with(&rig.omir(&["pull", "-o", "out.omir", "--type", "MemoryRecord"]), 2);
    assert!(said.contains("other filters"), "{said}");
    ends_with(&rig.omir(&pull), 0);
    assert_eq!(ids(&rig.path("out.omir")), all());
    assert!(!part.exists());
}

#[test]
fn a_line_that_is_lost_before_anything_came_is_waited_for_too() {
    let rig = Rig::new();
    // The first resources come together, and are more than that.
    let short = rig.plug(4_000);
    std::thread::scope(|scope| {
        let pull =
            scope.spawn(|| rig.omir(&["pull", "-o", "out.omir", "--timeout", "2", "--wait", "60"]));
        short.wait();
        // Longer than a daemon is waited for that never answered.
        std::thread::sleep(Duration::from_secs(3));
        let _whole = rig.plug(usize::MAX);
        ends_with(&pull.join().unwrap(), 0);
    });
    assert_eq!(ids(&rig.path("out.omir")), all());
}

#[test]
fn a_pull_that_is_killed_again_and_again_ends_whole() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let part = rig.path("out.omir.part");
    let size = || fs::metadata(&part).map_or(0, |found| found.len());
    let mut kills = 0;
    loop {
        let before = size();
        let mut child = Command::new(OMIR)
            .args(["pull", "-o", "out.omir", "--baud", &BAUD.to_string(), "--port"])
            .arg(rig.path("tool"))
            .current_dir(rig.folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Once at each beginning, and then whenever more came.
        let over = loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break true;
            }
            if size() > before {
                child.kill().unwrap();
                child.wait().unwrap();
                break false;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if over {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 2, "it was killed {kills} times");
    assert_eq!(ids(&rig.path("out.omir")), all());
    assert!(!part.exists());
}

#[test]
fn two_memories_do_not_become_one_file() {
    let (one, other) = (Rig::new(), Rig::with_key(8));
    let pull = ["pull", "-o", "out.omir", "--wait", "1"];
    let short = one.plug(12_000);
    ends_with(&one.omir(&pull), 3);
    drop(short);
    // The same file, and the cable in a robot that has the same name.
    fs::copy(one.path("out.omir.part"), other.path("out.omir.part")).unwrap();
    let _cable = other.plug(usize::MAX);
    let said = ends_with(&other.omir(&pull), 2);
    assert!(said.contains("out.omir.part") && said.contains("remove it"), "{said}");
    assert!(!other.path("out.omir").exists());
    fs::remove_file(other.path("out.omir.part")).unwrap();
    ends_with(&other.omir(&pull), 0);
}
