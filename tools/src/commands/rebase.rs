//! `omir rebase`: memories move with their keyframes.

use omir_core::cbor;
use omir_core::value::{Map, Value};

use crate::cli::{Globals, RebaseArgs};
use crate::client::{Client, Payload};
use crate::error::Result;
use crate::selector::Parameters;
use crate::{id_prefix, output};

pub(super) fn run(globals: &Globals, args: &RebaseArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let undo = args.undo.as_ref().map(|step| id_prefix::by(&client, &robot, step)).transpose()?;
    let mut parameters = Parameters::new();
    parameters.push_some("undo", undo);
    if args.dry_run {
        parameters.push("dryRun", "true");
    }
    let payload = args.undo.is_none().then(|| Payload::Cbor(cbor::to_vec(&request(args))));
    let answer = client.ask(&robot, "rebase", &parameters, payload.as_ref())?.value()?;
    if globals.json {
        return Ok(output::print_json(&answer)?);
    }
    Ok(output::print(&sentence(&answer, args))?)
}

fn request(args: &RebaseArgs) -> Value {
    let mut keyframes = Map::new();
    for keyframe in &args.keyframes {
        let mut pose = Map::new();
        pose.insert("position", keyframe.position.iter().copied().collect::<Value>());
        if let Some(orientation) = keyframe.orientation {
            pose.insert("orientation", orientation.iter().copied().collect::<Value>());
        }
        keyframes.insert(keyframe.name.as_str(), pose);
    }
    let mut request = Map::new();
    // Which frame its map has knows the daemon.
    if let Some(frame) = &args.frame {
        request.insert("frame", frame.as_str());
    }
    request.insert("keyframes", keyframes);
    if let Some(reason) = &args.reason {
        request.insert("reason", reason.as_str());
    }
    Value::Object(request)
}

fn sentence(answer: &Value, args: &RebaseArgs) -> String {
    let int = |name| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
    let verb = match (args.dry_run, args.undo.is_some()) {
        (true, false) => "would move",
        (true, true) => "would move back",
        (false, false) => "moved",
        (false, true) => "moved back",
    };
    let mut line = format!("{} memories {verb}", int("moved"));
    if let Some(record) = answer.get("ref").and_then(Value::as_str) {
        line.push_str(&match args.undo {
            Some(_) => format!("; {record} says so"),
            None => format!("; to take it back: omir rebase --undo {record}"),
        });
    }
    if int("untied") > 0 {
        let all = args.keyframes.len();
        line.push_str(&format!("; no memory is tied to {} of {all} keyframes", int("untied")));
    }
    if int("unreadable") > 0 {
        line.push_str(&format!("; {} cannot be read and stay", int("unreadable")));
    }
    line
}
