//! The program, end to end: the built binary against a scripted model, on real
//! directories, processes and sockets.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod abort;
mod anthropic;
mod attach;
mod background;
mod batch;
mod config;
mod contract;
mod crash;
mod demo;
mod escape;
mod faults;
mod gitlab;
mod hang;
mod hostile;
mod interrupt;
mod json;
mod mdns;
mod models;
mod network;
mod nonsense;
mod odd;
mod offered;
mod page;
mod people;
mod permission;
mod place;
mod prompt;
mod prompts;
mod protocols;
mod providers;
mod pty;
mod question;
mod recover;
mod responses;
mod secret;
mod serve;
mod shell;
mod storage;
mod structured;
mod subagent;
mod support;
mod telemetry;
mod title;
mod together;
mod tools;
mod transfer;
mod trust_dialog;
mod tui;
mod undo;
mod web;
mod well_known;
