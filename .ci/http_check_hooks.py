"""CBOR for schemathesis, which knows JSON."""

import cbor2
import schemathesis


@schemathesis.serializer("application/cbor")
def as_cbor(context, value):
    return cbor2.dumps(value)


@schemathesis.deserializer("application/cbor")
def from_cbor(context, response):
    return cbor2.loads(response.content)
