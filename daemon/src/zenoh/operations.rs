//! The operations of `docs/keys.md`, asked for over Zenoh.

use omir_core::operation::Operation;

use super::Context;
use super::request::Request;
use crate::protocols::omir::Response;
use crate::router::Admitted;

pub(super) fn serve(
    context: &Context,
    operation: Operation,
    mut request: Request,
    admitted: Admitted,
) {
    let omir = &context.protocols.omir;
    let params = match request.params(admitted.method().payload, &omir.limits()) {
        Ok(params) => params,
        Err(error) => {
            admitted.failed(error.code);
            return request.refuse(&error);
        }
    };
    let encoding = request.encoding;
    let encode = move |response: Response| response.encode(encoding);
    omir.serve(admitted, params, encode, move |encoded| match encoded {
        Ok(encoded) => request.reply(operation.as_str(), encoded),
        Err(error) => request.refuse(&error),
    });
}
