//! The hub: Git in, deliveries out.

pub mod git;
pub mod publish;
pub mod repository;
pub mod source;
