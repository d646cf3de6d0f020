//! The agent: envelopes come in through the tunnel, a journal and a desired state go out to `apply`.
