//! The operations of the engine, asked for over Zenoh; and `status`.

use super::Context;
use super::ask::Ask;
use crate::engine::asked::Named;
use crate::engine::operation::{Asked, Operation};

pub(super) fn serve(context: &Context, operation: Operation, mut ask: Ask) {
    let of_resources = operation == Operation::Remember;
    let asked = match ask.asked(of_resources, &context.engine.settings().limits) {
        Ok(asked) => asked,
        Err(error) => return context.refuse(ask, &error),
    };
    let engine = context.engine.clone();
    context.engine.serve(operation, asked, move |answer| {
        let encoded = answer.and_then(|answer| {
            let left_out = answer.left_out();
            Ok((answer.encode(ask.encoding)?, left_out))
        });
        match encoded {
            Ok((bytes, left_out)) => ask.reply(operation.as_str(), bytes, left_out.as_ref()),
            Err(error) => {
                engine.note_rejected();
                ask.refuse(&error);
            }
        }
    });
}

pub(super) fn status(context: &Context, mut ask: Ask) {
    let parameters =
        ask.asked(false, &context.engine.settings().limits).and_then(Asked::into_parameters);
    match parameters.and_then(|list| Named::new(list).finish("format")) {
        Ok(()) => {
            let status = context.engine.status(context.keys.robot());
            ask.reply_value("status", &status);
        }
        Err(error) => context.refuse(ask, &error),
    }
}
