//! `omir token`: tokens of a daemon, asked through its socket, or of a data folder.

use std::path::Path;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omird::access::{Grant, NO_EARLIER, Record, TokenError, TokenStore, expiry};
use omird::engine::{Clock as _, SystemClock};
use omird::protocols::Protocols;

use crate::cli::{Globals, TokenAddArgs, TokenArgs, TokenCommand};
use crate::error::{Error, Result};
use crate::output;
use crate::socket::Socket;
use crate::table::{self, Column};

/// Where the daemon has its tokens (docs/access.md).
const PATH: &str = "/access/v1/tokens";
const ONCE: &str = "this is the only time that the token is shown";

pub(super) fn run(globals: &Globals, args: &TokenArgs) -> Result<()> {
    let data = args.data.as_deref();
    match &args.command {
        TokenCommand::Add(args) => {
            let added = match data {
                Some(data) => add_to(data, args)?,
                None => Socket::of_this_user(globals)?.post(PATH, &asked(args))?,
            };
            output::remark(globals.quiet || globals.json, ONCE);
            if globals.json {
                return Ok(output::print_json_line(&added)?);
            }
            let token = added.get("token").and_then(Value::as_str).unwrap_or_default();
            Ok(output::print(token)?)
        }
        TokenCommand::List(_) => {
            let listed = match data {
                Some(data) => list_of(data)?,
                None => Socket::of_this_user(globals)?.get(PATH)?,
            };
            list(globals, listed.get("tokens").and_then(Value::as_array).unwrap_or_default())
        }
        TokenCommand::Revoke(args) => {
            match data {
                Some(data) => {
                    TokenStore::of(data)
                        .revoke(&args.name)
                        .map_err(|error| refused(data, error))?;
                }
                None => {
                    let socket = Socket::of_this_user(globals)?;
                    socket.delete(&format!("{PATH}/{}", escaped(&args.name)))?;
                }
            }
            output::remark(globals.quiet || globals.json, &format!("{} is revoked", args.name));
            if globals.json {
                let revoked = output::object([("revoked", args.name.as_str().into())]);
                output::print_json_line(&revoked)?;
            }
            Ok(())
        }
    }
}

/// A name as a part of a path: one that is none of a token's may have any sign.
fn escaped(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The parameters of the method `add`.
fn asked(args: &TokenAddArgs) -> Value {
    let mut asked = Map::new();
    asked.insert("name", args.name.as_str());
    asked.insert("scopes", texts(&args.scopes));
    if !args.agents.is_empty() {
        asked.insert("agents", texts(&args.agents));
    }
    let optional: [(&str, Value); 5] = [
        ("tenant", args.tenant.as_deref().into()),
        ("expires", args.expires.as_deref().into()),
        ("rate", args.rate.into()),
        ("perHour", args.per_hour.into()),
        ("authority", args.authority.into()),
    ];
    for (name, value) in optional {
        if !value.is_null() {
            asked.insert(name, value);
        }
    }
    Value::Object(asked)
}

fn texts(texts: &[String]) -> Value {
    texts.iter().map(String::as_str).collect()
}

fn add_to(data: &Path, args: &TokenAddArgs) -> Result<Value> {
    let now = SystemClock::default().now().as_micros().div_euclid(1_000_000);
    let now = (now >= NO_EARLIER).then_some(now);
    let invalid = |why| refused(data, TokenError::Invalid(why));
    let end = |text: &String| expiry(text, now);
    let grant = Grant {
        name: args.name.clone(),
        scopes: args.scopes.clone(),
        tenant: args.tenant.clone(),
        agents: args.agents.clone(),
        authority: args.authority,
        expires: args.expires.as_ref().map(end).transpose().map_err(invalid)?,
        rate: args.rate,
        per_hour: args.per_hour,
    };
    grant.check_new(Protocols::SCOPES).map_err(invalid)?;
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Error::Input {
        message: format!("no random bytes: {error}"),
        path: None,
    })?;
    let added = TokenStore::of(data).add(grant.clone(), random, now);
    let secret = added.map_err(|error| refused(data, error))?;
    Ok(grant.to_answer(&secret))
}

fn list_of(data: &Path) -> Result<Value> {
    if !data.is_dir() {
        return Err(refused(data, TokenError::NoDataFolder(data.to_owned())));
    }
    let tokens = TokenStore::of(data).list().map_err(|error| refused(data, error))?;
    Ok(output::object([("tokens", tokens.iter().map(Record::to_value).collect())]))
}

fn refused(data: &Path, error: TokenError) -> Error {
    match error {
        TokenError::Invalid(why) => Error::Usage(match why.field {
            "scopes" => format!("--scope: {}", why.message),
            "agents" => format!("--agent: {}", why.message),
            "name" => format!("NAME: {}", why.message),
            "perHour" => format!("--per-hour: {}", why.message),
            field => format!("--{field}: {}", why.message),
        }),
        TokenError::NotFound(_) => Error::not_found(error.to_string()),
        TokenError::Exists(_) | TokenError::TooMany | TokenError::Held => {
            Error::Negative { code: "CONFLICT", message: error.to_string() }
        }
        TokenError::Disk(why) => {
            let hint = match why.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    "; the folder belongs to another user: call this as that user, or with sudo"
                }
                _ => "",
            };
            Error::input(data, format!("{why}{hint}"))
        }
        error => Error::Input { message: error.to_string(), path: None },
    }
}

fn list(globals: &Globals, tokens: &[Value]) -> Result<()> {
    if globals.json {
        for token in tokens {
            output::print_json_line(token)?;
        }
        return Ok(());
    }
    if tokens.is_empty() {
        output::remark(globals.quiet, "no tokens; omir token add NAME --scope omir:read makes one");
        return Ok(());
    }
    let now = SystemClock::default().now();
    let rows: Vec<Vec<String>> = tokens.iter().map(|token| row(token, now)).collect();
    let columns = [
        Column::Words("name"),
        Column::Text("scopes"),
        Column::Words("tenant"),
        Column::Words("agents"),
        Column::Words("expires"),
        Column::Words("rate"),
        Column::Words("created"),
    ];
    let spare = ["created", "agents", "rate", "tenant"];
    Ok(output::print(&table::set(&columns, &rows, &spare, output::width()))?)
}

fn row(token: &Value, now: Timestamp) -> Vec<String> {
    let text = |name: &str| token.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| {
        let items = token.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    };
    let expires = match text("expires") {
        None => "never".to_owned(),
        Some(end) if end.parse::<Timestamp>().is_ok_and(|end| end <= now) => "expired".to_owned(),
        Some(end) => end,
    };
    let bound = |name: &str, unit: &str| {
        let bound = token.get(name).and_then(Value::as_u64);
        bound.map(|bound| format!("{bound}/{unit}"))
    };
    let rates: Vec<String> =
        [bound("rate", "s"), bound("perHour", "h")].into_iter().flatten().collect();
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    vec![
        text("name").unwrap_or_default(),
        list("scopes"),
        or_none(text("tenant").unwrap_or_default()),
        or_none(list("agents")),
        expires,
        or_none(rates.join(" ")),
        text("created").unwrap_or_else(|| "-".to_owned()),
    ]
}
