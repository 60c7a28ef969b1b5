//! The files for operators in `deploy/`, checked without a network.

use std::fs;
use std::process::Command;

use crate::root;

#[test]
fn the_chart_renders_to_objects_of_the_right_shapes() {
    // Without PyYAML the program says that it checks nothing.
    let checked = Command::new("python3").arg(root().join("deploy/check.py")).output();
    let Ok(checked) = checked else {
        eprintln!("skipped: python3 is missing, so the chart is not checked");
        return;
    };
    let text = String::from_utf8_lossy(&checked.stdout);
    eprint!("{text}");
    assert!(checked.status.success(), "{text}{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn the_unit_is_accepted_by_systemd() {
    let unit = fs::read_to_string(root().join("deploy/systemd/codewright.service")).unwrap();
    for key in ["ExecStart=/usr/bin/codewright serve ", "EnvironmentFile=-", "TimeoutStopSec=", "User="] {
        assert!(unit.contains(key), "{key}");
    }
    // The program and its user do not exist here.
    let changed: String = unit
        .lines()
        .map(|line| match line.split_once('=') {
            Some(("ExecStart", _)) => "ExecStart=/bin/true\n".to_owned(),
            Some((key @ ("User" | "Group"), _)) => format!("{key}=root\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codewright.service");
    fs::write(&path, changed).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        eprintln!("skipped: systemd-analyze is missing, so the unit is not verified");
        return;
    };
    let text = String::from_utf8_lossy(&verified.stderr);
    // Warnings about the machine name other units.
    let ours: Vec<_> = text.lines().filter(|line| line.contains("codewright.service")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{text}");
}
