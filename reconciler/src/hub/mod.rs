//! The hub: Git in, deliveries out.
