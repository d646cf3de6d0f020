//! The server as its clients meet it, without a socket.

mod agent;
mod basics;
