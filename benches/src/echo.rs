//! The floor: a server that remembers nothing.
//!
//! | key | does |
//! |---|---|
//! | `floor/echo/<n>` | replies n bytes |
//! | `floor/append/<n>` | appends the payload to a file, syncs it, replies n bytes |

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;

use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::query::Query;

use crate::{Result, wire};

/// Key of a reply of so many bytes.
pub fn echo_key(bytes: usize) -> String {
    format!("floor/echo/{bytes}")
}

/// Key of the same after an append and a sync.
pub fn append_key(bytes: usize) -> String {
    format!("floor/append/{bytes}")
}

/// Serves until it is killed. Arguments: the file, the endpoint.
pub fn serve(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let path = arguments.next().ok_or("no file")?;
    let endpoint = arguments.next().ok_or("no endpoint")?;
    let file = Mutex::new(File::options().create(true).append(true).open(path)?);
    let session = zenoh::open(wire::server(&endpoint)?).wait()?;
    let _echo = session.declare_queryable("floor/echo/*").callback(|query| reply(&query)).wait()?;
    let _append = session
        .declare_queryable("floor/append/*")
        .callback(move |query| {
            let payload = query.payload().map(|bytes| bytes.to_bytes()).unwrap_or_default();
            let appended = file
                .lock()
                .map_err(|_| std::io::Error::other("poisoned"))
                .and_then(|mut file| file.write_all(&payload).and_then(|()| file.sync_data()));
            match appended {
                Ok(()) => reply(&query),
                Err(error) => eprintln!("omird-bench: the floor's file: {error}"),
            }
        })
        .wait()?;
    println!("ready");
    loop {
        std::thread::park();
    }
}

fn reply(query: &Query) {
    let key = query.key_expr();
    let bytes = key.as_str().rsplit('/').next().and_then(|size| size.parse().ok()).unwrap_or(0);
    let reply = query.reply(key, vec![0u8; bytes]).encoding(Encoding::APPLICATION_CBOR).wait();
    if let Err(error) = reply {
        eprintln!("omird-bench: the floor's reply: {error}");
    }
}
