use clap::CommandFactory as _;

use super::*;

fn parse(line: &[&str]) -> Cli {
    Cli::try_parse_from(std::iter::once("omir").chain(line.iter().copied())).unwrap()
}

fn refused(line: &[&str]) -> String {
    Cli::try_parse_from(std::iter::once("omir").chain(line.iter().copied()))
        .unwrap_err()
        .to_string()
}

#[test]
fn the_definitions_hold_together() {
    Cli::command().debug_assert();
}

#[test]
fn every_help_lists_exit_codes_and_examples() {
    let cli = Cli::command();
    let of_store = cli.find_subcommand("store").unwrap().get_subcommands();
    let of_token = cli.find_subcommand("token").unwrap().get_subcommands();
    let of_trace = cli.find_subcommand("trace").unwrap().get_subcommands();
    let of_akashik = cli.find_subcommand("akashik").unwrap().get_subcommands();
    let all = cli.get_subcommands().chain(of_store).chain(of_token).chain(of_trace);
    let all = all.chain(of_akashik);
    for command in all.filter(|command| !command.is_hide_set()) {
        let name = command.get_name().to_owned();
        let help = command.clone().render_help().to_string();
        assert!(help.contains("Exit codes:"), "{name}");
        assert!(help.contains("Examples:"), "{name}");
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let wide = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{name}: wrapped by the terminal once more");
        let long = command.clone().render_long_help().to_string();
        assert!(long.contains("Exit codes:"), "{name}");
    }
}

#[test]
fn negative_numbers_are_values() {
    let Command::Recall(recall) =
        parse(&["recall", "--near", "-1,2", "--box", "-1,-1,-1,1,1,1"]).command
    else {
        panic!("recall expected")
    };
    assert_eq!(recall.filters.near, Some(Planar(vec![-1.0, 2.0])));
    assert_eq!(recall.filters.bounds.unwrap().to_string(), "-1,-1,-1,1,1,1");
    let Command::Remember(remember) =
        parse(&["remember", "x", "--at", "-1,-2", "--yaw", "-1.5", "--geo", "-33.9,18.4"]).command
    else {
        panic!("remember expected")
    };
    assert_eq!(remember.at, Some(Position([-1.0, -2.0, 0.0])));
    assert_eq!(remember.yaw, Some(-1.5));
    assert_eq!(remember.geo.unwrap().to_string(), "-33.9,18.4");
}

#[test]
fn a_number_below_what_may_be_is_told_what_may() {
    for (line, expected) in [
        (&["recall", "--radius", "-5"][..], "0 or more"),
        (&["recall", "--min-importance", "-1"], "from 0 to 1"),
        (&["recall", "--limit", "-1"], "-1"),
        (&["recall", "x", "--offset", "-1"], "-1"),
        (&["remember", "x", "--importance", "-1"], "from 0 to 1"),
        (&["feedback", "MemoryRecord/a", "confirmed", "--weight", "-1"], "above 0"),
        (&["remember", " "], "nothing to remember"),
    ] {
        let text = refused(line);
        assert!(text.contains(expected) && !text.contains("unexpected argument"), "{text}");
    }
}

#[test]
fn globals_stand_anywhere() {
    let before = parse(&["--robot", "r1", "--json", "status"]);
    let behind = parse(&["status", "--robot", "r1", "--json"]);
    for cli in [before, behind] {
        assert_eq!(cli.globals.robot.as_deref(), Some("r1"));
        assert!(cli.globals.json);
    }
    let cli = parse(&["status", "--connect", "tcp/a:1", "--connect", "tcp/b:2,tcp/c:3"]);
    assert_eq!(cli.globals.connect, ["tcp/a:1", "tcp/b:2", "tcp/c:3"]);
}

#[test]
fn references_have_types_and_defaults() {
    let Command::Get(get) = parse(&["get", "door-3"]).command else { panic!("get expected") };
    assert_eq!(get.reference.to_string(), "MemoryRecord/door-3");
    let Command::Remember(remember) = parse(&["remember", "x", "--entity", "dock"]).command else {
        panic!("remember expected")
    };
    assert_eq!(remember.entities[0].to_string(), "Entity/dock");
    assert!(refused(&["get", "Thing/x"]).contains("the type is not one of"));
    assert!(refused(&["get", "Entity/a b"]).contains("not allowed in an id"));
    assert!(refused(&["anchor", "Entity/x"]).contains("expected MemoryRecord/id"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        &["remember"][..],
        &["remember", "x", "--file", "f"],
        &["remember", "x", "--yaw", "1"],
        &["remember", "x", "--frame", "map"],
        &["remember", "x", "--at", "1"],
        &["remember", "x", "--at", "1,nan"],
        &["remember", "x", "--importance", "2"],
        &["remember", "x", "--orientation", "0,0,0,0", "--at", "0,0"],
        &["remember", "--file", "f", "--importance", "1"],
        &["recall", "--geo", "91,0"],
        &["recall", "--near", "0,0", "--geo", "0,0"],
        &["recall", "--limit", "1001"],
        &["recall", "--since", "yesterday"],
        &["import", "--dry-run", "--overwrite", "y.omir"],
        &["import", "--dry-run", "--in-parts", "y.omir"],
        &["feedback", "x", "maybe"],
        &["--robot", "a/b", "status"],
    ] {
        refused(line);
    }
}
