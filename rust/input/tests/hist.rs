// SPDX-License-Identifier: GPL-2.0

//! Histograms in ftrace's syntax.

use rtrace_input::hist::{is_hist, HistBegin, HistLine, HistOrder, HistReason, WriteError};
use rtrace_input::map::{MapDefinition, MapLine};

fn hist(text: &str) -> HistLine<'_> {
    HistLine::parse(text).unwrap_or_else(|error| panic!("{}", error.shown(text)))
}

/// The line that defines the map of a histogram at `e:x`.
fn map(text: &str, begin: Option<HistBegin<'_>>) -> Result<String, HistReason> {
    let mut out = String::new();
    match hist(text).write_map("m", ("e", "x"), begin, &mut out) {
        Ok(()) => {}
        Err(WriteError::Wrong(error)) => return Err(error.reason),
        Err(WriteError::Write) => panic!("{text}"),
    }
    assert!(
        matches!(
            MapLine::parse(&out),
            Ok(MapLine::Define(MapDefinition { name: "m", .. }))
        ),
        "{out}"
    );
    Ok(out)
}

#[test]
fn histograms_are_maps() {
    for (text, expected) in [
        ("hist:keys=a", "m e:x by a size 2048"),
        (
            "hist:key=a,common_cpu:vals=hitcount,len,ret:size=64 if a > 1 ",
            "m e:x by a,cpu sum(len) sum(ret) size 64 if a > 1",
        ),
        (
            "hist:keys=len.log2,comm:sort=hitcount.descending",
            "m e:x by comm hist(len) size 2048",
        ),
        (
            " hist:val=hitcount:keys=id.hex:name=n\tif b",
            "m e:x by id size 2048 if b",
        ),
        (
            "hist:keys=pid:ts0=common_timestamp",
            "m e:x by pid size 2048",
        ),
    ] {
        assert_eq!(map(text, None).as_deref(), Ok(expected), "{text}");
        let shown = hist(text).to_string();
        assert_eq!(hist(&shown).to_string(), shown);
    }
}

#[test]
fn durations_have_begins() {
    let begin = |keys| {
        let event = ("sched", "sched_waking");
        Some(HistBegin { event, keys })
    };
    let text = "hist:keys=next_pid,$lat.log2:vals=$lat:lat=common_timestamp-$ts0:onmatch(sched.sched_waking):onmax($lat)";
    let line = hist(text);
    assert_eq!(
        line.duration.map(|(name, begin)| (name, begin.text)),
        Some(("lat", "ts0"))
    );
    assert_eq!(
        line.matched.map(|event| event.text),
        Some("sched.sched_waking")
    );
    assert_eq!(
        map(text, begin("pid")).as_deref(),
        Ok(
            "m e:x by next_pid hist(duration) sum(duration) max(duration) \
            from sched:sched_waking match pid:next_pid size 2048"
        )
    );
    assert_eq!(map(text, begin("pid,b")), Err(HistReason::NoMatch));
    let three = "hist:keys=a,b,c:lat=common_timestamp-$ts0";
    assert_eq!(map(three, begin("a,b,c")), Err(HistReason::NoMatch));
    let shown = line.to_string();
    assert_eq!(hist(&shown).to_string(), shown);
}

#[test]
fn entries_are_sorted() {
    let orders = |text| hist(text).orders().collect::<Vec<_>>();
    assert_eq!(orders("hist:keys=a"), []);
    assert_eq!(
        orders("hist:keys=a.log2,b:vals=c,hitcount,d:sort=d.descending,a"),
        [(HistOrder::Column(1), true), (HistOrder::Key(1), false)]
    );
    assert_eq!(
        orders("hist:keys=b:sort=hitcount.ascending,b.descending"),
        [(HistOrder::Count, false), (HistOrder::Key(0), true)]
    );
}

#[test]
fn wrong_lines_are_refused() {
    use HistReason::*;
    for (text, at, reason) in [
        ("hist", 4, NoKeys),
        ("hist:", 5, NoOption),
        ("hist:vals=a", 11, NoKeys),
        ("hist:keys=", 10, NoKeys),
        ("hist:keys=a,", 12, NoKey),
        ("hist:keys=a.sym", 10, NoKey),
        ("hist:keys=a.log2,b.log2", 17, NoKey),
        ("hist:keys=$a.log2", 10, NoKey),
        ("hist:keys=a,b,c,d,e", 18, ManyKeys),
        ("hist:keys=a:keys=b", 12, Twice),
        ("hist:keys=a:vals=a.percent", 17, NoValue),
        ("hist:keys=a:vals=$b", 17, NoValue),
        ("hist:keys=a:vals=b,c,d,e,f", 25, ManyValues),
        ("hist:keys=a:sort=b", 17, NoSort),
        ("hist:keys=a:sort=a,hitcount,a", 28, NoSort),
        ("hist:keys=a:size=0", 17, NoSize),
        (
            "hist:keys=a:name=-",
            17,
            NoName("a name must not begin with '-' or '.'"),
        ),
        ("hist:keys=a:t=common_timestamp.usecs", 14, NoTime),
        ("hist:keys=a:t=b", 14, NoTime),
        ("hist:keys=a:onmax($b)", 18, NoDuration),
        ("hist:keys=a:onmatch(a.b)", 20, NoEvent),
        (
            "hist:keys=a:d=common_timestamp-$t:onmatch(a.b).trace(c)",
            42,
            NoEvent,
        ),
        ("hist:keys=a:onchange($b)", 12, NoOption),
        ("hist:keys=a:pause", 12, NoOption),
        ("hist:keys=a unless b", 12, NoIf),
        ("hist:keys=a if ", 15, NoFilter),
    ] {
        let error = HistLine::parse(text).expect_err(text);
        assert_eq!((error.at, error.reason), (at, reason), "{text}");
        assert!(!error.shown(text).to_string().is_empty());
    }
    assert!(hist("!hist:keys=a").removes && hist("hist:keys=a:clear").clears);
    assert!(
        is_hist(" !hist:keys=a") && is_hist("hist") && !is_hist("history") && !is_hist("traceon")
    );
}
