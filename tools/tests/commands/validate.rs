//! `omir validate` as scripts and people meet it: reports, levels, profiles, exit codes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use omir_core::decode::Limits;
use omir_core::value::Value;
use omir_core::{cbor, json, profile};
use omird_tests::process::nobody_reads;
use tempfile::TempDir;

const BROKEN: &str = r#"{"resourceType":"Bundle","omirVersion":"R1","x":1,"entry":[
    {"resourceType":"Entity","id":"a","name":"A"},
    {"resourceType":"Entity","id":"a","name":"A"},
    {"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z",
     "importance":2,"entityRefs":[{"ref":"Entity/b"}]},
    4]}"#;

/// Valid, with a draft field and claims.
const CLAIMING: &str = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[
    {"resourceType":"Entity","id":"dock","name":"Dock","labels":["location"],
     "meta":{"omirVersion":"R1","profile":["https://omir.io/spec/R1/profile/omir-robotics"]}},
    {"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z",
     "replayPriority":0.5,"entityRefs":[{"ref":"Entity/dock"}],
     "meta":{"omirVersion":"R1","profile":["urn:x:own"]}}]}"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn start(words: &[&str], files: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omir"));
    command.arg("validate").args(words).args(files).stdin(Stdio::null());
    command
}

/// Exit code, standard output and standard error.
fn validate(words: &[&str], files: &[&Path]) -> (i32, String, String) {
    ended(start(words, files).output().unwrap())
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn reports(text: &str) -> Vec<Value> {
    let read = |line: &str| json::from_slice(line.as_bytes(), &Limits::default()).unwrap();
    text.lines().map(read).collect()
}

fn report(words: &[&str], file: &Path) -> (i32, Value) {
    let (code, out, err) = validate(&[&["--format", "json"], words].concat(), &[file]);
    let mut reports = reports(&out);
    assert_eq!(reports.len(), 1, "{err}");
    (code, reports.remove(0))
}

fn text<'a>(report: &'a Value, pointer: &str) -> &'a str {
    report.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(report: &Value, pointer: &str) -> Option<u64> {
    report.pointer(pointer).and_then(Value::as_u64)
}

fn findings<'a>(report: &'a Value, code: &str) -> Vec<&'a Value> {
    let all = report.get("findings").and_then(Value::as_array).unwrap();
    all.iter().filter(|finding| text(finding, "/code") == code).collect()
}

#[test]
fn documents_are_judged_although_nobody_reads_the_report() {
    let folder = Folder::new();
    let entity = r#"{"resourceType":"Entity","id":"a","name":"A"}"#;
    let right = format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entity}]}}"#);
    let (right, wrong) = (folder.file("right.omir", &right), folder.file("wrong.omir", BROKEN));
    let files = [&*right, &*wrong];
    let none: &[&str] = &[];
    for words in [none, &["--format", "json"]] {
        for (files, code) in [(&files[..], 1), (&files[..1], 0)] {
            let output = start(words, files).stdout(nobody_reads()).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{words:?}");
        }
    }
}

