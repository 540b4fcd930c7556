//! Values that typed fields hold inexactly, and how it is laid over what they say.

use omir_core::pointer;
use omir_core::value::{Map, Value as Json};

use super::Refused;
use super::field::{Codec, MOST_MEMBERS, Row, near};
use super::pose;

/// Returns what must be laid over `typed` to get `exact`. All that `typed` has, `exact` has too, perhaps more
/// exactly.
pub(super) fn rest(exact: &Map, typed: &Map) -> Map {
    let mut rest = Map::new();
    for (name, value) in exact.iter() {
        match (typed.get(name), value) {
            (Some(same), _) if same == value => {}
            (Some(Json::Object(typed)), Json::Object(exact)) => {
                rest.insert(name, self::rest(exact, typed));
            }
            _ => {
                rest.insert(name, value.clone());
            }
        }
    }
    rest
}

/// `over` laid over `typed`.
///
/// # Errors
/// Where both say something and it is not the same as far as a field can tell, with the place.
pub(super) fn laid(typed: &Map, over: &Map, rows: &[Row]) -> Result<Map, Refused> {
    lay(typed, over, rows, &mut Vec::new())
}

fn lay<'a>(
    typed: &Map,
    over: &'a Map,
    rows: &[Row],
    path: &mut Vec<&'a str>,
) -> Result<Map, Refused> {
    let place =
        |path: &[&str]| path.iter().fold(String::new(), |at, name| pointer::join(&at, name));
    if over.len() > MOST_MEMBERS {
        let count = over.len();
        let why = format!("{count} members, and at most {MOST_MEMBERS} are taken: send fewer");
        return Err(Refused::new(place(path), why));
    }
    let mut all = typed.clone();
    for (name, value) in over.iter() {
        path.push(name);
        let together = match (typed.get(name), value) {
            (None, _) => value.clone(),
            (Some(same), _) if same == value => value.clone(),
            (Some(Json::Object(typed)), Json::Object(over)) => lay(typed, over, rows, path)?.into(),
            (Some(field), _) => {
                if codec_at(rows, path).and_then(|codec| near(codec, value)).as_ref() != Some(field)
                {
                    return Err(Refused::new(
                        place(path),
                        format!(
                            "the field says {field} and `json` says {value}: change both or one"
                        ),
                    ));
                }
                value.clone()
            }
        };
        all.insert(name, together);
        path.pop();
    }
    Ok(all)
}

fn codec_at(rows: &[Row], path: &[&str]) -> Option<Codec> {
    rows.iter().find_map(|row| match (row.codec, path.strip_prefix(row.json)?) {
        (Codec::Pairs, [_]) | (Codec::Ref, ["ref"]) => Some(Codec::Text),
        (codec, []) => Some(codec),
        _ => None,
    })
}

/// The extensions without the pose that a field holds exactly; a `null` keeps its place. `None` if there
/// is nothing but that pose.
pub(super) fn without_pose(exact: &[Json], typed: &Json) -> Option<Vec<Json>> {
    if let [only] = exact
        && only == typed
    {
        return None;
    }
    let mut rest = exact.to_vec();
    if let Some(place) = pose::place(exact)
        && exact[place] == *typed
    {
        rest[place] = Json::Null;
    }
    Some(rest)
}

/// The extensions with the pose of the field among them.
pub(super) fn with_pose(typed: Json, over: &Json) -> Result<Vec<Json>, Refused> {
    let Json::Array(items) = over else {
        return Err(Refused::new("/extension", "this is a list of extensions"));
    };
    let mut all = items.clone();
    let mut nulls = items.iter().enumerate().filter(|(_, item)| item.is_null());
    match (nulls.next(), nulls.next()) {
        (Some(_), Some((second, _))) => {
            return Err(Refused::new(
                pointer::join_index("/extension", second),
                "one `null` marks the place of the pose, and this is the second",
            ));
        }
        (Some((place, _)), None) => all[place] = typed,
        (None, _) => match pose::place(items) {
            Some(place) if pose::near(&items[place]).as_ref() != Some(&typed) => {
                return Err(Refused::new(
                    pointer::join_index("/extension", place),
                    "the field `pose` says another pose than this one in `json`: change both or one",
                ));
            }
            Some(_) => {}
            None => all.push(typed),
        },
    }
    Ok(all)
}
