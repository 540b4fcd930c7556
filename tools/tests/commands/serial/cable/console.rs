//! `omir console`, and what it shows as a capture file.

use super::*;

#[test]
fn a_console_types_each_line_after_the_answer_to_the_one_before() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    // More than the console keeps of what is typed ahead, after something that takes long.
    let gets: String = (0..100).map(|n| format!("get MemoryRecord/m{n}\n")).collect();
    let shown = rig.console(&format!("dump\r\n{gets}\nls type=Entity"));
    assert!(shown.starts_with("r2> dump\r\n-----BEGIN OMIR-----\r\n"), "{shown:.100}");
    let (_, behind) = shown.split_once("-----END OMIR-----\r\nCRC-32 ").unwrap();
    assert!(behind[8..].starts_with("\r\nr2> get MemoryRecord/m0\r\n"), "{behind:.100}");
    for n in 0..100 {
        assert!(shown.contains(&format!("\"id\": \"m{n}\"")), "m{n} is not shown");
    }
    assert!(shown.ends_with("\r\nr2> \r\nr2> ls type=Entity\r\n0 of 0\r\nr2> "), "{shown}");
}

#[test]
fn a_capture_is_read_as_it_is() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let captured = rig.console("status\ndump\n");
    let omir =
        |args: &[&str]| Command::new(OMIR).args(args).current_dir(rig.folder.path()).output();
    fs::write(rig.path("capture.txt"), &captured).unwrap();
    ends_with(&omir(&["validate", "capture.txt"]).unwrap(), 0);
    ends_with(&omir(&["convert", "capture.txt", "robot.omir"]).unwrap(), 0);
    let bundle = fs::read(rig.path("robot.omir")).unwrap();
    let bundle = json::from_slice(&bundle, &Limits::default()).unwrap();
    assert_eq!(bundle.get("entry").unwrap().as_array().unwrap().len(), MEMORIES);
    // One bit that the cable turned round, and that leaves a document.
    fs::write(rig.path("capture.txt"), captured.replacen("saw ", "qaw ", 1)).unwrap();
    for command in [&["validate", "capture.txt"][..], &["convert", "capture.txt", "other.omir"]] {
        let output = omir(command).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("capture.txt: the cable changed"),
            "{said}"
        );
    }
    assert!(!rig.path("other.omir").exists());
}

#[test]
fn a_console_that_is_not_there_is_no_success() {
    let rig = Rig::new();
    let _silent = End::plug(&rig.path("tool"));
    let said = ends_with(&rig.omir(&["console", "--timeout", "1"]), 4);
    assert!(said.contains("no console answers"), "{said}");
}
