//! `omir/<robot>/backup` (`docs/keys.md`, "Backup"): the list of all segments without parameters, bytes of
//! one with `segment`, `offset` and `length`.

use super::Context;
use super::ask::Ask;
use crate::engine::asked::Named;
use crate::engine::backup::MAX_PIECE;
use crate::error::Error;

pub(super) fn answer(context: &Context, ask: Ask) {
    if ask.names("segment") {
        match piece(context, &ask) {
            Ok(bytes) => ask.reply_octets("backup", bytes),
            Err(error) => context.refuse(ask, &error),
        }
    } else {
        match list(context, &ask) {
            Ok(offer) => ask.reply_value("backup", &offer),
            Err(error) => context.refuse(ask, &error),
        }
    }
}

fn list(context: &Context, ask: &Ask) -> Result<omir_core::value::Value, Error> {
    Named::new(ask.selector()?).finish("segment, offset, length, format")?;
    Ok(context.engine.offer_backup(context.keys.robot())?.to_value())
}

fn piece(context: &Context, ask: &Ask) -> Result<Vec<u8>, Error> {
    let mut named = Named::new(ask.selector()?);
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| Error::query(name, format!("{text:?} is no whole number")))
    };
    let segment = number("segment", &named.need("segment")?)?;
    let mut optional = |name: &str, otherwise: u64| match named.take(name) {
        Some(text) => number(name, &text),
        None => Ok(otherwise),
    };
    let (offset, length) = (optional("offset", 0)?, optional("length", MAX_PIECE)?);
    named.finish("segment, offset, length")?;
    context.engine.segment_piece(segment, offset, length)
}
