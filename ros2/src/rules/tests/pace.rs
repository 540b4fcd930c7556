//! The pace of keeping: a change for the worse goes before the limit, and a message that is a little early does
//! not fall under it.

use super::*;

/// The diagnostics of a motor, with that level.
fn status(bench: &Bench, level: i64) -> Message {
    let mut status = bench.message("diagnostic_msgs/msg/DiagnosticStatus");
    status.set("name", "motor").unwrap();
    status.set("level", level).unwrap();
    let mut array = bench.message("diagnostic_msgs/msg/DiagnosticArray");
    array.set("status", vec![status]).unwrap();
    array
}

/// Returns the kept ones of the levels that came at those seconds.
fn kept_of(bench: &mut Bench, seen: &[(f64, i64)]) -> Vec<bool> {
    let seen = seen.iter().map(|(t, level)| {
        let message = status(bench, *level);
        matches!(bench.one(*t, &message), Decision::Keep(_))
    });
    seen.collect()
}

#[test]
fn what_got_worse_goes_before_the_limit() {
    for config in ["", "keep = { on_change = 'level', at_most_every_s = 60, at_most_per_hour = 1 }"]
    {
        let config = format!("[[ros2.topic]]\ntopic = '/diagnostics'\n{config}");
        let mut bench = Bench::new("/diagnostics", &config);
        // Warn, error; better too soon; stale, which is worst.
        let seen = [(0.0, 1), (0.1, 2), (0.2, 2), (0.3, 0), (0.4, 3)];
        assert_eq!(kept_of(&mut bench, &seen), [true, true, false, false, true], "{config}");
    }
    let off = "[[ros2.topic]]\ntopic = '/diagnostics'\n\
               keep = { on_change = 'level', at_most_every_s = 60, worsens = false }";
    let mut bench = Bench::new("/diagnostics", off);
    assert_eq!(kept_of(&mut bench, &[(0.0, 1), (0.1, 2)]), [true, false]);
}

#[test]
fn a_message_a_second_is_not_too_soon_by_some_milliseconds() {
    let mut bench = Bench::plain("/diagnostics");
    // OK and error in turn, each second and up to 40 ms early or late.
    let jitter =
        [0.0, -0.03, 0.02, -0.04, 0.04, -0.02, 0.03, -0.04, 0.0, -0.01, 0.02, -0.04, 0.01, 0.0];
    let seen: Vec<(f64, i64)> =
        (1..).zip(jitter).map(|(n, j)| (f64::from(n) + j, i64::from(n % 2) * 2)).collect();
    assert_eq!(kept_of(&mut bench, &seen), [true; 14]);
    // A source that is early each time is no jitter: 1.25 times as often keeps no more than it should.
    let mut bench =
        Bench::new("/chat", "[[ros2.topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 1");
    let message = bench.message("std_msgs/msg/String");
    let mut message = message;
    message.set("data", "x").unwrap();
    let kept =
        (0..100).filter(|n| matches!(bench.one(f64::from(*n) * 0.8, &message), Decision::Keep(_)));
    assert!((40..=81).contains(&kept.count()));
}

#[test]
fn what_got_worse_is_written_before_its_time() {
    let config = "[[ros2.topic]]\ntopic = '/rosout'\nby = '{name}'\nkeep = {}\n\
                  merge = { update_every_s = 300 }";
    let mut bench = Bench::new("/rosout", config);
    let mut log = bench.message("rcl_interfaces/msg/Log");
    log.set("name", "driver").unwrap();
    let mut says = |t, level: i64| {
        log.set("level", level).unwrap();
        log.set("msg", format!("level {level}")).unwrap();
        bench.one(t, &log)
    };
    assert!(matches!(says(0.0, 30), Decision::Keep(_)));
    assert!(matches!(says(1.0, 30), Decision::Merged { count: 2 }));
    let worse = record(says(2.0, 40));
    assert!(worse.content.contains("level 40"), "{}", worse.content);
    assert!(matches!(says(3.0, 40), Decision::Merged { count: 4 }));
}

#[test]
fn which_way_is_worse_is_said_by_the_rule() {
    let config = "[[ros2.topic]]\ntopic = '/mine'\ntext = '{score}'\n\
                  keep = { at_most_every_s = 60, worsens = { field = 'score', when = 'lower' } }";
    let mut bench = Bench::new("/mine", config);
    let mut mine = bench.message("my_msgs/msg/Mine");
    let kept: Vec<bool> = [0.9, 0.95, 0.5, 0.5, 0.2]
        .into_iter()
        .zip(0..)
        .map(|(score, t)| {
            mine.set("score", score).unwrap();
            matches!(bench.one(f64::from(t), &mine), Decision::Keep(_))
        })
        .collect();
    assert_eq!(kept, [true, false, true, false, true]);
    for (wrong, why) in [
        ("worsens = 'nothing'", "keep.worsens: "),
        ("worsens = true", "keep.worsens: expected a field, a table or false"),
        (
            "worsens = { field = 'score', when = 'up' }",
            "keep.worsens.when: \"up\" is none of higher, lower",
        ),
        ("worsens = { when = 'lower' }", "keep.worsens.field: is missing"),
    ] {
        let text = format!(
            "[[ros2.topic]]\ntopic = '/mine'\ntype = 'my_msgs/msg/Mine'\ntext = 'x'\nkeep.{wrong}"
        );
        let error =
            resolve(&text).and_then(|ros2| Rules::compile(&ros2, &bench.registry).map(|_| ros2));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}
