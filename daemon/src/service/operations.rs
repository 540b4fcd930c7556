//! The operations of `docs/keys.md`, all but those on memory keys and `backup`: parameters in, engine,
//! answer out.

use super::Context;
use super::ask::Ask;
use crate::engine::asked::{self, Named, Parameters};
use crate::engine::command::{Change, Receipt};
use crate::engine::compaction::Compaction;
use crate::engine::merge::Precedence;
use crate::engine::request::{self, Encoding, reference};
use crate::error::{Code, Error};
use crate::recall::query::Query;

/// Hands a change to the writer, whose receipt is the answer.
fn submit(context: &Context, operation: &'static str, mut ask: Ask, change: Change) {
    let size = ask.payload().len();
    ask.drop_payload();
    let engine = context.engine.clone();
    let reply = Box::new(move |result: Result<Receipt, Error>| match result {
        Ok(receipt) => ask.reply(operation, &receipt.to_value()),
        Err(error) => {
            engine.note_rejected();
            ask.refuse(&error);
        }
    });
    context.engine.submit(change, size, reply);
}

pub(super) fn remember(context: &Context, mut ask: Ask) {
    let permit = ask.permit.take();
    let change = ask.selector().and_then(|list| {
        let mut named = Named::new(list);
        let precedence = named.take("merge").map(|text| Precedence::parse(&text)).transpose()?;
        named.finish("merge, format; the resource goes into the payload")?;
        if ask.payload().is_empty() {
            return Err(Error::new(
                Code::InvalidResource,
                "there is no payload: send a resource, an array of resources, or a Bundle",
            ));
        }
        match precedence {
            None => context.engine.prepare(ask.payload(), ask.encoding, None),
            Some(precedence) => {
                context.engine.prepare_admitted(permit, ask.payload(), ask.encoding, precedence)
            }
        }
    });
    match change {
        Ok(change) => submit(context, "remember", ask, change),
        Err(error) => context.refuse(ask, &error),
    }
}

/// Hands the change that the parameters ask for to the writer.
fn change(
    context: &Context,
    operation: &'static str,
    ask: Ask,
    read: fn(Parameters) -> Result<Change, Error>,
) {
    match ask.parameters(&context.engine.settings().limits).and_then(read) {
        Ok(change) => submit(context, operation, ask, change),
        Err(error) => context.refuse(ask, &error),
    }
}

pub(super) fn forget(context: &Context, ask: Ask) {
    change(context, "forget", ask, asked::forget);
}

pub(super) fn anchor(context: &Context, ask: Ask) {
    change(context, "anchor", ask, asked::anchor);
}

pub(super) fn feedback(context: &Context, ask: Ask) {
    change(context, "feedback", ask, asked::feedback);
}

pub(super) fn rebase(context: &Context, ask: Ask) {
    let change = ask.selector().and_then(|parameters| {
        let limits = &context.engine.settings().limits;
        let payload = (!ask.payload().is_empty())
            .then(|| request::decode(ask.payload(), ask.encoding, limits, Code::InvalidQuery));
        context.engine.rebase(parameters, payload.transpose()?.as_ref())
    });
    match change {
        Ok(change) => submit(context, "rebase", ask, change),
        Err(error) => context.refuse(ask, &error),
    }
}

fn named(context: &Context, ask: &Ask) -> Result<Named, Error> {
    ask.parameters(&context.engine.settings().limits).map(Named::new)
}

fn query(context: &Context, ask: &Ask, base: Query) -> Result<Query, Error> {
    context.engine.query(base, &ask.parameters(&context.engine.settings().limits)?)
}

pub(super) fn recall(context: &Context, ask: Ask) {
    let result = query(context, &ask, Query::default())
        .and_then(|query| context.engine.recall(&query))
        .and_then(|recall| match ask.encoding {
            Encoding::Cbor => Ok(recall.to_cbor()),
            Encoding::Json => Ok(Encoding::Json.encode(&recall.to_value()?)),
        });
    match result {
        Ok(bytes) => ask.reply_bytes("recall", bytes),
        Err(error) => context.refuse(ask, &error),
    }
}

pub(super) fn export(context: &Context, ask: Ask) {
    let result =
        query(context, &ask, Query::everything()).and_then(|query| context.engine.export(&query));
    match result {
        Ok(export) => {
            let left_out = export.left_out().to_value();
            ask.reply_with("export", &export.to_value(), left_out.as_ref());
        }
        Err(error) => context.refuse(ask, &error),
    }
}

pub(super) fn status(context: &Context, ask: Ask) {
    match named(context, &ask).and_then(|named| named.finish("format")) {
        Ok(()) => {
            let status = context.engine.status(context.keys.robot());
            ask.reply("status", &status);
        }
        Err(error) => context.refuse(ask, &error),
    }
}

/// The sealing thread answers when it is done.
pub(super) fn compact(context: &Context, mut ask: Ask) {
    let scope = ask.parameters(&context.engine.settings().limits).and_then(asked::compact);
    let scope = match scope {
        Ok(scope) => scope,
        Err(error) => return context.refuse(ask, &error),
    };
    ask.drop_payload();
    let engine = context.engine.clone();
    let answer = Box::new(move |result: Result<Compaction, Error>| match result {
        Ok(compaction) => ask.reply("compact", &compaction.to_value()),
        Err(error) => {
            engine.note_rejected();
            ask.refuse(&error);
        }
    });
    context.engine.request_compaction(scope, answer);
}

pub(super) fn sweep(context: &Context, ask: Ask) {
    let report = named(context, &ask).and_then(|mut named| {
        let dry_run = named.flag("dryRun")?;
        named.finish("dryRun, format")?;
        context.engine.sweep(dry_run)
    });
    match report {
        Ok(report) => ask.reply("sweep", &report.to_value()),
        Err(error) => context.refuse(ask, &error),
    }
}

pub(super) fn explain(context: &Context, ask: Ask) {
    let explanation = named(context, &ask).and_then(|mut named| {
        let target = reference("ref", &named.need("ref")?)?;
        named.finish("ref, format")?;
        context.engine.explain(&target)
    });
    match explanation {
        Ok(explanation) => ask.reply("explain", &explanation),
        Err(error) => context.refuse(ask, &error),
    }
}
