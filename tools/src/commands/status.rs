//! `omir status`: how daemons are doing.

mod fields;
mod summary;

use omir_core::value::Value;

pub(super) use self::fields::rows;
pub(super) use self::summary::is_closed;

use crate::cli::{Globals, StatusArgs};
use crate::client::{Client, FleetReplies};
use crate::error::{Result, told};
use crate::instant::Instant;
use crate::selector::Parameters;
use crate::{output, table};

pub(super) fn run(globals: &Globals, args: &StatusArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let nothing = Parameters::new();
    let mut replies = match &globals.robot {
        Some(robot) => {
            let reply = client.ask(robot, "status", &nothing, None)?;
            let mut replies = FleetReplies::default();
            replies.answers.insert(robot.clone(), reply);
            replies
        }
        None => client.ask_fleet(client.robots()?, "status", &nothing)?,
    };
    let statuses = replies.answers.values().map(crate::client::Reply::value);
    let statuses = statuses.collect::<Result<Vec<Value>>>()?;
    let printed = if globals.json {
        statuses.iter().try_for_each(output::print_json_line)
    } else {
        output::print(&to_text(&statuses, args.all, Instant::now(), output::width()))
    };
    told(printed, replies.shortfall().map_or(Ok(()), Err))
}

/// The status for people: of one robot a screen, of several what is wrong with each, or of each everything.
fn to_text(statuses: &[Value], all: bool, now: Instant, width: Option<usize>) -> String {
    let shown: Vec<String> = statuses
        .iter()
        .map(|status| match (all, statuses.len()) {
            (true, _) => {
                let verdict = summary::verdict(status, now, width);
                format!("{verdict}\n{}", table::pairs_in(&rows(status), width))
            }
            (false, 0 | 1) => summary::whole(status, now, width),
            (false, _) => summary::verdict(status, now, width),
        })
        .collect();
    let mut text = shown.join(if all { "\n" } else { "" });
    if !all && statuses.len() > 1 {
        text.push_str("\nMore of one: omir --robot NAME status\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;
    use omird_tests::golden;

    use super::*;

    /// As a daemon of three memories says it, an hour after it was started.
    const YOUNG: &str = r#"{"robot":"rover","version":"0.1.0","uptimeSeconds":3600,"bootCount":12,
        "counts":{"types":{"MemoryRecord":2,"Entity":1,"Relationship":0,"Episode":0},
            "tiers":{"working":2,"session":0,"longterm":0,"archive":0},"forgotten":0,"versions":6,"lost":0},
        "disk":{"bytes":143360,"maxBytes":null,"freeBytes":52130684928,"segments":1,"unsealedLogs":0,
            "full":false,"state":"ok","since":null,"lastError":null,"hint":null,"damagedFiles":0,"repairs":0,"lastScrub":null},
        "bytesWrittenSinceBoot":139067,
        "wear":{"sinceBoot":{"bytesWritten":139067,"payloadBytes":2847,"writeAmplification":48.8,"blockBytes":176128},
            "overLife":{"bytesWritten":139067,"payloadBytes":2847,"writeAmplification":48.8},
            "bytesPerDay":3337608,"cardYears":2739.14,"budget":{"bytesPerDay":null,"writtenToday":139067}},
        "clock":{"state":"coarse","now":"2026-05-30T11:42:05Z","source":"system","boot":12,"bootId":"c5605ad6",
            "monotonicSeconds":2496.1,"offsetSeconds":0.0,"steppedBySeconds":0.0,"settling":false,"corrected":0,"toCorrect":0},
        "durability":"sync","readOnly":false,"rejected":0,"unreadable":0,"fixedFrame":"map",
        "queue":{"waiting":0,"capacity":1024},
        "import":{"maxBytes":33554432,"maxResources":80000,"maxResourceBytes":1048576}}"#;

    fn statuses(texts: &[String]) -> Vec<Value> {
        let read = |text: &String| json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        texts.iter().map(read).collect()
    }

    /// One in which all is wrong that can be.
    fn sick() -> String {
        let hint = "segments/0000000001.omirb: files on the card are damaged; what can be read of them is served. Stop \
                    omird and see what is lost: omir store check DIR; then restore a backup, or save what can be \
                    read: omir store repair. A file that ends in .damaged is kept for you: once it is moved away, the \
                    next start says no more of it";
        YOUNG
            .replace(
                r#""robot":"rover""#,
                r#""robot":"r2d2","namesakeHeard":"2026-05-30T11:40:05Z""#,
            )
            .replace(r#""state":"ok""#, r#""state":"damaged""#)
            .replace(r#""hint":null"#, &format!(r#""hint":"{hint}""#))
            .replace(r#""damagedFiles":0"#, r#""damagedFiles":1"#)
            .replace(r#""lastError":null"#, r#""lastError":"Input/output error (os error 5)""#)
            .replace(r#""since":null"#, r#""since":"2026-05-30T09:40:05Z""#)
            .replace(r#""unreadable":0"#, r#""unreadable":17"#)
            .replace(r#""state":"coarse""#, r#""state":"unknown""#)
            .replace(r#""lost":0"#, r#""lost":3"#)
            .replace(r#""repairs":0"#, r#""repairs":2"#)
            .replace(r#""waiting":0"#, r#""waiting":1024"#)
            .replace(r#""uptimeSeconds":3600"#, r#""uptimeSeconds":360000"#)
            .replace("2739.14", "1.37")
            .replace("52130684928", "4096")
    }

    #[test]
    fn a_screen_says_how_a_robot_is_doing() {
        let now = "2026-05-30T11:42:06Z".parse().unwrap();
        let full = YOUNG
            .replace(r#""full":false,"state":"ok""#, r#""full":true,"state":"full""#)
            .replace(r#""hint":null"#, r#""hint":"the disk is full; what is stored can still be read, and forgetting works. Free some space and try again""#)
            .replace(r#""maxBytes":null"#, r#""maxBytes":143360"#)
            .replace(r#""readOnly":false"#, r#""readOnly":true"#)
            .replace(r#""rejected":0"#, r#""rejected":12"#);
        let ros = YOUNG.replace(
            r#""readOnly""#,
            r#""ros2":{"topics":{"/detections":{"received":5400,"dropped":{"pace":3}}},"stored":120,"notStored":2,"droppedByDepth":57},"readOnly""#,
        );
        let minimal = r#"{"robot":"r1","bootCount":3}"#.to_owned();
        let closed =
            r#"{"robot":"r1","version":"0.1.0","access":{"requireToken":true}}"#.to_owned();
        let mut shown = String::new();
        for width in [Some(60), Some(80), Some(120), None] {
            let columns =
                width.map_or("a pipe".to_owned(), |width: usize| format!("{width} columns"));
            for (what, texts, all) in [
                ("healthy", vec![YOUNG.to_owned()], false),
                ("sick", vec![sick()], false),
                ("full and read-only", vec![full.clone()], false),
                ("with ROS 2", vec![ros.clone()], false),
                ("an older daemon", vec![minimal.clone()], false),
                ("one that needs a token", vec![closed.clone()], false),
                ("two", vec![sick(), YOUNG.to_owned()], false),
                ("everything", vec![YOUNG.to_owned()], true),
            ] {
                let text = to_text(&statuses(&texts), all, now, width);
                if let Some(width) = width {
                    let wide = text.lines().find(|line| line.chars().count() > width);
                    assert_eq!(wide, None, "{what}, {columns}");
                }
                if width == Some(80) && !all {
                    assert!(text.lines().count() <= 24, "{what}: more than a screen\n{text}");
                }
                shown.push_str(&format!("=== {what}, {columns}\n{text}\n"));
            }
        }
        golden::check(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/status.txt"), &shown);
    }
}
