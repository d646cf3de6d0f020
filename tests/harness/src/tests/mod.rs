//! The server as its clients meet it, without a socket.

mod agent;
mod applier;
mod basics;
mod crash;
mod faults;
mod journal;
mod leaving;
mod meanwhile;
mod offline;
mod scale;