#[test]
fn a_report_has_the_published_keys_in_order() {
    let folder = Folder::new();
    let file = folder.file("x.omir", BROKEN);
    let (code, report) = report(&[], &file);
    assert_eq!(code, 1);
    let names: Vec<&str> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "report",
            "omirValidateVersion",
            "schemaRelease",
            "target",
            "level",
            "result",
            "summary",
            "checks",
            "findings",
            "coreConformant",
            "badgeEligible"
        ]
    );
    assert_eq!(text(&report, "/report"), "OMIRConformanceReport");
    assert_eq!(text(&report, "/target"), file.to_str().unwrap());
    assert_eq!(text(&report, "/result"), "fail");
    assert_eq!(
        report.pointer("/checks").unwrap().to_string(),
        r#"{"structural":"fail","referenceIntegrity":"fail","versionPresence":"pass","profile":"skipped"}"#
    );
    assert_eq!(
        report.pointer("/summary").unwrap().to_string(),
        r#"{"entriesTotal":4,"entriesByType":{"MemoryRecord":1,"Entity":2},"errors":4,"warnings":1,"info":3}"#
    );
    assert_eq!(report.get("coreConformant"), Some(&false.into()));
    assert_eq!(report.get("badgeEligible"), Some(&false.into()));
    assert_eq!(
        findings(&report, "E120")[0].to_string().split("\"message\"").next(),
        Some(
            r#"{"code":"E120","severity":"error","check":"structural","entry":{"index":2,"resourceType":"MemoryRecord","id":"m"},"path":"/entry/2/importance","value":2,"#
        )
    );
    assert_eq!(text(findings(&report, "E200")[0], "/check"), "referenceIntegrity");
    assert_eq!(text(findings(&report, "E200")[0], "/entry/id"), "m");
    assert_eq!(text(findings(&report, "E100")[0], "/path"), "/entry/3");
    let first = report.pointer("/findings/0").unwrap();
    assert_eq!((text(first, "/code"), first.get("entry")), ("E110", None));
}

