//! However omird is started, it runs with the settings of malloc that the packaged service has.

use omird::malloc::SETTINGS;
use omird_tests::process::Daemon;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

#[test]
fn a_daemon_that_was_started_without_them_has_the_settings_of_malloc() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::start(PROGRAM, folder.path(), "r1", &[]);
    let told = |what: &str| {
        let path = format!("/proc/{}/{what}", daemon.pid());
        std::fs::read_to_string(path).expect("the process that was started serves")
    };
    let environment = told("environ");
    for (name, value) in SETTINGS {
        let is_set = environment.split('\0').any(|found| found == format!("{name}={value}"));
        // The person who runs the tests may have chosen others.
        assert!(is_set || std::env::var_os(name).is_some(), "{name} in {environment}");
    }
    assert!(told("comm").starts_with("omird-under"), "{}", told("comm"));
    let arguments = told("cmdline");
    assert!(arguments.starts_with(&format!("{PROGRAM}\0--robot\0r1\0")), "{arguments}");
    assert!(daemon.stop().success());
}