#[test]
fn both_encodings_and_standard_input_give_the_same_report() {
    let folder = Folder::new();
    let (_, from_json) = report(&[], &folder.file("x.omir", BROKEN));
    let value = json::from_slice(BROKEN.as_bytes(), &Limits::default()).unwrap();
    let bytes = cbor::to_vec(&value);
    let binary = folder.file("x.omirb", "");
    fs::write(&binary, &bytes).unwrap();
    let (_, from_cbor) = report(&[], &binary);
    assert_eq!(from_cbor.get("findings"), from_json.get("findings"));
    assert_eq!(from_cbor.get("summary"), from_json.get("summary"));
    for input in [BROKEN.as_bytes(), &bytes] {
        let mut child = start(&["--json"], &[Path::new("-")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let (code, out, _) = ended(child.wait_with_output().unwrap());
        assert_eq!(code, 1);
        assert_eq!(reports(&out)[0].get("findings"), from_json.get("findings"));
        assert_eq!(text(&reports(&out)[0], "/target"), "-");
    }
}

#[test]
fn strictness_is_no_matter_of_core_conformance() {
    let folder = Folder::new();
    let file = folder.file(
        "x.omir",
        r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[
            {"resourceType":"Entity","id":"a","name":"A"}]}"#,
    );
    let (code, lenient) = report(&[], &file);
    assert_eq!((code, text(&lenient, "/result")), (0, "pass"));
    assert_eq!(text(&lenient, "/findings/0/code"), "I302");
    let (code, strict) = report(&["--level", "strict"], &file);
    assert_eq!((code, text(&strict, "/result")), (1, "fail"));
    assert_eq!(text(&strict, "/level"), "strict");
    assert_eq!(text(&strict, "/checks/versionPresence"), "fail");
    assert_eq!(strict.get("coreConformant"), Some(&true.into()));
}

#[test]
fn profiles_are_checked_when_asked_for() {
    let folder = Folder::new();
    let file = folder.file("x.omir", CLAIMING);
    let (code, skipped) = report(&[], &file);
    assert_eq!((code, text(&skipped, "/checks/profile")), (0, "skipped"));

    let (code, checked) = report(&["--profile", "omir-robotics"], &file);
    assert_eq!((code, text(&checked, "/checks/profile")), (1, "fail"));
    assert_eq!(text(findings(&checked, "E400")[0], "/entry/id"), "dock");
    assert_eq!(checked.get("coreConformant"), Some(&true.into()));
    let (code, other) = report(&["--profile", profile::CODING_AGENT], &file);
    assert_eq!((code, text(&other, "/checks/profile")), (0, "pass"));

    let (code, required) = report(&["--require-profile", "omir-robotics"], &file);
    assert_eq!(code, 1);
    assert_eq!(text(findings(&required, "W402")[0], "/entry/id"), "m");
    assert_eq!(text(findings(&required, "E401")[0], "/value"), "urn:x:own");

    let own = folder.file(
        "own.json",
        r#"{"url":"urn:x:own","name":"own","rules":[{"on":["MemoryRecord"],"should":{"path":"/eventTime","present":true}}]}"#,
    );
    let own = own.to_str().unwrap();
    let (code, advised) = report(&["--profile", own], &file);
    assert_eq!(code, 0);
    assert_eq!(text(findings(&advised, "W403")[0], "/entry/id"), "m");
    assert_eq!(report(&["--profile", own, "--level", "strict"], &file).0, 1);

    let (code, out, err) = validate(&["--profile", "omir-robotic"], &[&file]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("did you mean \"omir-robotics\""), "{err}");
    let faulty = folder.file("faulty.json", r#"{"url":"urn:x:y","name":"y","rules":[3]}"#);
    let (code, _, err) = validate(&["--profile", faulty.to_str().unwrap()], &[&file]);
    assert_eq!(code, 2);
    assert!(err.contains("faulty.json") && err.contains("/rules/0"), "{err}");
}

#[test]
fn draft_fields_are_told_and_can_be_refused() {
    let folder = Folder::new();
    let file = folder.file("x.omir", CLAIMING);
    let (_, drafts) = report(&[], &file);
    assert_eq!(number(&drafts, "/summary/draftFields/MemoryRecord.replayPriority"), Some(1));
    let (code, plain) = report(&["--plain-r1"], &file);
    assert_eq!(code, 1);
    assert!(text(findings(&plain, "E120")[0], "/message").contains("replayPriority"));
}

#[test]
fn what_is_no_bundle_has_one_finding() {
    let folder = Folder::new();
    for document in
        [r#"{"entry":[{},{}],"resourceType":"Budnle"}"#, "3", r#"[{"resourceType":"Entity"}]"#]
    {
        let (code, report) = report(&["--level", "strict"], &folder.file("x.omir", document));
        assert_eq!(code, 1);
        assert_eq!(findings(&report, "E111").len(), 1, "{report}");
        assert_eq!(number(&report, "/summary/errors"), Some(1));
        assert_eq!(text(&report, "/checks/referenceIntegrity"), "skipped");
    }
    let (_, report) = report(
        &[],
        &folder.file("y.omir", r#"{"resourceType":"Bundle","omirVersion":"R1","entry":{}}"#),
    );
    assert_eq!(text(findings(&report, "E110")[0], "/path"), "/entry");
}

#[test]
fn an_unreadable_file_does_not_keep_others_from_being_checked() {
    let folder = Folder::new();
    let cut_off = folder.file("a.omir", &BROKEN[..BROKEN.len() - 3]);
    let sound = folder.file("b.omir", CLAIMING);
    let absent = folder.0.path().join("absent.omir");
    let (code, out, err) = validate(&["--json"], &[&cut_off, &absent, &sound]);
    assert_eq!(code, 2);
    assert_eq!(reports(&out).len(), 1);
    assert_eq!(text(&reports(&out)[0], "/result"), "pass");
    let complaints = reports(&err);
    let place = format!("at byte {}", BROKEN.len() - 3);
    let message = text(&complaints[0], "/message");
    assert!(message.contains("E000") && message.contains(&place), "{message}");
    assert!(text(&complaints[1], "/message").contains("absent.omir"), "{err}");
    let (code, out, _) = validate(&["--json"], &[folder.0.path()]);
    assert_eq!((code, reports(&out).len()), (2, 1));
}

#[test]
fn a_report_can_go_to_a_file() {
    let folder = Folder::new();
    let file = folder.file("x.omir", BROKEN);
    let to = folder.file("report.txt", "old");
    let (code, out, _) = validate(&["--json", "-o", to.to_str().unwrap()], &[&file, &file]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(reports(&fs::read_to_string(&to).unwrap()).len(), 2);
}

#[test]
fn a_report_does_not_replace_what_it_is_about() {
    let folder = Folder::new();
    let file = folder.file("x.omir", CLAIMING);
    let way_round = file.parent().unwrap().join(".").join("x.omir");
    let (code, _, complaint) = validate(&["-o", way_round.to_str().unwrap()], &[&file]);
    assert_eq!(code, 2);
    assert!(complaint.contains("is a file to check"), "{complaint}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CLAIMING);
}

#[test]
fn the_report_for_reading_names_places_values_and_remedies() {
    let folder = Folder::new();
    let (code, out, err) = validate(&[], &[&folder.file("x.omir", BROKEN)]);
    assert_eq!(code, 1);
    assert!(err.contains("1 of 1 documents do not conform"), "{err}");
    for expected in [
        "structural ............ fail   (4 entries: 1 MemoryRecord, 2 Entity)\n",
        "reference integrity ... fail   (0 references resolved)\n",
        "version presence ...... pass   (0 of 3 entries with meta)\n",
        "profile ............... skipped\n",
        "\n  the document\n    E110  error    /  (line 1, column 1)\n",
        "\n  MemoryRecord/m (entry 2)\n    E120  error    /entry/2/importance = 2  (line 5, column 19)\n",
        "    E200  error    /entry/2/entityRefs/0/ref = \"Entity/b\"  (line ",
        "W202  warning  /entry/1/id = \"a\"  (line 3, column ",
        "I302  info     3 times, first at /entry/0\n",
        "(4 errors, 1 warning)\n",
    ] {
        assert!(out.contains(expected), "{expected:?} is not in\n{out}");
    }
    let (code, out, _) = validate(&[], &[&folder.file("y.omir", CLAIMING)]);
    assert_eq!(code, 0);
    for expected in [
        "pass   (1 reference resolved)\n",
        "(2 of 2 entries with meta)\n",
        "draft fields: MemoryRecord.replayPriority (1); OMM-0, not part of plain R1\n",
        "1 entry claims omir-robotics; check with --profile omir-robotics\n",
        "1 entry claims urn:x:own; check with --profile FILE\n",
        "RESULT: PASS",
    ] {
        assert!(out.contains(expected), "{expected:?} is not in\n{out}");
    }
    let (_, out, _) =
        validate(&["--profile", "omir-robotics"], &[&folder.file("y.omir", CLAIMING)]);
    assert!(
        out.contains("profile ............... fail   (omir-robotics: claimed by 1 entry)"),
        "{out}"
    );
    let (_, out, _) = validate(&["--quiet"], &[&folder.file("y.omir", CLAIMING)]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn many_findings_are_summed_up_for_people_and_all_listed_for_programs() {
    let folder = Folder::new();
    let record = |index: usize| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"m{index}","content":"c","createdAt":"2026-01-01T00:00:00Z","importance":2,"parentId":"p{index}"}}"#
        )
    };
    let records: Vec<String> = (0..5000).map(record).collect();
    let file = folder.file(
        "x.omir",
        &format!(
            r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{}]}}"#,
            records.join(",")
        ),
    );
    let (_, out, _) = validate(&[], &[&file]);
    assert!(out.contains("E120  error    4997 times more, from /entry/3/importance on"), "{out}");
    assert!(out.contains("and 4903 more; --format json lists all"), "{out}");
    assert!(out.lines().count() < 500, "{}", out.lines().count());
    let (_, report) = report(&[], &file);
    assert_eq!(findings(&report, "E120").len(), 5000);
    assert_eq!(findings(&report, "E200").len(), 5000);
    assert_eq!(findings(&report, "I302").len(), 5000);
    assert_eq!(number(&report, "/summary/errors"), Some(10_000));
}
